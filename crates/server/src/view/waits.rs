//! The operations that an instance waits for.

use super::rfc3339;
use crate::problem::Problem;
use outlast::Client;
use outlast::lens::{OpenOperation, Operation, waits};
use serde::Serialize;
use utoipa::ToSchema;

/// An operation of the current execution without an outcome.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Awaited {
    /// `activity`, `timer`, `event`, `queue` or `child`.
    pub(crate) kind: &'static str,
    /// The name of the activity, the event, the queue, or the orchestration of the child; null for a timer.
    pub(crate) name: Option<String>,
    /// The instance of the child; null for another operation.
    pub(crate) instance: Option<String>,
    /// The event that started the operation.
    pub(crate) event: u64,
    pub(crate) since: String,
    pub(crate) since_ms: u64,
}

impl From<OpenOperation> for Awaited {
    fn from(open: OpenOperation) -> Self {
        let (kind, name, instance) = match open.operation {
            Operation::Activity { name, .. } => ("activity", Some(name), None),
            Operation::Timer { .. } => ("timer", None, None),
            Operation::Event { name } => ("event", Some(name), None),
            Operation::Queue { name } => ("queue", Some(name), None),
            Operation::Child { name, instance } => ("child", Some(name), Some(instance)),
        };
        let (event, since_ms) = (open.event_id, open.since_ms);
        Self { kind, name, instance, event, since: rfc3339(since_ms), since_ms }
    }
}

/// The operations without an outcome, in the order in which they started.
pub(super) async fn awaited(client: &Client, id: &str, execution: u64) -> Result<Vec<Awaited>, Problem> {
    let history = client.read_execution_history(id, execution).await?;
    Ok(waits(&history, None).into_iter().map(|wait| Awaited::from(wait.open)).collect())
}

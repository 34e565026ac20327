//! Reads an instance and the events of an execution.

use crate::problem::{Code, Problem};
use outlast::lens::counted;
use outlast::providers::InstanceInfo;
use outlast::{Client, Event, INITIAL_EXECUTION_ID, OrchestrationStatus};

/// An execution that the store keeps.
pub(crate) struct Execution {
    pub(crate) execution: u64,
    /// The executions that the store keeps, ascending.
    pub(crate) kept: Vec<u64>,
}

/// All events of an execution.
pub(crate) struct History {
    pub(crate) execution: u64,
    /// The executions that the store keeps, ascending.
    pub(crate) kept: Vec<u64>,
    pub(crate) events: Vec<Event>,
}

/// The row of an instance.
pub(crate) async fn info(client: &Client, id: &str) -> Result<InstanceInfo, Problem> {
    match client.get_instance_info(id).await {
        Ok(info) => Ok(info),
        // The contract's error for a missing instance has no code of its own.
        Err(error) => match client.get_orchestration_status(id).await? {
            OrchestrationStatus::NotFound => Err(Problem::no_instance(id)),
            _ => Err(error.into()),
        },
    }
}

/// One execution: the newest one if `wanted` is `None`.
pub(crate) async fn execution(client: &Client, id: &str, wanted: Option<u64>) -> Result<Execution, Problem> {
    let kept = client.list_executions(id).await?;
    if kept.is_empty() {
        return Err(Problem::no_instance(id));
    }
    let newest = kept.last().copied().unwrap_or(INITIAL_EXECUTION_ID);
    let execution = wanted.unwrap_or(newest);
    if !kept.contains(&execution) {
        return Err(Problem::new(
            Code::NOT_FOUND,
            format!(
                "instance '{id:.80}' has no execution {execution}: the newest is {newest}, and the store keeps {}",
                counted(kept.len(), "execution")
            ),
        ));
    }
    Ok(Execution { execution, kept })
}

/// One execution with all its events. A timeline and a state need them all.
pub(crate) async fn history(client: &Client, id: &str, wanted: Option<u64>) -> Result<History, Problem> {
    let Execution { execution, kept } = execution(client, id, wanted).await?;
    let events = client.read_execution_history(id, execution).await?;
    Ok(History { execution, kept, events })
}

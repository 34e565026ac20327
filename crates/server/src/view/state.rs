//! The state of an execution after one of its events.

use super::history::History;
use super::instance::{KeyValue, key_values};
use super::rfc3339;
use crate::problem::Problem;
use outlast::Client;
use outlast::lens::{OpenOperation, state_at};
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The most earlier executions that are read for their keys.
const MOST_EARLIER: usize = 20;
/// Keys of Outlast itself.
const RESERVED: &str = "__outlast:";

/// Keys, custom status and open operations after an event.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StateView {
    pub(crate) instance: String,
    pub(crate) execution: u64,
    /// The last event that the state includes.
    pub(crate) event: u64,
    pub(crate) at: String,
    pub(crate) at_ms: u64,
    /// The number of events of the execution.
    pub(crate) events: usize,
    pub(crate) kv: Vec<KeyValue>,
    /// False if keys of earlier executions are not known: these executions are deleted, or there are too many.
    pub(crate) kv_complete: bool,
    /// Null if payloads are hidden.
    pub(crate) custom_status: Option<String>,
    #[schema(value_type = Vec<Object>)]
    pub(crate) open: Vec<OpenOperation>,
    /// Whether payloads are shown.
    pub(crate) payloads: bool,
}

/// The state after an event; after the last one if `at` is `None`.
pub(crate) async fn state(
    client: &Client,
    id: &str,
    history: &History,
    at: Option<u64>,
    payloads: bool,
) -> Result<StateView, Problem> {
    let (before, kv_complete) = keys_before(client, id, history).await?;
    let mut found = state_at(&history.events, at.unwrap_or(u64::MAX), &before);
    found.kv.retain(|key, _| !key.starts_with(RESERVED));
    Ok(StateView {
        instance: id.to_string(),
        execution: history.execution,
        event: found.event_id,
        at: rfc3339(found.at_ms),
        at_ms: found.at_ms,
        events: history.events.len(),
        kv: key_values(found.kv, payloads),
        kv_complete,
        custom_status: found.custom_status.filter(|_| payloads),
        open: found.open,
        payloads,
    })
}

/// The keys at the start of the execution, and whether all of them are known.
async fn keys_before(
    client: &Client,
    id: &str,
    history: &History,
) -> Result<(BTreeMap<String, String>, bool), Problem> {
    let earlier: Vec<u64> =
        history.kept.iter().copied().filter(|execution| *execution < history.execution).collect();
    let is_complete = earlier.len() as u64 + 1 == history.execution && earlier.len() <= MOST_EARLIER;
    let mut keys = BTreeMap::new();
    for execution in earlier.into_iter().rev().take(MOST_EARLIER).rev() {
        let events = client.read_execution_history(id, execution).await?;
        keys = state_at(&events, u64::MAX, &keys).kv;
    }
    Ok((keys, is_complete))
}

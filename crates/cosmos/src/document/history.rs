//! Documents of events and of executions.

use super::is_false;
use crate::ids::Uid;
use crate::number;
use serde::{Deserialize, Serialize};

/// An execution: inside of the instance if it has the highest id, else in a document `x`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Execution {
    #[serde(rename = "x", with = "number")]
    pub(crate) execution_id: u64,
    /// Events were appended outside of a turn, and no turn was committed.
    #[serde(rename = "ev", default, skip_serializing_if = "is_false")]
    pub(crate) has_events_only: bool,
    #[serde(rename = "s", default)]
    pub(crate) status: String,
    #[serde(rename = "out", default, skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<String>,
    /// The output is in the document of the execution.
    #[serde(rename = "far", default, skip_serializing_if = "is_false")]
    pub(crate) output_is_far: bool,
    #[serde(rename = "t0", with = "number", default)]
    pub(crate) started_at: u64,
    #[serde(rename = "t1", with = "number::option", default, skip_serializing_if = "Option::is_none")]
    pub(crate) completed_at: Option<u64>,
    #[serde(rename = "pin", default, skip_serializing_if = "Option::is_none")]
    pub(crate) pinned: Option<String>,
    #[serde(rename = "e", with = "number", default)]
    pub(crate) last_event_id: u64,
    #[serde(rename = "n", with = "number", default)]
    pub(crate) events: u64,
    #[serde(rename = "b", with = "number", default)]
    pub(crate) bytes: u64,
}

/// The events of one turn, or a part of them: `t = "h"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Events {
    pub(crate) id: String,
    #[serde(rename = "instanceId")]
    pub(crate) partition: String,
    pub(crate) t: String,
    #[serde(rename = "x", with = "number")]
    pub(crate) execution_id: u64,
    #[serde(rename = "e", with = "number")]
    pub(crate) first: u64,
    #[serde(with = "number::option", default, skip_serializing_if = "Option::is_none")]
    pub(crate) rev: Option<u64>,
    pub(crate) w: Uid,
    /// Ids and texts.
    pub(crate) d: Vec<StoredEvent>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StoredEvent {
    #[serde(rename = "e", with = "number")]
    pub(crate) event_id: u64,
    #[serde(rename = "d")]
    pub(crate) text: String,
}

/// An execution that is not the highest one, or whose output is large: `t = "x"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ExecutionDocument {
    pub(crate) id: String,
    #[serde(rename = "instanceId")]
    pub(crate) partition: String,
    pub(crate) t: String,
    #[serde(with = "number::option", default, skip_serializing_if = "Option::is_none")]
    pub(crate) rev: Option<u64>,
    pub(crate) w: Uid,
    #[serde(rename = "x", with = "number")]
    pub(crate) execution_id: u64,
    #[serde(rename = "d")]
    pub(crate) execution: Execution,
}

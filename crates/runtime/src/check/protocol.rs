//! The lines that `outlast check` and a program exchange: JSON, one question or answer each. The command writes questions to the
//! standard input of the program, and reads the answers from its standard output.

use outlast_model::Event;
use outlast_provider::KvEntry;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// The environment variable with the protocol of the command. A program that starts with this variable answers the command, and
/// runs no instance.
pub const VARIABLE: &str = "OUTLAST_CHECK";
/// The value of [`VARIABLE`].
pub const PROTOCOL: &str = "1";
/// The beginning of every answer. Lines without this beginning are no answers.
pub const PREFIX: &str = "outlast-check: ";

/// The first line of the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Greeting {
    /// The [`PROTOCOL`] that the program speaks.
    pub protocol: String,
    /// The orchestrations of the program, `name@version` each.
    pub orchestrations: Vec<String>,
}

/// A history to replay.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Question {
    /// The instance.
    pub instance: String,
    /// Its current execution.
    pub execution_id: u64,
    /// All events of the execution.
    pub history: Vec<Event>,
    /// The keys at the end of the previous execution.
    #[serde(default, skip_serializing_if = "HashMap::is_empty")]
    pub kv: HashMap<String, KvItem>,
    /// The event whose place in the source is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locate: Option<u64>,
}

/// The value of a key.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KvItem {
    value: String,
    at_ms: u64,
}

impl From<KvEntry> for KvItem {
    fn from(entry: KvEntry) -> Self {
        Self { value: entry.value, at_ms: entry.last_updated_at_ms }
    }
}

impl From<KvItem> for KvEntry {
    fn from(item: KvItem) -> Self {
        Self { value: item.value, last_updated_at_ms: item.at_ms }
    }
}

/// The result for one instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// The code repeats the history.
    Safe,
    /// The code does not repeat the history.
    Diverges,
    /// The program has no orchestration of this name and version.
    Unregistered,
    /// The history, or a value in it, does not decode.
    Undecodable,
}

/// The answer for one instance. It has no payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The instance.
    pub instance: String,
    /// The execution.
    pub execution_id: u64,
    /// Name of the orchestration.
    pub orchestration: String,
    /// Version of the orchestration.
    pub version: String,
    /// The result.
    pub finding: Finding,
    /// The first event that the code does not repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<u64>,
    /// That event, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<String>,
    /// The type of that event in a history, which stays as it is in later releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded_type: Option<String>,
    /// The behaviour of the code instead of that event, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
    /// The type of the event that the code asks for instead, if it makes another decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now_type: Option<String>,
    /// The place of the code in the source: `file:line:column`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// The place in the source of [`Question::locate`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub located: Option<String>,
    /// The patches that the code asks for, and whether the instance takes them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub patches: BTreeMap<String, bool>,
}

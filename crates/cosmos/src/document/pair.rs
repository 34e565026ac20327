//! Documents of the key-value state.

use crate::ids::Uid;
use crate::number;
use serde::{Deserialize, Serialize};

/// The state of all keys: see [`crate::kv`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KvMarks {
    /// The number of ended executions.
    #[serde(rename = "ep", default)]
    pub(crate) epoch: u64,
    /// The number of changes.
    #[serde(rename = "n", default)]
    pub(crate) changes: u64,
    /// The last removal of all keys in this epoch, and its time.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub(crate) cleared: Option<(u64, u64)>,
    /// The last removal of all keys in an earlier epoch.
    #[serde(rename = "cb", default)]
    pub(crate) cleared_before: u64,
}

impl KvMarks {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A key of the key-value state: `t = "k"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Pair {
    pub(crate) id: String,
    #[serde(rename = "instanceId")]
    pub(crate) partition: String,
    pub(crate) t: String,
    #[serde(with = "number::option", default, skip_serializing_if = "Option::is_none")]
    pub(crate) rev: Option<u64>,
    pub(crate) w: Uid,
    pub(crate) key: String,
    #[serde(rename = "d")]
    pub(crate) content: Content,
    /// The committed content, while `content` belongs to a staged turn.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub(crate) committed: Option<Box<Committed>>,
}

/// The content of a key before a staged turn; none if the key is new.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Committed {
    #[serde(with = "number::option", default, skip_serializing_if = "Option::is_none")]
    pub(crate) rev: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<Content>,
}

/// The values of a key. See [`crate::kv`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Content {
    /// The value after the last ended execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) base: Option<Value>,
    /// The last change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) change: Option<Change>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Value {
    #[serde(rename = "v")]
    pub(crate) value: String,
    #[serde(rename = "at", with = "number")]
    pub(crate) updated_at: u64,
    /// The number of the change that set the value.
    #[serde(rename = "n")]
    pub(crate) nth: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Change {
    /// The value; none if the key was removed.
    #[serde(rename = "v", default, skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<String>,
    #[serde(rename = "at", with = "number")]
    pub(crate) updated_at: u64,
    #[serde(rename = "n")]
    pub(crate) nth: u64,
    #[serde(rename = "ep")]
    pub(crate) epoch: u64,
}

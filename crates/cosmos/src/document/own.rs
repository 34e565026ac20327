//! Documents of the store itself.

use crate::ids::Uid;
use crate::number;
use serde::{Deserialize, Serialize};

/// A session: `t = "s"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) id: String,
    #[serde(rename = "instanceId")]
    pub(crate) partition: String,
    pub(crate) t: String,
    #[serde(rename = "sid")]
    pub(crate) session_id: String,
    #[serde(rename = "own")]
    pub(crate) owner: String,
    /// The process whose clock set the end of the lease.
    #[serde(rename = "by", default)]
    pub(crate) holder: Uid,
    #[serde(with = "number")]
    pub(crate) until: u64,
    #[serde(rename = "act", with = "number")]
    pub(crate) last_activity_at: u64,
    pub(crate) w: Uid,
}

/// The record of a delete: `t = "d"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeleteRecord {
    pub(crate) id: String,
    #[serde(rename = "instanceId")]
    pub(crate) partition: String,
    pub(crate) t: String,
    pub(crate) ids: Vec<String>,
    #[serde(rename = "flip", default)]
    pub(crate) is_flipped: bool,
    /// The time of its creation.
    #[serde(with = "number")]
    pub(crate) made_at: u64,
    /// Messages that arrive after the flip belong to a new instance.
    #[serde(rename = "q", default)]
    pub(crate) sequence: u64,
    /// The life of a record that is not flipped, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ttl: Option<u32>,
}

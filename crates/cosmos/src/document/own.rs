//! Documents of the store itself.

use crate::ids::Uid;
use crate::number;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

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
    /// The life of a record that is not flipped, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ttl: Option<u32>,
}

/// A message, a key of a message or an activity that came from outside of the turns of its instance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FromOutside<'a> {
    pub(crate) id: &'a str,
    /// The time of its last write, in whole seconds of the service.
    pub(crate) stamp: u64,
}

/// The service stamps the documents of one partition in their order. After a failover its clock may be behind by less than this
/// time, in seconds.
const STAMP_SKEW: u64 = 30;

/// The documents from outside that a deletion removes: those that it found before it marked the instance. Later ones are for a new
/// instance.
///
/// All stamps are of one partition. A message that is stored later is stamped after the newest one that was found, or a few
/// seconds before it. So older messages need no name, and the list is short however many messages wait.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Earlier {
    /// Messages with an earlier stamp are removed, whatever their ids are.
    #[serde(rename = "ts", default)]
    before: u64,
    #[serde(default)]
    ids: BTreeSet<String>,
}

impl Earlier {
    pub(crate) fn of<'a>(found: impl Iterator<Item = FromOutside<'a>>) -> Self {
        let found: Vec<FromOutside<'a>> = found.collect();
        let newest =
            found.iter().filter(|document| document.is_written_once()).map(|document| document.stamp).max();
        let before = newest.map_or(0, |newest| newest.saturating_sub(STAMP_SKEW));
        let named = found.iter().filter(|document| !document.is_written_once() || document.stamp >= before);
        Self { before, ids: named.map(|document| document.id.to_string()).collect() }
    }

    pub(crate) fn has(&self, document: &FromOutside<'_>) -> bool {
        let is_old = document.is_written_once() && document.stamp < self.before;
        is_old || self.ids.contains(document.id)
    }
}

impl FromOutside<'_> {
    /// Whether the stamp is that of the creation. An activity is written again by its worker.
    fn is_written_once(&self) -> bool {
        !self.id.starts_with("a:")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_outside(id: &str, stamp: u64) -> FromOutside<'_> {
        FromOutside { id, stamp }
    }

    #[test]
    fn documents_that_were_found_are_earlier_and_no_others() {
        let earlier = Earlier::of([from_outside("m:1", 500), from_outside("m:2", 500)].into_iter());
        assert!(earlier.has(&from_outside("m:1", 500)) && earlier.has(&from_outside("m:2", 500)));
        for stamp in [500, 471, 900] {
            assert!(!earlier.has(&from_outside("m:3", stamp)), "{stamp}");
        }
        assert!(!Earlier::of(std::iter::empty()).has(&from_outside("m:3", 500)));
    }

    #[test]
    fn only_the_newest_messages_are_named() {
        let ids: Vec<String> = (0..1_000).map(|nth| format!("m:{nth}")).collect();
        let found = ids.iter().zip(0..).map(|(id, stamp)| from_outside(id, stamp));
        let earlier = Earlier::of(found.clone());
        assert_eq!(earlier.ids.len(), 31);
        assert!(found.clone().all(|document| earlier.has(&document)));
    }

    #[test]
    fn an_activity_is_named_because_its_worker_stamps_it_again() {
        let earlier = Earlier::of([from_outside("m:1", 500), from_outside("a:1:2:x", 7)].into_iter());
        assert!(earlier.has(&from_outside("a:1:2:x", 501)), "renewed meanwhile");
        assert!(!earlier.has(&from_outside("a:1:2:y", 7)));
    }
}

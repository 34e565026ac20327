//! The keys with which a new execution begins: those with which the execution of the source began.

use super::{Cut, CutError};
use crate::op::kv::{KvValue, is_users};
use outlast_model::{EventKind, INITIAL_EXECUTION_ID, ResetKey};
use std::collections::BTreeMap;

impl Cut<'_> {
    /// The keys with which the execution began. `stored` are the keys of the last execution that ended: for an execution that has
    /// ended, with its own changes.
    pub(super) fn first_keys(
        &self,
        stored: &BTreeMap<String, KvValue>,
    ) -> Result<BTreeMap<String, ResetKey>, CutError> {
        let kept = |(key, entry): (&String, &KvValue)| {
            let value = entry.value.clone();
            (key.clone(), ResetKey { value, last_updated_at_ms: entry.updated_at_ms })
        };
        if !self.has_ended {
            return Ok(stored.iter().map(kept).collect());
        }
        if self.kept.first().is_some_and(|start| start.execution_id == INITIAL_EXECUTION_ID) {
            return Ok(BTreeMap::new());
        }
        for event in self.kept.iter().chain(self.left) {
            match &event.kind {
                EventKind::KeyValueSet { key, .. } | EventKind::KeyValueCleared { key } if is_users(key) => {
                    return Err(CutError::KeysLost { key: Some(key.clone()) });
                }
                EventKind::KeyValuesCleared => return Err(CutError::KeysLost { key: None }),
                _ => {}
            }
        }
        Ok(stored.iter().map(kept).collect())
    }
}

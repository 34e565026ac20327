//! Broken changes of dead letters.

use super::{Defect, Rules};
use crate::rules::{Contract, DeadLetterRules};
use crate::state::State;
use outlast_provider::model::{WorkItem, json};
use outlast_provider::{AuditEntry, DeadLetter};

impl DeadLetterRules for Rules {
    fn deliverable(&self, letter: &DeadLetter) -> Result<WorkItem, String> {
        match self.defect {
            Some(Defect::RequeueIgnoresInstance) => {
                json::decode_work_item(&letter.work_item).map_err(|error| error.to_string())
            }
            _ => Contract.deliverable(letter),
        }
    }

    fn remove_requeued(&self, state: &mut State, id: u64) {
        if self.defect != Some(Defect::RequeueKeepsDeadLetter) {
            Contract.remove_requeued(state, id);
        }
    }

    fn record_requeue(&self, state: &mut State, entry: &AuditEntry, now: u64) {
        if self.defect != Some(Defect::RequeueNotAudited) {
            Contract.record_requeue(state, entry, now);
        }
    }

    fn record_drop(&self, state: &mut State, entry: &AuditEntry, now: u64) {
        if self.defect != Some(Defect::DropNotAudited) {
            Contract.record_drop(state, entry, now);
        }
    }
}

//! Changes of dead letters.

use crate::dead_letter::deliverable;
use crate::state::State;
use outlast_provider::model::WorkItem;
use outlast_provider::{AuditEntry, DeadLetter};

pub(crate) trait DeadLetterRules {
    /// A dead letter that decodes and belongs to its row can be delivered.
    fn deliverable(&self, letter: &DeadLetter) -> Result<WorkItem, String> {
        deliverable(letter)
    }

    /// A requeued item is no dead letter.
    fn remove_requeued(&self, state: &mut State, id: u64) {
        state.dead_letters.remove(&id);
    }

    /// A requeue is in the audit.
    fn record_requeue(&self, state: &mut State, entry: &AuditEntry, now: u64) {
        state.record(entry, now);
    }

    /// A drop is in the audit.
    fn record_drop(&self, state: &mut State, entry: &AuditEntry, now: u64) {
        state.record(entry, now);
    }
}

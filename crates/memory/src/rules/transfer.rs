//! Imports of instances.

use super::StartRules;
use crate::state::State;
use outlast_provider::model::{SnapshotHold, SnapshotMessage};
use outlast_provider::{AuditEntry, InstanceSnapshot};

pub(crate) trait TransferRules: StartRules {
    /// An import gets an id that no instance has and no start waits for.
    fn import_is_taken(&self, state: &State, instance: &str) -> bool {
        self.is_taken(state, instance)
    }

    /// An imported message is visible when it was.
    fn imported_visible_at(&self, message: &SnapshotMessage) -> u64 {
        message.visible_at
    }

    /// The deliveries of imported messages and activities stay counted.
    fn imported_deliveries(&self, attempts: u32) -> u32 {
        attempts
    }

    /// The changes of the current execution stay apart from the keys.
    fn import_changes(&self, state: &mut State, snapshot: &InstanceSnapshot) {
        state.import_changes(snapshot);
    }

    /// The keys of messages come along, so that the instance takes no message a second time.
    fn import_message_keys(&self, state: &mut State, snapshot: &InstanceSnapshot) {
        snapshot.message_keys.iter().for_each(|key| state.keep_key(&snapshot.instance_id, key));
    }

    /// A held instance stays held.
    fn import_hold(&self, state: &mut State, instance: &str, hold: &SnapshotHold) {
        state.import_hold(instance, hold);
    }

    /// An import is recorded in the audit.
    fn audit_import(&self, state: &mut State, audit: &AuditEntry, now: u64) {
        state.audit_import(audit, now);
    }
}

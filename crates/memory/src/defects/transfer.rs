//! Broken imports.

use super::{Defect, Rules};
use crate::rules::{Contract, TransferRules};
use crate::state::State;
use outlast_provider::model::{SnapshotHold, SnapshotMessage};
use outlast_provider::{AuditEntry, InstanceSnapshot};

impl TransferRules for Rules {
    fn import_is_taken(&self, state: &State, instance: &str) -> bool {
        match self.defect {
            Some(Defect::ImportIgnoresWaitingStart) => state.instances.contains_key(instance),
            _ => Contract.import_is_taken(state, instance),
        }
    }

    fn imported_visible_at(&self, message: &SnapshotMessage) -> u64 {
        match self.defect {
            Some(Defect::ImportFiresTimers) => 0,
            _ => Contract.imported_visible_at(message),
        }
    }

    fn imported_deliveries(&self, attempts: u32) -> u32 {
        match self.defect {
            Some(Defect::ImportForgetsDeliveries) => 0,
            _ => Contract.imported_deliveries(attempts),
        }
    }

    fn import_changes(&self, state: &mut State, snapshot: &InstanceSnapshot) {
        Contract.import_changes(state, snapshot);
        if self.defect == Some(Defect::ImportMergesKeys) {
            state.merge_kv(&snapshot.instance_id);
        }
    }

    fn import_message_keys(&self, state: &mut State, snapshot: &InstanceSnapshot) {
        if self.defect != Some(Defect::ImportForgetsMessageKeys) {
            Contract.import_message_keys(state, snapshot);
        }
    }

    fn import_hold(&self, state: &mut State, instance: &str, hold: &SnapshotHold) {
        if self.defect != Some(Defect::ImportForgetsHold) {
            Contract.import_hold(state, instance, hold);
        }
    }

    fn audit_import(&self, state: &mut State, audit: &AuditEntry, now: u64) {
        if self.defect != Some(Defect::ImportNotAudited) {
            Contract.audit_import(state, audit, now);
        }
    }
}

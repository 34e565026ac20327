//! Plans the rows of a reset or a fork, before the transaction.

use crate::plan::{CommitPlan, KvChange, MessageRow, checked_id, message_row};
use outlast_model::{EventKind, ExecutionStatus};
use outlast_provider::{AuditEntry, ExecutionMetadata, ProviderError, ResetPlan};
use std::collections::BTreeMap;

/// The rows of a reset or a fork.
#[derive(Debug, Clone)]
pub struct ResetRows {
    /// The instance whose events are copied.
    pub source: String,
    /// Its newest execution.
    pub execution_id: u64,
    /// The last event of that execution.
    pub last_event_id: u64,
    /// The instance that gets the new execution.
    pub target: String,
    /// The end of the execution of the source. It changes no keys.
    pub end: Option<CommitPlan>,
    /// The first turn of the new execution. It sets the custom status.
    pub begin: CommitPlan,
    /// Messages that are delivered before all others.
    pub first_messages: Vec<MessageRow>,
    /// The time from which on `first_messages` are available, unless the store's time is earlier or a message of the target has
    /// waited for longer.
    pub first_available_ms: u64,
    /// The keys with which the new execution begins, each as the change that sets it.
    pub keys: Vec<KvChange>,
    /// The record in the audit.
    pub audit: AuditEntry,
}

impl ResetRows {
    /// The rows of a plan, or the reason why the plan is invalid.
    pub fn of(plan: &ResetPlan) -> Result<Self, ProviderError> {
        const RESET: &str = "reset_instance";
        checked_id(RESET, &plan.target)?;
        let end = plan.end.as_ref().map(|event| {
            let output = match &event.kind {
                EventKind::OrchestrationContinuedAsNew { input } => Some(input.clone()),
                _ => None,
            };
            let status = Some(ExecutionStatus::ContinuedAsNew.to_string());
            let metadata = ExecutionMetadata { status, output, ..ExecutionMetadata::default() };
            CommitPlan::new(plan.execution_id, std::slice::from_ref(event), &[], &[], metadata, Vec::new())
        });
        let mut begin = CommitPlan::of(plan.begin.clone())?;
        begin.custom_status = Some(plan.custom_status.clone());
        let keys = plan.keys.iter().map(|(key, entry)| KvChange::Set {
            key: key.clone(),
            value: entry.value.clone(),
            last_updated_at_ms: entry.last_updated_at_ms,
        });
        let first = plan.first_messages.iter().map(|message| message_row(RESET, message));
        Ok(Self {
            source: plan.source.clone(),
            execution_id: plan.execution_id,
            last_event_id: plan.last_event_id,
            target: plan.target.clone(),
            end: end.transpose()?,
            begin,
            first_messages: first.collect::<Result<_, _>>()?,
            first_available_ms: plan.first_available_ms,
            keys: keys.collect(),
            audit: plan.audit.clone(),
        })
    }

    /// The changes that the copied events make to the keys: by key the value with its time, or `None` for a removal.
    pub fn changed_keys(&self) -> BTreeMap<&str, Option<(&str, u64)>> {
        let mut changed = BTreeMap::new();
        for change in &self.begin.kv {
            match change {
                KvChange::Set { key, value, last_updated_at_ms } => {
                    changed.insert(key.as_str(), Some((value.as_str(), *last_updated_at_ms)));
                }
                KvChange::Clear { key } => {
                    changed.insert(key, None);
                }
                KvChange::ClearAll => {
                    let keys = self.keys.iter().filter_map(|change| match change {
                        KvChange::Set { key, .. } => Some(key.as_str()),
                        _ => None,
                    });
                    changed.extend(keys.map(|key| (key, None)));
                    changed.values_mut().for_each(|value| *value = None);
                }
            }
        }
        changed
    }

    /// Whether the new execution belongs to a new instance.
    pub fn is_fork(&self) -> bool {
        self.source != self.target
    }
}

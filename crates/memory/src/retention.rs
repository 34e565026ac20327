//! Retention: the oldest instances, and the deletion of ended trees, old records of the audit and old dead letters.

use crate::rules::{AdminRules, RetentionRules};
use crate::state::State;
use outlast_provider::model::{WorkItem, json};
use outlast_provider::{DeleteInstanceResult, OldInstance, OldestPage, ProviderError};

impl State {
    /// The next instances in order of creation.
    pub(crate) fn oldest_instances(&self, after: Option<u64>, limit: usize) -> OldestPage {
        let mut rows: Vec<_> = self.instances.iter().map(|(id, row)| (row.created_nth, id, row)).collect();
        rows.sort_by_key(|(nth, ..)| *nth);
        rows.retain(|(nth, ..)| self.rules.is_after(*nth, after));
        let is_cut = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().map(|(nth, ..)| *nth).filter(|_| is_cut);
        let instances = rows.into_iter().map(|(_, id, row)| {
            let current = self.current_execution(id);
            OldInstance {
                instance_id: id.clone(),
                orchestration_name: row.orchestration_name.clone(),
                status: current.map_or_else(|| "Unknown".to_string(), |row| row.status.clone()),
                is_root: row.parent_instance_id.is_none(),
                created_at: row.created_at,
                ended_at: current.and_then(|row| row.completed_at),
            }
        });
        OldestPage { instances: instances.collect(), next }
    }

    /// Deletes the trees of these roots that match; also returns the deleted ids.
    pub(crate) fn delete_ended(
        &mut self,
        roots: &[String],
        ended_before: u64,
    ) -> Result<(DeleteInstanceResult, Vec<String>), ProviderError> {
        let rules = self.rules;
        let (mut total, mut gone) = (DeleteInstanceResult::default(), Vec::new());
        for root in roots {
            if !rules.is_old_root(self, root, ended_before) {
                continue;
            }
            let tree = self.tree(root);
            if tree.iter().any(|id| rules.is_in_use(self, id)) {
                continue;
            }
            let deleted = self.delete(&tree, true)?;
            total.instances_deleted += deleted.instances_deleted;
            total.executions_deleted += deleted.executions_deleted;
            total.events_deleted += deleted.events_deleted;
            total.queue_messages_deleted += deleted.queue_messages_deleted;
            gone.extend(tree);
        }
        Ok((total, gone))
    }

    /// Whether this is a root that has ended before a time.
    pub(crate) fn is_old_root(&self, id: &str, ended_before: u64) -> bool {
        let is_root = self.instances.get(id).is_some_and(|row| row.parent_instance_id.is_none());
        is_root && self.rules.may_bulk_delete(self, id) && self.ended_before(id, ended_before)
    }

    pub(crate) fn ended_before(&self, id: &str, before: u64) -> bool {
        self.current_execution(id).and_then(|row| row.completed_at).is_some_and(|at| at < before)
    }

    /// Whether a message other than a timer waits for the instance. A message that does not decode counts.
    pub(crate) fn has_undelivered(&self, id: &str) -> bool {
        let counts = |text: &str| !matches!(json::decode_work_item(text), Ok(WorkItem::TimerFired { .. }));
        !self.messages.of_instance(id, |message| counts(&message.text)).is_empty()
    }

    pub(crate) fn prune_audit(&mut self, before: u64, limit: usize) -> u64 {
        let rules = self.rules;
        let examined = rules.examined(limit);
        let newest = self.audit.last().map(|record| record.id);
        let all = self.audit.len();
        let mut nth = 0;
        self.audit.retain(|record| {
            nth += 1;
            let is_kept = rules.keeps_newest_record() && Some(record.id) == newest;
            nth > examined || is_kept || !rules.is_old(record.at_ms, before)
        });
        (all - self.audit.len()) as u64
    }

    pub(crate) fn prune_dead_letters(&mut self, before: u64, limit: usize) -> u64 {
        let rules = self.rules;
        let oldest = self.dead_letters.iter().take(rules.examined(limit));
        let old: Vec<u64> =
            oldest.filter(|(_, letter)| rules.is_old(letter.dead_at, before)).map(|(id, _)| *id).collect();
        for id in &old {
            self.dead_letters.remove(id);
        }
        old.len() as u64
    }
}

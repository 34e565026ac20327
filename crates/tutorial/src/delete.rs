//! Step 9: instances are deleted together with all their rows.

use crate::state::{State, refuse};
use outlast_provider::model::ExecutionStatus;
use outlast_provider::{DeleteInstanceResult, InstanceFilter, ProviderError};
use outlast_provider_kit::DEFAULT_BULK_LIMIT;

impl State {
    // guide: delete
    /// Removes exactly these instances, or none.
    pub(crate) fn delete(
        &mut self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        const DELETE: &str = "delete_instances_atomic";
        if let Some(id) = ids.iter().find(|id| !force && self.is_running(id)) {
            return refuse(
                DELETE,
                format!("instance '{id}' is running: cancel it first, or delete with force"),
            );
        }
        let left_behind = ids.iter().flat_map(|id| self.children(id)).find(|child| !ids.contains(child));
        if let Some(child) = left_behind {
            return refuse(DELETE, format!("child '{child}' would be left behind: delete the whole tree"));
        }
        let mut deleted = DeleteInstanceResult::default();
        for id in ids {
            deleted.instances_deleted += u64::from(self.instances.remove(id).is_some());
            deleted.executions_deleted += self.executions.remove(id).map_or(0, |all| all.len() as u64);
            let history = self.history.remove(id).unwrap_or_default();
            deleted.events_deleted += history.values().map(|events| events.len() as u64).sum::<u64>();
            let rows = self.messages.len() + self.activities.len();
            self.messages.retain(|_, message| message.instance != *id);
            self.activities.retain(|_, activity| activity.instance != *id);
            deleted.queue_messages_deleted += (rows - self.messages.len() - self.activities.len()) as u64;
            // Without its lease a running turn cannot commit and bring the instance back.
            self.leases.remove(id);
            self.kv_store.remove(id);
            self.kv_delta.remove(id);
        }
        Ok(deleted)
    }
    // guide: end

    /// Removes finished roots that match the filter, each with its descendants, oldest first.
    pub(crate) fn delete_bulk(
        &mut self,
        filter: &InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        let mut left = filter.limit.unwrap_or(DEFAULT_BULK_LIMIT);
        let mut total = DeleteInstanceResult::default();
        for root in self.matching(filter) {
            let is_root = self.instances.get(&root).is_some_and(|row| row.parent.is_none());
            let current = self.current_execution(&root);
            let status = current.and_then(|execution| ExecutionStatus::from_text(&execution.status));
            let tree = self.tree(&root);
            let has_ended = status.is_some_and(ExecutionStatus::ends_instance);
            if left == 0 || !is_root || !has_ended || tree.iter().any(|id| self.is_running(id)) {
                continue;
            }
            let deleted = self.delete(&tree, true)?;
            left -= 1;
            total.instances_deleted += deleted.instances_deleted;
            total.executions_deleted += deleted.executions_deleted;
            total.events_deleted += deleted.events_deleted;
            total.queue_messages_deleted += deleted.queue_messages_deleted;
        }
        Ok(total)
    }

    /// Instances that the filter selects, oldest first. The caller applies the limit.
    pub(crate) fn matching(&self, filter: &InstanceFilter) -> Vec<String> {
        let mut ids = self.newest_first(|id| {
            let is_listed =
                filter.instance_ids.as_ref().is_none_or(|ids| ids.iter().any(|listed| listed == id));
            let ended_at = self.current_execution(id).and_then(|execution| execution.completed_at);
            let before = filter.completed_before;
            is_listed && before.is_none_or(|before| ended_at.is_some_and(|ended_at| ended_at < before))
        });
        ids.reverse();
        ids
    }

    fn tree(&self, root: &str) -> Vec<String> {
        let mut all = vec![root.to_string()];
        let mut next = 0;
        while let Some(id) = all.get(next).cloned() {
            // A damaged file could hold a cycle.
            let children: Vec<String> = self.children(&id).into_iter().filter(|c| !all.contains(c)).collect();
            all.extend(children);
            next += 1;
        }
        all
    }
}

//! Step 9: old executions are removed.

use crate::state::{State, refuse};
use outlast_provider::{InstanceFilter, ProviderError, PruneOptions, PruneResult};
use outlast_provider_kit::DEFAULT_BULK_LIMIT;

// guide: prune
impl State {
    /// Removes executions that are not current, not running, not among the newest `keep_last`, and ended early enough.
    pub(crate) fn prune(
        &mut self,
        instance: &str,
        options: &PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        let Some(current) = self.instances.get(instance).map(|row| row.current_execution) else {
            return refuse("prune_executions", format!("instance '{instance}' not found"));
        };
        let mut result = PruneResult { instances_processed: 1, ..PruneResult::default() };
        let Some(executions) = self.executions.get_mut(instance) else { return Ok(result) };
        let keep = options.keep_last.unwrap_or(0) as usize;
        let kept: Vec<u64> = executions.keys().rev().take(keep).copied().collect();
        executions.retain(|id, execution| {
            let before = options.completed_before;
            let is_early = before.is_none_or(|before| execution.completed_at.is_some_and(|at| at < before));
            let stays = *id == current || execution.is_running() || kept.contains(id) || !is_early;
            if !stays {
                let events = self.history.get_mut(instance).and_then(|history| history.remove(id));
                result.executions_deleted += 1;
                result.events_deleted += events.map_or(0, |events| events.len() as u64);
            }
            stays
        });
        Ok(result)
    }
    // guide: end

    pub(crate) fn prune_bulk(
        &mut self,
        filter: &InstanceFilter,
        options: &PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        let limit = filter.limit.unwrap_or(DEFAULT_BULK_LIMIT) as usize;
        let mut total = PruneResult::default();
        for instance in self.matching(filter).into_iter().take(limit) {
            let pruned = self.prune(&instance, options)?;
            total.instances_processed += pruned.instances_processed;
            total.executions_deleted += pruned.executions_deleted;
            total.events_deleted += pruned.events_deleted;
        }
        Ok(total)
    }
}

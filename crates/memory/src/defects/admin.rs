//! Broken management.

use super::{Defect, Rules};
use crate::queue::Activity;
use crate::rules::{AdminRules, Contract};
use crate::state::{Execution, State};
use outlast_provider::{InstanceFilter, ProviderError, PruneOptions};

impl AdminRules for Rules {
    fn page(&self, ids: Vec<String>, after: Option<&str>) -> Option<Vec<String>> {
        let mut page = Contract.page(ids, after)?;
        if self.defect == Some(Defect::PageSkipsOne) && after.is_some() && !page.is_empty() {
            page.remove(0);
        }
        Some(page)
    }

    fn is_pending(&self, activity: &Activity, instance: &str, now: u64) -> bool {
        match self.defect {
            Some(Defect::PendingHidesLeased) if activity.is_leased(now) => false,
            Some(Defect::PendingMixesInstances) => true,
            _ => Contract.is_pending(activity, instance, now),
        }
    }

    fn pending_failures(&self, activity: &Activity) -> u32 {
        match self.defect {
            Some(Defect::PendingHidesFailures) => 0,
            _ => Contract.pending_failures(activity),
        }
    }

    fn is_on_queue_page(&self, activity: &Activity, now: u64) -> bool {
        self.defect != Some(Defect::QueuePageHidesLeased) || !activity.is_leased(now)
    }

    fn counts_as_leased(&self, activity: &Activity, now: u64) -> bool {
        match self.defect {
            Some(Defect::TagsCountEndedLeases) => activity.token.is_some(),
            _ => Contract.counts_as_leased(activity, now),
        }
    }

    fn may_be_oldest(&self, state: &State, instance: &str, now: u64) -> bool {
        self.defect == Some(Defect::OldestDueCountsLeased) || Contract.may_be_oldest(state, instance, now)
    }

    fn size(&self, text: &str) -> u64 {
        match self.defect {
            Some(Defect::SizesInCharacters) => text.chars().count() as u64,
            _ => Contract.size(text),
        }
    }

    fn carried_messages(&self, instance: &str, first_event: Option<&str>) -> Result<u64, ProviderError> {
        match (self.defect, Contract.carried_messages(instance, first_event)) {
            (Some(Defect::StatsSwallowErrors), Err(_)) => Ok(0),
            (_, carried) => carried,
        }
    }

    fn check_not_running(
        &self,
        state: &State,
        operation: &str,
        ids: &[String],
        force: bool,
    ) -> Result<(), ProviderError> {
        let force = force || self.defect == Some(Defect::DeleteIgnoresRunning);
        Contract.check_not_running(state, operation, ids, force)
    }

    fn check_whole_tree(&self, state: &State, operation: &str, ids: &[String]) -> Result<(), ProviderError> {
        match self.defect {
            Some(Defect::DeleteOrphansChildren) => Ok(()),
            _ => Contract.check_whole_tree(state, operation, ids),
        }
    }

    fn delete_activities(&self, state: &mut State, instance: &str) -> u64 {
        match self.defect {
            Some(Defect::DeleteKeepsWork) => 0,
            _ => Contract.delete_activities(state, instance),
        }
    }

    fn delete_lease(&self, state: &mut State, instance: &str) {
        if self.defect != Some(Defect::DeleteKeepsLease) {
            Contract.delete_lease(state, instance);
        }
    }

    fn delete_kv(&self, state: &mut State, instance: &str) {
        if self.defect != Some(Defect::DeleteKeepsKv) {
            Contract.delete_kv(state, instance);
        }
    }

    fn bulk_limit(&self, filter: &InstanceFilter) -> usize {
        match self.defect {
            Some(Defect::BulkDeleteIgnoresLimit) => usize::MAX,
            _ => Contract.bulk_limit(filter),
        }
    }

    fn may_bulk_delete(&self, state: &State, instance: &str) -> bool {
        self.defect == Some(Defect::BulkDeleteTakesRunning) || Contract.may_bulk_delete(state, instance)
    }

    fn may_bulk_delete_tree(&self, state: &State, tree: &[String]) -> bool {
        match self.defect {
            Some(Defect::BulkDeleteForcesChildren | Defect::BulkDeleteTakesRunning) => true,
            _ => Contract.may_bulk_delete_tree(state, tree),
        }
    }

    fn bulk_prune_candidates(&self, state: &State, filter: &InstanceFilter) -> Vec<String> {
        let mut ids = Contract.bulk_prune_candidates(state, filter);
        if self.defect == Some(Defect::BulkPruneSkipsRunning) {
            ids.retain(|id| !state.is_running(id));
        }
        ids
    }

    fn is_protected(&self, execution_id: u64, current: Option<u64>) -> bool {
        self.defect != Some(Defect::PruneCurrentExecution) && Contract.is_protected(execution_id, current)
    }

    fn is_before_cutoff(&self, row: &Execution, options: &PruneOptions) -> bool {
        self.defect == Some(Defect::PruneIgnoresCutoff) || Contract.is_before_cutoff(row, options)
    }

    fn prune_execution(&self, state: &mut State, instance: &str, execution_id: u64) -> u64 {
        if self.defect == Some(Defect::PruneDeletesKv) {
            state.kv_store.remove(instance);
        }
        Contract.prune_execution(state, instance, execution_id)
    }
}

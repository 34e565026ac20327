//! Management: lists, statistics, deletion, pruning.

use crate::admin::DEFAULT_LIMIT;
use crate::queue::Activity;
use crate::state::{Execution, State, refuse};
use outlast_provider::model::{Event, EventKind, json};
use outlast_provider::{InstanceFilter, ProviderError, PruneOptions};

pub(crate) trait AdminRules {
    /// A page starts after the instance that the previous page ended with. `None` if that instance was deleted.
    fn page(&self, ids: Vec<String>, after: Option<&str>) -> Option<Vec<String>> {
        match after {
            None => Some(ids),
            Some(after) => {
                let position = ids.iter().position(|id| id == after)?;
                Some(ids.into_iter().skip(position + 1).collect())
            }
        }
    }

    /// An instance shows its own activities as pending, with or without a lease.
    fn is_pending(&self, activity: &Activity, instance: &str, _now: u64) -> bool {
        activity.instance == instance
    }

    /// A pending activity is shown with the failures that its handler has reported.
    fn pending_failures(&self, activity: &Activity) -> u32 {
        activity.notes.failures
    }

    /// A page of the activities has every activity, with or without a lease.
    fn is_on_queue_page(&self, _activity: &Activity, _now: u64) -> bool {
        true
    }

    /// The counts of a tag tell leased activities from waiting ones by their live leases.
    fn counts_as_leased(&self, activity: &Activity, now: u64) -> bool {
        activity.is_leased(now)
    }

    /// The oldest due message is one that a fetch may take: its instance has no live lease.
    fn may_be_oldest(&self, state: &State, instance: &str, now: u64) -> bool {
        state.live_lease(instance, now).is_none()
    }

    /// Sizes are counted in bytes of UTF-8.
    fn size(&self, text: &str) -> u64 {
        text.len() as u64
    }

    /// The number of messages that the execution was started with, from its first event. An undecodable event is an error.
    fn carried_messages(&self, instance: &str, first_event: Option<&str>) -> Result<u64, ProviderError> {
        match first_event.map(json::decode_event) {
            Some(Err(error)) => refuse("get_instance_stats", format!("'{instance}': {error}")),
            Some(Ok(Event {
                kind: EventKind::OrchestrationStarted { carry_forward_events, .. }, ..
            })) => Ok(carry_forward_events.map_or(0, |carried| carried.len() as u64)),
            Some(Ok(_)) | None => Ok(0),
        }
    }

    /// A running instance is deleted only with force.
    fn check_not_running(
        &self,
        state: &State,
        operation: &str,
        ids: &[String],
        force: bool,
    ) -> Result<(), ProviderError> {
        match ids.iter().find(|id| !force && state.is_running(id)) {
            Some(id) => {
                refuse(operation, format!("instance '{id}' is still running: cancel it first, or use force"))
            }
            None => Ok(()),
        }
    }

    /// A parent is deleted together with its children.
    fn check_whole_tree(&self, state: &State, operation: &str, ids: &[String]) -> Result<(), ProviderError> {
        let left_behind = ids.iter().flat_map(|id| state.children(id)).find(|child| !ids.contains(child));
        match left_behind {
            Some(child) => {
                refuse(operation, format!("child '{child}' would be orphaned: delete the whole tree"))
            }
            None => Ok(()),
        }
    }

    /// Deletion removes the activities of the instance; returns how many.
    fn delete_activities(&self, state: &mut State, instance: &str) -> u64 {
        state.activities.remove_where(|activity| activity.instance == instance)
    }

    /// Deletion removes the lease, so that a late commit cannot bring the instance back.
    fn delete_lease(&self, state: &mut State, instance: &str) {
        state.leases.remove(instance);
    }

    /// Deletion removes the key-value state.
    fn delete_kv(&self, state: &mut State, instance: &str) {
        state.kv_store.remove(instance);
        state.kv_delta.remove(instance);
    }

    /// A bulk operation is limited, also without a limit in its filter.
    fn bulk_limit(&self, filter: &InstanceFilter) -> usize {
        filter.limit.unwrap_or(DEFAULT_LIMIT) as usize
    }

    /// A bulk deletion takes instances that have ended.
    fn may_bulk_delete(&self, state: &State, instance: &str) -> bool {
        state.has_ended(instance)
    }

    /// A bulk deletion passes over a tree with a running member.
    fn may_bulk_delete_tree(&self, state: &State, tree: &[String]) -> bool {
        !tree.iter().any(|id| state.is_running(id))
    }

    /// A bulk prune takes every instance that the filter selects, running or not, oldest first.
    fn bulk_prune_candidates(&self, state: &State, filter: &InstanceFilter) -> Vec<String> {
        let mut ids = state.bulk_matching(filter, |_| true);
        ids.truncate(state.rules.bulk_limit(filter));
        ids
    }

    /// The current execution is never pruned.
    fn is_protected(&self, execution_id: u64, current: Option<u64>) -> bool {
        Some(execution_id) == current
    }

    /// A prune with a time limit takes executions that were completed before it.
    fn is_before_cutoff(&self, row: &Execution, options: &PruneOptions) -> bool {
        options.completed_before.is_none_or(|before| row.completed_at.is_some_and(|at| at < before))
    }

    /// A prune removes executions and their events, and nothing else. Returns how many events it removed.
    fn prune_execution(&self, state: &mut State, instance: &str, execution_id: u64) -> u64 {
        if let Some(executions) = state.executions.get_mut(instance) {
            executions.remove(&execution_id);
        }
        let events = state.history.remove(&(instance.to_string(), execution_id));
        events.map_or(0, |events| events.len() as u64)
    }
}

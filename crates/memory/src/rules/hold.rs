//! Holds of instances.

use super::Fence;
use crate::state::State;
use outlast_provider::HeldInstance;
use outlast_provider::model::WorkItem;

pub(crate) trait HoldRules {
    /// A hold is refused while a turn of the instance runs. Returns the end of its lease.
    fn runs_until(&self, state: &State, instance: &str, now: u64) -> Option<u64> {
        state.live_lease(instance, now).filter(|lease| !lease.is_rest).map(|lease| lease.locked_until)
    }

    /// No fetch delivers a held instance, whatever arrives for it.
    fn is_held(&self, state: &State, instance: &str) -> bool {
        state.holds.contains_key(instance)
    }

    /// A run-ahead turn of a held instance is refused.
    fn ahead_is_not_held(&self, state: &State, instance: &str) -> bool {
        !state.holds.contains_key(instance)
    }

    /// A turn is given back for a hold under its live lease only.
    fn hold_fence(&self, fence: Fence<String>) -> Fence<String> {
        fence
    }

    /// The messages of a turn that is given back for a hold are delivered as if for the first time.
    fn attempts_after_hold(&self, _attempts: u32) -> u32 {
        0
    }

    /// A release changes no message.
    fn return_messages(&self, _state: &mut State, _held: &HeldInstance) {}

    /// A cancellation releases the held instance that it is for.
    fn ends_hold(&self, item: &WorkItem) -> bool {
        matches!(item, WorkItem::CancelInstance { .. })
    }

    /// Queue depths and gauges leave the messages of held instances out.
    fn counts_as_waiting(&self, state: &State, instance: &str) -> bool {
        !state.holds.contains_key(instance)
    }

    /// An orchestration is paused once: a second pause changes nothing.
    fn is_paused(&self, state: &State, orchestration: &str) -> bool {
        state.paused.contains_key(orchestration)
    }

    /// A resumption removes this orchestration only.
    fn remove_pause(&self, state: &mut State, orchestration: &str) -> bool {
        state.paused.remove(orchestration).is_some()
    }

    /// Deletion removes the hold, so that a new instance with the same id is not held.
    fn delete_hold(&self, state: &mut State, instance: &str) {
        state.holds.remove(instance);
    }
}

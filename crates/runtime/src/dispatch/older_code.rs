//! Turns whose history takes a patch that the code of this node does not ask for. In a rolling deployment a node of the new build has
//! written the patch, and this node has the old build: the turn waits for a node with newer code, as a turn whose handler is not
//! registered does. Its deliveries are not counted.

use super::turn::TurnDecision;
use crate::core::Core;
use outlast_engine::Report;
use outlast_model::limits::MAX_NODE_PATCHES;
use outlast_model::{NodePatch, WorkItem};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Instances whose turns are counted.
const MOST_INSTANCES: usize = 10_000;
/// A turn with a request to cancel is given back this often. After that it fails, so that an instance can be ended although no node
/// with newer code runs.
const MOST_WITH_CANCELLATION: u32 = 3;

/// The patches that this node's code did not ask for, and the turns that it gave back because of them.
#[derive(Default)]
pub(crate) struct OlderCode(Mutex<GivenBack>);

#[derive(Default)]
struct GivenBack {
    /// By instance: its last event, and how often a turn after this event was given back.
    turns: BTreeMap<Arc<str>, (u64, u32)>,
    patches: BTreeSet<NodePatch>,
}

impl OlderCode {
    fn lock(&self) -> MutexGuard<'_, GivenBack> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a patch of an instance. Returns how often this turn had one.
    fn note(&self, instance: &Arc<str>, last_event_id: u64, patch: NodePatch) -> u32 {
        let mut noted = self.lock();
        if noted.patches.len() < MAX_NODE_PATCHES {
            noted.patches.insert(patch);
        }
        // Entries of instances that another node has taken over are never removed, so the map is cleared at a size limit.
        if noted.turns.len() >= MOST_INSTANCES {
            noted.turns.clear();
        }
        let turn = noted.turns.entry(Arc::clone(instance)).or_default();
        let times = if turn.0 == last_event_id { turn.1.saturating_add(1) } else { 1 };
        *turn = (last_event_id, times);
        times
    }

    /// The noted patches, for the report of the node.
    pub(crate) fn patches(&self) -> Vec<NodePatch> {
        self.lock().patches.iter().cloned().collect()
    }
}

/// Gives a turn back whose history takes a patch that the code did not ask for. `None` for every other turn, and for one that asks to
/// cancel the instance and was given back several times.
pub(super) fn give_back(
    core: &Core,
    instance: &Arc<str>,
    last_event_id: u64,
    cancels: bool,
    report: &Report,
) -> Option<TurnDecision> {
    let patch = report.missing_patch.as_deref()?;
    let noted = NodePatch { orchestration: report.name.clone(), patch: patch.to_string() };
    let times = core.older_code.note(instance, last_event_id, noted);
    if cancels && times > MOST_WITH_CANCELLATION {
        return None;
    }
    let delay = core.options.unregistered_backoff.delay(times);
    core.turn_backoff.plan_pause(delay);
    tracing::warn!(
        target: "duroxide::runtime",
        instance_id = %instance,
        orchestration_name = %report.name,
        orchestration_version = %report.version,
        patch,
        times,
        ?delay,
        "the history takes a patch that the code of this node does not ask for; the turn waits for a node with newer code"
    );
    Some(TurnDecision::GiveBack { delay, ignore_attempt: true })
}

/// Whether the messages of a turn ask to cancel its instance.
pub(super) fn cancels(messages: &[WorkItem]) -> bool {
    messages.iter().any(|message| matches!(message, WorkItem::CancelInstance { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::fixture::core;
    use std::time::Duration;

    fn delay(core: &Core, last_event_id: u64, cancels: bool) -> Option<Duration> {
        let report = Report {
            name: "Order".to_string(),
            missing_patch: Some("fraud".to_string()),
            ..Report::default()
        };
        match give_back(core, &Arc::from("i"), last_event_id, cancels, &report)? {
            TurnDecision::GiveBack { delay, ignore_attempt: true } => Some(delay),
            _ => panic!("a turn of older code is given back without counting its delivery"),
        }
    }

    #[test]
    fn the_delay_of_a_turn_grows_and_begins_anew_after_another_event() {
        let core = core();
        let delays = [7, 7, 7, 9, 9].map(|last| delay(&core, last, false).map(|delay| delay.as_secs()));
        assert_eq!(delays, [1, 2, 4, 1, 2].map(Some));
        let patch = NodePatch { orchestration: "Order".to_string(), patch: "fraud".to_string() };
        assert_eq!(core.older_code.patches(), [patch], "one entry for all turns");
    }

    #[test]
    fn a_turn_with_a_cancellation_is_given_back_three_times_only() {
        let core = core();
        let given_back = [(); 4].map(|()| delay(&core, 7, true).is_some());
        assert_eq!(given_back, [true, true, true, false]);
    }

    #[test]
    fn a_turn_without_a_missing_patch_is_not_given_back() {
        assert!(give_back(&core(), &Arc::from("i"), 7, false, &Report::default()).is_none());
    }
}

//! Futures that the code gave up, and the notes of it in history.

use crate::draft::Draft;
use crate::execution::{Execution, Stop};
use crate::mismatch::Mismatch;
use crate::state::{Site, Stage, What};
use outlast_model::EventKind;
use std::collections::BTreeMap;

/// Instances of children, by scheduling event.
pub(crate) type Children = BTreeMap<u64, String>;

/// The reason that is noted when the code dropped a future.
pub(crate) const DROPPED: &str = "dropped_future";

impl Execution {
    /// Notes which futures the code dropped, once each: activities, children, waits, dequeues, each by ascending event.
    /// Returns the children to be cancelled, by scheduling event.
    pub(crate) fn note_drops(&mut self, draft: &mut Draft) -> Result<Children, Stop> {
        let mut groups: [Vec<u64>; 4] = Default::default();
        {
            let mut state = self.context.lock();
            for token in std::mem::take(&mut state.dropped) {
                let slot = state.slot(token);
                let Some(event_id) = slot.event_id.filter(|_| !slot.drop_noted) else { continue };
                match slot.what {
                    What::Activity => groups[0].push(event_id),
                    What::Child => groups[1].push(event_id),
                    What::Signal { .. } => groups[2].push(event_id),
                    What::Queue { .. } => groups[3].push(event_id),
                    What::Timer => {}
                }
            }
        }
        let reason = || DROPPED.to_string();
        let note = [
            EventKind::ActivityCancelRequested { reason: reason() },
            EventKind::SubOrchestrationCancelRequested { reason: reason() },
            EventKind::ExternalSubscribedCancelled { reason: reason() },
            EventKind::QueueSubscriptionCancelled { reason: reason() },
        ];
        let mut children = Children::new();
        for (mut events, note) in groups.into_iter().zip(note) {
            events.sort_unstable();
            for event_id in events {
                if !draft.is_new(event_id) && self.ledger.open_activities.contains(&event_id) {
                    draft.cancel_activity(self.who(), event_id);
                }
                let child = self.ledger.open_children.get(&event_id);
                children.extend(child.map(|child| (event_id, child.clone())));
                let event = self.record(draft, Some(event_id), note.clone());
                self.apply(event, false)?;
            }
        }
        Ok(children)
    }

    /// Open children whose future the code dropped, where no note of the drop is written.
    pub(crate) fn dropped_children(&self) -> Children {
        let state = self.context.lock();
        let events = state.dropped.iter().filter_map(|token| state.slot(*token).event_id);
        let child = |event_id| Some((event_id, self.ledger.open_children.get(&event_id)?.clone()));
        events.filter_map(child).collect()
    }

    /// Whether the code gave the future of a decision up.
    pub(crate) fn is_dropped(&self, token: Option<u64>) -> bool {
        token.is_some_and(|token| matches!(self.context.lock().slot(token).stage, Stage::Dropped))
    }

    /// A note that the code dropped a future. Under the legacy rules the drop takes effect here.
    pub(crate) fn note_dropped(&mut self, source: u64, kind: &EventKind) {
        let (what, reason) = match kind {
            EventKind::ActivityCancelRequested { reason } => ("activities", reason),
            EventKind::SubOrchestrationCancelRequested { reason } => ("sub-orchestrations", reason),
            EventKind::ExternalSubscribedCancelled { reason } => ("external waits", reason),
            EventKind::QueueSubscriptionCancelled { reason } => ("persistent waits", reason),
            _ => return,
        };
        let Some(token) = self.token(source) else { return };
        let mut state = self.context.lock();
        let slot = state.slot_mut(token);
        slot.drop_noted = true;
        let dropped = matches!(slot.stage, Stage::Dropped);
        let slot_what = slot.what.clone();
        match slot_what {
            What::Signal { name } => state.signals.cancel(&name, source),
            What::Queue { name } => {
                state.queues.cancel(&name, source);
            }
            _ => {}
        }
        if !dropped && reason == DROPPED {
            self.undropped.insert(source, what);
        }
    }

    /// Whether every stored note of a drop was earned, once all stored events are applied.
    pub(crate) fn check_drops(&mut self) -> Result<(), Stop> {
        if self.undropped.is_empty() {
            return Ok(());
        }
        let state = self.context.lock();
        let mut held: Vec<(u64, &'static str, Site)> = Vec::new();
        for (source, kind) in &self.undropped {
            let slot = self.token(*source).map(|token| state.slot(token));
            let slot = slot.filter(|slot| !matches!(slot.stage, Stage::Dropped));
            held.extend(slot.map(|slot| (*source, *kind, slot.site)));
        }
        if let Some((_, kind, site)) = held.first().copied() {
            let events: Vec<u64> =
                held.iter().filter(|(_, other, _)| *other == kind).map(|(source, ..)| *source).collect();
            return Err(Stop::Mismatch(Mismatch::not_dropped(self.who(), kind, &events, site)));
        }
        drop(state);
        self.undropped.clear();
        Ok(())
    }
}

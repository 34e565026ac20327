//! Futures that the code dropped, and their notes in history.

use crate::draft::Draft;
use crate::execution::{Execution, Stop};
use crate::op::Op;
use crate::replay_error::Mismatch;
use crate::state::{Site, Stage};
use outlast_model::EventKind;

/// The reason in the note of a dropped future.
pub(crate) const DROPPED: &str = "dropped_future";

impl Execution {
    /// Notes the futures that the code dropped, once each: in the order of the table of operations, then by event.
    pub(crate) fn note_drops(&mut self, draft: &mut Draft) -> Result<(), Stop> {
        let dropped = self.unnoted_drops();
        self.context.lock().dropped.clear();
        for (op, event_id) in dropped {
            let Some(note) = op.cancellation(DROPPED.to_string()) else { continue };
            op.on_drop(self, draft, event_id);
            draft.dropped.push((op, event_id));
            let event = self.record(draft, Some(event_id), note).clone();
            self.apply(event, false)?;
        }
        Ok(())
    }

    /// The decisions whose future the code dropped and whose drop is not noted, in the order in which drops are noted.
    pub(crate) fn unnoted_drops(&self) -> Vec<(Op, u64)> {
        let state = self.context.lock();
        let futures =
            state.dropped.iter().map(|token| state.future_state(*token)).filter(|future| !future.drop_noted);
        let mut dropped: Vec<_> = futures.filter_map(|future| Some((future.op, future.event_id?))).collect();
        dropped.sort_unstable();
        dropped
    }

    /// Whether the code dropped the future of a decision.
    pub(crate) fn is_dropped(&self, token: Option<u64>) -> bool {
        token.is_some_and(|token| matches!(self.context.lock().future_state(token).stage, Stage::Dropped))
    }

    /// Applies the note of a dropped future. Under the legacy rules the drop takes effect here.
    pub(crate) fn apply_drop(&mut self, op: Op, source: u64, note: &EventKind) {
        let Some(token) = self.token(source) else { return };
        let mut state = self.context.lock();
        let future = state.future_state_mut(token);
        future.drop_noted = true;
        let is_dropped = matches!(future.stage, Stage::Dropped);
        state.release(token);
        // Notes with other reasons were written because the execution ended.
        if !is_dropped && op.cancellation(DROPPED.to_string()).as_ref() == Some(note) {
            self.undropped.insert(source, op.dropped_name());
        }
    }

    /// Fails unless the code has dropped every future whose drop is stored. Called when all stored events are applied.
    pub(crate) fn check_drops(&mut self) -> Result<(), Stop> {
        if self.undropped.is_empty() {
            return Ok(());
        }
        let state = self.context.lock();
        let mut held: Vec<(u64, &'static str, Site)> = Vec::new();
        for (source, kind) in &self.undropped {
            let future = self.token(*source).map(|token| state.future_state(token));
            let future = future.filter(|future| !matches!(future.stage, Stage::Dropped));
            held.extend(future.map(|future| (*source, *kind, future.site)));
        }
        if let Some((_, kind, site)) = held.first().copied() {
            let events: Vec<u64> =
                held.iter().filter(|(_, other, _)| *other == kind).map(|(source, ..)| *source).collect();
            return Err(Stop::Mismatch(Mismatch::not_dropped(self.identity(), kind, &events, site)));
        }
        drop(state);
        self.undropped.clear();
        Ok(())
    }
}

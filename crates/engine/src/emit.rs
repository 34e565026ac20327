//! Step 4: decisions become events.

use crate::draft::{Draft, Recorded};
use crate::execution::{Execution, Stop};
use crate::op::Op;
use outlast_model::{Action, Event, EventKind};

impl Execution {
    /// Writes an event and counts it. The caller applies it.
    pub(crate) fn record<'a>(
        &mut self,
        draft: &'a mut Draft,
        source: Option<u64>,
        kind: EventKind,
    ) -> &'a Event {
        let event = draft.event(self.identity(), self.summary.last_event_id + 1, source, kind);
        self.summary.note(&event);
        let place = draft.commit.history_delta.len();
        draft.commit.history_delta.push(event);
        &draft.commit.history_delta[place]
    }

    /// Turns decisions into events until the code waits and no decision is left. Each event is applied as replay will apply
    /// it.
    pub(crate) fn emit(&mut self, draft: &mut Draft, random: &mut dyn FnMut() -> u128) -> Result<(), Stop> {
        loop {
            self.poll_if_due()?;
            if self.context.lock().violation.is_some() {
                return Err(Stop::Limit);
            }
            let next = self.context.lock().emitted.front().map(|next| (next.token, next.action.clone()));
            let Some((token, action)) = next else { return Ok(()) };
            self.emit_one(draft, random, token, action)?;
        }
    }

    fn emit_one(
        &mut self,
        draft: &mut Draft,
        random: &mut dyn FnMut() -> u128,
        token: Option<u64>,
        action: Action,
    ) -> Result<(), Stop> {
        let op = Op::of_action(&action);
        let event_id = self.summary.last_event_id + 1;
        let Some(kind) = op.event(&action, self.execution_id(), event_id) else { return Ok(()) };
        op.check(self, &kind)?;
        let is_dropped = self.is_dropped(token);
        let outcome = if is_dropped { None } else { op.immediate_outcome(&action, draft.now_ms, random) };
        let event = self.record(draft, None, kind);
        self.apply_decision(op, event)?;
        match outcome {
            Some(outcome) => {
                let event = self.record(draft, Some(event_id), outcome).clone();
                self.apply(event, false)
            }
            None => {
                let attempt = token.map_or(1, |token| self.context.lock().future_state(token).attempt);
                draft.recorded.push(Recorded { op, event_id, token, action, attempt });
                Ok(())
            }
        }
    }
}

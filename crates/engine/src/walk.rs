//! Applies one event at a time to the code that waits.
//!
//! Stored events (step 1), messages of the batch (step 3) and new decisions (step 4) all become events and go through
//! [`Execution::apply`]. The code is polled between two events if the first event gave it a reason to run.

use crate::execution::{Execution, Stop};
use crate::future::Raw;
use crate::op::{Held, Op, Role};
use crate::replay_error::Mismatch;
use crate::state::{Stage, State};
use outlast_model::{Event, EventKind, patch_of};
use std::task::Waker;

impl Execution {
    /// Applies the next event of the history, stored or new.
    pub(crate) fn apply(&mut self, event: Event, stored: bool) -> Result<(), Stop> {
        self.poll_if_due()?;
        let found = Op::of_event(&event.kind);
        if stored {
            self.check_consumes(found, &event)?;
        }
        (self.applied, self.after_stored) = (event.event_id, stored);
        match found {
            Some((op, Role::Decision)) => self.bind(op, &event),
            Some((op, Role::Outcome | Role::Arrival)) => op.deliver(self, event),
            Some((op, Role::Cancellation)) => {
                if let Some(source) = event.source_event_id {
                    self.apply_drop(op, source, &event.kind);
                }
                Ok(())
            }
            None => {
                if let EventKind::OrchestrationCancelRequested { reason } = &event.kind {
                    self.deliver_cancellation(reason);
                }
                Ok(())
            }
        }
    }

    /// Applies the event of a new decision.
    pub(crate) fn apply_decision(&mut self, op: Op, event: &Event) -> Result<(), Stop> {
        self.poll_if_due()?;
        (self.applied, self.after_stored) = (event.event_id, false);
        self.bind(op, event)
    }

    /// Gives the code the request to cancel. Code that does not wait for it is not polled.
    fn deliver_cancellation(&mut self, reason: &str) {
        let wakers = self.context.lock().cancellation.request(reason);
        self.due |= !wakers.is_empty();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Refuses a stored event that the code does not use because it has ended: the code went further when the event was
    /// stored (R4).
    fn check_consumes(&self, found: Option<(Op, Role)>, event: &Event) -> Result<(), Stop> {
        if patch_of(&event.kind).is_some() {
            return Ok(());
        }
        let state = self.context.lock();
        let ended = match (&self.returned, &state.successor) {
            (Some(_), _) => "returned",
            (None, Some(_)) => "continued as new",
            (None, None) => return Ok(()),
        };
        let is_consumed = match (found, event.source_event_id) {
            // With decisions left, `bind` compares the next one.
            (Some((_, Role::Decision)), _) => !state.emitted.is_empty(),
            (Some((op, Role::Arrival)), _) => !op
                .inbox_of(&event.kind)
                .is_some_and(|(op, inbox_name)| self.had_open_wait(&state, op, &inbox_name)),
            (Some((_, Role::Outcome)), Some(source)) => {
                self.token(source).is_none_or(|token| self.was_dropped_before_end(&state, token))
            }
            // The start, and notes of dropped futures, which are checked after the last stored event.
            _ => true,
        };
        if is_consumed {
            return Ok(());
        }
        Err(Stop::Mismatch(Mismatch::ended_early(self.identity(), self.applied, ended, state.last_call)))
    }

    /// Whether the code had a wait on this inbox without an outcome when it ended.
    fn had_open_wait(&self, state: &State, op: Op, inbox_name: &str) -> bool {
        state.futures.iter().zip(1..).any(|(future, token)| {
            future.op == op
                && future.inbox_name.as_deref() == Some(inbox_name)
                && matches!(future.stage, Stage::Open | Stage::Dropped)
                && !self.was_dropped_before_end(state, token)
        })
    }

    fn was_dropped_before_end(&self, state: &State, token: u64) -> bool {
        state.dropped.iter().take(self.dropped_before_end).any(|dropped| *dropped == token)
    }

    /// Gives a decision its event. A stored event must match the decision of the code.
    fn bind(&mut self, op: Op, event: &Event) -> Result<(), Stop> {
        let mut state = self.context.lock();
        if self.after_stored && state.pass_marker(&event.kind) {
            return Ok(());
        }
        let place = op.find(&state.emitted, &event.kind);
        let Some(emitted) = place.and_then(|place| state.emitted.remove(place)) else {
            if op.is_optional() && state.emitted.is_empty() {
                state.ahead.pop_front();
                op.adopt(&mut state, &event.kind);
                return Ok(());
            }
            let identity = self.context.identity();
            return Err(Stop::Mismatch(match state.emitted.front() {
                Some(other) => {
                    // Decisions that the history has no room for were added, not moved.
                    let later = state.emitted.iter().take(state.ahead.len()).skip(1);
                    Mismatch::another_decision(identity, op, event, other, later)
                }
                None => Mismatch::nothing_decided(identity, op, event, state.last_call),
            }));
        };
        // A decision that does not match stays ahead: a patch can be before it.
        state.ahead.pop_front();
        let Some(token) = emitted.token else { return Ok(()) };
        state.future_state_mut(token).event_id = Some(event.event_id);
        self.tokens.push((event.event_id, token));
        let waker = match state.bind_wait(token) {
            Held::Data(data) => state.settle(token, Raw::Data(data)),
            Held::Readable => {
                self.due = true;
                state.waker_of(token)
            }
            Held::Nothing => None,
        };
        state.wait_by_legacy_rules(token);
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(())
    }

    pub(crate) fn token(&self, event_id: u64) -> Option<u64> {
        let place = self.tokens.binary_search_by_key(&event_id, |(event_id, _)| *event_id).ok()?;
        Some(self.tokens[place].1)
    }

    /// Resolves the future of decision `source` with its outcome. Fails if the code made no such decision, or if the
    /// decision has an outcome. `name` is the type of the event.
    pub(crate) fn settle(
        &mut self,
        event_id: u64,
        source: u64,
        raw: Raw,
        name: &'static str,
    ) -> Result<(), Stop> {
        let token = self.token(source);
        let mut state = self.context.lock();
        let open =
            token.filter(|token| !std::mem::replace(&mut state.future_state_mut(*token).answered, true));
        let Some(token) = open else {
            let site = token.map(|token| state.future_state(token).site);
            return Err(Stop::Mismatch(Mismatch::not_open(self.identity(), event_id, source, name, site)));
        };
        let waker = state.settle(token, raw);
        // The outcome of a dropped child can end a wait for dropped children.
        let is_dropped = matches!(state.future_state(token).stage, Stage::Dropped);
        let of_dropped = if is_dropped { state.cancellation.take_wakers() } else { Vec::new() };
        drop(state);
        self.wake(waker);
        of_dropped.into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// Gives the code a reason to run.
    pub(crate) fn wake(&mut self, waker: Option<Waker>) {
        self.due = true;
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

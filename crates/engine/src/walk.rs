//! One event at a time: what it does to the code that waits.
//!
//! There is one way forward, [`Execution::apply`]: a stored event, a message of the batch and a decision that was made a
//! moment ago all become an event and are applied by it. Between two events the code is polled if the first one gave it
//! reason to.

use crate::decide::Emitted;
use crate::execution::{Execution, Stop};
use crate::future::Raw;
use crate::ledger::{Kind, Standing};
use crate::mismatch::Mismatch;
use crate::op;
use crate::op::signal::Arrival;
use crate::state::{Stage, State, What};
use outlast_model::{Action, Event, EventKind};
use std::task::Waker;

impl Execution {
    /// Applies the next event of the history, stored or new.
    pub(crate) fn apply(&mut self, event: Event, stored: bool) -> Result<(), Stop> {
        self.poll_if_due()?;
        if stored {
            self.check_consumes(&event)?;
        }
        (self.applied, self.after_stored) = (event.event_id, stored);
        if op::is_decision(&event.kind) {
            return self.bind(&event);
        }
        let Event { event_id, source_event_id, kind, .. } = event;
        let name = kind.type_name();
        match (kind, source_event_id) {
            (EventKind::ExternalEvent { name, data }, _) => {
                self.signal(&name, data);
                Ok(())
            }
            #[cfg(feature = "replay-version-test")]
            (EventKind::ExternalEvent2 { name, topic, data }, _) => {
                self.signal(&op::topic::lane(&name, &topic), data);
                Ok(())
            }
            (EventKind::QueueEventDelivered { name, data }, _) => {
                let mut state = self.context.lock();
                let reader = state.queues.arrive(&name, event_id, data);
                let waker = reader.and_then(|token| state.waker_of(token));
                drop(state);
                self.wake(waker);
                Ok(())
            }
            (EventKind::ActivityCompleted { result }, Some(source)) => {
                self.check_is_activity(event_id, source)?;
                self.deliver(event_id, source, Raw::Result(Ok(result)), name)
            }
            (EventKind::ActivityFailed { details }, Some(source)) => {
                let error = details.display_message();
                self.deliver(event_id, source, Raw::Result(Err(error)), name)
            }
            (EventKind::SubOrchestrationCompleted { result }, Some(source)) => {
                self.deliver(event_id, source, Raw::Result(Ok(result)), name)
            }
            (EventKind::SubOrchestrationFailed { details }, Some(source)) => {
                let error = details.display_message();
                self.deliver(event_id, source, Raw::Result(Err(error)), name)
            }
            (EventKind::TimerFired { .. }, Some(source)) => self.deliver(event_id, source, Raw::Fired, name),
            (kind, Some(source)) => {
                self.note_dropped(source, &kind);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Refuses a stored event that code which has ended leaves unused: the code went further when the event was stored (R4).
    fn check_consumes(&self, event: &Event) -> Result<(), Stop> {
        let state = self.context.lock();
        let ended = match (&self.returned, &state.successor) {
            (Some(_), _) => "returned",
            (None, Some(_)) => "continued as new",
            (None, None) => return Ok(()),
        };
        let is_consumed = match (&event.kind, event.source_event_id) {
            // With decisions left, `bind` compares the next one.
            (kind, _) if op::is_decision(kind) => !state.emitted.is_empty(),
            (EventKind::ExternalEvent { name, .. }, _) => {
                !self.had_open(&state, |what| matches!(what, What::Signal { name: of } if of == name))
            }
            #[cfg(feature = "replay-version-test")]
            (EventKind::ExternalEvent2 { name, topic, .. }, _) => {
                let lane = op::topic::lane(name, topic);
                !self.had_open(&state, |what| matches!(what, What::Signal { name: of } if *of == lane))
            }
            (EventKind::QueueEventDelivered { name, .. }, _) => {
                !self.had_open(&state, |what| matches!(what, What::Queue { name: of } if of == name))
            }
            (
                EventKind::ActivityCompleted { .. }
                | EventKind::ActivityFailed { .. }
                | EventKind::SubOrchestrationCompleted { .. }
                | EventKind::SubOrchestrationFailed { .. }
                | EventKind::TimerFired { .. },
                Some(source),
            ) => self.token(source).is_none_or(|token| self.was_dropped_before_end(&state, token)),
            // The start, and notes of dropped futures, which are checked after the last event.
            _ => true,
        };
        if is_consumed {
            return Ok(());
        }
        Err(Stop::Mismatch(Mismatch::ended_early(self.who(), self.applied, ended, state.last_call)))
    }

    /// Whether the code had such a wait without an outcome when it ended.
    fn had_open(&self, state: &State, is_such: impl Fn(&What) -> bool) -> bool {
        state.slots.iter().zip(1..).any(|(slot, token)| {
            is_such(&slot.what)
                && matches!(slot.stage, Stage::Open | Stage::Dropped)
                && !self.was_dropped_before_end(state, token)
        })
    }

    fn was_dropped_before_end(&self, state: &State, token: u64) -> bool {
        state.dropped.iter().take(self.dropped_before_end).any(|dropped| *dropped == token)
    }

    /// Gives a decision its event. The event is new, or the stored one must be what the code decided.
    fn bind(&mut self, event: &Event) -> Result<(), Stop> {
        let mut state = self.context.lock();
        state.ahead.pop_front();
        let Some(emitted) = pick(&mut state, &event.kind) else {
            // Calls that only leave a note may be taken out of the code.
            if op::is_note(&event.kind) && state.emitted.is_empty() {
                state.adopt(&event.kind);
                return Ok(());
            }
            let mismatch = match state.emitted.front() {
                Some(other) => Mismatch::another_decision(self.context.identity(), event, other),
                None => Mismatch::nothing_decided(self.context.identity(), event, state.last_call),
            };
            return Err(Stop::Mismatch(mismatch));
        };
        let Some(token) = emitted.token else { return Ok(()) };
        let slot = state.slot_mut(token);
        slot.event_id = Some(event.event_id);
        let (what, dropped) = (slot.what.clone(), matches!(slot.stage, Stage::Dropped));
        self.tokens.push((event.event_id, token));
        let waker = match &what {
            What::Signal { name } => {
                let early = state.signals.bind(name, event.event_id, token, dropped);
                early.and_then(|data| state.settle(token, Raw::Data(data)))
            }
            What::Queue { name } => {
                let readable = state.queues.bind(name, event.event_id, token, dropped);
                self.due |= readable;
                state.waker_of(token).filter(|_| readable)
            }
            _ => None,
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

    /// An outcome, for something that this run asked for and that has none yet.
    fn deliver(&mut self, event_id: u64, source: u64, raw: Raw, name: &'static str) -> Result<(), Stop> {
        let token = self.token(source);
        let mut state = self.context.lock();
        let open = token.filter(|token| !std::mem::replace(&mut state.slot_mut(*token).answered, true));
        let Some(token) = open else {
            let site = token.map(|token| state.slot(token).site);
            return Err(Stop::Mismatch(Mismatch::not_open(self.who(), event_id, source, name, site)));
        };
        let waker = state.settle(token, raw);
        drop(state);
        self.wake(waker);
        Ok(())
    }

    fn check_is_activity(&self, event_id: u64, source: u64) -> Result<(), Stop> {
        match self.ledger.standing(source, Kind::Activity) {
            Standing::AnotherKind(_) => {
                Err(Stop::Mismatch(Mismatch::not_an_activity(self.who(), event_id, source)))
            }
            _ => Ok(()),
        }
    }

    fn signal(&mut self, name: &str, data: String) {
        let mut state = self.context.lock();
        let waker = match state.signals.arrive(name, data) {
            Arrival::Answers { token, data } => state.settle(token, Raw::Data(data)),
            Arrival::Accepted => None,
            Arrival::Kept => return,
            Arrival::Unwanted => {
                if !self.after_stored {
                    let text =
                        format!("event '{name}' was raised while nobody waited for it, and is not delivered");
                    state.warnings.push(text);
                }
                return;
            }
        };
        drop(state);
        self.wake(waker);
    }

    fn wake(&mut self, waker: Option<Waker>) {
        self.due = true;
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The decision that an event belongs to: the oldest one, if it fits.
fn pick(state: &mut State, recorded: &EventKind) -> Option<Emitted> {
    // Older runtimes wrote the removals of one prune in any order.
    let place = match recorded {
        EventKind::KeyValueCleared { .. } => {
            let run = state
                .emitted
                .iter()
                .take_while(|emitted| matches!(emitted.action, Action::ClearKeyValue { .. }));
            run.enumerate()
                .find(|(_, emitted)| op::matches(&emitted.action, recorded))
                .map(|(place, _)| place)
        }
        _ => state.emitted.front().filter(|emitted| op::matches(&emitted.action, recorded)).map(|_| 0),
    };
    state.emitted.remove(place?)
}

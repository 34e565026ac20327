//! Step 3: decisions become events.

use crate::draft::{Draft, Recorded};
use crate::execution::{Execution, Stop};
use crate::op;
use crate::op::entropy::SystemCall;
use outlast_model::{Action, Event, EventKind, build_child_instance_id, check_instance_id};

impl Execution {
    /// Writes an event down and counts it. It is applied by whoever calls this.
    pub(crate) fn record(&mut self, draft: &mut Draft, source: Option<u64>, kind: EventKind) -> Event {
        let event = draft.event(self.who(), self.ledger.last_event_id + 1, source, kind);
        self.ledger.note(&event);
        draft.commit.history_delta.push(event.clone());
        event
    }

    /// Turns decisions into events until the code rests and none is left. Each is applied exactly as replay will.
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
        let event_id = self.ledger.last_event_id + 1;
        let Some(kind) = op::event(&action, self.execution_id(), event_id) else { return Ok(()) };
        self.check_child_id(&kind)?;
        let answer = self.inline_answer(draft.now_ms, random, token, &action);
        let event = self.record(draft, None, kind);
        self.apply(event, false)?;
        match answer {
            Some(result) => {
                let event = self.record(draft, Some(event_id), EventKind::ActivityCompleted { result });
                self.apply(event, false)
            }
            None => {
                let attempt = token.map_or(1, |token| self.context.lock().slot(token).attempt);
                draft.recorded.push(Recorded { event_id, token, action, attempt });
                Ok(())
            }
        }
    }

    /// The outcome of a call that this turn can answer itself.
    fn inline_answer(
        &self,
        now_ms: u64,
        random: &mut dyn FnMut() -> u128,
        token: Option<u64>,
        action: &Action,
    ) -> Option<String> {
        match action {
            Action::CallActivity { name, .. } if !self.is_dropped(token) => {
                SystemCall::answer(name, now_ms, random)
            }
            _ => None,
        }
    }

    /// Ids nest with every generation, and the store has a limit.
    fn check_child_id(&self, kind: &EventKind) -> Result<(), Stop> {
        let EventKind::SubOrchestrationScheduled { instance, .. } = kind else { return Ok(()) };
        let id = build_child_instance_id(self.instance(), instance);
        check_instance_id(&id).map_err(|error| {
            self.context.lock().violation =
                Some(format!("child orchestration: {error}; give it an id of its own"));
            Stop::Limit
        })
    }
}

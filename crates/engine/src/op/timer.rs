//! Timers. The time at which a timer fires is fixed when it is first scheduled.

use super::{HasOutcome, Op, Operation};
use crate::context::{Identity, OrchestrationContext};
use crate::draft::{Draft, Recorded};
use crate::execution::{Execution, Stop};
use crate::future::{DurableFuture, Raw};
use crate::history_summary::HistorySummary;
use crate::receive::{Outcome, Receipt};
use crate::state::Site;
use outlast_model::{Action, Event, EventKind, ScheduleKind, WorkItem};
use std::panic::Location;
use std::time::Duration;

impl OrchestrationContext {
    /// Waits at least this long, in whole milliseconds. The timer survives a restart of the process.
    #[track_caller]
    pub fn schedule_timer(&self, delay: Duration) -> DurableFuture<()> {
        self.set_timer(delay, Location::caller())
    }

    pub(crate) fn set_timer(&self, delay: Duration, site: Site) -> DurableFuture<()> {
        let mut state = self.lock();
        let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        let fire_at_ms = state.now_ms.saturating_add(delay_ms);
        let action = Action::CreateTimer { scheduling_event_id: 0, fire_at_ms };
        let token = state.decide_with_future(Op::Timer, None, action, "schedule_timer", site);
        drop(state);
        DurableFuture::new(self, token, ScheduleKind::Timer, |_| ())
    }
}

pub(crate) struct Timer;

impl Operation for Timer {
    fn name(&self) -> &'static str {
        "timer"
    }

    fn event(&self, action: &Action, _execution_id: u64, _event_id: u64) -> Option<EventKind> {
        let Action::CreateTimer { fire_at_ms, .. } = action else { return None };
        Some(EventKind::TimerCreated { fire_at_ms: *fire_at_ms })
    }

    /// The stored time is kept: on replay the same call computes another time.
    fn matches(&self, action: &Action, _recorded: &EventKind) -> bool {
        matches!(action, Action::CreateTimer { .. })
    }

    fn describe(&self, _decision: &EventKind) -> String {
        "a timer".to_string()
    }

    fn note_decision(&self, summary: &mut HistorySummary, event: &Event) {
        summary.expect_outcome(Op::Timer, event.event_id);
    }

    /// A timer whose future the code dropped starts no turn and is not recorded.
    fn receive(&self, execution: &Execution, _draft: &mut Draft, message: WorkItem) -> Receipt {
        let WorkItem::TimerFired { execution_id, id, fire_at_ms, .. } = message else { return Receipt::Drop };
        if execution_id == execution.execution_id() && execution.is_dropped(execution.token(id)) {
            return Receipt::Drop;
        }
        let kind = EventKind::TimerFired { fire_at_ms };
        let outcome =
            Outcome { op: Op::Timer, name: "timer", execution_id, source: id, kind, failure: None };
        outcome.receive(execution)
    }

    fn deliver(&self, execution: &mut Execution, event: Event) -> Result<(), Stop> {
        let Some(source) = event.source_event_id else { return Ok(()) };
        execution.settle(event.event_id, source, Raw::Fired, event.kind.type_name())
    }

    fn send(&self, execution: &Execution, draft: &mut Draft, decision: Recorded) {
        let Action::CreateTimer { fire_at_ms, .. } = decision.action else { return };
        let Identity { instance, execution_id, .. } = execution.identity();
        draft.commit.orchestrator_items.push(WorkItem::TimerFired {
            instance: instance.clone(),
            execution_id: *execution_id,
            id: decision.event_id,
            fire_at_ms,
        });
    }
}

impl HasOutcome for Timer {
    fn send_again(&self, instance: &str, execution_id: u64, decision: &Event) -> Option<WorkItem> {
        let EventKind::TimerCreated { fire_at_ms } = decision.kind else { return None };
        let instance = instance.to_string();
        Some(WorkItem::TimerFired { instance, execution_id, id: decision.event_id, fire_at_ms })
    }
}

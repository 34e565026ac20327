//! Timers: they fire at a point in time that is fixed when they are first set.

use crate::context::OrchestrationContext;
use crate::future::DurableFuture;
use crate::state::{Site, What};
use outlast_model::{Action, EventKind, ScheduleKind};
use std::panic::Location;
use std::time::Duration;

impl OrchestrationContext {
    /// Waits at least this long, in whole milliseconds, whatever happens to the process meanwhile.
    #[track_caller]
    pub fn schedule_timer(&self, delay: Duration) -> DurableFuture<()> {
        self.set_timer(delay, Location::caller())
    }

    pub(crate) fn set_timer(&self, delay: Duration, site: Site) -> DurableFuture<()> {
        let mut state = self.lock();
        let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        let fire_at_ms = state.now_ms.saturating_add(delay_ms);
        let action = Action::CreateTimer { scheduling_event_id: 0, fire_at_ms };
        let token = state.ask(What::Timer, action, "schedule_timer", site);
        drop(state);
        DurableFuture::new(self, token, ScheduleKind::Timer, |_| ())
    }
}

pub(super) fn event(action: &Action) -> Option<EventKind> {
    let Action::CreateTimer { fire_at_ms, .. } = action else { return None };
    Some(EventKind::TimerCreated { fire_at_ms: *fire_at_ms })
}

/// The stored time stands: on replay the same call computes another one.
pub(super) fn matches(action: &Action, _recorded: &EventKind) -> bool {
    matches!(action, Action::CreateTimer { .. })
}

//! Fetches that wait for rows to become visible.

use crate::MemoryProvider;
use crate::rules::ParkRules;
use crate::state::State;
use outlast_provider::{ProviderError, saturating_ms};
use std::time::Duration;

impl MemoryProvider {
    /// Changes the tables at one moment, and wakes the parked fetches.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State, u64) -> T) -> T {
        let mut state = self.state();
        let (result, rules) = (change(&mut state, self.clock.now_ms()), state.rules);
        drop(state);
        rules.wake(&self.changed);
        result
    }

    /// Repeats an attempt until it has a result, it fails, or the caller's patience ends. Between two attempts the fetch is
    /// parked until a change or until the next row becomes due.
    pub(crate) async fn park<T: Send>(
        &self,
        patience: Duration,
        mut attempt: impl FnMut(&mut State, u64) -> Result<Option<T>, ProviderError>,
    ) -> Result<Option<T>, ProviderError> {
        let give_up_at = self.clock.now_ms().saturating_add(saturating_ms(patience));
        let rules = self.state().rules;
        loop {
            // The fetch subscribes to changes before it reads the queue, so that no change between the two is lost.
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let (found, now, next_due) = {
                let mut state = self.state();
                let now = self.clock.now_ms();
                (attempt(&mut state, now)?, now, state.next_due(now))
            };
            if let Some(found) = found {
                return Ok(Some(rules.answer(found).await));
            }
            let Some(until) = rules.parked_until(now, next_due, give_up_at) else { return Ok(None) };
            // A change and the end of the pause both lead to the next attempt.
            let _ = tokio::time::timeout(Duration::from_millis(until - now), changed).await;
        }
    }
}

impl State {
    /// When the next message, activity or session that cannot be fetched yet becomes available.
    pub(crate) fn next_due(&self, now: u64) -> Option<u64> {
        let due = [self.messages.next_due(now), self.activities.next_due(now), self.next_session_end(now)];
        due.into_iter().flatten().min()
    }
}

//! Step 6: an activity is completed, renewed, or abandoned.

use crate::state::{State, Work, after, refuse};
use outlast_provider::{ProviderError, WorkItem};
use outlast_provider_kit::{invalid_token, plan};
use std::time::Duration;

// guide: finish-work
impl State {
    /// Deletes the activity and enqueues its completion, in one step.
    pub(crate) fn ack_work(
        &mut self,
        token: &str,
        completion: Option<&WorkItem>,
        now: u64,
    ) -> Result<(), ProviderError> {
        const ACK: &str = "ack_work_item";
        let completion = completion.map(|item| plan::completion_row(ACK, item)).transpose()?;
        let ordinal = self.held_work(ACK, token, now)?;
        let session = self.work.remove(&ordinal).and_then(|work| work.session);
        self.touch_session(session.as_deref(), now);
        if let Some(row) = completion {
            self.push_message(row, None, now);
        }
        Ok(())
    }

    /// A refused renewal tells a worker that its activity was cancelled.
    pub(crate) fn renew_work(
        &mut self,
        token: &str,
        extend_for: Duration,
        now: u64,
    ) -> Result<(), ProviderError> {
        let ordinal = self.held_work("renew_work_item_lock", token, now)?;
        let work = self.work.get_mut(&ordinal);
        let session = work.and_then(|work| {
            work.lease.as_mut()?.extend(now, extend_for);
            work.session.clone()
        });
        self.touch_session(session.as_deref(), now);
        Ok(())
    }

    pub(crate) fn abandon_work(
        &mut self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
        now: u64,
    ) -> Result<(), ProviderError> {
        let Some(work) = self.work.values_mut().find(|work| has_token(work, token)) else {
            return refuse("abandon_work_item", invalid_token(token));
        };
        work.lease = None;
        work.visible_at = after(now, delay.unwrap_or_default());
        if ignore_attempt {
            work.attempts = work.attempts.saturating_sub(1);
        }
        Ok(())
    }

    /// The row whose lease has this token and is held now.
    fn held_work(&self, operation: &str, token: &str, now: u64) -> Result<u64, ProviderError> {
        let is_held = |work: &Work| work.lease.as_ref().is_some_and(|lease| lease.is_held(now));
        let row = self.work.iter().find(|(_, work)| has_token(work, token) && is_held(work));
        row.map_or_else(|| refuse(operation, invalid_token(token)), |(ordinal, _)| Ok(*ordinal))
    }
}

fn has_token(work: &Work, token: &str) -> bool {
    work.lease.as_ref().is_some_and(|lease| lease.token == token)
}
// guide: end

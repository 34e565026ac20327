//! Step 6: an activity is completed, renewed, or abandoned.

use crate::state::{Activity, State, after, refuse};
use outlast_provider::{ProviderError, WorkItem};
use outlast_provider_kit::{invalid_token, plan};
use std::time::Duration;

// guide: finish-activity
impl State {
    /// Deletes the activity and enqueues its completion, in one step.
    pub(crate) fn ack_activity(
        &mut self,
        token: &str,
        completion: Option<&WorkItem>,
        now: u64,
    ) -> Result<(), ProviderError> {
        const ACK: &str = "ack_work_item";
        let completion = completion.map(|item| plan::completion_row(ACK, item)).transpose()?;
        let ordinal = self.held_activity(ACK, token, now)?;
        let session = self.activities.remove(&ordinal).and_then(|activity| activity.session);
        self.touch_session(session.as_deref(), now);
        if let Some(row) = completion {
            self.push_message(row, None, now);
        }
        Ok(())
    }

    /// A refused renewal tells a worker that its activity was cancelled.
    pub(crate) fn renew_activity(
        &mut self,
        token: &str,
        extend_for: Duration,
        now: u64,
    ) -> Result<(), ProviderError> {
        let ordinal = self.held_activity("renew_work_item_lock", token, now)?;
        let activity = self.activities.get_mut(&ordinal);
        let session = activity.and_then(|activity| {
            activity.lease.as_mut()?.extend(now, extend_for);
            activity.session.clone()
        });
        self.touch_session(session.as_deref(), now);
        Ok(())
    }

    pub(crate) fn abandon_activity(
        &mut self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
        now: u64,
    ) -> Result<(), ProviderError> {
        let Some(activity) = self.activities.values_mut().find(|activity| has_token(activity, token)) else {
            return refuse("abandon_work_item", invalid_token(token));
        };
        activity.lease = None;
        activity.visible_at = after(now, delay.unwrap_or_default());
        if ignore_attempt {
            activity.attempts = activity.attempts.saturating_sub(1);
        }
        Ok(())
    }

    /// The row whose lease has this token and is held now.
    fn held_activity(&self, operation: &str, token: &str, now: u64) -> Result<u64, ProviderError> {
        let is_held = |activity: &Activity| activity.lease.as_ref().is_some_and(|lease| lease.is_held(now));
        let row =
            self.activities.iter().find(|(_, activity)| has_token(activity, token) && is_held(activity));
        row.map_or_else(|| refuse(operation, invalid_token(token)), |(ordinal, _)| Ok(*ordinal))
    }
}

fn has_token(activity: &Activity, token: &str) -> bool {
    activity.lease.as_ref().is_some_and(|lease| lease.token == token)
}
// guide: end

//! Step 6: a fetch leases one activity.

use crate::state::{Activity, DeadRow, Lease, State};
use outlast_provider::model::{WorkItem, json};
use outlast_provider::{SessionFetchConfig, TagFilter};
use std::time::Duration;

// guide: fetch-activity
impl State {
    pub(crate) fn fetch_activity(
        &mut self,
        now: u64,
        lock_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tags: &TagFilter,
    ) -> Option<(WorkItem, String, u32)> {
        let is_free = |activity: &Activity| activity.lease.as_ref().is_none_or(|lease| !lease.is_held(now));
        let visible =
            self.activities.iter().filter(|(_, activity)| activity.visible_at <= now && is_free(activity));
        let fitting = visible.filter(|(_, activity)| {
            tags.matches(activity.tag.as_deref())
                && self.session_admits(activity.session.as_deref(), session, now)
        });
        let candidates: Vec<u64> = fitting.map(|(ordinal, _)| *ordinal).collect();
        for ordinal in candidates {
            let Some(activity) = self.activities.get_mut(&ordinal) else { continue };
            match json::decode_work_item(&activity.text) {
                Ok(item) => {
                    let lease = Lease::begin(now, lock_timeout);
                    let token = lease.token.clone();
                    activity.lease = Some(lease);
                    activity.attempts += 1;
                    let attempt_count = activity.attempts;
                    if let (Some(id), Some(caller)) = (activity.session.clone(), session) {
                        self.claim_session(id, caller, now);
                    }
                    return Some((item, token, attempt_count));
                }
                // A row that does not decode becomes a dead letter. It must not stop the workers.
                Err(reason) => self.move_activity_to_dead_letters(ordinal, reason.to_string(), now),
            }
        }
        None
    }
    // guide: end

    fn move_activity_to_dead_letters(&mut self, ordinal: u64, reason: String, now: u64) {
        if let Some(Activity { instance, text, attempts, .. }) = self.activities.remove(&ordinal) {
            self.dead_letters.push(DeadRow {
                is_activity: true,
                instance,
                text,
                reason,
                attempts,
                dead_at: now,
            });
        }
    }
}

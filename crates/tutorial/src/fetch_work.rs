//! Step 6: a fetch leases one activity.

use crate::state::{DeadRow, Lease, State, Work};
use outlast_provider::model::{WorkItem, json};
use outlast_provider::{SessionFetchConfig, TagFilter};
use std::time::Duration;

// guide: fetch-work
impl State {
    pub(crate) fn fetch_work(
        &mut self,
        now: u64,
        lock_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tags: &TagFilter,
    ) -> Option<(WorkItem, String, u32)> {
        let is_free = |work: &Work| work.lease.as_ref().is_none_or(|lease| !lease.is_held(now));
        let visible = self.work.iter().filter(|(_, work)| work.visible_at <= now && is_free(work));
        let fitting = visible.filter(|(_, work)| {
            tags.matches(work.tag.as_deref()) && self.session_admits(work.session.as_deref(), session, now)
        });
        let candidates: Vec<u64> = fitting.map(|(ordinal, _)| *ordinal).collect();
        for ordinal in candidates {
            let Some(work) = self.work.get_mut(&ordinal) else { continue };
            match json::decode_work_item(&work.text) {
                Ok(item) => {
                    let lease = Lease::begin(now, lock_timeout);
                    let token = lease.token.clone();
                    work.lease = Some(lease);
                    work.attempts += 1;
                    let attempt_count = work.attempts;
                    if let (Some(id), Some(caller)) = (work.session.clone(), session) {
                        self.claim_session(id, caller, now);
                    }
                    return Some((item, token, attempt_count));
                }
                // A row that does not decode becomes a dead letter. It must not stop the workers.
                Err(reason) => self.bury_work(ordinal, reason.to_string(), now),
            }
        }
        None
    }
    // guide: end

    fn bury_work(&mut self, ordinal: u64, reason: String, now: u64) {
        if let Some(Work { instance, text, attempts, .. }) = self.work.remove(&ordinal) {
            self.dead_letters.push(DeadRow { is_work: true, instance, text, reason, attempts, dead_at: now });
        }
    }
}

//! Fetches, completions, abandons and renewals of activities.

use crate::commit::{check_activities, check_messages, encoded};
use crate::queue::Activity;
use crate::rules::{ActivityRules, Fence, LeaseRules, Purpose};
use crate::state::{State, refuse};
use outlast_provider::model::{WorkItem, json};
use outlast_provider::{
    DeadLetter, DeadLetterQueue, FetchedWork, ProviderError, SessionFetchConfig, TagFilter, WorkNotes,
};
use std::time::Duration;

const ACK: &str = "ack_work_item";

/// The conditions of one activity fetch.
pub(crate) struct ActivityAsk<'a> {
    pub(crate) now: u64,
    pub(crate) locked_until: u64,
    pub(crate) session: Option<&'a SessionFetchConfig>,
    pub(crate) tags: &'a TagFilter,
    pub(crate) token: String,
}

impl State {
    pub(crate) fn push_activity(&mut self, item: WorkItem, now: u64) -> Result<(), ProviderError> {
        const ENQUEUE: &str = "enqueue_for_worker";
        check_activities(ENQUEUE, std::slice::from_ref(&item))?;
        let text = encoded(ENQUEUE, json::encode_work_item(&item))?;
        if let WorkItem::ActivityExecute { instance, execution_id, id, session_id, tag, .. } = item {
            self.activities.push(Activity {
                text,
                visible_at: now,
                token: None,
                locked_until: 0,
                attempts: 0,
                notes: WorkNotes::default(),
                instance,
                execution_id,
                activity_id: id,
                session_id,
                tag,
            });
        }
        Ok(())
    }

    /// Leases the first activity that the caller may take.
    pub(crate) fn fetch_activity(
        &mut self,
        ask: &ActivityAsk<'_>,
    ) -> Result<Option<FetchedWork>, ProviderError> {
        let rules = self.rules;
        for ordinal in rules.activity_order(self) {
            let Some(activity) = self.activities.rows.get(&ordinal) else { continue };
            let is_free = activity.visible_at <= ask.now && !activity.is_leased(ask.now);
            let session_id = activity.session_id.as_deref();
            if !is_free
                || !rules.tag_matches(ask.tags, activity.tag.as_deref())
                || !rules.session_admits(self, session_id, ask.session, ask.now)
            {
                continue;
            }
            match json::decode_work_item(&activity.text) {
                Ok(item) => return Ok(Some(self.lease_activity(ordinal, item, ask))),
                Err(reason) => {
                    rules.move_activity_to_dead_letters(self, ordinal, reason.to_string(), ask.now)?
                }
            }
        }
        Ok(None)
    }

    fn lease_activity(&mut self, ordinal: u64, item: WorkItem, ask: &ActivityAsk<'_>) -> FetchedWork {
        self.activities.lease(ordinal, &ask.token, ask.locked_until);
        let mut attempt_count = 0;
        let (mut session_id, mut notes) = (None, None);
        if let Some(activity) = self.activities.rows.get_mut(&ordinal) {
            activity.attempts = self.rules.counted_delivery(activity.attempts);
            attempt_count = activity.attempts;
            session_id = activity.session_id.clone();
            notes = Some(activity.notes.clone());
        }
        if let (Some(session_id), Some(caller)) = (session_id, ask.session) {
            self.claim_session(&session_id, caller, ask.now);
        }
        let orchestration = self.instances.get(item.target_instance());
        let orchestration =
            orchestration.map(|row| (row.orchestration_name.clone(), row.orchestration_version.clone()));
        FetchedWork {
            item,
            lock_token: ask.token.clone(),
            attempt_count,
            notes,
            orchestration,
            now_ms: Some(ask.now),
        }
    }

    /// Moves an activity to the dead letters.
    pub(crate) fn move_activity_to_dead_letters(&mut self, ordinal: u64, reason: String, now: u64) {
        if let Some(activity) = self.activities.remove(ordinal) {
            self.bury(DeadLetter {
                queue: DeadLetterQueue::Worker,
                instance_id: Some(activity.instance),
                work_item: activity.text,
                reason,
                attempt_count: activity.attempts,
                dead_at: now,
            });
        }
    }

    /// Removes an activity and stores its completion.
    pub(crate) fn ack_activity(
        &mut self,
        token: &str,
        completion: Option<WorkItem>,
        now: u64,
    ) -> Result<(), ProviderError> {
        if let Some(item) = &completion {
            check_completion(item)?;
        }
        let rules = self.rules;
        let ordinal = match rules.activity_fence(Purpose::Commit, self, token, now) {
            Fence::Holds(ordinal) => ordinal,
            Fence::Expired(_) => return refuse(ACK, expired(token)),
            Fence::Unknown => return rules.unknown_token(ACK, gone(token)),
        };
        if let Some(completion) = &completion {
            rules.store_completion(self, completion, now)?;
        }
        let activity = self.activities.remove(ordinal);
        self.stamp_session(activity.and_then(|activity| activity.session_id).as_deref(), now);
        Ok(())
    }

    pub(crate) fn renew_activity(
        &mut self,
        token: &str,
        extend_for: Duration,
        now: u64,
    ) -> Result<(), ProviderError> {
        const RENEW: &str = "renew_work_item_lock";
        let ordinal = match self.rules.activity_fence(Purpose::Renew, self, token, now) {
            Fence::Holds(ordinal) => ordinal,
            Fence::Expired(_) => return refuse(RENEW, expired(token)),
            Fence::Unknown => return refuse(RENEW, gone(token)),
        };
        let Some(activity) = self.activities.rows.get_mut(&ordinal) else { return Ok(()) };
        activity.locked_until = self.rules.renewed(activity.locked_until, extend_for, now);
        let session_id = activity.session_id.clone();
        self.stamp_session(session_id.as_deref(), now);
        Ok(())
    }

    /// Releases the lease of an activity and makes the activity visible again. The lease may be over.
    pub(crate) fn abandon_activity(
        &mut self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
        now: u64,
    ) -> Result<(), ProviderError> {
        let rules = self.rules;
        let Some(activity) = self.activities.release(token) else {
            return rules.unknown_token("abandon_work_item", gone(token));
        };
        activity.visible_at = rules.activity_returns_at(delay, now);
        activity.attempts = rules.attempts_after_abandon(activity.attempts, ignore_attempt);
        Ok(())
    }

    /// Releases the lease of an activity whose handler has failed, and keeps the failure. The lease may be over.
    pub(crate) fn abandon_noted(
        &mut self,
        token: &str,
        delay: Option<Duration>,
        error: &str,
        now: u64,
    ) -> Result<(), ProviderError> {
        let rules = self.rules;
        let Some(activity) = self.activities.release(token) else {
            return rules.unknown_token("abandon_work_noted", gone(token));
        };
        activity.visible_at = rules.noted_returns_at(delay, now);
        activity.attempts = rules.attempts_after_note(activity.attempts);
        rules.note_failure(&mut activity.notes, error);
        Ok(())
    }
}

pub(crate) fn check_completion(item: &WorkItem) -> Result<(), ProviderError> {
    if !matches!(item, WorkItem::ActivityCompleted { .. } | WorkItem::ActivityFailed { .. }) {
        return refuse(ACK, format!("{} is not a completion of an activity", item.kind_name()));
    }
    check_messages(ACK, std::slice::from_ref(item))
}

fn gone(token: &str) -> String {
    format!("Invalid lock token '{token}': the activity was completed, cancelled or taken over")
}

fn expired(token: &str) -> String {
    format!("Invalid lock token '{token}': the lease has expired")
}

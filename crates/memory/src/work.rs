//! Activities: handing out, completing, giving back, keeping.

use crate::commit::{check_messages, check_work, encoded, given_back, renewed};
use crate::queue::Work;
use crate::rules::{Defect, Rules};
use crate::state::{State, refuse};
use outlast_provider::model::{WorkItem, json};
use outlast_provider::{
    DeadLetter, DeadLetterQueue, FetchedWork, ProviderError, SessionFetchConfig, TagFilter, saturating_ms,
};
use std::time::Duration;

/// What a fetch of work asks for.
pub(crate) struct WorkAsk<'a> {
    pub(crate) now: u64,
    pub(crate) locked_until: u64,
    pub(crate) session: Option<&'a SessionFetchConfig>,
    pub(crate) tags: &'a TagFilter,
    pub(crate) token: String,
}

impl State {
    pub(crate) fn push_work(&mut self, item: WorkItem, now: u64) -> Result<(), ProviderError> {
        const ENQUEUE: &str = "enqueue_for_worker";
        check_work(ENQUEUE, std::slice::from_ref(&item))?;
        let text = encoded(ENQUEUE, json::encode_work_item(&item))?;
        if let WorkItem::ActivityExecute { instance, execution_id, id, session_id, tag, .. } = item {
            self.work.push(Work {
                text,
                visible_at: now,
                token: None,
                locked_until: 0,
                attempts: 0,
                instance,
                execution_id,
                activity_id: id,
                session_id,
                tag,
            });
        }
        Ok(())
    }

    /// Locks the oldest activity that the caller may take.
    pub(crate) fn fetch_work(
        &mut self,
        ask: &WorkAsk<'_>,
        rules: &Rules,
    ) -> Result<Option<FetchedWork>, ProviderError> {
        let mut ordinals: Vec<u64> = self.work.rows.keys().copied().collect();
        if rules.broken(Defect::WorkLifo) {
            ordinals.reverse();
        }
        for ordinal in ordinals {
            let Some(work) = self.work.rows.get(&ordinal) else { continue };
            let tagged = ask.tags.matches(work.tag.as_deref()) || rules.broken(Defect::TagFilterIgnored);
            let free = work.visible_at <= ask.now && !work.is_leased(ask.now);
            if !free
                || !tagged
                || !self.session_admits(work.session_id.as_deref(), ask.session, ask.now, rules)
            {
                continue;
            }
            match json::decode_work_item(&work.text) {
                Ok(item) => return Ok(Some(self.lease_work(ordinal, item, ask, rules))),
                Err(reason) if rules.broken(Defect::UndecodableWorkBlocks) => {
                    return refuse("fetch_work_item", reason.to_string());
                }
                Err(reason) => self.bury_work(ordinal, reason.to_string(), ask.now),
            }
        }
        Ok(None)
    }

    fn lease_work(&mut self, ordinal: u64, item: WorkItem, ask: &WorkAsk<'_>, rules: &Rules) -> FetchedWork {
        let counted = !rules.broken(Defect::WorkAttemptsNotCounted);
        self.work.lease(ordinal, &ask.token, ask.locked_until, counted);
        let work = self.work.rows.get(&ordinal);
        let attempt_count = work.map_or(0, |work| work.attempts);
        let session_id = work.and_then(|work| work.session_id.clone());
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
            orchestration,
            now_ms: Some(ask.now),
        }
    }

    /// An activity that does not decode is set aside, so that it blocks nobody.
    fn bury_work(&mut self, ordinal: u64, reason: String, now: u64) {
        if let Some(work) = self.work.remove(ordinal) {
            self.dead_letters.push(DeadLetter {
                queue: DeadLetterQueue::Worker,
                instance_id: Some(work.instance),
                work_item: work.text,
                reason,
                attempt_count: work.attempts,
                dead_at: now,
            });
        }
    }

    pub(crate) fn ack_work(
        &mut self,
        token: &str,
        completion: Option<WorkItem>,
        now: u64,
        rules: &Rules,
    ) -> Result<(), ProviderError> {
        if let Some(item) = &completion {
            check_completion(item)?;
        }
        let Some((ordinal, work)) = self.work.by_token(token) else {
            return match rules.broken(Defect::WorkAckUnknownTokenOk) {
                true => Ok(()),
                false => refuse(ACK, gone(token)),
            };
        };
        if !work.is_leased(now) && !rules.broken(Defect::WorkAckIgnoresExpiry) {
            return refuse(ACK, format!("Invalid lock token '{token}': the lease has expired"));
        }
        let session_id = work.session_id.clone();
        if let Some(item) = &completion
            && !rules.broken(Defect::WorkAckLosesCompletion)
        {
            self.push_message(item, now)?;
        }
        self.work.remove(ordinal);
        self.stamp_session(session_id.as_deref(), now, rules);
        Ok(())
    }

    pub(crate) fn renew_work(
        &mut self,
        token: &str,
        extend_for: Duration,
        now: u64,
        rules: &Rules,
    ) -> Result<(), ProviderError> {
        const RENEW: &str = "renew_work_item_lock";
        let Some(work) = self.work.by_token_mut(token) else { return refuse(RENEW, gone(token)) };
        if !work.is_leased(now) && !rules.broken(Defect::WorkRenewRevives) {
            return refuse(RENEW, format!("Invalid lock token '{token}': the lease has expired"));
        }
        work.locked_until = renewed(work.locked_until, extend_for, now, rules);
        let session_id = work.session_id.clone();
        self.stamp_session(session_id.as_deref(), now, rules);
        Ok(())
    }

    pub(crate) fn abandon_work(
        &mut self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
        now: u64,
        rules: &Rules,
    ) -> Result<(), ProviderError> {
        let Some(work) = self.work.release(token) else {
            return match rules.broken(Defect::AbandonUnknownTokenOk) {
                true => Ok(()),
                false => refuse("abandon_work_item", gone(token)),
            };
        };
        let delay = delay.filter(|_| !rules.broken(Defect::WorkAbandonLosesDelay));
        work.visible_at = now.saturating_add(delay.map_or(0, saturating_ms));
        work.attempts = given_back(work.attempts, ignore_attempt, rules);
        Ok(())
    }
}

const ACK: &str = "ack_work_item";

pub(crate) fn check_completion(item: &WorkItem) -> Result<(), ProviderError> {
    if !matches!(item, WorkItem::ActivityCompleted { .. } | WorkItem::ActivityFailed { .. }) {
        return refuse(ACK, format!("{} is not a completion of an activity", item.kind_name()));
    }
    check_messages(ACK, std::slice::from_ref(item))
}

fn gone(token: &str) -> String {
    format!("Invalid lock token '{token}': the activity was completed, cancelled or taken over")
}

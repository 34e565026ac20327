//! Fetches of activities. A fetch takes the lease by replacing the activity under `If-Match`.

use crate::activity::Wrote;
use crate::document::{ActivityLock, Address, Item, Versioned};
use crate::message::dead_letter;
use crate::number::indexed;
use crate::park::{IsGone, Tried};
use crate::ready_activity::{ActivityKey, IndexedActivity};
use crate::store::Store;
use outlast_provider::{
    DeadLetterQueue, FetchedWork, ProviderError, SessionFetchConfig, TagFilter, WorkNotes, saturating_ms,
};
use outlast_provider_kit::rows;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const FETCH: &str = "fetch_work_item";

/// Attempts of a write that is in doubt.
const ATTEMPTS: usize = 4;

/// The candidates that one lookup in the queue returns.
const CANDIDATES: usize = 64;

/// The conditions of one fetch.
pub(crate) struct ActivityAsk {
    /// Whether the caller has dropped the fetch.
    pub(crate) is_gone: IsGone,
    pub(crate) max_items: usize,
    pub(crate) lock_timeout: Duration,
    pub(crate) session: Option<SessionFetchConfig>,
    pub(crate) tags: TagFilter,
}

impl Store {
    /// Leases the oldest activities that the caller may take.
    pub(crate) async fn fetch_activity(
        self: &Arc<Self>,
        ask: &ActivityAsk,
    ) -> Result<Tried<Vec<FetchedWork>>, ProviderError> {
        let mut leased = Vec::new();
        let mut tried: HashSet<ActivityKey> = HashSet::new();
        let mut session_due: Option<u64> = None;
        loop {
            let now = self.now();
            let candidates =
                self.ready.activities(now, &ask.tags, ask.session.is_some(), CANDIDATES + tried.len());
            let fresh: Vec<_> = candidates.into_iter().filter(|(key, _)| !tried.contains(key)).collect();
            if fresh.is_empty() {
                break;
            }
            for (key, activity) in fresh {
                if leased.len() >= ask.max_items {
                    return Ok(Tried::Found(leased));
                }
                if (ask.is_gone)() {
                    return Ok(if leased.is_empty() {
                        Tried::Nothing { due: None }
                    } else {
                        Tried::Found(leased)
                    });
                }
                tried.insert(key.clone());
                if !self.ready.reserve_activity(&key) {
                    continue;
                }
                let claimed = self.try_activity(&key, &activity, ask, &mut session_due).await;
                self.ready.release_activity(&key);
                match claimed {
                    Ok(Some(fetched)) => leased.push(fetched),
                    Ok(None) => {}
                    // An error would hide the leases that the fetch already has.
                    Err(_) if !leased.is_empty() => return Ok(Tried::Found(leased)),
                    Err(error) => return Err(error),
                }
            }
        }
        if !leased.is_empty() {
            return Ok(Tried::Found(leased));
        }
        let due = self.ready.activity_due(self.now(), &ask.tags);
        Ok(Tried::Nothing { due: [due, session_due].into_iter().flatten().min() })
    }

    async fn try_activity(
        self: &Arc<Self>,
        key: &ActivityKey,
        activity: &IndexedActivity,
        ask: &ActivityAsk,
        session_due: &mut Option<u64>,
    ) -> Result<Option<FetchedWork>, ProviderError> {
        let address = &activity.address;
        let mut document = activity.document.clone();
        for _ in 0..ATTEMPTS {
            let found = match document.take() {
                Some(found) => found,
                None => match self.client.read::<Item>(FETCH, &address.partition, &key.2).await? {
                    Some(mut found)
                        if found.document.t == "a" && self.is_committed(&found.document).await? =>
                    {
                        let instance = self.read_instance(FETCH, address).await?;
                        let row = instance.and_then(|instance| instance.document.row);
                        found.document.orchestration = row.map(|row| (row.name, row.version));
                        found
                    }
                    _ => {
                        self.ready.remove_activity(key);
                        return Ok(None);
                    }
                },
            };
            let (now, item) = (self.now(), &found.document);
            let over = item.lock.as_ref().map_or(0, |lock| self.over_at(lock.until, lock.holder));
            if over.max(item.visible_at) > now {
                self.ready.stored_activity(address, item, &found.etag);
                return Ok(None);
            }
            if let Err(reason) = rows::decode_activity(&address.id, &item.d) {
                let letter = dead_letter(
                    item,
                    DeadLetterQueue::Worker,
                    reason,
                    item.attempts,
                    now,
                    self.time.sequence(),
                );
                let letter = Item { w: self.uid(), ..letter };
                if let Wrote::Done(_) =
                    self.write_activity(FETCH, address, &found, letter, Vec::new()).await?
                {
                    self.ready.remove_activity(key);
                    return Ok(None);
                }
                continue;
            }
            if let (Some(session_id), Some(caller)) = (&item.session_id, &ask.session)
                && let Some(until) = self.claim_session(session_id, caller).await?
            {
                *session_due = Some(session_due.map_or(until, |due| due.min(until)));
                return Ok(None);
            }
            if (ask.is_gone)() {
                return Ok(None);
            }
            if let Some(fetched) = self.claim_activity(address, found, ask).await? {
                return Ok(Some(fetched));
            }
        }
        Ok(None)
    }

    async fn claim_activity(
        &self,
        address: &Address,
        found: Versioned<Item>,
        ask: &ActivityAsk,
    ) -> Result<Option<FetchedWork>, ProviderError> {
        let now = self.now();
        let (secret, lock_token) = self.activity_token(address, &found.document);
        let until = now.saturating_add(saturating_ms(ask.lock_timeout));
        let mut item = found.document.clone();
        item.attempts = item.attempts.saturating_add(1);
        item.lock = Some(ActivityLock { secret, until, holder: self.own });
        item.at = Some(indexed(until.max(item.visible_at)));
        item.w = self.uid();
        let decoded = rows::decode_activity(&address.id, &item.d);
        let claim = self.write_activity(FETCH, address, &found, item.clone(), Vec::new());
        let Wrote::Done(etag) = self.within_lease(ask.lock_timeout, claim).await? else { return Ok(None) };
        self.lease_lasts(secret, ask.lock_timeout);
        self.ready.stored_activity(address, &item, &etag);
        let (failures, last_error) = item.failures.clone().unwrap_or_default();
        let fetched = decoded.ok().map(|activity| FetchedWork {
            item: activity,
            lock_token,
            attempt_count: item.attempts,
            notes: Some(WorkNotes { failures, last_error }),
            orchestration: item.orchestration.clone(),
            now_ms: Some(now),
        });
        self.hold_activity(secret, Versioned { etag, document: item });
        Ok(fetched)
    }
}

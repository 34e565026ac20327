//! Activities: fetches, completions, renewals. The holder of an activity writes its document under `If-Match`; a completion
//! replaces the document in place.

use crate::client::{Op, is_conflict};
use crate::document::{Address, Gate, Item, Target, Versioned, WorkLock};
use crate::doubt::{ActivityCall, Answer, Resolved, StoredActivity, Verdict, resolve_activity};
use crate::error::{contended, lost};
use crate::ids::{self, Uid};
use crate::message::dead_letter;
use crate::number::indexed;
use crate::park::{IsGone, Tried};
use crate::ready::{Work, WorkKey};
use crate::slots::slot_of;
use crate::store::Store;
use outlast_model::WorkItem;
use outlast_provider::{
    DeadLetterQueue, FetchedWork, ProviderError, SessionFetchConfig, TagFilter, WorkNotes, saturating_ms,
};
use outlast_provider_kit::plan::{activity_row, completion_row};
use outlast_provider_kit::{ActivityRow, rows};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const FETCH: &str = "fetch_work_item";
pub(crate) const ACK: &str = "ack_work_item";

/// Attempts of a write that is in doubt.
const ATTEMPTS: usize = 4;

/// Candidates that one look at the queue takes.
const CANDIDATES: usize = 64;

/// The conditions of one fetch.
pub(crate) struct WorkAsk {
    /// Whether the caller went away.
    pub(crate) is_gone: IsGone,
    pub(crate) max_items: usize,
    pub(crate) lock_timeout: Duration,
    pub(crate) session: Option<SessionFetchConfig>,
    pub(crate) tags: TagFilter,
}

/// The document of an activity.
pub(crate) fn document(
    address: &Address,
    row: &ActivityRow,
    now: u64,
    sequence: u64,
    write: Uid,
    orchestration: Option<(String, String)>,
) -> Item {
    Item {
        id: ids::activity(row.execution_id, row.activity_id, None),
        partition: address.partition.clone(),
        t: "a".to_string(),
        iid: address.long_id(),
        slot: slot_of(&address.id),
        at: Some(indexed(now)),
        // Activities are fetched in the order of their arrival.
        o: Item::order(2, 0, sequence),
        sequence,
        w: write,
        d: row.work_item.clone(),
        visible_at: now,
        execution_id: Some(row.execution_id),
        activity_id: Some(row.activity_id),
        tag: row.tag.clone(),
        session_id: row.session_id.clone(),
        orchestration,
        ..Item::default()
    }
}

/// The reason why an activity is given back.
#[derive(Clone, Copy)]
pub(crate) enum GivenBack<'a> {
    /// The delivery stays counted.
    Counted,
    /// The delivery is taken off the count.
    Uncounted,
    /// The handler has failed with this text: the failure is kept, and the delivery is taken off the count.
    Failed(&'a str),
}

/// The outcome of a write of an activity.
enum Wrote {
    Done(String),
    /// The document is not the one that the writer read.
    Changed,
}

impl Store {
    pub(crate) async fn enqueue_activity(&self, item: &WorkItem) -> Result<(), ProviderError> {
        const ENQUEUE: &str = "enqueue_for_worker";
        let row = activity_row(ENQUEUE, item)?;
        let address = Address::of(&row.instance_id);
        let write = self.uid();
        let mut activity = document(&address, &row, self.now(), self.time.sequence(), write, None);
        // A caller may enqueue an activity twice.
        activity.id = ids::activity(row.execution_id, row.activity_id, Some(write));
        self.check_size(ENQUEUE, &address, &activity)?;
        self.create(ENQUEUE, &address, &activity.id, vec![Op::create(&activity)?]).await?;
        self.ready.found_work(&address, &activity, 0);
        self.ready.wake();
        Ok(())
    }

    /// Refuses an item that no document can hold.
    pub(crate) fn check_size(
        &self,
        operation: &str,
        address: &Address,
        item: &Item,
    ) -> Result<(), ProviderError> {
        let bytes = serde_json::to_string(item).map_or(0, |text| text.len());
        let limit = crate::staging::Limits::default().bytes;
        if bytes > limit {
            let error = crate::staging::TooLarge { id: item.id.clone(), bytes, limit };
            return Err(crate::error::refused(operation, format!("instance '{}': {error}", address.id)));
        }
        Ok(())
    }

    /// Leases the oldest activities that the caller may take.
    pub(crate) async fn fetch_work(
        self: &Arc<Self>,
        ask: &WorkAsk,
    ) -> Result<Tried<Vec<FetchedWork>>, ProviderError> {
        let mut leased = Vec::new();
        let mut tried: HashSet<WorkKey> = HashSet::new();
        let mut session_due: Option<u64> = None;
        loop {
            let now = self.now();
            let candidates = self.ready.work(now, &ask.tags, ask.session.is_some(), CANDIDATES + tried.len());
            let fresh: Vec<_> = candidates.into_iter().filter(|(key, _)| !tried.contains(key)).collect();
            if fresh.is_empty() {
                break;
            }
            for (key, work) in fresh {
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
                if !self.ready.reserve_work(&key) {
                    continue;
                }
                let claimed = self.try_activity(&key, &work, ask, &mut session_due).await;
                self.ready.release_work(&key);
                match claimed {
                    Ok(Some(fetched)) => leased.push(fetched),
                    Ok(None) => {}
                    // The caller must learn of the leases that it holds already.
                    Err(_) if !leased.is_empty() => return Ok(Tried::Found(leased)),
                    Err(error) => return Err(error),
                }
            }
        }
        if !leased.is_empty() {
            return Ok(Tried::Found(leased));
        }
        let due = self.ready.work_due(self.now(), &ask.tags);
        Ok(Tried::Nothing { due: [due, session_due].into_iter().flatten().min() })
    }

    async fn try_activity(
        self: &Arc<Self>,
        key: &WorkKey,
        work: &Work,
        ask: &WorkAsk,
        session_due: &mut Option<u64>,
    ) -> Result<Option<FetchedWork>, ProviderError> {
        let address = &work.address;
        let mut document = work.document.clone();
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
                        self.ready.remove_work(key);
                        return Ok(None);
                    }
                },
            };
            let (now, item) = (self.now(), &found.document);
            let over = item.lock.as_ref().map_or(0, |lock| self.over_at(lock.until, lock.holder));
            if over.max(item.visible_at) > now {
                self.ready.stored_work(address, item, &found.etag);
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
                    self.ready.remove_work(key);
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
        ask: &WorkAsk,
    ) -> Result<Option<FetchedWork>, ProviderError> {
        let now = self.now();
        let (secret, lock_token) = self.work_token(address, &found.document);
        let until = now.saturating_add(saturating_ms(ask.lock_timeout));
        let mut item = found.document.clone();
        item.attempts = item.attempts.saturating_add(1);
        item.lock = Some(WorkLock { secret, until, holder: self.own });
        item.at = Some(indexed(until.max(item.visible_at)));
        item.w = self.uid();
        let decoded = rows::decode_activity(&address.id, &item.d);
        let Wrote::Done(etag) = self.write_activity(FETCH, address, &found, item.clone(), Vec::new()).await?
        else {
            return Ok(None);
        };
        self.ready.stored_work(address, &item, &etag);
        let (failures, last_error) = item.failures.clone().unwrap_or_default();
        let notes = WorkNotes { failures, last_error };
        let fetched = decoded.ok().map(|work| FetchedWork {
            item: work,
            lock_token,
            attempt_count: item.attempts,
            notes: Some(notes),
            orchestration: item.orchestration.clone(),
            now_ms: Some(now),
        });
        self.hold_work(secret, Versioned { etag, document: item });
        Ok(fetched)
    }

    /// Replaces an activity under `If-Match`, with further operations.
    async fn write_activity(
        &self,
        operation: &str,
        address: &Address,
        before: &Versioned<Item>,
        next: Item,
        further: Vec<Op>,
    ) -> Result<Wrote, ProviderError> {
        let replace = Op::replace(&next.id, &next, Some(&before.etag))?;
        let call = match operation {
            ACK => ActivityCall::Complete,
            _ => ActivityCall::RenewOrGiveBack,
        };
        let mut operations = vec![replace];
        operations.extend(further);
        self.send_activity(operation, address, before, next.w, call, operations).await
    }

    async fn send_activity(
        &self,
        operation: &str,
        address: &Address,
        before: &Versioned<Item>,
        write: Uid,
        call: ActivityCall,
        operations: Vec<Op>,
    ) -> Result<Wrote, ProviderError> {
        let mut sent = 0_u32;
        for _ in 0..ATTEMPTS {
            let batched = self.client.batch(&address.partition, operations.clone()).await?;
            sent = sent.saturating_add(batched.answer.sent);
            match (Answer { sent, ..batched.answer.clone() }).verdict() {
                Verdict::Applied => {
                    return Ok(Wrote::Done(batched.etags.first().cloned().unwrap_or_default()));
                }
                Verdict::Refused(refusal) if is_conflict(refusal) => return Ok(Wrote::Changed),
                Verdict::Refused(_) => return Err(batched.error(operation)),
                Verdict::InDoubt => {}
            }
            let stored = self.client.read::<Item>(operation, &address.partition, &before.document.id).await?;
            let found =
                stored.as_ref().map(|stored| StoredActivity { etag: &stored.etag, write: stored.document.w });
            match resolve_activity(call, write, &before.etag, found) {
                Resolved::Applied => {
                    return Ok(Wrote::Done(stored.map(|stored| stored.etag).unwrap_or_default()));
                }
                Resolved::Lost => return Ok(Wrote::Changed),
                Resolved::Repeat => {}
            }
        }
        Err(contended(operation, &address.id))
    }

    /// The activity under the lease of a token. An error if the token does not hold it.
    async fn held_activity(
        &self,
        operation: &str,
        token: &str,
        secret: Uid,
        address: &Address,
        id: &str,
        held: Option<Versioned<Item>>,
    ) -> Result<Versioned<Item>, ProviderError> {
        let current = match held {
            Some(held) => Some(held),
            None => self.client.read::<Item>(operation, &address.partition, id).await?,
        };
        let holds =
            |item: &Item| item.t == "a" && item.lock.as_ref().is_some_and(|lock| lock.secret == secret);
        match current.filter(|current| holds(&current.document)) {
            Some(current) => Ok(current),
            None => {
                self.drop_work(secret);
                Err(lost(operation, token))
            }
        }
    }

    /// Removes an activity and stores its completion.
    pub(crate) async fn ack_activity(
        self: &Arc<Self>,
        token: &str,
        completion: Option<WorkItem>,
    ) -> Result<(), ProviderError> {
        let completion = completion.map(|item| completion_row(ACK, &item)).transpose()?;
        let Some((secret, address, id, held)) = self.work_of(token) else { return Err(lost(ACK, token)) };
        let mut held = held.lock().await;
        for _ in 0..ATTEMPTS {
            let current = self.held_activity(ACK, token, secret, &address, &id, held.take()).await?;
            let now = self.now();
            if current.document.lock.as_ref().is_none_or(|lock| lock.until <= now) {
                return Err(lost(ACK, token));
            }
            let write = self.uid();
            let sequence = self.time.sequence();
            let session_id = current.document.session_id.clone();
            let mut intent = None;
            let wrote = match &completion {
                None => {
                    let removal = vec![Op::delete(&id, Some(&current.etag))];
                    self.send_activity(ACK, &address, &current, write, ActivityCall::Complete, removal)
                        .await?
                }
                Some(row) if row.instance_id == address.id => {
                    let mut message = Item {
                        t: "m".to_string(),
                        w: write,
                        d: row.work_item.clone(),
                        visible_at: now,
                        lock: None,
                        attempts: 0,
                        failures: None,
                        orchestration: None,
                        rev: None,
                        is_staged: false,
                        ..current.document.clone()
                    };
                    message.place(2, sequence);
                    self.check_size(ACK, &address, &message)?;
                    let gate = Op::upsert(&Gate::new(&address.partition, write))?;
                    self.write_activity(ACK, &address, &current, message, vec![gate]).await?
                }
                Some(row) => {
                    let target = Target {
                        instance: row.instance_id.clone(),
                        id: crate::outbox::sent_key(write),
                        is_activity: false,
                    };
                    let outgoing = Item {
                        t: "o".to_string(),
                        at: Some(indexed(
                            now.saturating_add(saturating_ms(self.config.reconciler_age_threshold)),
                        )),
                        w: write,
                        d: row.work_item.clone(),
                        visible_at: now,
                        sequence,
                        lock: None,
                        attempts: 0,
                        failures: None,
                        rev: None,
                        is_staged: false,
                        to: Some(target),
                        ..current.document.clone()
                    };
                    self.check_size(ACK, &address, &outgoing)?;
                    intent = Some(outgoing.clone());
                    self.write_activity(ACK, &address, &current, outgoing, Vec::new()).await?
                }
            };
            if let Wrote::Done(_) = wrote {
                self.drop_work(secret);
                self.ready.remove_work_of(&address.id, &id);
                if completion.as_ref().is_some_and(|row| row.instance_id == address.id) {
                    self.ready.arrived(&address.id, &id, now, sequence);
                }
                if let Some(intent) = intent {
                    self.deliver_soon(intent).await;
                }
                self.stamp_session(session_id.as_deref()).await;
                return Ok(());
            }
        }
        Err(contended(ACK, &address.id))
    }

    /// Extends the lease of an activity.
    pub(crate) async fn renew_activity(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        const RENEW: &str = "renew_work_item_lock";
        let Some((secret, address, id, held)) = self.work_of(token) else { return Err(lost(RENEW, token)) };
        let mut held = held.lock().await;
        for _ in 0..ATTEMPTS {
            let current = self.held_activity(RENEW, token, secret, &address, &id, held.take()).await?;
            let now = self.now();
            let mut item = current.document.clone();
            let until = match &mut item.lock {
                Some(lock) if lock.until > now => {
                    lock.until = lock.until.max(now.saturating_add(saturating_ms(extend_for)));
                    lock.until
                }
                _ => return Err(lost(RENEW, token)),
            };
            item.at = Some(indexed(until));
            item.w = self.uid();
            let wrote = self.write_activity(RENEW, &address, &current, item.clone(), Vec::new()).await?;
            if let Wrote::Done(etag) = wrote {
                self.ready.stored_work(&address, &item, &etag);
                let session_id = item.session_id.clone();
                *held = Some(Versioned { etag, document: item });
                self.stamp_session(session_id.as_deref()).await;
                return Ok(());
            }
        }
        Err(contended(RENEW, &address.id))
    }

    /// Releases the lease of an activity and makes the activity visible again. The lease may be over.
    pub(crate) async fn abandon_activity(
        &self,
        token: &str,
        delay: Option<Duration>,
        given: GivenBack<'_>,
    ) -> Result<(), ProviderError> {
        const ABANDON: &str = "abandon_work_item";
        let Some((secret, address, id, held)) = self.work_of(token) else { return Err(lost(ABANDON, token)) };
        let mut held = held.lock().await;
        for _ in 0..ATTEMPTS {
            let current = self.held_activity(ABANDON, token, secret, &address, &id, held.take()).await?;
            let mut item = current.document.clone();
            item.lock = None;
            item.visible_at = self.now().saturating_add(delay.map_or(0, saturating_ms));
            item.at = Some(indexed(item.visible_at));
            match given {
                GivenBack::Counted => {}
                GivenBack::Uncounted => item.attempts = item.attempts.saturating_sub(1),
                GivenBack::Failed(error) => {
                    item.attempts = item.attempts.saturating_sub(1);
                    let failures = item.failures.map_or(0, |(failures, _)| failures).saturating_add(1);
                    item.failures = Some((failures, Some(error.to_string())));
                    // The activity itself may fill its document.
                    if self.check_size(ABANDON, &address, &item).is_err() {
                        item.failures = Some((failures, None));
                    }
                }
            }
            item.w = self.uid();
            let wrote = self.write_activity(ABANDON, &address, &current, item.clone(), Vec::new()).await?;
            if let Wrote::Done(etag) = wrote {
                self.drop_work(secret);
                self.ready.stored_work(&address, &item, &etag);
                return Ok(());
            }
        }
        Err(contended(ABANDON, &address.id))
    }
}

//! Activities: completions, renewals. The holder of an activity writes its document under `If-Match`; a completion
//! replaces the document in place.

use crate::client::{Op, is_conflict};
use crate::document::{Address, Gate, Item, Target, Versioned};
use crate::doubt::{ActivityCall, Attempts, Resolved, StoredActivity, Verdict, resolve_activity};
use crate::error::{contended, lost};
use crate::fetch::GRACE_MS;
use crate::ids::{self, Uid};
use crate::limit;
use crate::number::indexed;
use crate::slots::slot_of;
use crate::store::{Store, locked};
use outlast_model::WorkItem;
use outlast_provider::{ProviderError, saturating_ms};
use outlast_provider_kit::ActivityRow;
use outlast_provider_kit::plan::{activity_row, completion_row};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const ACK: &str = "ack_work_item";

/// The number of attempts of a write that is in doubt.
const ATTEMPTS: usize = 4;

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
        // Activities are fetched in the order of their numbers.
        o: Item::order(2, 0, sequence),
        sequence,
        w: write,
        d: row.work_item.clone(),
        visible_at: now,
        execution_id: Some(row.execution_id),
        activity_id: Some(row.activity_id),
        tag: row.tag.clone(),
        queue: Some(ids::queue(row.tag.as_deref())),
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
    /// The delivery is not counted.
    Uncounted,
    /// The handler has failed with this text: the activity keeps the failure, and the delivery is not counted.
    Failed(&'a str),
}

/// The outcome of a write of an activity.
pub(crate) enum Wrote {
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
        self.stored_activity(&address, &activity).await;
        Ok(())
    }

    /// Notes that an activity was stored outside of a turn.
    pub(crate) async fn stored_activity(&self, address: &Address, activity: &Item) {
        let is_known = locked(&self.covered).takes(activity.tag.as_deref());
        if is_known {
            self.ready.found_activity(address, activity, 0);
            self.ready.wake();
        }
        self.hint_activity(&[(activity, None)], false).await;
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

    /// Replaces an activity under `If-Match`, with further operations.
    pub(crate) async fn write_activity(
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
        let mut attempts = Attempts::default();
        for _ in 0..ATTEMPTS {
            let batched = self.client.batch(&address.partition, operations.clone()).await?;
            match attempts.verdict(&batched.answer) {
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
                self.drop_activity(secret);
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
        let Some((secret, address, id, held)) = self.activity_of(token) else { return Err(lost(ACK, token)) };
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
                        queue: None,
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
                    let completed = message.clone();
                    let write = self.write_activity(ACK, &address, &current, message, vec![gate]);
                    self.announced(&address, &[&completed], write).await?
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
                        since: Some(indexed(now)),
                        sequence,
                        queue: None,
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
                self.drop_activity(secret);
                self.ready.remove_activity_of(&address.id, &id);
                if let Some(intent) = intent {
                    limit::free(self.deliver_soon(intent)).await;
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
        let Some((secret, address, id, held)) = self.activity_of(token) else {
            return Err(lost(RENEW, token));
        };
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
                self.ready.stored_activity(&address, &item, &etag);
                let session_id = item.session_id.clone();
                *held = Some(Versioned { etag, document: item });
                self.lease_lasts(secret, extend_for);
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
        let Some((secret, address, id, held)) = self.activity_of(token) else {
            return Err(lost(ABANDON, token));
        };
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
                self.drop_activity(secret);
                self.ready.stored_activity(&address, &item, &etag);
                let is_unhandled = delay.is_some() && !matches!(given, GivenBack::Failed(_));
                if is_unhandled && self.offer_activity(&item, &etag).await {
                    // Another worker may have the handler: it tries first.
                    self.ready.yield_activity(&address, &item, item.visible_at.saturating_add(GRACE_MS));
                }
                return Ok(());
            }
        }
        Err(contended(ABANDON, &address.id))
    }
}

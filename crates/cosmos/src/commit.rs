//! Commits of turns: one batch whose first operation replaces the instance under `If-Match`, or a staged turn.

use crate::client::{Op, json};
use crate::document::{Address, Instance, Item, Versioned};
use crate::error::{contended, lost, refused};
use crate::ids::Uid;
use crate::instance::Written;
use crate::limit;
use crate::prepare::{Body, Prepared};
use crate::staging::{Document, Operation, Plan};
use crate::store::{Store, locked};
use outlast_model::ExecutionStatus;
use outlast_provider::{InstanceOutcome, ProviderError, saturating_ms};
use outlast_provider_kit::CommitPlan;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const ACK: &str = "ack_orchestration_item";

/// The number of attempts of a commit whose documents other calls change: an appended event, a completed activity.
const ATTEMPTS: usize = 8;

/// A staged turn extends its lease by this time, because it takes several requests.
const STAGING: Duration = Duration::from_secs(30);

/// The outcome of an attempt.
pub(crate) enum Applied {
    /// The turn is committed. The versions of its new documents, and the instance after it, are known if the answer came.
    Yes { etags: HashMap<String, String>, after: Option<Box<Versioned<Instance>>> },
    /// A document is not the one that was read. The id is that of an activity that exists already.
    No { taken: Option<String> },
}

impl Store {
    /// Commits a turn; returns the time of the commit.
    pub(crate) async fn commit(
        self: &Arc<Self>,
        token: &str,
        plan: &CommitPlan,
    ) -> Result<u64, ProviderError> {
        let Some((secret, address, held)) = self.turn_of(token) else { return Err(lost(ACK, token)) };
        let mut held = held.lock().await;
        let mut taken: HashSet<String> = HashSet::new();
        for _ in 0..ATTEMPTS {
            let mut current = self.held_instance(ACK, token, secret, &address, held.take()).await?;
            if crate::load::needs_recovery(&current.document) {
                // Another attempt of this call, or of an earlier owner, left documents behind.
                let Some(recovered) = self.recover(ACK, &address, current).await? else { continue };
                current = recovered;
            }
            let now = self.now();
            if current.document.lock.as_ref().is_none_or(|lock| lock.until <= now) {
                *held = Some(current);
                return Err(lost(ACK, token));
            }
            let mut base = current.document.clone();
            let covered = base.lock.take().map(|lock| lock.covers).unwrap_or_default();
            let prepared = match self.prepare(&address, base, plan, covered, &taken, now).await {
                Ok(Some(prepared)) => prepared,
                Ok(None) => continue,
                Err(error) => {
                    // A refused commit keeps the lease.
                    *held = Some(current);
                    return Err(error);
                }
            };
            match self.apply(&address, &current, &prepared, Vec::new()).await? {
                Applied::Yes { etags, after } => {
                    let ground = self.tails.released(secret);
                    self.drop_turn(secret);
                    self.follow(&address, ground, after.map(|after| *after), &prepared.messages);
                    // The lease is over. Deliveries and hints have their own time.
                    limit::free(self.committed(&address, &prepared, plan, &etags, false)).await;
                    return Ok(now);
                }
                Applied::No { taken: id } => taken.extend(id),
            }
        }
        Err(contended(ACK, &address.id))
    }

    /// Writes the documents of a turn. `guards` are further conditions, which fail the turn if they do not hold.
    pub(crate) async fn apply(
        &self,
        address: &Address,
        current: &Versioned<Instance>,
        prepared: &Prepared,
        guards: Vec<Op>,
    ) -> Result<Applied, ProviderError> {
        let plan = prepared
            .turn
            .clone()
            .plan(self.limits)
            .map_err(|error| refused(ACK, format!("turn of instance '{}': {error}", address.id)))?;
        let mut instance = prepared.instance.clone();
        match plan {
            Plan::OneBatch(operations) if operations.len() + guards.len() < self.limits.operations.max(8) => {
                instance.rev = prepared.rev;
                let ids: Vec<String> =
                    operations.iter().map(|operation| operation.id().to_string()).collect();
                let mut further = operations
                    .into_iter()
                    .map(|operation| written(address, operation, false))
                    .collect::<Result<Vec<_>, _>>()?;
                further.extend(guards);
                let events = prepared.events.as_deref();
                let wrote = self
                    .write_instance(ACK, Some(&current.etag), &mut instance, prepared.write, further, events)
                    .await?;
                Ok(match wrote {
                    Written::Done { etag, etags, is_last } => {
                        let etags = ids.into_iter().zip(etags.into_iter().skip(1)).collect();
                        let is_known = is_last && !etag.is_empty();
                        let after = is_known.then(|| Box::new(Versioned { etag, document: instance }));
                        Applied::Yes { etags, after }
                    }
                    Written::Conflict { failed } => Applied::No {
                        taken: failed
                            .and_then(|failed| failed.checked_sub(1))
                            .and_then(|failed| ids.get(failed))
                            .filter(|id| id.starts_with("a:"))
                            .cloned(),
                    },
                })
            }
            Plan::OneBatch(_) => Ok(Applied::No { taken: None }),
            Plan::Staged { stages, flip, dropped } => {
                let staged = Staged { stages, flip, dropped };
                self.apply_staged(address, current, prepared, instance, staged, guards).await
            }
        }
    }

    async fn apply_staged(
        &self,
        address: &Address,
        current: &Versioned<Instance>,
        prepared: &Prepared,
        flipped: Instance,
        staged: Staged,
        guards: Vec<Op>,
    ) -> Result<Applied, ProviderError> {
        let mut reserved = current.document.clone();
        let mut marks = reserved.marks();
        debug_assert_eq!(marks.next_rev(), prepared.rev);
        marks.reserve();
        reserved.set_marks(marks);
        if let Some(lock) = &mut reserved.lock {
            lock.until = lock.until.max(self.now().saturating_add(saturating_ms(STAGING)));
        }
        let wrote = self
            .write_instance(ACK, Some(&current.etag), &mut reserved, self.uid(), Vec::new(), None)
            .await?;
        let Written::Done { etag: guard, is_last: true, .. } = wrote else {
            return Ok(Applied::No { taken: None });
        };
        let reserved = Versioned { etag: guard, document: reserved };
        // The reservation has extended the lease.
        limit::under(STAGING, self.apply_reserved(address, reserved, prepared, flipped, staged, guards)).await
    }

    async fn apply_reserved(
        &self,
        address: &Address,
        reserved: Versioned<Instance>,
        prepared: &Prepared,
        mut flipped: Instance,
        staged: Staged,
        guards: Vec<Op>,
    ) -> Result<Applied, ProviderError> {
        let Versioned { etag: guard, document: mut reserved } = reserved;
        let mut etags = HashMap::new();
        for stage in staged.stages {
            match self.stage(address, &guard, prepared.write, stage).await? {
                Applied::Yes { etags: more, .. } => etags.extend(more),
                no => return Ok(no),
            }
        }
        let mut marks = reserved.marks();
        marks.commit(prepared.rev, staged.dropped.clone());
        flipped.set_marks(marks);
        let writes = std::mem::take(&mut reserved.writes);
        flipped.writes = writes;
        let mut further = staged
            .flip
            .into_iter()
            .map(|operation| written(address, operation, false))
            .collect::<Result<Vec<_>, _>>()?;
        further.extend(guards);
        let wrote =
            self.write_instance(ACK, Some(&guard), &mut flipped, prepared.write, further, None).await?;
        let Written::Done { etag, is_last, .. } = wrote else { return Ok(Applied::No { taken: None }) };
        if !staged.dropped.is_empty() && is_last {
            // The next owner removes what is left behind.
            let flipped = Versioned { etag, document: flipped };
            if let Err(error) = self.recover(ACK, address, flipped).await {
                tracing::debug!(target: "duroxide::providers::cosmosdb", %error, "dropped documents stay for now");
            }
        }
        Ok(Applied::Yes { etags, after: None })
    }

    /// Updates the state of this process after a commit, and delivers the messages to other instances.
    pub(crate) async fn committed(
        self: &Arc<Self>,
        address: &Address,
        prepared: &Prepared,
        plan: &CommitPlan,
        etags: &HashMap<String, String>,
        is_ahead: bool,
    ) {
        self.tally.add(self.now(), prepared.counted);
        self.ready.consumed(&address.id, &prepared.consumed, 0);
        let roles = locked(&self.covered).clone();
        for message in prepared.messages.iter().filter(|_| roles.turns) {
            self.ready.arrived(&address.id, &message.id, message.visible_at, message.sequence);
        }
        for id in &prepared.cancelled {
            self.ready.remove_activity_of(&address.id, id);
        }
        if let (Some(name), Some(version)) =
            (&plan.metadata.orchestration_name, &plan.metadata.orchestration_version)
        {
            self.ready.named(&address.id, name, version);
        }
        let stored: Vec<(&Item, Option<&String>)> = prepared
            .activities
            .iter()
            .map(|activity| (activity, etags.get(&activity.id).filter(|etag| !etag.is_empty())))
            .collect();
        for (activity, etag) in stored.iter().filter(|(activity, _)| roles.takes(activity.tag.as_deref())) {
            match etag {
                Some(etag) => self.ready.stored_activity(address, activity, etag),
                None => drop(self.ready.found_activity(address, activity, 0)),
            }
        }
        self.ready.wake();
        self.hint_activity(&stored, is_ahead).await;
        if !prepared.messages.is_empty() && !self.owns(address) {
            let sent: Vec<&Item> = prepared.messages.iter().collect();
            self.hint_messages(address, &sent).await;
        }
        if self.watches.is_watched() {
            match outcome(plan, &prepared.instance) {
                Some(outcome) => self.watches.ended_with(&address.id, &outcome),
                None => self.watches.committed(&address.id, plan.ends_instance()),
            }
        }
        for intent in &prepared.intents {
            self.deliver_soon(intent.clone()).await;
        }
        for cancelled in &prepared.cancelled_elsewhere {
            if let Err(error) = self.cancel_elsewhere(cancelled).await {
                tracing::debug!(target: "duroxide::providers::cosmosdb", %error, "an activity of another instance stays");
            }
        }
    }
}

struct Staged {
    stages: Vec<Vec<Operation<Body>>>,
    flip: Vec<Operation<Body>>,
    dropped: Vec<String>,
}

/// The outcome of a turn that ended its instance, for watches; `None` if the outcome must be read.
fn outcome(plan: &CommitPlan, instance: &Instance) -> Option<InstanceOutcome> {
    let status = plan.metadata.execution_status()?;
    if status != ExecutionStatus::Completed || !plan.ends_instance() {
        return None;
    }
    let row = instance.row.as_ref();
    Some(InstanceOutcome {
        execution_id: plan.execution_id,
        status: status.to_string(),
        output: plan.metadata.output.clone(),
        failure: None,
        custom_status: row.and_then(|row| row.custom_status.clone()),
        custom_status_version: row.map_or(0, |row| row.custom_status_version),
    })
    .filter(|_| instance.latest_execution() == plan.execution_id)
}

/// An operation of a plan as a request.
pub(crate) fn written(
    address: &Address,
    operation: Operation<Body>,
    is_staged: bool,
) -> Result<Op, ProviderError> {
    Ok(match operation {
        Operation::Create(Document { body, .. }) => match body {
            Body::Item(mut item) => {
                item.is_staged = is_staged;
                Op::create(&item)?
            }
            Body::Json(body) => Op::Create(body),
            Body::Pair(pair) => Op::create(&pair)?,
            Body::Remove { id, etag } => Op::delete(&id, Some(&etag)),
        },
        Operation::Upsert(Document { body, .. }) => match body {
            Body::Pair(mut pair) => {
                pair.committed = None;
                Op::upsert(&pair)?
            }
            Body::Json(body) => Op::Upsert(body),
            Body::Item(item) => Op::upsert(&item)?,
            Body::Remove { id, etag } => Op::delete(&id, Some(&etag)),
        },
        Operation::UpsertVersioned(Document { body, .. }) => match body {
            Body::Pair(pair) => Op::upsert(&pair)?,
            Body::Json(body) => Op::Upsert(body),
            Body::Item(item) => Op::upsert(&item)?,
            Body::Remove { id, etag } => Op::delete(&id, Some(&etag)),
        },
        Operation::Delete(id) => Op::delete(&id, None),
        Operation::Bury(id) => {
            let body = json(&tombstone(address, &id))?;
            Op::Replace { id, body, etag: None }
        }
    })
}

/// The life of a tombstone, in seconds.
const TOMBSTONE_LIFE: u32 = 24 * 60 * 60;

/// The document that keeps the key of a consumed message.
pub(crate) fn tombstone(address: &Address, id: &str) -> Item {
    Item {
        id: id.to_string(),
        partition: address.partition.clone(),
        t: "b".to_string(),
        w: Uid::default(),
        ttl: Some(TOMBSTONE_LIFE),
        ..Item::default()
    }
}

//! Completions of activities together with the turn that follows. The batch of the turn removes the activity. The batch is guarded
//! by the gate, which proves that no message arrived after the messages were read.

use crate::activity::ACK;
use crate::client::{Op, json};
use crate::commit::Applied;
use crate::document::{Address, Gate, Item};
use crate::error::lost;
use crate::ids;
use crate::limit;
use crate::load::SeenGate;
use crate::message::counted;
use crate::store::Store;
use crate::tail::{Ground, TAIL_MS, Tail, is_free};
use outlast_model::{ExecutionStatus, WorkItem};
use outlast_provider::{Completion, ProviderError, TurnAhead};
use outlast_provider_kit::CommitPlan;
use outlast_provider_kit::plan::completion_row;
use std::collections::HashSet;
use std::sync::Arc;

/// Attempts before the outcome is queued.
const ATTEMPTS: usize = 3;

impl Store {
    /// Completes the activity and commits the turn in one batch if the instance has not changed since the turn ran. Otherwise the
    /// completion is queued.
    pub(crate) async fn complete_with_turn(
        self: &Arc<Self>,
        token: &str,
        completion: WorkItem,
        ahead: TurnAhead,
    ) -> Result<Completion, ProviderError> {
        let target = Address::of(&completion_row(ACK, &completion)?.instance_id);
        let (after_event_id, is_of_now) = (ahead.after_event_id, ahead.is_of_now(self.now()));
        let plan = CommitPlan::of(ahead.commit)?;
        if is_of_now && let Some(at_ms) = self.try_ahead(token, &target, &plan, after_event_id).await? {
            return Ok(Completion::WithTurn { at_ms });
        }
        self.ack_activity(token, Some(completion)).await?;
        Ok(Completion::Queued)
    }

    async fn try_ahead(
        self: &Arc<Self>,
        token: &str,
        target: &Address,
        plan: &CommitPlan,
        after_event_id: u64,
    ) -> Result<Option<u64>, ProviderError> {
        let Some((secret, address, id, held)) = self.activity_of(token) else { return Err(lost(ACK, token)) };
        if address != *target {
            // Two partitions do not commit together.
            return Ok(None);
        }
        let mut held = held.lock().await;
        let mut taken: HashSet<String> = HashSet::new();
        for _ in 0..ATTEMPTS {
            let activity = match held.clone() {
                Some(activity) => Some(activity),
                None => self.client.read::<Item>(ACK, &address.partition, &id).await?,
            };
            let now = self.now();
            let holds = |item: &Item| {
                item.t == "a"
                    && item.lock.as_ref().is_some_and(|lock| lock.secret == secret && lock.until > now)
            };
            // The completion reports a lost lease.
            let Some(activity) = activity.filter(|activity| holds(&activity.document)) else {
                return Ok(None);
            };
            let Some(tail) = self.tail(&address, plan, after_event_id, now).await? else {
                return Ok(None);
            };
            let base = tail.instance.document.clone();
            let Some(mut prepared) = self.prepare(&address, base, plan, Vec::new(), &taken, now).await?
            else {
                continue;
            };
            prepared.turn.cancelled.retain(|cancelled| cancelled.id != id);
            let gate = Gate::new(&address.partition, prepared.write);
            let guards = vec![
                Op::delete(&id, Some(&activity.etag)),
                match tail.gate() {
                    SeenGate::Version(etag) => Op::Guard { id: ids::GATE.to_string(), etag: etag.clone() },
                    SeenGate::Absent | SeenGate::Unknown => Op::Create(json(&gate)?),
                },
            ];
            match self.apply(&address, &tail.instance, &prepared, guards).await? {
                Applied::Yes { etags, after } => {
                    self.drop_activity(secret);
                    self.ready.remove_activity_of(&address.id, &id);
                    // A gate that the commit created has a version that is not known here.
                    let ground = matches!(tail.gate(), SeenGate::Version(_)).then_some(tail.ground);
                    self.follow(&address, ground, after.map(|after| *after), &prepared.messages);
                    limit::free(self.committed(&address, &prepared, plan, &etags, true)).await;
                    self.stamp_session(activity.document.session_id.as_deref()).await;
                    return Ok(Some(now));
                }
                Applied::No { taken: id } => {
                    taken.extend(id);
                    *held = None;
                }
            }
        }
        Ok(None)
    }

    /// The end of the instance's history, as this process wrote or reads it; `None` if the turn does not follow from it.
    async fn tail(
        &self,
        address: &Address,
        plan: &CommitPlan,
        after_event_id: u64,
        now: u64,
    ) -> Result<Option<Tail>, ProviderError> {
        if let Some(known) = self.tails.take(&address.id)
            && self.is_followed(address, &known, plan, after_event_id, now).await?
        {
            return Ok(Some(known));
        }
        let loaded = self.load_partition(ACK, address, now.saturating_add(TAIL_MS)).await?;
        let Some(instance) = loaded.instance else { return Ok(None) };
        let Some(messages) = counted(&instance.document, loaded.messages) else { return Ok(None) };
        let read = Tail { ground: Ground::new(loaded.gate, &messages, now), instance };
        let follows = self.is_followed(address, &read, plan, after_event_id, now).await?;
        Ok(follows.then_some(read))
    }

    /// Whether a turn that ran after this event follows from the tail.
    async fn is_followed(
        &self,
        address: &Address,
        tail: &Tail,
        plan: &CommitPlan,
        after_event_id: u64,
        now: u64,
    ) -> Result<bool, ProviderError> {
        let document = &tail.instance.document;
        let is_in_place = document.row.as_ref().is_some_and(|row| row.current == plan.execution_id)
            && document.st.as_deref() == Some(ExecutionStatus::Running.as_str());
        if !tail.holds(now) || !is_in_place || !is_free(document) {
            return Ok(false);
        }
        let execution = self.execution(ACK, address, document, plan.execution_id).await?;
        Ok(execution.is_some_and(|execution| execution.last_event_id == after_event_id))
    }
}

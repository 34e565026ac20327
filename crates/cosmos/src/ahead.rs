//! Completions of activities that carry the turn that follows. The batch of the turn removes the activity, and is guarded by the
//! gate: no message arrived since the messages were read.

use crate::activity::ACK;
use crate::client::{Op, json};
use crate::commit::Applied;
use crate::document::{Address, Gate, Instance, Item, Versioned};
use crate::error::{damaged, lost};
use crate::fetch::needs_recovery;
use crate::ids;
use crate::message::counted;
use crate::number::{indexed, parameter};
use crate::sql;
use crate::store::Store;
use outlast_model::{ExecutionStatus, WorkItem};
use outlast_provider::{Completion, ProviderError, TurnAhead};
use outlast_provider_kit::CommitPlan;
use outlast_provider_kit::plan::completion_row;
use std::collections::HashSet;
use std::sync::Arc;

/// Attempts before the outcome is queued.
const ATTEMPTS: usize = 3;

/// The state of the instance at which a turn may be committed ahead.
struct Ground {
    instance: Versioned<Instance>,
    gate: Option<String>,
}

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
        let Some((secret, address, id, held)) = self.work_of(token) else { return Err(lost(ACK, token)) };
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
            let Some(ground) = self.ground(&address, plan, after_event_id, now).await? else {
                return Ok(None);
            };
            let base = ground.instance.document.clone();
            let Some(mut prepared) = self.prepare(&address, base, plan, Vec::new(), &taken, now).await?
            else {
                continue;
            };
            prepared.turn.cancelled.retain(|cancelled| cancelled.id != id);
            let gate = Gate::new(&address.partition, prepared.write);
            let guards = vec![
                Op::delete(&id, Some(&activity.etag)),
                match &ground.gate {
                    Some(etag) => Op::Guard { id: ids::GATE.to_string(), etag: etag.clone() },
                    None => Op::Create(json(&gate)?),
                },
            ];
            match self.apply(&address, &ground.instance, &prepared, guards).await? {
                Applied::Yes { etags } => {
                    self.drop_work(secret);
                    self.ready.remove_work_of(&address.id, &id);
                    self.committed(&address, &prepared, plan, &etags).await;
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

    /// Reads the gate, then the instance and its messages; `None` if the turn does not follow from them.
    async fn ground(
        &self,
        address: &Address,
        plan: &CommitPlan,
        after_event_id: u64,
        now: u64,
    ) -> Result<Option<Ground>, ProviderError> {
        let gate = self.client.read::<Gate>(ACK, &address.partition, ids::GATE).await?;
        let parameters = [("@now", parameter(indexed(now)))];
        let found: Vec<serde_json::Value> =
            self.client.query(ACK, &address.partition, sql::TURN, &parameters).await?;
        let mut instance: Option<Versioned<Instance>> = None;
        let mut messages: Vec<Versioned<Item>> = Vec::new();
        for document in found {
            let is_instance = document["t"] == "i";
            let failed =
                |error: serde_json::Error| damaged(ACK, format!("of instance '{}': {error}", address.id));
            match is_instance {
                true => instance = Some(serde_json::from_value(document).map_err(failed)?),
                false => messages.push(serde_json::from_value(document).map_err(failed)?),
            }
        }
        let Some(instance) = instance else { return Ok(None) };
        let document = &instance.document;
        let Some(messages) = counted(document, messages) else { return Ok(None) };
        let has_messages = messages.iter().any(|message| message.visible_at <= now);
        let is_in_place = document.row.as_ref().is_some_and(|row| row.current == plan.execution_id)
            && document.st.as_deref() == Some(ExecutionStatus::Running.as_str());
        let is_free = document.lock.is_none()
            && document.rest.is_none()
            && document.deleted_by.is_none()
            && !needs_recovery(document);
        if has_messages || !is_in_place || !is_free {
            return Ok(None);
        }
        let execution = self.execution(ACK, address, document, plan.execution_id).await?;
        if execution.is_none_or(|execution| execution.last_event_id != after_event_id) {
            return Ok(None);
        }
        Ok(Some(Ground { instance, gate: gate.map(|gate| gate.etag) }))
    }
}

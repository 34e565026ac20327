//! Fetches of turns. A fetch reads the instance and its messages, and takes the lease by replacing the instance under `If-Match`.

use crate::client::Op;
use crate::document::{Address, Instance, Item, Lock, Versioned};
use crate::error::{contended, damaged};
use crate::ids::Uid;
use crate::instance::Written;
use crate::message::{Waiting, counted, dead_letter, taken};
use crate::number::{indexed, parameter};
use crate::park::{IsGone, Tried};
use crate::ready::{Next, Seen};
use crate::sql;
use crate::store::{Store, locked};
use outlast_model::{ExecutionStatus, WorkItem};
use outlast_provider::{
    DeadLetterQueue, DispatcherCapabilityFilter, FetchedTurn, LoadedTurn, ProviderError, saturating_ms,
};
use outlast_provider_kit::orphans::{Fate, Rowless, RowlessBatch, decide};
use outlast_provider_kit::{LeasedTurn, ResolvedTurn, resolve, rows};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) const FETCH: &str = "fetch_orchestration_item";

/// Attempts to read and lock an instance that others change.
const ATTEMPTS: usize = 8;

/// The conditions of one fetch.
pub(crate) struct TurnAsk {
    pub(crate) lock_timeout: Duration,
    pub(crate) filter: Option<DispatcherCapabilityFilter>,
    pub(crate) with_history: bool,
    /// Whether the caller went away.
    pub(crate) is_gone: IsGone,
    /// Instances that the filter refuses, with the versions at which it did.
    pub(crate) refused: Mutex<HashMap<String, u64>>,
}

/// The partition of an instance as a fetch read it.
struct Loaded {
    etag: Option<String>,
    instance: Instance,
    /// Visible messages.
    messages: Vec<Waiting>,
}

/// The result of an attempt to deliver an instance.
enum Attempt {
    Turn(Box<FetchedTurn>),
    Nothing,
    /// Documents changed, or messages were removed and there may be more.
    Retry,
}

/// The messages that a lease covers, and the documents that do not decode.
struct Batch {
    rows: Vec<Waiting>,
    messages: Vec<WorkItem>,
    is_partial: bool,
    damaged: Vec<(Waiting, String)>,
}

impl Store {
    /// Leases the longest waiting instance that can be delivered.
    pub(crate) async fn fetch_turn(
        self: &Arc<Self>,
        ask: &TurnAsk,
    ) -> Result<Tried<FetchedTurn>, ProviderError> {
        if ask.filter.as_ref().is_some_and(|filter| filter.supported_duroxide_versions.is_empty()) {
            return Ok(Tried::Nothing { due: None });
        }
        let mut tried = HashSet::new();
        loop {
            let next = self.ready.next_turn(self.now(), &tried, &locked(&ask.refused));
            let instance = match next {
                Next::Instance(instance) => instance,
                Next::Nothing { due } => return Ok(Tried::Nothing { due }),
            };
            let fetched = self.try_instance(&Address::of(&instance), ask).await;
            self.ready.release(&instance);
            match fetched? {
                Some(turn) => return Ok(Tried::Found(turn)),
                None => {
                    tried.insert(instance);
                }
            }
        }
    }

    async fn try_instance(
        self: &Arc<Self>,
        address: &Address,
        ask: &TurnAsk,
    ) -> Result<Option<FetchedTurn>, ProviderError> {
        for _ in 0..ATTEMPTS {
            match self.try_once(address, ask).await? {
                Attempt::Turn(turn) => return Ok(Some(*turn)),
                Attempt::Nothing => return Ok(None),
                Attempt::Retry => {}
            }
        }
        // Other processes work on the instance.
        Ok(None)
    }

    async fn try_once(self: &Arc<Self>, address: &Address, ask: &TurnAsk) -> Result<Attempt, ProviderError> {
        let (now, generation) = (self.now(), self.ready.generation());
        let Some(loaded) = self.load_instance(address, now).await? else { return Ok(Attempt::Retry) };
        let blocked = self.blocked_until(&loaded.instance);
        let seen: Vec<Seen> = loaded.messages.iter().map(Waiting::seen).collect();
        let until = if blocked > now { blocked } else { 0 };
        self.ready.learned(&address.id, now, until, &seen, generation);
        let visible: Vec<Waiting> =
            loaded.messages.into_iter().filter(|message| message.visible_at <= now).collect();
        if blocked > now || visible.is_empty() {
            return Ok(Attempt::Nothing);
        }
        let (etag, instance) = (loaded.etag, loaded.instance);
        let version = self.ready.version(&address.id);
        if !self.is_admitted(address, &instance, ask.filter.as_ref()).await? {
            locked(&ask.refused).insert(address.id.clone(), version);
            return Ok(Attempt::Nothing);
        }
        if (ask.is_gone)() {
            return Ok(Attempt::Nothing);
        }
        let batch = self.decode(address, visible);
        if batch.messages.is_empty() || batch.damaged.len() >= self.limits.operations.min(20) {
            return self.bury(address, etag, instance, batch, now).await;
        }
        self.resolve_turn(address, etag, instance, batch, ask, now).await
    }

    /// Reads the instance and its visible messages; `None` if they contradict each other.
    async fn load_instance(&self, address: &Address, now: u64) -> Result<Option<Loaded>, ProviderError> {
        let parameters = [("@now", parameter(indexed(now)))];
        let found: Vec<serde_json::Value> =
            self.client.query(FETCH, &address.partition, sql::TURN, &parameters).await?;
        let mut instance: Option<Versioned<Instance>> = None;
        let mut messages: Vec<Versioned<Item>> = Vec::new();
        for document in found {
            let is_instance = document["t"] == "i";
            let failed =
                |error: serde_json::Error| damaged(FETCH, format!("of instance '{}': {error}", address.id));
            match is_instance {
                true => instance = Some(serde_json::from_value(document).map_err(failed)?),
                false => messages.push(serde_json::from_value(document).map_err(failed)?),
            }
        }
        if let Some(found) = instance.take() {
            instance = match found.document.deleted_by.is_some() {
                true => match self.unless_deleted(FETCH, address, found).await? {
                    Some(alive) => Some(alive),
                    None => return Ok(None),
                },
                false => Some(found),
            };
        }
        if let Some(found) = &instance
            && needs_recovery(&found.document)
            && self.blocked_until(&found.document) <= now
        {
            self.recover(FETCH, address, found.clone()).await?;
            return Ok(None);
        }
        let (etag, instance) = match instance {
            Some(found) => (Some(found.etag), found.document),
            None => (None, Instance::skeleton(address, self.uid())),
        };
        Ok(counted(&instance, messages).map(|messages| Loaded { etag, instance, messages }))
    }

    /// Until when no message is delivered to this process.
    pub(crate) fn blocked_until(&self, instance: &Instance) -> u64 {
        let locked = instance.lock.as_ref().map_or(0, |lock| self.over_at(lock.until, lock.holder));
        locked.max(instance.rest.unwrap_or(0))
    }

    /// Whether the filter admits the version that the current execution is pinned to.
    async fn is_admitted(
        &self,
        address: &Address,
        instance: &Instance,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<bool, ProviderError> {
        let (Some(filter), Some(row)) = (filter, &instance.row) else { return Ok(true) };
        let execution = self.execution(FETCH, address, instance, row.current).await?;
        let pinned = execution.and_then(|execution| execution.pinned);
        // A pin that does not parse was not written by a store.
        let pinned = pinned.and_then(|pinned| semver::Version::parse(&pinned).ok());
        Ok(pinned.is_none_or(|pinned| filter.is_compatible(&pinned)))
    }

    fn decode(&self, address: &Address, visible: Vec<Waiting>) -> Batch {
        let (taken, is_partial) = taken(visible, self.bound);
        let mut batch = Batch { rows: Vec::new(), messages: Vec::new(), is_partial, damaged: Vec::new() };
        for row in taken {
            match rows::decode_message(&address.id, &row.item.d) {
                Ok(message) => {
                    batch.rows.push(row);
                    batch.messages.push(message);
                }
                Err(reason) => batch.damaged.push((row, reason)),
            }
        }
        batch
    }

    /// The operations that turn messages into dead letters, as many as fit beside the instance.
    fn burials(
        &self,
        instance: &mut Instance,
        damaged: &[(Waiting, String)],
        now: u64,
    ) -> Result<Vec<Op>, ProviderError> {
        let mut operations = Vec::new();
        let mut bytes = 0;
        for (row, reason) in damaged {
            bytes += row.item.d.len() + 1_000;
            let is_full = operations.len() + 1 >= self.limits.operations || bytes > self.limits.bytes;
            if is_full && !operations.is_empty() {
                break;
            }
            let letter = dead_letter(
                &row.item,
                DeadLetterQueue::Orchestrator,
                reason.clone(),
                row.attempts,
                now,
                self.time.sequence(),
            );
            operations.push(Op::replace(&row.item.id, &letter, Some(&row.etag))?);
            instance.overrides.remove(&row.item.id);
        }
        Ok(operations)
    }

    /// Turns messages into dead letters, without a turn.
    async fn bury(
        &self,
        address: &Address,
        etag: Option<String>,
        mut instance: Instance,
        batch: Batch,
        now: u64,
    ) -> Result<Attempt, ProviderError> {
        (instance.lock, instance.rest) = (None, None);
        let operations = self.burials(&mut instance, &batch.damaged, now)?;
        let buried: Vec<String> =
            batch.damaged.iter().take(operations.len()).map(|(row, _)| row.item.id.clone()).collect();
        let written =
            self.write_instance(FETCH, etag.as_deref(), &mut instance, self.uid(), operations, None).await?;
        if matches!(written, Written::Done { .. }) {
            self.ready.consumed(&address.id, &buried, 0);
        }
        Ok(Attempt::Retry)
    }

    async fn resolve_turn(
        self: &Arc<Self>,
        address: &Address,
        etag: Option<String>,
        instance: Instance,
        batch: Batch,
        ask: &TurnAsk,
        now: u64,
    ) -> Result<Attempt, ProviderError> {
        let latest = instance.latest_execution();
        let resolved = match &instance.row {
            Some(row) => {
                let execution = self.execution(FETCH, address, &instance, row.current).await?;
                ResolvedTurn {
                    orchestration_name: row.name.clone(),
                    version: row.version.clone(),
                    execution_id: row.current,
                    last_event_id: Some(execution.map_or(0, |execution| execution.last_event_id)),
                }
            }
            None => {
                let Some(events) = self.events(FETCH, address, &instance, latest).await? else {
                    return Ok(Attempt::Retry);
                };
                let last = events.last().map(|event| event.event_id);
                let texts = events.iter().map(|event| event.text.as_str());
                let history = rows::decode_history(&address.id, latest, texts);
                let history = history.as_ref().map(Vec::as_slice).map_err(String::as_str);
                let context = resolve(&batch.messages, latest, history);
                let available: Vec<u64> = batch.rows.iter().map(|row| row.item.visible_at).collect();
                let rowless = RowlessBatch {
                    instance: &address.id,
                    available_at: &available,
                    is_partial: batch.is_partial,
                    now,
                    orphan_life_ms: self.orphan_life_ms,
                };
                let start_due = match &context {
                    outlast_provider_kit::Context::Known { .. } => None,
                    _ => self.start_due(address, &instance).await?,
                };
                match decide(context, &rowless, || Ok::<_, ProviderError>(start_due))? {
                    Rowless::Turn { name, version, execution_id, has_history } => ResolvedTurn {
                        orchestration_name: name,
                        version,
                        execution_id,
                        last_event_id: has_history.then_some(last.unwrap_or(0)),
                    },
                    Rowless::Drop => return self.drop_orphans(address, etag, instance, batch, now).await,
                    Rowless::Delay { until, fates } => {
                        return self.delay_orphans(address, etag, instance, batch, until, fates, now).await;
                    }
                }
            }
        };
        self.claim(address, etag, instance, batch, resolved, ask).await
    }

    /// When a waiting start of the instance becomes visible.
    async fn start_due(&self, address: &Address, instance: &Instance) -> Result<Option<u64>, ProviderError> {
        let starts: Vec<Versioned<Item>> =
            self.client.query(FETCH, &address.partition, sql::STARTS, &[]).await?;
        let starts = counted(instance, starts).unwrap_or_default();
        let decodes =
            starts.into_iter().filter(|start| rows::decode_message(&address.id, &start.item.d).is_ok());
        Ok(decodes.map(|start| start.visible_at).min())
    }

    /// Removes queue messages for an instance that does not exist.
    async fn drop_orphans(
        &self,
        address: &Address,
        etag: Option<String>,
        mut instance: Instance,
        batch: Batch,
        now: u64,
    ) -> Result<Attempt, ProviderError> {
        (instance.lock, instance.rest) = (None, None);
        let room = self.limits.operations - 1;
        let mut operations = self.burials(&mut instance, &batch.damaged, now)?;
        let mut gone: Vec<String> =
            batch.damaged.iter().take(operations.len()).map(|(row, _)| row.item.id.clone()).collect();
        for row in &batch.rows {
            if operations.len() >= room {
                break;
            }
            instance.overrides.remove(&row.item.id);
            operations.push(Op::delete(&row.item.id, Some(&row.etag)));
            gone.push(row.item.id.clone());
        }
        let written =
            self.write_instance(FETCH, etag.as_deref(), &mut instance, self.uid(), operations, None).await?;
        let is_whole = gone.len() == batch.rows.len() + batch.damaged.len();
        match written {
            Written::Done { .. } => {
                self.ready.consumed(&address.id, &gone, 0);
                Ok(if is_whole { Attempt::Nothing } else { Attempt::Retry })
            }
            Written::Conflict { .. } => Ok(Attempt::Retry),
        }
    }

    /// Delays messages for an instance that does not exist yet.
    #[allow(clippy::too_many_arguments)]
    async fn delay_orphans(
        &self,
        address: &Address,
        etag: Option<String>,
        mut instance: Instance,
        batch: Batch,
        until: u64,
        fates: Vec<Fate>,
        now: u64,
    ) -> Result<Attempt, ProviderError> {
        instance.lock = None;
        instance.rest = batch.is_partial.then_some(until);
        let mut buried = batch.damaged;
        let mut delayed = Vec::new();
        for (row, fate) in batch.rows.into_iter().zip(fates) {
            match fate {
                Fate::Delayed => {
                    instance.overrides.entry(row.item.id.clone()).or_default().at = Some(until);
                    delayed.push(row);
                }
                Fate::DeadLetter(reason) => buried.push((row, reason)),
            }
        }
        let operations = self.burials(&mut instance, &buried, now)?;
        let gone: Vec<String> =
            buried.iter().take(operations.len()).map(|(row, _)| row.item.id.clone()).collect();
        let is_whole = gone.len() == buried.len();
        let rest = instance.rest.unwrap_or(0);
        let written =
            self.write_instance(FETCH, etag.as_deref(), &mut instance, self.uid(), operations, None).await?;
        match written {
            Written::Done { .. } => {
                self.ready.consumed(&address.id, &gone, rest);
                for row in &delayed {
                    self.ready.arrived(&address.id, &row.item.id, until, row.item.sequence);
                }
                Ok(if is_whole { Attempt::Nothing } else { Attempt::Retry })
            }
            Written::Conflict { .. } => Ok(Attempt::Retry),
        }
    }

    /// Takes the lease.
    async fn claim(
        self: &Arc<Self>,
        address: &Address,
        etag: Option<String>,
        mut instance: Instance,
        batch: Batch,
        resolved: ResolvedTurn,
        ask: &TurnAsk,
    ) -> Result<Attempt, ProviderError> {
        let now = self.now();
        let (secret, lock_token) = self.turn_token(address);
        let until = now.saturating_add(saturating_ms(ask.lock_timeout));
        let operations = self.burials(&mut instance, &batch.damaged, now)?;
        let buried: Vec<String> =
            batch.damaged.iter().take(operations.len()).map(|(row, _)| row.item.id.clone()).collect();
        let mut attempt_count = 0;
        for row in &batch.rows {
            let found = instance.overrides.entry(row.item.id.clone()).or_default();
            found.attempts = found.attempts.saturating_add(1);
            attempt_count = attempt_count.max(found.attempts);
        }
        instance.rest = None;
        instance.lock = Some(Lock {
            secret,
            until,
            holder: self.own,
            is_partial: batch.is_partial,
            covers: batch.rows.iter().map(|row| row.item.id.clone()).collect(),
        });
        let written =
            self.write_instance(FETCH, etag.as_deref(), &mut instance, self.uid(), operations, None).await?;
        let Written::Done { etag, is_last: true, .. } = written else { return Ok(Attempt::Retry) };
        self.hold_turn(secret, Versioned { etag, document: instance.clone() });
        self.ready.consumed(&address.id, &buried, until);
        let loaded = match ask.with_history {
            true => match self.turn_content(FETCH, address, &instance, resolved.execution_id).await {
                // An execution that starts now has no history, whatever was appended.
                Ok(Some(loaded)) if resolved.last_event_id.is_none() => {
                    Some(LoadedTurn { history: Vec::new(), history_error: None, ..loaded })
                }
                Ok(Some(loaded)) => Some(loaded),
                other => {
                    // The caller gets no lease with an error.
                    let _ = self.abandon_turn(&lock_token, None, true).await;
                    return other.and_then(|_| Err(contended(FETCH, &address.id)));
                }
            },
            false => None,
        };
        let has_ended =
            |status: &str| ExecutionStatus::from_text(status).is_some_and(ExecutionStatus::ends_instance);
        let leased = LeasedTurn {
            instance: address.id.clone(),
            resolved,
            messages: batch.messages,
            lock_token,
            attempt_count,
            created_at_ms: instance.row.as_ref().map(|row| row.created_at),
            has_ended: instance.st.as_deref().is_some_and(has_ended),
            now_ms: now,
        };
        Ok(Attempt::Turn(Box::new(leased.into_fetched(loaded, None))))
    }

    /// Releases the lease of a turn and makes its messages visible again. The lease may be over.
    pub(crate) async fn abandon_turn(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        const ABANDON: &str = "abandon_orchestration_item";
        let Some((secret, address, held)) = self.turn_of(token) else {
            return Err(crate::error::lost(ABANDON, token));
        };
        let mut held = held.lock().await;
        for _ in 0..ATTEMPTS {
            let current = self.held_instance(ABANDON, token, secret, &address, held.take()).await?;
            let (etag, mut instance) = (current.etag, current.document);
            let Some(lock) = instance.lock.take() else { return Err(crate::error::lost(ABANDON, token)) };
            let now = self.now();
            let until = delay.map(|delay| now.saturating_add(saturating_ms(delay)));
            for id in &lock.covers {
                let found = instance.overrides.entry(id.clone()).or_default();
                found.attempts = found.attempts.saturating_sub(u32::from(ignore_attempt));
                if until.is_some() {
                    found.at = until;
                }
                if *found == crate::document::Override::default() {
                    instance.overrides.remove(id);
                }
            }
            instance.rest = until.filter(|_| lock.is_partial);
            let rest = instance.rest.unwrap_or(0);
            let written = self
                .write_instance(ABANDON, Some(&etag), &mut instance, self.uid(), Vec::new(), None)
                .await?;
            if let Written::Done { .. } = written {
                self.drop_turn(secret);
                if let Some(until) = until {
                    self.ready.delayed(&address.id, &lock.covers, until);
                }
                self.ready.locked(&address.id, rest);
                return Ok(());
            }
        }
        Err(contended(ABANDON, &address.id))
    }

    /// Extends the lease of a turn.
    pub(crate) async fn renew_turn(&self, token: &str, extend_for: Duration) -> Result<(), ProviderError> {
        const RENEW: &str = "renew_orchestration_item_lock";
        let Some((secret, address, held)) = self.turn_of(token) else {
            return Err(crate::error::lost(RENEW, token));
        };
        let mut held = held.lock().await;
        for _ in 0..ATTEMPTS {
            let current = self.held_instance(RENEW, token, secret, &address, held.take()).await?;
            let (etag, mut instance) = (current.etag, current.document);
            let now = self.now();
            let until = match &mut instance.lock {
                Some(lock) if lock.until > now => {
                    lock.until = lock.until.max(now.saturating_add(saturating_ms(extend_for)));
                    lock.until
                }
                _ => return Err(crate::error::lost(RENEW, token)),
            };
            let written =
                self.write_instance(RENEW, Some(&etag), &mut instance, self.uid(), Vec::new(), None).await?;
            if let Written::Done { etag, is_last, .. } = written {
                *held = is_last.then_some(Versioned { etag, document: instance });
                self.ready.locked(&address.id, until);
                return Ok(());
            }
        }
        Err(contended(RENEW, &address.id))
    }

    /// The instance under the lease of a token: as this process wrote it, or read. An error if the token does not hold it.
    pub(crate) async fn held_instance(
        &self,
        operation: &str,
        token: &str,
        secret: Uid,
        address: &Address,
        held: Option<Versioned<Instance>>,
    ) -> Result<Versioned<Instance>, ProviderError> {
        let current = match held {
            Some(held) => Some(held),
            None => self.read_instance(operation, address).await?,
        };
        let holds = |instance: &Instance| instance.lock.as_ref().is_some_and(|lock| lock.secret == secret);
        match current.filter(|current| holds(&current.document)) {
            Some(current) => Ok(current),
            None => {
                self.drop_turn(secret);
                Err(crate::error::lost(operation, token))
            }
        }
    }
}

/// Whether an attempt at a turn was given up and left documents behind.
pub(crate) fn needs_recovery(instance: &Instance) -> bool {
    instance.staged.is_some() || !instance.dead.is_empty() || !instance.dropped.is_empty()
}

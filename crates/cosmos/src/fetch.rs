//! Fetches of turns. A fetch reads the instance and its messages, and takes the lease by replacing the instance under `If-Match`.

use crate::document::{Address, Instance, Item, Lock, Versioned};
use crate::error::contended;
use crate::hold;
use crate::instance::Written;
use crate::load::{Loaded, SeenGate, needs_recovery};
use crate::message::{Waiting, counted, taken};
use crate::park::{IsGone, Tried};
use crate::ready::{Choice, Next, Seen};
use crate::sql;
use crate::store::{Store, locked};
use crate::tail::{Ground, TAIL_MS};
use outlast_model::{ExecutionStatus, WorkItem};
use outlast_provider::{DispatcherCapabilityFilter, FetchedTurn, LoadedTurn, ProviderError, saturating_ms};
use outlast_provider_kit::orphans::{Rowless, RowlessBatch, decide};
use outlast_provider_kit::{LeasedTurn, ResolvedTurn, resolve, rows};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) const FETCH: &str = "fetch_orchestration_item";

/// The number of attempts to read and lock an instance that other processes change.
const ATTEMPTS: usize = 8;

/// The time for which a waiting fetch leaves work of other slots to their owners.
pub(crate) const GRACE_MS: u64 = 1_000;

/// The conditions of one fetch.
pub(crate) struct TurnAsk {
    pub(crate) lock_timeout: Duration,
    pub(crate) filter: Option<DispatcherCapabilityFilter>,
    pub(crate) with_history: bool,
    /// The time for which the caller leaves work of other slots to their owners.
    pub(crate) grace_ms: u64,
    /// Whether the caller has dropped the fetch.
    pub(crate) is_gone: IsGone,
    /// Instances that the filter refuses, with the versions at which it refused them.
    pub(crate) refused: Mutex<HashMap<String, u64>>,
}

/// The partition of an instance as a fetch read it.
struct Partition {
    etag: Option<String>,
    instance: Instance,
    messages: Vec<Waiting>,
    gate: SeenGate,
}

/// The result of an attempt to deliver an instance.
pub(crate) enum Attempt {
    Turn(Box<FetchedTurn>),
    Nothing,
    /// Documents changed, or messages were removed and more messages may wait.
    Retry,
}

/// The messages that a lease covers, and the documents that do not decode.
pub(crate) struct Batch {
    pub(crate) rows: Vec<Waiting>,
    pub(crate) messages: Vec<WorkItem>,
    pub(crate) is_partial: bool,
    pub(crate) damaged: Vec<(Waiting, String)>,
    /// The gate, and the time at which a message becomes visible that the lease does not cover.
    ground: Ground,
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
            let instance = match self.next_turn(ask, &tried) {
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

    fn next_turn(&self, ask: &TurnAsk, tried: &HashSet<String>) -> Next {
        let (now, monotonic) = (self.now(), self.time.monotonic_ms());
        let fleet = locked(&self.fleet);
        let choice = Choice {
            tried,
            refused: &locked(&ask.refused),
            serves: &|slot| fleet.serves(slot, now, monotonic),
            grace_ms: ask.grace_ms,
        };
        self.ready.next_turn(now, &choice)
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
        let Some(mut loaded) = self.load_instance(address, now).await? else { return Ok(Attempt::Retry) };
        if hold::is_held(&loaded.instance, &loaded.messages) {
            let seen: Vec<Seen> = loaded.messages.iter().map(Waiting::seen).collect();
            self.ready.learned_held(&address.id, now, &seen, generation);
            self.set_all_aside(FETCH, address).await;
            return Ok(Attempt::Nothing);
        }
        if loaded.instance.aside > 0 {
            self.end_hold(FETCH, address, loaded.etag.as_deref(), loaded.instance).await?;
            return Ok(Attempt::Retry);
        }
        // A cancellation has released the instance.
        loaded.instance.hold = None;
        let blocked = self.blocked_until(&loaded.instance);
        let seen: Vec<Seen> = loaded.messages.iter().map(Waiting::seen).collect();
        let until = if blocked > now { blocked } else { 0 };
        self.ready.learned(&address.id, now, until, &seen, generation);
        let (visible, later): (Vec<Waiting>, Vec<Waiting>) =
            loaded.messages.into_iter().partition(|message| message.visible_at <= now);
        if blocked > now || visible.is_empty() {
            return Ok(Attempt::Nothing);
        }
        let (etag, instance) = (loaded.etag, loaded.instance);
        let version = self.ready.version(&address.id);
        if !self.is_admitted(address, &instance, ask.filter.as_ref()).await? {
            locked(&ask.refused).insert(address.id.clone(), version);
            self.offer(address, &visible, now).await;
            return Ok(Attempt::Nothing);
        }
        if (ask.is_gone)() {
            return Ok(Attempt::Nothing);
        }
        let ground = Ground::new(loaded.gate, &later, now);
        let batch = self.decode(address, visible, ground);
        if batch.messages.is_empty() || batch.damaged.len() >= self.limits.operations.min(20) {
            return self.bury(address, etag, instance, batch, now).await;
        }
        self.resolve_turn(address, etag, instance, batch, ask, now).await
    }

    /// Reads the instance and its messages; `None` if they contradict each other.
    async fn load_instance(&self, address: &Address, now: u64) -> Result<Option<Partition>, ProviderError> {
        let until = now.saturating_add(TAIL_MS);
        let Loaded { mut instance, messages, gate } = self.load_partition(FETCH, address, until).await?;
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
        Ok(counted(&instance, messages).map(|messages| Partition { etag, instance, messages, gate }))
    }

    /// The time until which no message is delivered to this process.
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

    fn decode(&self, address: &Address, visible: Vec<Waiting>, ground: Ground) -> Batch {
        let (taken, is_partial) = taken(visible, self.bound);
        let mut batch =
            Batch { rows: Vec::new(), messages: Vec::new(), is_partial, damaged: Vec::new(), ground };
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
                let events = match instance.events {
                    // Most instances without a row have just been started.
                    0 => Some(Vec::new()),
                    _ => self.events(FETCH, address, &instance, latest).await?,
                };
                let Some(events) = events else { return Ok(Attempt::Retry) };
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

    /// The time at which a waiting start of the instance becomes visible.
    async fn start_due(&self, address: &Address, instance: &Instance) -> Result<Option<u64>, ProviderError> {
        let starts: Vec<Versioned<Item>> =
            self.client.query(FETCH, &address.partition, sql::STARTS, &[]).await?;
        let starts = counted(instance, starts).unwrap_or_default();
        let decodes =
            starts.into_iter().filter(|start| rows::decode_message(&address.id, &start.item.d).is_ok());
        Ok(decodes.map(|start| start.visible_at).min())
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
        let claim = self.write_instance(FETCH, etag.as_deref(), &mut instance, self.uid(), operations, None);
        let written = self.within_lease(ask.lock_timeout, claim).await?;
        let Written::Done { etag, is_last: true, .. } = written else { return Ok(Attempt::Retry) };
        self.lease_lasts(secret, ask.lock_timeout);
        self.hold_turn(secret, Versioned { etag, document: instance.clone() });
        if !batch.is_partial && batch.damaged.is_empty() {
            self.tails.leased(secret, batch.ground);
        }
        self.ready.adopt(&address.id);
        self.ready.consumed(&address.id, &buried, until);
        let loaded = match ask.with_history {
            true => match self.turn_content(FETCH, address, &instance, resolved.execution_id).await {
                // An execution that starts now has no history; appended events do not count.
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
}

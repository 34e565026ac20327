//! The parts of an open store, which all operations share.

use crate::client::Client;
use crate::document::{Address, Instance, Item, Session, Versioned};
use crate::error::CosmosStoreError;
use crate::fleet::Fleet;
use crate::gauges::Gauges;
use crate::heartbeat::Seeker;
use crate::ids::Uid;
use crate::leases::Leases;
use crate::limit;
use crate::offers::Offers;
use crate::ready::Ready;
use crate::seats::{Roles, Seats};
use crate::slots::SKEW_MS;
use crate::staging::Limits;
use crate::tail::Tails;
use crate::tally::Tally;
use crate::tasks::Background;
use crate::time::Time;
use crate::{CosmosDBOptions, CosmosDBProviderConfig};
use outlast_provider::{Entropy, MessageBound, saturating_ms};
use outlast_provider_kit::{Token, Watches, token};
use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

/// An open store.
pub(crate) struct Store {
    /// The store itself, for tasks that outlive a call.
    pub(crate) this: Weak<Self>,
    pub(crate) client: Client,
    pub(crate) config: CosmosDBProviderConfig,
    pub(crate) time: Time,
    pub(crate) ready: Ready,
    pub(crate) watches: Arc<Watches>,
    /// The identity of this process.
    pub(crate) own: Uid,
    pub(crate) bound: MessageBound,
    pub(crate) orphan_life_ms: u64,
    pub(crate) poll_interval_ms: u64,
    pub(crate) repair_interval_ms: u64,
    pub(crate) limits: Limits,
    /// Up to this number of instances are counted one by one.
    pub(crate) counted_exactly: usize,
    pub(crate) intents_at_once: usize,
    pub(crate) tally: Tally,
    pub(crate) gauges: Gauges,
    entropy: Arc<dyn Entropy>,
    turns: Mutex<HashMap<Uid, Held<Instance>>>,
    activities: Mutex<HashMap<Uid, Held<Item>>>,
    /// The lengths of the leases of this process, by their secrets.
    lengths: Mutex<HashMap<Uid, Duration>>,
    /// The sessions as this process knows them; `None`: the session does not exist.
    pub(crate) sessions: Mutex<HashMap<String, Option<Versioned<Session>>>>,
    pub(crate) repair: tokio::sync::Mutex<crate::repair::Repaired>,
    /// The number of queries that found unknown work.
    pub(crate) repairs: AtomicU64,
    /// The kinds of work of which the index holds all known items.
    pub(crate) covered: Mutex<Roles>,
    /// The other runtimes, and the slots of this one.
    pub(crate) fleet: Mutex<Fleet>,
    /// The slots of this runtime, if the program hands them out.
    pub(crate) leases: Option<Leases>,
    /// Instances as their last commits of this process left them.
    pub(crate) tails: Tails,
    pub(crate) offers: Offers,
    /// The fetches of this process.
    pub(crate) seats: Seats,
    pub(crate) seeker: tokio::sync::Mutex<Seeker>,
    /// The last attempt at a heartbeat, by the process's own clock.
    pub(crate) last_beat: Mutex<Option<u64>>,
    pub(crate) seeking: OnceLock<Background>,
    /// Wakes the task, because a fetch waits.
    pub(crate) seek_now: Arc<tokio::sync::Notify>,
    /// Deliveries of the outbox that fail, for tests.
    pub(crate) outbox_faults: Mutex<Option<Arc<AtomicU32>>>,
}

/// The document under a lease of this process, as this process wrote it. `None`: it must be read. One call at a time changes it.
pub(crate) type Held<T> = Arc<tokio::sync::Mutex<Option<Versioned<T>>>>;

impl Store {
    pub(crate) fn new(
        client: Client,
        config: CosmosDBProviderConfig,
        options: &CosmosDBOptions,
    ) -> Arc<Self> {
        let own = Uid(options.entropy.next_u128());
        Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            client,
            config,
            time: Time::new(options.clock.clone(), options.machine.clone()),
            ready: Ready::default(),
            watches: Arc::default(),
            own,
            bound: options.message_bound,
            orphan_life_ms: saturating_ms(options.orphan_life),
            poll_interval_ms: saturating_ms(options.poll_interval),
            repair_interval_ms: saturating_ms(options.repair_interval),
            limits: options.limits(),
            counted_exactly: options.counted_exactly,
            intents_at_once: options.intents_at_once.max(1),
            tally: Tally::default(),
            gauges: Gauges::default(),
            entropy: Arc::clone(&options.entropy),
            turns: Mutex::default(),
            activities: Mutex::default(),
            lengths: Mutex::default(),
            sessions: Mutex::default(),
            repair: tokio::sync::Mutex::default(),
            repairs: AtomicU64::new(0),
            covered: Mutex::default(),
            fleet: Mutex::new(Fleet::new(own)),
            leases: options.leases.clone().map(|leases| Leases::new(leases, own)),
            tails: Tails::default(),
            offers: Offers::default(),
            seats: Seats::default(),
            seeker: tokio::sync::Mutex::default(),
            last_beat: Mutex::default(),
            seeking: OnceLock::new(),
            seek_now: Arc::default(),
            outbox_faults: Mutex::default(),
        })
    }

    /// Learns the time of the service from a write. An error if the account lets this process only read.
    pub(crate) async fn synchronise(&self) -> Result<(), CosmosStoreError> {
        let id = format!("c:{}", self.own);
        let body =
            serde_json::json!({ "id": id, "instanceId": crate::layout::SYSTEM, "t": "c", "ttl": 3_600 });
        let sent = self.time.local_ms();
        match self.client.stamped_upsert(crate::layout::SYSTEM, &body).await {
            Ok(Some(ts)) => self.time.observe(sent, self.time.local_ms(), ts),
            Ok(None) => {}
            Err(refusal) => {
                if let Some(status @ (401 | 403)) = refusal.answer.status {
                    return Err(CosmosStoreError::Denied { action: "a write".to_string(), status });
                }
                let error = refusal.error("synchronise");
                tracing::debug!(target: "duroxide::providers::cosmosdb", %error, "no time of the service");
            }
        }
        Ok(())
    }

    /// Forgets the documents of leases and of waiting activities: a test changed them.
    #[cfg(feature = "test-hooks")]
    pub(crate) fn forget_documents(&self) {
        locked(&self.turns).clear();
        locked(&self.activities).clear();
        self.ready.forget_documents();
    }

    pub(crate) fn now(&self) -> u64 {
        self.time.now_ms()
    }

    pub(crate) fn uid(&self) -> Uid {
        Uid(self.entropy.next_u128())
    }

    /// The time at which another caller may take over a lease that ends at `until`. The clock of another process may be behind.
    pub(crate) fn over_at(&self, until: u64, holder: Uid) -> u64 {
        if holder == self.own { until } else { until.saturating_add(SKEW_MS) }
    }

    pub(crate) fn turn_token(&self, address: &Address) -> (Uid, String) {
        let token = Token::mint(&*self.entropy, format_args!("t.{}", address.id));
        (Uid(u128::from_be_bytes(token.secret)), token.text)
    }

    pub(crate) fn activity_token(&self, address: &Address, item: &Item) -> (Uid, String) {
        let token = Token::mint(&*self.entropy, format_args!("{}@{}", item.id, address.id));
        (Uid(u128::from_be_bytes(token.secret)), token.text)
    }

    /// The lease that a token of a turn names; `None` for a malformed text.
    pub(crate) fn turn_of(&self, text: &str) -> Option<(Uid, Address, Held<Instance>)> {
        let (secret, key) = token::parse(text)?;
        let address = Address::of(key.strip_prefix("t.")?);
        let secret = Uid(u128::from_be_bytes(secret));
        let held = locked(&self.turns).get(&secret).cloned().unwrap_or_default();
        Some((secret, address, held))
    }

    /// The lease that a token of an activity names: secret, address and id of the document.
    pub(crate) fn activity_of(&self, text: &str) -> Option<(Uid, Address, String, Held<Item>)> {
        let (secret, key) = token::parse(text)?;
        let (id, instance) = key.split_once('@')?;
        if !id.starts_with("a:") {
            return None;
        }
        let secret = Uid(u128::from_be_bytes(secret));
        let held = locked(&self.activities).get(&secret).cloned().unwrap_or_default();
        Some((secret, Address::of(instance), id.to_string(), held))
    }

    /// Notes the length of a lease that this process took or renewed.
    pub(crate) fn lease_lasts(&self, secret: Uid, lease: Duration) {
        let mut lengths = locked(&self.lengths);
        if lengths.len() >= 2 * MOST_HELD {
            // Leases that were lost leave entries behind. Without an entry a call has the deadline of the store.
            lengths.clear();
        }
        lengths.insert(secret, lease);
    }

    /// Runs a call under the lease of a token: its requests fit into the lease.
    pub(crate) async fn under<T>(&self, token: &str, call: impl Future<Output = T>) -> T {
        let secret = token::parse(token).map(|(secret, _)| Uid(u128::from_be_bytes(secret)));
        let lease = secret.and_then(|secret| locked(&self.lengths).get(&secret).copied());
        match lease {
            Some(lease) => self.within_lease(lease, call).await,
            None => call.await,
        }
    }

    /// Runs a call under a lease of this length: its requests fit into the lease, if leases end by the time of this machine.
    pub(crate) async fn within_lease<T>(&self, lease: Duration, call: impl Future<Output = T>) -> T {
        match self.time.is_given() {
            true => call.await,
            false => limit::under(lease, call).await,
        }
    }

    pub(crate) fn hold_turn(&self, secret: Uid, instance: Versioned<Instance>) {
        let held = Arc::new(tokio::sync::Mutex::new(Some(instance)));
        insert(&mut locked(&self.turns), secret, held);
    }

    pub(crate) fn drop_turn(&self, secret: Uid) {
        self.tails.released(secret);
        locked(&self.turns).remove(&secret);
        locked(&self.lengths).remove(&secret);
    }

    pub(crate) fn hold_activity(&self, secret: Uid, item: Versioned<Item>) {
        let held = Arc::new(tokio::sync::Mutex::new(Some(item)));
        insert(&mut locked(&self.activities), secret, held);
    }

    pub(crate) fn drop_activity(&self, secret: Uid) {
        locked(&self.activities).remove(&secret);
        locked(&self.lengths).remove(&secret);
    }
}

/// The most leases that are remembered. A lease that is forgotten costs a read.
const MOST_HELD: usize = 10_000;

fn insert<T>(held: &mut HashMap<Uid, Held<T>>, secret: Uid, document: Held<T>) {
    if held.len() >= MOST_HELD {
        // A lease in use has a second owner.
        held.retain(|_, document| Arc::strong_count(document) > 1);
    }
    held.insert(secret, document);
}

/// A panic under the lock leaves the map valid.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

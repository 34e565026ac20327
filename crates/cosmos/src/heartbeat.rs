//! The task of a process that fetches: it writes heartbeats, shares out dispatch slots, reads hints and looks for work without a
//! hint.
//!
//! The task starts with the first fetch. A process that stops fetching removes its heartbeat, and the other runtimes take its
//! dispatch slots over at their next heartbeat. The dispatch slots of a process that died are taken over after one lease.

use crate::client::Op;
use crate::document::Versioned;
use crate::doubt::Verdict;
use crate::fleet::Member;
use crate::hints::Feeds;
use crate::layout::SYSTEM;
use crate::seats::Roles;
use crate::slots::{HEARTBEAT_MS, Heartbeat, LEASE_MS, Table};
use crate::sql;
use crate::store::{Store, locked};
use outlast_provider::ProviderError;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Weak};
use std::time::Duration;

const BEAT: &str = "heartbeat";

/// The id of the slot table.
const TABLE: &str = "slots";

/// A heartbeat that is not renewed is removed after this time, in seconds.
const HEARTBEAT_LIFE: u32 = 300;

/// The shortest time between two heartbeats, because a runtime died.
const SHORTEST_MS: u64 = 1_000;

/// Attempts to replace the slot table in one round.
const ATTEMPTS: usize = 3;

/// The longest pause of the task while the store's time is given, which may jump.
const GIVEN_PAUSE: Duration = Duration::from_millis(20);

/// The state of the task. A fetch that comes before its first round runs the round itself.
#[derive(Default)]
pub(crate) struct Seeker {
    /// The last attempt at a heartbeat, by the process's own clock.
    beat_at: Option<u64>,
    /// The roles in the last heartbeat.
    roles: Roles,
    pub(crate) feeds: Feeds,
}

/// A document of the slot table or of a heartbeat.
#[derive(Serialize, Deserialize)]
struct System<T> {
    id: String,
    #[serde(rename = "instanceId")]
    partition: String,
    t: String,
    d: T,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ttl: Option<u32>,
}

impl<T> System<T> {
    fn new(id: String, t: &str, d: T, ttl: Option<u32>) -> Self {
        Self { id, partition: SYSTEM.to_string(), t: t.to_string(), d, ttl }
    }
}

/// The slot table with its version, and the heartbeats.
struct Known {
    table: Option<Versioned<Table>>,
    members: Vec<Member>,
}

impl Store {
    /// Starts the task of this process (heartbeats, dispatch slots, hints, repair) unless it runs. Each fetch that parks calls it.
    pub(crate) fn seek(&self) {
        self.seeking.get_or_init(|| crate::tasks::Background::start(seeking(Weak::clone(&self.this))));
    }

    /// Ends the task.
    pub(crate) fn stop_seeking(&self) {
        if let Some(task) = self.seeking.get() {
            task.stop();
        }
    }

    /// Joins the runtimes, if no round of the task ran within a lease: a fetch knows its slots before it looks for work.
    pub(crate) async fn join(self: &Arc<Self>) {
        let is_late =
            |beat_at: Option<u64>| beat_at.is_none_or(|at| self.time.monotonic_ms().abs_diff(at) >= LEASE_MS);
        if !is_late(*locked(&self.last_beat)) {
            return;
        }
        let mut seeker = self.seeker.lock().await;
        if is_late(seeker.beat_at) {
            let roles = self.roles();
            self.beat(&mut seeker, roles).await;
            self.read_hints(&mut seeker).await;
        }
    }

    /// Runs one round: the heartbeat, the hints and the repair query that are due.
    pub(crate) async fn seek_once(self: &Arc<Self>) {
        let mut seeker = self.seeker.lock().await;
        let roles = self.roles();
        if roles.is_none() {
            if seeker.beat_at.is_some() {
                self.leave(&mut seeker).await;
            }
            return;
        }
        let now = self.time.monotonic_ms();
        let is_due = seeker.beat_at.is_none_or(|at| now.abs_diff(at) >= HEARTBEAT_MS);
        // The slots of a runtime that died are shared out as soon as its lease is over.
        let has_lost = locked(&self.fleet).first_expiry().is_some_and(|at| at <= self.now())
            && seeker.beat_at.is_some_and(|at| now.abs_diff(at) >= SHORTEST_MS);
        if is_due || has_lost || roles != seeker.roles {
            self.beat(&mut seeker, roles).await;
        }
        self.read_hints(&mut seeker).await;
        drop(seeker);
        if self.now() >= self.repair_due().await
            && let Err(error) = self.repair(self.now()).await
        {
            tracing::debug!(target: "duroxide::providers::cosmosdb", %error, "repair failed");
        }
    }

    /// The pause until the next round.
    async fn pause(&self) -> Duration {
        let (seeker, roles) = (self.seeker.lock().await, self.roles());
        // A process that does not fetch has no rounds. A fetch wakes the task.
        let beat_at = seeker.beat_at.filter(|_| !roles.is_none());
        let mut pause_ms = beat_at.map_or(HEARTBEAT_MS, |at| {
            at.saturating_add(HEARTBEAT_MS).saturating_sub(self.time.monotonic_ms())
        });
        if let Some(due) = seeker.feeds.due(&roles) {
            pause_ms = pause_ms.min(due.saturating_sub(self.now()));
        }
        if let Some(expiry) = locked(&self.fleet).first_expiry() {
            let earliest = seeker.beat_at.map_or(0, |at| at.saturating_add(SHORTEST_MS));
            let earliest = earliest.saturating_sub(self.time.monotonic_ms());
            pause_ms = pause_ms.min(expiry.saturating_sub(self.now()).max(earliest));
        }
        // At least a millisecond, and at most one heartbeat: roles may change unseen.
        let pause = Duration::from_millis(pause_ms.clamp(1, HEARTBEAT_MS));
        if self.time.is_given() { GIVEN_PAUSE } else { pause }
    }

    /// Writes a heartbeat, reads those of others and the slot table, and shares out slots.
    async fn beat(&self, seeker: &mut Seeker, roles: Roles) {
        let sent = self.time.monotonic_ms();
        seeker.beat_at = Some(sent);
        *locked(&self.last_beat) = Some(sent);
        if let Err(error) = self.try_beat(sent, &roles).await {
            tracing::debug!(target: "duroxide::providers::cosmosdb", %error, "a heartbeat failed");
        }
        seeker.roles = roles;
    }

    async fn try_beat(&self, sent: u64, roles: &Roles) -> Result<(), ProviderError> {
        let member = Member {
            runtime: self.own,
            at_ms: self.now(),
            takes_turns: roles.turns,
            has_leases: self.leases.is_some(),
            activities: roles.activities.keys().cloned().collect(),
        };
        let document = System::new(format!("r:{}", self.own), "r", &member, Some(HEARTBEAT_LIFE));
        let local = self.time.local_ms();
        let stamped = self.client.stamped_upsert(SYSTEM, &crate::client::json(&document)?).await;
        let stamped = stamped.map_err(|refused| refused.error("heartbeat"))?;
        if let Some(ts) = stamped {
            self.time.observe(local, self.time.local_ms(), ts);
        }
        let mut known = self.read_fleet().await?;
        if let Some(leases) = &self.leases {
            let slots = leases.renew(roles.turns);
            let is_new = locked(&self.fleet).lease(slots);
            return self.learn_fleet(Table::default(), known.members, sent, is_new).await;
        }
        for _ in 0..ATTEMPTS {
            let table = known.table.as_ref().map(|table| table.document.clone()).unwrap_or_default();
            let beats: Vec<Heartbeat> =
                known.members.iter().filter(|member| member.shares_table()).map(Member::heartbeat).collect();
            let next = match roles.turns {
                true => table.rebalanced(self.own, &beats, self.now()),
                false => None,
            };
            let Some(next) = next else {
                return self.learn_fleet(table, known.members, sent, false).await;
            };
            let etag = known.table.as_ref().map(|table| table.etag.as_str());
            if self.write_table(etag, &next).await? {
                return self.learn_fleet(next, known.members, sent, false).await;
            }
            known = self.read_fleet().await?;
        }
        let table = known.table.map(|table| table.document).unwrap_or_default();
        self.learn_fleet(table, known.members, sent, false).await
    }

    /// `has_new_slots`: the program of this process gave it slots.
    async fn learn_fleet(
        &self,
        table: Table,
        members: Vec<Member>,
        sent: u64,
        has_new_slots: bool,
    ) -> Result<(), ProviderError> {
        let is_new = locked(&self.fleet).learn(table, members, Some(sent), self.now());
        if is_new || has_new_slots {
            // From here on the process keeps hints of new slots; the query finds work that was stored before.
            self.repair_soon().await;
            self.ready.wake();
        }
        Ok(())
    }

    async fn read_fleet(&self) -> Result<Known, ProviderError> {
        let mut known = Known { table: None, members: Vec::new() };
        let found: Vec<Versioned<System<serde_json::Value>>> =
            self.client.query(BEAT, SYSTEM, sql::FLEET, &[]).await?;
        for Versioned { etag, document } in found {
            let damaged = |error| crate::error::damaged(BEAT, format!("'{}': {error}", document.id));
            match document.t.as_str() {
                "l" => {
                    let table = serde_json::from_value(document.d.clone()).map_err(damaged)?;
                    known.table = Some(Versioned { etag, document: table });
                }
                _ => known.members.push(serde_json::from_value(document.d.clone()).map_err(damaged)?),
            }
        }
        Ok(known)
    }

    /// Creates or replaces the slot table; false if it is not the one that was read, or if that is in doubt.
    async fn write_table(&self, etag: Option<&str>, table: &Table) -> Result<bool, ProviderError> {
        let document = System::new(TABLE.to_string(), "l", table, None);
        let write = match etag {
            Some(etag) => Op::replace(TABLE, &document, Some(etag))?,
            None => Op::create(&document)?,
        };
        let batched = self.client.batch(SYSTEM, vec![write]).await?;
        Ok(batched.verdict() == Verdict::Applied)
    }

    /// Removes the heartbeat, because the process has stopped fetching.
    async fn leave(&self, seeker: &mut Seeker) {
        *seeker = Seeker::default();
        *locked(&self.last_beat) = None;
        locked(&self.fleet).forget();
        if let Some(leases) = &self.leases {
            leases.release();
        }
        let removal = Op::delete(&format!("r:{}", self.own), None);
        if let Err(error) = self.client.batch(SYSTEM, vec![removal]).await {
            tracing::debug!(target: "duroxide::providers::cosmosdb", %error, "a heartbeat stays until it expires");
        }
        self.stop_repairing().await;
    }
}

async fn seeking(store: Weak<Store>) {
    loop {
        let pause = {
            let Some(store) = store.upgrade() else { return };
            store.seek_once().await;
            store.pause().await
        };
        let woken = async {
            if let Some(wake) = store.upgrade().map(|store| Arc::clone(&store.seek_now)) {
                wake.notified().await;
            }
        };
        let _ = tokio::time::timeout(pause, woken).await;
    }
}

//! Owners of leases: other processes detect that this process is dead, and this process detects other dead processes.
//!
//! An owner is one store object that fetches. Its name is the first half of the secrets of its leases, and its number in `owners`.
//! The connection of the listener holds the advisory lock of that number, which the server releases with the connection. Each owner
//! looks at four other owners. An owner whose lock is free in [`LOOKS`] looks in a row is dead: one transaction ends its leases.
//!
//! | the connection of the listener | new leases | leases that it has |
//! |---|---|---|
//! | holds the lock | have the owner | are ended by others when the process is dead |
//! | is lost, and back in time | have no owner meanwhile, and end by time | stay: the lock was free in too few looks |
//! | is lost for longer | have no owner, and end by time | may be ended by others: renewals and commits are refused |
//! | goes through a pool of transactions | have no owner, and end by time | as if it was lost |
//!
//! A false detection costs repeated work, not correctness: an ended lease is an expired lease, whose token every commit refuses.

use crate::PostgresError;
use crate::db::{Param, cell};
use crate::listener::asked;
use crate::notify::LIFE;
use crate::shared::Shared;
use outlast_provider::Entropy;
use outlast_provider_kit::queue::PerQueue;
use outlast_provider_kit::token::{Owner, draw_secret};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

/// The time between two looks for dead owners.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The number of consecutive looks in which the lock of a dead owner is free. A process that lost its connection has the time
/// between the first and the last of these looks to take its lock again.
const LOOKS: u32 = 3;

/// The number of owners that one look covers, so that the cost of a look does not grow with the number of processes. A look covers
/// more owners while some owners are dead.
const NEIGHBOURS: i64 = 4;

/// The longest wait of the first fetches of a store for the lock of their owner.
const PATIENCE: Duration = Duration::from_secs(1);

/// The source of the secrets of leases. A secret names the owner while the owner holds its lock.
pub(crate) struct Secrets {
    entropy: Arc<dyn Entropy>,
    owner: Owner,
    is_held: AtomicBool,
    /// Whether a caller has fetched: a store without fetches has no leases, and needs no owner.
    is_wanted: AtomicBool,
    /// Whether the listener has tried to take the lock. The first fetches wait for this attempt, so that the first leases have
    /// their owner.
    is_settled: AtomicBool,
    settled: Notify,
}

impl Secrets {
    /// Without a listener no lease has an owner.
    pub(crate) fn new(entropy: Arc<dyn Entropy>, owner: Owner, has_listener: bool) -> Self {
        Self {
            entropy,
            owner,
            is_held: AtomicBool::new(false),
            is_wanted: AtomicBool::new(false),
            is_settled: AtomicBool::new(!has_listener),
            settled: Notify::new(),
        }
    }

    /// The owner of new leases.
    pub(crate) fn owner(&self) -> Option<Owner> {
        self.is_held.load(Ordering::Acquire).then_some(self.owner)
    }

    /// Notes that leases will be taken, and waits until the listener has tried to take the lock.
    pub(crate) async fn want(&self, wake_listener: impl FnOnce()) {
        if self.is_settled.load(Ordering::Acquire) {
            return;
        }
        let mut settled = pin!(self.settled.notified());
        settled.as_mut().enable();
        if !self.is_wanted.swap(true, Ordering::AcqRel) {
            wake_listener();
        }
        if !self.is_settled.load(Ordering::Acquire) && tokio::time::timeout(PATIENCE, settled).await.is_err()
        {
            self.settle();
        }
    }

    pub(crate) fn settle(&self) {
        self.is_settled.store(true, Ordering::Release);
        self.settled.notify_waiters();
    }

    fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Acquire)
    }

    fn hold(&self, is_held: bool) {
        self.is_held.store(is_held, Ordering::Release);
    }

    /// Notes that the connection that held the lock is lost.
    pub(crate) fn on_lost(&self) {
        self.hold(false);
        if self.is_wanted() {
            self.settle();
        }
    }
}

impl Entropy for Secrets {
    fn next_u128(&self) -> u128 {
        u128::from_be_bytes(draw_secret(self.owner(), &*self.entropy))
    }
}

/// The looks of one connection of the listener.
#[derive(Default)]
pub(crate) struct Looks {
    /// The server process that holds the lock of this owner.
    held_by: Option<i32>,
    looked_at: Option<Instant>,
    /// Owners whose locks were free in the last look, and in how many looks in a row.
    suspects: Vec<(i64, u32)>,
    /// The connection cannot hold the lock, so that leases end by time.
    is_off: bool,
}

impl Looks {
    /// Takes the lock of this owner and searches for dead owners, if a look is due. Returns the time until the next look.
    pub(crate) async fn attend(
        &mut self,
        shared: &Shared,
        client: &Client,
    ) -> Result<Duration, PostgresError> {
        if !shared.secrets.is_wanted() || self.is_off {
            return Ok(LIFE);
        }
        if let Some(at) = self.looked_at
            && let Some(rest) = LOOK_EVERY.checked_sub(at.elapsed())
        {
            return Ok(rest.max(Duration::from_millis(1)));
        }
        self.looked_at = Some(Instant::now());
        match self.look(shared, client).await {
            Ok(()) => {}
            Err(error) if client.is_closed() || error.is_away() => return Err(error),
            // The look conflicted with another transaction, and is repeated at the next interval.
            Err(error) if error.is_retryable() => {}
            // The role lacks a right on the table or the functions. Notifications still arrive.
            Err(_) => self.stop(shared),
        }
        shared.secrets.settle();
        Ok(LOOK_EVERY)
    }

    /// Takes the lock of this owner if it is not held, notes the neighbours with a free lock, and ends the leases of dead owners.
    async fn look(&mut self, shared: &Shared, client: &Client) -> Result<(), PostgresError> {
        let (db, own) = (&shared.db, shared.secrets.owner.number());
        let number: [Param<'_>; 1] = [(&own, Type::INT8)];
        if self.held_by.is_none()
            && let Some(row) = asked(db, client.query_typed(&db.statements.own, &number)).await?.first()
        {
            self.held_by = cell(row, "server_process")?;
            shared.secrets.hold(self.held_by.is_some());
        }
        // With many suspects a look covers more owners, so that processes that died together are found in a few looks.
        let most = NEIGHBOURS * (1 + i64::try_from(self.suspects.len()).unwrap_or(0));
        let neighbours: [Param<'_>; 2] = [(&own, Type::INT8), (&most, Type::INT8)];
        let looked = asked(db, client.query_typed(&db.statements.free_owners, &neighbours)).await?;
        let Some(row) = looked.first() else { return Ok(()) };
        if self
            .held_by
            .is_some_and(|process| cell::<i32>(row, "server_process").is_ok_and(|now| now != process))
        {
            // A pool between this process and the server gives every statement another connection.
            self.stop(shared);
            return Ok(());
        }
        let free: Vec<i64> = cell(row, "free")?;
        let looks =
            |owner: i64| self.suspects.iter().find(|known| known.0 == owner).map_or(0, |known| known.1);
        self.suspects = free.into_iter().map(|owner| (owner, looks(owner) + 1)).collect();
        for (dead, _) in self.suspects.iter().filter(|(_, looks)| *looks >= LOOKS) {
            end_leases(shared, client, *dead).await?;
        }
        Ok(())
    }

    fn stop(&mut self, shared: &Shared) {
        self.is_off = true;
        shared.secrets.hold(false);
    }

    /// Removes the owner of a closed store. Leases of the owner end by time, because other store objects may use their tokens.
    pub(crate) async fn leave(self, shared: &Shared, client: &Client) -> Result<(), PostgresError> {
        if self.held_by.is_some() && !self.is_off {
            let (db, own) = (&shared.db, shared.secrets.owner.number());
            let number: [Param<'_>; 1] = [(&own, Type::INT8)];
            asked(db, client.query_typed(&db.statements.disown, &number)).await?;
        }
        Ok(())
    }
}

/// Ends the leases of a dead owner.
async fn end_leases(shared: &Shared, client: &Client, dead: i64) -> Result<(), PostgresError> {
    let db = &shared.db;
    let channel = db.schema.channel();
    let given: [Param<'_>; 3] = [(&channel, Type::TEXT), (&shared.id, Type::TEXT), (&dead, Type::INT8)];
    let rows = asked(db, client.query_typed(&db.statements.end_leases, &given)).await?;
    let ended: Option<i64> = rows.first().map_or(Ok(None), |row| cell(row, "ended"))?;
    let ended = ended.and_then(|ended| usize::try_from(ended).ok()).unwrap_or(0);
    if ended > 0 {
        db.counters.leases_of_dead_processes.add(ended);
        shared.on_remote_change(PerQueue::BOTH);
    }
    Ok(())
}

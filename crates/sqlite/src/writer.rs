//! The writer: applies the waiting calls in one transaction, serves fetches inside it, commits, and answers.

use crate::activity::ActivityAsk;
use crate::command::{CallInfo, Command, Handle};
use crate::connection::WriterConnection;
use crate::contain::{self, Health, contain, run_contained};
use crate::counters::Counters;
use crate::db::{Db, Result};
use crate::fetch::TurnAsk;
use crate::large_requests::LargeTurns;
use crate::leased::{Abandon, LeaseKind};
use crate::park::{self, FetchState, Parked};
use crate::queue::PerQueue;
use crate::transaction::{Transaction, Wakeups};
use crate::url::Location;
use crate::{SqliteError, SqliteOptions, activity, commit};
use outlast_provider::ClassifiedError;
use std::borrow::Borrow;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// Owner of the connection that writes.
pub(crate) struct Writer {
    pub(crate) connection: WriterConnection,
    pub(crate) options: SqliteOptions,
    pub(crate) counters: Arc<Counters>,
    parked: PerQueue<Parked<TurnAsk>, Parked<ActivityAsk>>,
    fetch_state: FetchState,
    /// The parked fetches are polled at this time. As far as this process knows, no item becomes available before it.
    wake_at: u64,
    /// The time of the transaction.
    now: u64,
    /// Whether another process committed before the last transaction.
    pub(crate) saw_foreign_commit: bool,
}

impl Writer {
    /// Opens the connection on the calling thread and applies migrations. It starts no thread: `threads.rs` does.
    pub(crate) fn open(location: Location, options: SqliteOptions, counters: Arc<Counters>) -> Result<Self> {
        Ok(Self {
            connection: WriterConnection::open(location, options.clone(), Arc::clone(&counters))?,
            options,
            counters,
            parked: PerQueue::default(),
            fetch_state: FetchState::default(),
            wake_at: 0,
            now: 0,
            saw_foreign_commit: false,
        })
    }

    /// The time of the store's clock.
    pub(crate) fn now(&self) -> u64 {
        self.options.clock.now_ms()
    }

    /// When the parked fetches must be polled; `None` if no fetch is parked.
    pub(crate) fn wake_at(&mut self) -> Option<u64> {
        // Both calls remove the fetches of dropped callers.
        let is_any_waiting = self.parked.turns.is_any_waiting() | self.parked.activities.is_any_waiting();
        is_any_waiting.then_some(self.wake_at)
    }

    /// Whether another process committed since the last check.
    pub(crate) fn has_foreign_commit(&mut self) -> bool {
        let seen = self.connection.has_foreign_commit();
        if seen {
            self.invalidate();
        }
        seen
    }

    /// Discards the times that this process derived from the tables, because the tables may have changed.
    fn invalidate(&mut self) {
        self.fetch_state = FetchState { large_turns: self.fetch_state.large_turns, ..FetchState::default() };
        self.wake_at = 0;
    }

    /// Which large turns the next transaction hands out, or what became of them in the last one.
    pub(crate) fn large_turns(&mut self) -> &mut LargeTurns {
        &mut self.fetch_state.large_turns
    }

    /// Whether a fetch that does not park waits for a large turn.
    pub(crate) fn has_fetch_that_does_not_park(&self) -> bool {
        self.parked.turns.has_fetch_that_does_not_park()
    }

    /// Applies commands in one transaction and answers them. With `poll`, the parked fetches are polled even if no command made
    /// an item available.
    pub(crate) fn process(&mut self, commands: Vec<Command>, poll: bool, handle: &Handle) {
        self.process_with(commands, poll, handle, &mut Vec::new);
    }

    /// [`Writer::process`] with the commands that arrive meanwhile: `more` returns them without waiting.
    pub(crate) fn process_with(
        &mut self,
        commands: Vec<Command>,
        poll: bool,
        handle: &Handle,
        more: &mut dyn FnMut() -> Vec<Command>,
    ) {
        let mut again = self.process_once(commands, poll, handle, more);
        while again {
            again = self.process_once(Vec::new(), true, handle, &mut Vec::new);
        }
    }

    /// Returns whether the parked fetches must be polled again, because a call failed and the transaction served no fetch.
    ///
    /// A call or a fetch that panics is answered with an error and left out, and the others are applied again on a new
    /// connection. Each round leaves at least one out, so the loop ends.
    fn process_once(
        &mut self,
        commands: Vec<Command>,
        poll: bool,
        handle: &Handle,
        more: &mut dyn FnMut() -> Vec<Command>,
    ) -> bool {
        let mut calls = self.accept(commands);
        let mut poll = poll;
        loop {
            let db = match self.take_connection() {
                Ok(db) => db,
                Err(fault) => return self.fail(calls, &fault),
            };
            let outcome = contain(|| self.transact(&db, &mut calls, poll, more)).unwrap_or_else(|| {
                contain::report("transaction", None);
                self.counters.panics.add(1);
                Err(SqliteError::panicked_outside())
            });
            let has_panicked = matches!(outcome, Ok(Ran::Panicked));
            let is_broken = has_panicked || outcome.as_ref().is_err_and(SqliteError::breaks_connection);
            self.connection.return_connection(db, is_broken, outcome.is_err() || has_panicked);
            match outcome {
                Ok(Ran::Committed { by_savepoints }) => {
                    calls.into_iter().for_each(|call| call.answer(None));
                    self.deliver(handle);
                    return by_savepoints;
                }
                Ok(Ran::Panicked) => {
                    self.counters.panics.add(1);
                    let (panicked, others): (Vec<Box<dyn Call>>, _) =
                        calls.into_iter().partition(|call| call.has_panicked());
                    panicked.into_iter().for_each(|call| call.answer(None));
                    calls = others;
                    // The only served fetches are those that panicked.
                    self.deliver(handle);
                    poll = true;
                }
                Err(fault) => return self.fail(calls, &fault),
            }
        }
    }

    /// Returns the calls to apply, parks the fetches and keeps the jobs.
    fn accept(&mut self, commands: Vec<Command>) -> Vec<Box<dyn Call>> {
        let mut calls = Vec::with_capacity(commands.len());
        for command in commands {
            match command {
                Command::Call(call) => calls.push(call),
                Command::FetchTurn(fetch, _permit) => self.parked.turns.push(fetch),
                Command::FetchActivities(fetch, _permit) => self.parked.activities.push(fetch),
                Command::Release(kind, token) => calls.push(release(kind, token)),
                Command::BetweenTransactions(job) => self.connection.push_job(job),
                Command::Stop => {}
            }
        }
        calls
    }

    /// The connection, opened again if it was closed.
    fn take_connection(&mut self) -> Result<Db> {
        if self.connection.reopen()? {
            self.invalidate();
        }
        self.connection.take()
    }

    /// Runs one transaction. After an error and after a panic it may still be open.
    fn transact(
        &mut self,
        db: &Db,
        calls: &mut Vec<Box<dyn Call>>,
        poll: bool,
        more: &mut dyn FnMut() -> Vec<Command>,
    ) -> Result<Ran> {
        db.control("BEGIN IMMEDIATE")?;
        let before = db.conn.total_changes();
        self.saw_foreign_commit = self.connection.has_foreign_commit_in(db);
        if self.saw_foreign_commit {
            self.invalidate();
        }
        self.now = self.now();
        let polled_at = self.now;
        let mut wakeups = Wakeups::of(if poll { PerQueue::BOTH } else { PerQueue::NONE });
        let by_savepoints = self.apply_and_serve(db, calls, &mut wakeups, more).is_err();
        if by_savepoints {
            // A call or a fetch failed after it had written something: roll back, and apply each call in a savepoint.
            self.parked.turns.return_served();
            self.parked.activities.return_served();
            self.invalidate();
            if self.has_panicked(calls) {
                return Ok(Ran::Panicked);
            }
            self.counters.batches_by_savepoints.add(1);
            if !db.conn.is_autocommit() {
                db.control("ROLLBACK")?;
            }
            db.control("BEGIN IMMEDIATE")?;
            wakeups = Wakeups::of(PerQueue::NONE);
            self.apply_each(db, calls, &mut wakeups)?;
            if self.has_panicked(calls) {
                return Ok(Ran::Panicked);
            }
        }
        let changed = db.conn.total_changes() != before;
        self.connection.commit(db, changed)?;
        if changed {
            self.counters.commits.add(1);
        }
        self.counters.calls.add(calls.len() + self.parked.turns.served() + self.parked.activities.served());
        self.wake_at = self.wake_at.min(wakeups.at);
        if poll {
            // An error of this read does not undo the commit.
            let after_backoff = self.now().saturating_add(BACKOFF_MS);
            self.wake_at = park::next_available(db, polled_at).unwrap_or(after_backoff).min(wakeups.at);
        }
        Ok(Ran::Committed { by_savepoints })
    }

    fn has_panicked(&self, calls: &[Box<dyn Call>]) -> bool {
        calls.iter().any(|call| call.has_panicked())
            || self.parked.turns.has_panicked()
            || self.parked.activities.has_panicked()
    }

    /// Applies the calls, and the calls that arrive meanwhile, and serves the fetches. An error means that a call or a fetch
    /// failed after it had written something.
    fn apply_and_serve(
        &mut self,
        db: &Db,
        calls: &mut Vec<Box<dyn Call>>,
        wakeups: &mut Wakeups,
        more: &mut dyn FnMut() -> Vec<Command>,
    ) -> Result<()> {
        let mut applied = 0;
        loop {
            // The time of a transaction never goes back, so that a fetch sees the rows that a call before it made visible.
            self.now = self.now.max(self.now());
            self.apply_all(db, &mut calls[applied..], wakeups)?;
            applied = calls.len();
            let mut arrived = more();
            if arrived.is_empty() {
                self.serve(db, wakeups)?;
                arrived = more();
            }
            if arrived.is_empty() {
                return Ok(());
            }
            calls.extend(self.accept(arrived));
        }
    }

    /// Applies calls without savepoints. An error means that a call failed after it had written something.
    fn apply_all(&self, db: &Db, calls: &mut [Box<dyn Call>], wakeups: &mut Wakeups) -> Result<()> {
        for call in calls {
            let before = db.conn.total_changes();
            let is_half_applied = match call.apply(&mut self.tx(db, wakeups)) {
                Applied::Done => false,
                Applied::Refused => db.conn.total_changes() != before || db.conn.is_autocommit(),
                Applied::Failed | Applied::Panicked => true,
            };
            if is_half_applied {
                return Err(SqliteError::Other("a call failed after it had written something".to_string()));
            }
        }
        Ok(())
    }

    /// Applies every call in its own savepoint, so that a call that fails undoes no other call.
    fn apply_each(&self, db: &Db, calls: &mut [Box<dyn Call>], wakeups: &mut Wakeups) -> Result<()> {
        for call in calls {
            db.control("SAVEPOINT call")?;
            let applied = call.apply(&mut self.tx(db, wakeups));
            if applied == Applied::Panicked {
                // The caller of this method applies the other calls again, on a new connection.
                return Ok(());
            }
            if applied != Applied::Done {
                if db.conn.is_autocommit() {
                    // SQLite itself rolled the transaction back, and with it the calls before this one.
                    return Err(SqliteError::Io { details: "the transaction was rolled back".to_string() });
                }
                db.control("ROLLBACK TO call")?;
            }
            db.control("RELEASE call")?;
        }
        Ok(())
    }

    fn tx<'a>(&'a self, db: &'a Db, wakeups: &'a mut Wakeups) -> Transaction<'a> {
        Transaction { db, now: self.now, entropy: &*self.options.entropy, wakeups }
    }

    /// Leases to fetches the items that this transaction made available.
    fn serve(&mut self, db: &Db, wakeups: &mut Wakeups) -> Result<()> {
        let poll = wakeups.poll;
        self.now = self.now.max(self.now());
        let mut tx = Transaction { db, now: self.now, entropy: &*self.options.entropy, wakeups };
        self.parked.turns.serve(&mut tx, poll.turns, &mut self.fetch_state, &self.counters)?;
        self.parked.activities.serve(&mut tx, poll.activities, &mut self.fetch_state, &self.counters)?;
        wakeups.poll = PerQueue::NONE;
        Ok(())
    }

    /// Answers the served fetches, and gives back the leases of dropped callers.
    fn deliver(&mut self, handle: &Handle) {
        let mut releases = self.parked.turns.deliver(handle);
        releases.extend(self.parked.activities.deliver(handle));
        if !releases.is_empty() {
            self.process(releases, false, handle);
        }
    }

    /// Answers calls and fetches with the error of their transaction.
    fn fail(&mut self, calls: Vec<Box<dyn Call>>, fault: &SqliteError) -> bool {
        self.back_off();
        calls.into_iter().for_each(|call| call.answer(Some(fault)));
        self.connection.drop_jobs();
        self.parked.turns.fail(fault);
        self.parked.activities.fail(fault);
        false
    }

    /// Runs a read on the writer's connection. After a panic a store on a file closes the connection.
    pub(crate) fn read<T>(
        &mut self,
        operation: &'static str,
        body: impl FnOnce(&Db) -> Result<T>,
    ) -> Result<T> {
        let db = self.take_connection()?;
        let (read, health) = run_contained(operation, || body(&db));
        self.connection.return_connection(db, health == Health::Panicked, false);
        self.counters.panics.add(usize::from(health == Health::Panicked));
        read
    }

    /// A panic outside of a transaction was contained.
    pub(crate) fn on_panic(&mut self) {
        self.counters.panics.add(1);
        self.back_off();
    }

    /// Delays the next poll of the parked fetches, so that they do not poll a disk that is full or gone all the time.
    fn back_off(&mut self) {
        self.invalidate();
        self.wake_at = self.now().saturating_add(BACKOFF_MS);
    }
}

/// The end of a transaction that did not fail.
enum Ran {
    Committed {
        /// Whether each call was applied in a savepoint, and no fetch was served.
        by_savepoints: bool,
    },
    /// A call or a fetch panicked, and the transaction must not be committed.
    Panicked,
}

/// How long parked fetches are not polled after a failure.
const BACKOFF_MS: u64 = 200;

/// A call that gives a lease back.
fn release(kind: LeaseKind, token: String) -> Box<dyn Call> {
    let abandon = match kind {
        LeaseKind::Turn => commit::abandon,
        LeaseKind::Activity => activity::abandon,
    };
    let abandoned = Abandon { token, delay: None, ignore_attempt: true };
    Box::new(PendingCall::new(CallInfo::of("release"), abandoned, abandon, |_, ()| {}, None).0)
}

/// The result of applying a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Applied {
    Done,
    /// The call is invalid, or its lease is lost.
    Refused,
    /// The database reported an error.
    Failed,
    /// The call panicked.
    Panicked,
}

/// A call: applied inside a transaction, again if that transaction is rolled back, and answered after the commit.
pub(crate) trait Call: Send {
    fn apply(&mut self, tx: &mut Transaction<'_>) -> Applied;
    /// The number of bytes that the call stores or deletes.
    fn bytes(&self) -> usize;
    /// Whether the call panicked when it was applied. The writer does not apply such a call again.
    fn has_panicked(&self) -> bool;
    /// Sends the result to the caller. With a `fault` the transaction did not commit, and the fault replaces the result.
    fn answer(self: Box<Self>, fault: Option<&SqliteError>);
}

/// Applies a call inside a transaction.
pub(crate) type Apply<B, T> = fn(&mut Transaction<'_>, &B) -> Result<T>;

/// A call that the writer has not answered yet.
pub(crate) struct PendingCall<A, B: ?Sized, T, N> {
    info: CallInfo,
    args: A,
    /// May run twice, because it only borrows the arguments.
    apply: Apply<B, T>,
    /// Runs on the writer after the commit, also if the caller was dropped.
    on_commit: N,
    outcome: Option<Result<T>>,
    reply: oneshot::Sender<CallAnswer<T>>,
    /// The permit under which the call was sent, released with the answer.
    permit: Option<OwnedSemaphorePermit>,
}

type CallAnswer<T> = std::result::Result<T, ClassifiedError>;

impl<A, B: ?Sized, T, N: FnOnce(&B, &T)> PendingCall<A, B, T, N> {
    /// A call, and the receiver of its answer.
    pub(crate) fn new(
        info: CallInfo,
        args: A,
        apply: Apply<B, T>,
        on_commit: N,
        permit: Option<OwnedSemaphorePermit>,
    ) -> (Self, oneshot::Receiver<CallAnswer<T>>) {
        let (reply, answer) = oneshot::channel();
        (Self { info, args, apply, on_commit, outcome: None, reply, permit }, answer)
    }
}

impl<A, B, T, N> Call for PendingCall<A, B, T, N>
where
    A: Borrow<B> + Send,
    B: ?Sized,
    T: Send,
    N: FnOnce(&B, &T) + Send,
{
    fn apply(&mut self, tx: &mut Transaction<'_>) -> Applied {
        let Some(outcome) = contain(|| (self.apply)(tx, self.args.borrow())) else {
            let CallInfo { operation, instance, .. } = &self.info;
            contain::report(operation, instance.as_deref());
            let instance = instance.as_deref().map(str::to_string);
            self.outcome = Some(Err(SqliteError::Panicked { operation, instance }));
            return Applied::Panicked;
        };
        let applied = match &outcome {
            Ok(_) => Applied::Done,
            Err(SqliteError::Refused(_)) => Applied::Refused,
            Err(_) => Applied::Failed,
        };
        self.outcome = Some(outcome);
        applied
    }

    fn bytes(&self) -> usize {
        self.info.bytes
    }

    fn has_panicked(&self) -> bool {
        matches!(self.outcome, Some(Err(SqliteError::Panicked { .. })))
    }

    fn answer(self: Box<Self>, fault: Option<&SqliteError>) {
        let Self {
            info: CallInfo { operation, instance, .. }, args, on_commit, outcome, reply, permit, ..
        } = *self;
        let answer = match (outcome, fault) {
            // The rows for which the call was refused may not have been committed either.
            (Some(Err(SqliteError::Refused(_))), Some(fault)) => Err(fault.classified(operation)),
            (Some(Err(own)), _) => Err(own.classified(operation)),
            (_, Some(fault)) => Err(fault.classified(operation)),
            (Some(Ok(value)), None) => {
                // A panic in `on_commit` does not undo the commit.
                if contain(|| on_commit(args.borrow(), &value)).is_none() {
                    contain::report(operation, instance.as_deref());
                }
                Ok(value)
            }
            (None, None) => Err(SqliteError::Closed.classified(operation)),
        };
        drop(permit);
        // A dropped caller gets no answer.
        let _ = reply.send(answer);
    }
}

#[cfg(test)]
mod tests;

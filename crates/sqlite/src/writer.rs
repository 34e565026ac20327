//! The writer: takes the waiting commands, applies the calls in one transaction, serves fetches inside it, commits, and answers.

use crate::activity::ActivityAsk;
use crate::command::{Applied, Call, CallInfo, Command, Handle, PendingCall};
use crate::connection::WriterConnection;
use crate::contain::{self, contain};
use crate::counters::Counters;
use crate::db::{Db, Result};
use crate::fetch::TurnAsk;
use crate::large_requests::LargeRequests;
use crate::leased::release;
use crate::owners::{self, Owners};
use crate::park::{self, FetchState, ParkedFetches};
use crate::threads::pause;
use crate::transaction::{Transaction, Wakeups};
use crate::url::Location;
use crate::{SqliteError, SqliteOptions};
use outlast_provider_kit::queue::PerQueue;
use std::borrow::Borrow;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// The number of calls that share one transaction at most, so that no caller waits for an endless batch.
const MAX_BATCH: usize = 512;

/// How long the writer does not take the database lock after it saw a commit of another process.
const YIELD_TO_OTHERS: Duration = Duration::from_micros(400);

/// The loop of the writer's thread: takes commands and runs transactions until the store is closed. The loop never delays a call
/// to fill a batch, and it polls the parked fetches when an item becomes available by itself.
pub(crate) struct WriterLoop {
    writer: Writer,
    commands: Receiver<Command>,
    handle: Handle,
    large: LargeRequests,
    /// Whether the command to stop came, so that the current step is the last one. A panic must not lose the command: the owner
    /// of the store waits for the end of this thread.
    is_stopped: bool,
}

impl WriterLoop {
    pub(crate) fn new(writer: Writer, commands: Receiver<Command>, handle: Handle) -> Self {
        Self { writer, commands, handle, large: LargeRequests::new(), is_stopped: false }
    }

    pub(crate) fn run(mut self) {
        while !self.is_stopped {
            // The writer contains a panic inside a transaction; this contains all other panics.
            if contain(|| self.step()).is_none() {
                contain::report("writer", None);
                self.writer.on_panic();
            }
        }
        self.writer.close();
    }

    /// Runs one transaction. After the command to stop, the waiting large calls are applied too.
    fn step(&mut self) {
        match self.next() {
            Next::Small(first) => self.small_step(first),
            Next::Large => self.large_step(),
            Next::Closed => self.is_stopped = true,
        }
        if self.is_stopped {
            let left = self.large.take_all();
            if !left.is_empty() {
                self.writer.process(left, false, &self.handle);
            }
        } else if self.writer.saw_foreign_commit {
            self.writer.counters.yields_to_processes.add(1);
            pause(YIELD_TO_OTHERS);
        }
    }

    /// Runs a transaction with small requests.
    fn small_step(&mut self, first: Command) {
        let is_stop = matches!(first, Command::Stop);
        self.is_stopped |= is_stop;
        let Some(first) = self.large.keep_if_large(first) else { return };
        let mut taken = 1;
        let begun = self.writer.now();
        *self.writer.large_turns() = self.large.small_begins();
        // A busy writer never reaches the wait in `next`, so it checks the time here.
        let is_due = self.writer.wake_at().is_some_and(|at| at <= begun);
        let mut more = || {
            let mut arrived = Vec::new();
            while taken < MAX_BATCH
                && let Ok(command) = self.commands.try_recv()
            {
                self.is_stopped |= matches!(command, Command::Stop);
                taken += 1;
                arrived.extend(self.large.keep_if_large(command));
            }
            arrived
        };
        let mut commands = vec![first];
        if is_stop {
            // Without a call the transaction would write nothing, and wait if another process holds the lock.
            commands = more();
            if commands.is_empty() {
                return;
            }
        }
        self.writer.process_with(commands, is_due, &self.handle, &mut more);
        self.large.small_ended(wait::ended(&mut self.writer, begun));
    }

    /// Waits for the next step. Polls of the parked fetches that are due meanwhile are made here.
    fn next(&mut self) -> Next {
        // `next` returns with every request, so no request has come since this time.
        let idle_from = self.writer.now();
        loop {
            let now = self.writer.now();
            let until_large = self.large.due_in(now);
            let is_large_due = until_large.is_some_and(|until| until.is_zero());
            if is_large_due && !self.large.was_last() {
                return Next::Large;
            }
            if let Ok(command) = self.commands.try_recv() {
                return Next::Small(command);
            }
            if is_large_due {
                return Next::Large;
            }
            let Some(wait) = self.wait(now, idle_from, until_large) else {
                self.poll_parked();
                continue;
            };
            let received = match wait.patience() {
                None => self.commands.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(patience) => self.commands.recv_timeout(patience),
            };
            match received {
                Ok(command) => return Next::Small(command),
                Err(RecvTimeoutError::Disconnected) => return Next::Closed,
                Err(RecvTimeoutError::Timeout) => self.on_timeout(&wait),
            }
        }
    }
}

/// The next step of the writer.
enum Next {
    /// A transaction whose first command is this one.
    Small(Command),
    /// A transaction with large requests.
    Large,
    /// The end: all senders of commands were dropped.
    Closed,
}

/// Owner of the connection that writes.
pub(crate) struct Writer {
    pub(crate) connection: WriterConnection,
    pub(crate) options: SqliteOptions,
    pub(crate) counters: Arc<Counters>,
    parked: PerQueue<ParkedFetches<TurnAsk>, ParkedFetches<ActivityAsk>>,
    fetch_state: FetchState,
    /// The parked fetches are polled at this time. As far as this process knows, no item becomes available before it.
    wake_at: u64,
    /// The time of the transaction.
    now: u64,
    /// Whether another process committed before the last transaction.
    pub(crate) saw_foreign_commit: bool,
    owners: Owners,
}

impl Writer {
    /// Opens the connection on the calling thread and applies migrations. It starts no thread: `threads.rs` does.
    pub(crate) fn open(location: Location, options: SqliteOptions, counters: Arc<Counters>) -> Result<Self> {
        let owners = Owners::new(&location, options.inline);
        Ok(Self {
            connection: WriterConnection::open(location, options.clone(), Arc::clone(&counters))?,
            options,
            counters,
            parked: PerQueue::default(),
            fetch_state: FetchState::default(),
            wake_at: 0,
            now: 0,
            saw_foreign_commit: false,
            owners,
        })
    }

    /// The time of the store's clock.
    pub(crate) fn now(&self) -> u64 {
        self.options.clock.now_ms()
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
        calls.extend(self.end_leases_of_dead_owners());
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
                Command::FetchTurn(fetch, _permit) => {
                    self.owners.register(&*self.options.entropy);
                    self.parked.turns.push(fetch);
                }
                Command::FetchActivities(fetch, _permit) => {
                    self.owners.register(&*self.options.entropy);
                    self.parked.activities.push(fetch);
                }
                Command::Release(kind, token) => calls.push(release(kind, token)),
                Command::BetweenTransactions(job) => self.connection.push_job(job),
                Command::Stop => {}
            }
        }
        calls
    }

    /// Calls that end the leases of owners that were found dead.
    fn end_leases_of_dead_owners(&mut self) -> Vec<Box<dyn Call>> {
        if !self.has_dead_owner() {
            return Vec::new();
        }
        // A lease ends earlier than this process knows.
        self.invalidate();
        self.owners.take_dead().into_iter().map(|dead| owners::end_leases(dead, &self.counters)).collect()
    }

    /// The store is closed. The owner's file stays if the owner still holds a lease, or that is not known.
    pub(crate) fn close(&mut self) {
        let Some(owner) = self.owners.own() else { return };
        let Ok(db) = self.take_connection() else { return self.owners.close(true) };
        let is_free = contain(|| owners::holds_no_lease(&db, owner, self.now()));
        self.connection.return_connection(db, is_free.is_none(), false);
        self.owners.close(!matches!(is_free, Some(Ok(true))));
    }

    /// The connection, opened again if it was closed.
    pub(crate) fn take_connection(&mut self) -> Result<Db> {
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
        if by_savepoints && self.apply_again(db, calls, &mut wakeups)? {
            return Ok(Ran::Panicked);
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
            let after_backoff = self.now().saturating_add(failure::BACKOFF_MS);
            self.wake_at = park::next_available(db, polled_at).unwrap_or(after_backoff).min(wakeups.at);
        }
        Ok(Ran::Committed { by_savepoints })
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

    fn tx<'a>(&'a self, db: &'a Db, wakeups: &'a mut Wakeups) -> Transaction<'a> {
        let (entropy, owner) = (&*self.options.entropy, self.owners.own());
        Transaction { db, now: self.now, entropy, owner, wakeups }
    }

    /// Leases to fetches the items that this transaction made available.
    fn serve(&mut self, db: &Db, wakeups: &mut Wakeups) -> Result<()> {
        let poll = wakeups.poll;
        self.now = self.now.max(self.now());
        let (entropy, owner) = (&*self.options.entropy, self.owners.own());
        let mut tx = Transaction { db, now: self.now, entropy, owner, wakeups };
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

/// How the writer applies and answers a call.
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

mod failure;
mod wait;

#[cfg(test)]
mod tests;

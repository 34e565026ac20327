//! The writer: applies what waits in one transaction, serves waiting fetches inside it, commits, answers.

use crate::command::{Applied, Between, Call, Command, Cx, Health, News};
use crate::contain::{self, contain};
use crate::counters::Counters;
use crate::db::{Db, Result, moment};
use crate::fetch::{Horizons, LargeTurns};
use crate::handle::Handle;
use crate::log::Log;
use crate::serving::Waiters;
use crate::url::Location;
use crate::waiting::{LeaseKind, TurnAsk, WorkAsk};
use crate::{SqliteError, SqliteOptions, open, sql, work, write};
use std::mem;
use std::sync::Arc;
use std::time::SystemTime;

/// The writing side of a store.
pub(crate) struct Store {
    location: Location,
    options: SqliteOptions,
    counters: Arc<Counters>,
    /// `None` after a failed write, until it is opened again.
    db: Option<Db>,
    /// `None` for a store in memory.
    log: Option<Log>,
    turns: Waiters<TurnAsk>,
    work: Waiters<WorkAsk>,
    /// Jobs that wait for the end of the transaction.
    between: Vec<Between>,
    horizons: Horizons,
    /// Nothing becomes available before this time, as far as this process knows.
    wake_at: u64,
    /// The time of the transaction.
    moment: u64,
    data_version: i64,
    /// Size and time of the log at the last two looks.
    log_seen: (LogSeen, LogSeen),
    /// Whether another process committed before the last transaction.
    met_others: bool,
}

type LogSeen = Option<(u64, SystemTime)>;

impl Store {
    pub(crate) fn open(location: Location, options: SqliteOptions, counters: Arc<Counters>) -> Result<Self> {
        let db = open::writer(&location, &options, &counters)?;
        let log = Log::of(&location, options.wal_limit_bytes);
        Ok(Self {
            location,
            log,
            options,
            counters,
            db: Some(db),
            turns: Waiters::default(),
            work: Waiters::default(),
            between: Vec::new(),
            horizons: Horizons::default(),
            wake_at: 0,
            moment: 0,
            data_version: 0,
            log_seen: (None, None),
            met_others: false,
        })
    }

    pub(crate) fn now(&self) -> u64 {
        self.options.clock.now_ms()
    }

    /// When waiting fetches should be tried again; `None` if nobody waits.
    pub(crate) fn wake_at(&mut self) -> Option<u64> {
        let anybody = self.turns.is_anybody_waiting() | self.work.is_anybody_waiting();
        anybody.then_some(self.wake_at)
    }

    /// Whether another process committed since the last look.
    pub(crate) fn foreign_commit(&mut self) -> bool {
        if !self.log_changed() {
            return false;
        }
        let Some(db) = self.db.take() else { return false };
        let seen = self.foreign_commit_in(&db);
        self.db = Some(db);
        seen
    }

    /// Whether the log was written to since the last looks: much cheaper to ask than the database, which takes locks.
    /// Only two looks in a row with the same answer count, since two writes within one tick of the file system's clock
    /// leave the same time behind.
    fn log_changed(&mut self) -> bool {
        let Location::File { path, .. } = &self.location else { return false };
        let log = std::fs::metadata(open::log_of(path));
        let now = log.and_then(|log| Ok((log.len(), log.modified()?))).ok();
        let before = self.log_seen;
        self.log_seen = (now, before.0);
        now.is_none() || before != (now, now)
    }

    fn foreign_commit_in(&mut self, db: &Db) -> bool {
        match db.data_version() {
            Ok(version) if version == self.data_version => return false,
            Ok(version) => {
                let known = mem::replace(&mut self.data_version, version);
                if known == 0 {
                    return false;
                }
            }
            // The next statement will say what is wrong.
            Err(_) => {}
        }
        self.forget();
        true
    }

    /// What this process remembers of the tables may no longer be so.
    fn forget(&mut self) {
        self.horizons = Horizons { large_turns: self.horizons.large_turns, ..Horizons::default() };
        self.wake_at = 0;
    }

    /// Says which large turns the next transaction hands out.
    pub(crate) fn set_large_turns(&mut self, large_turns: LargeTurns) {
        self.horizons.large_turns = large_turns;
    }

    /// Whether a fetch passed a large turn over in the last transaction.
    pub(crate) fn passed_a_large_turn_over(&self) -> bool {
        matches!(self.horizons.large_turns, LargeTurns::Held { was_passed_over: true })
    }

    /// Whether no fetch was given the large turn that the last transaction could hand out.
    pub(crate) fn has_a_large_turn_to_give(&self) -> bool {
        matches!(self.horizons.large_turns, LargeTurns::One)
    }

    /// Whether a fetch waits that does not park, which it does for a large turn only.
    pub(crate) fn has_fetch_that_does_not_park(&self) -> bool {
        self.turns.has_fetch_that_does_not_park()
    }

    /// Empties the log into the database, so that no small commit has to. What goes wrong with it, the next commit meets too.
    pub(crate) fn empty_log(&mut self) {
        if self.log.is_none() {
            return;
        }
        let Some(db) = self.db.take() else { return };
        let emptied = contain(|| db.conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())));
        self.give_back(db, !matches!(emptied, Some(Ok(()))), false);
    }

    /// Whether another process was seen to write during the last transaction's wait for the lock.
    pub(crate) fn met_others(&self) -> bool {
        self.met_others
    }

    /// Applies commands in one transaction and answers them. With `look`, parked fetches are tried as well, whether
    /// or not the commands made anything available.
    pub(crate) fn process(&mut self, commands: Vec<Command>, look: bool, handle: &Handle) {
        self.process_with(commands, look, handle, &mut Vec::new);
    }

    /// The same, with commands that arrive while others are being applied: `more` returns them without waiting.
    pub(crate) fn process_with(
        &mut self,
        commands: Vec<Command>,
        look: bool,
        handle: &Handle,
        more: &mut dyn FnMut() -> Vec<Command>,
    ) {
        let mut again = self.process_once(commands, look, handle, more);
        while again {
            again = self.process_once(Vec::new(), true, handle, &mut Vec::new);
        }
    }

    /// Says whether parked fetches must be tried again, because none was served beside a call that failed.
    ///
    /// A call or a fetch that panics is told so and left out, and the others are applied again on a new connection. Each round
    /// leaves one out, so there is an end.
    fn process_once(
        &mut self,
        commands: Vec<Command>,
        look: bool,
        handle: &Handle,
        more: &mut dyn FnMut() -> Vec<Command>,
    ) -> bool {
        let mut calls = self.sort(commands);
        let mut look = look;
        loop {
            if let Err(fault) = self.reopen() {
                return self.fail(calls, &fault);
            }
            let Some(db) = self.db.take() else { return self.fail(calls, &SqliteError::Closed) };
            let outcome = contain(|| self.transact(&db, &mut calls, look, more)).unwrap_or_else(|| {
                contain::report("transaction", None);
                self.counters.panics.add(1);
                Err(SqliteError::panicked_outside())
            });
            let has_panicked = matches!(outcome, Ok(Ran::Panicked));
            let broken = has_panicked || outcome.as_ref().is_err_and(SqliteError::breaks_connection);
            self.give_back(db, broken, outcome.is_err() || has_panicked);
            match outcome {
                Ok(Ran::Committed { careful }) => {
                    calls.into_iter().for_each(|call| call.answer(None));
                    self.deliver(handle);
                    return careful;
                }
                Ok(Ran::Panicked) => {
                    self.counters.panics.add(1);
                    let (panicked, others) = calls.into_iter().partition(|call| call.has_panicked());
                    let told: Vec<Box<dyn Call>> = panicked;
                    told.into_iter().for_each(|call| call.answer(None));
                    calls = others;
                    // Only fetches that panicked are left among the served.
                    self.deliver(handle);
                    look = true;
                }
                Err(fault) => return self.fail(calls, &fault),
            }
        }
    }

    /// Keeps the connection after a transaction and the jobs that waited for its end, or throws it away.
    ///
    /// A connection is never used again after a failed write, since what it has cached may not be what is stored, nor after a
    /// panic, since a statement may have been left half-way. A store in memory is its connection: closing it would lose all
    /// that was ever committed. It is kept: rows are read and statements are run by code that does not unwind through SQLite,
    /// so a panic leaves SQLite itself as a failed statement does, and a rollback undoes the transaction.
    fn give_back(&mut self, db: Db, broken: bool, undo: bool) {
        let is_lost = broken && self.location != Location::Memory;
        // A panic of a hook within the rollback counts as a rollback that failed.
        let rolled_back = |db: &Db| matches!(contain(|| db.control("ROLLBACK")), Some(Ok(())));
        if is_lost || (undo && !db.conn.is_autocommit() && !rolled_back(&db)) {
            return;
        }
        let mut jobs = mem::take(&mut self.between).into_iter();
        let is_good = |job: Between| job(&db) == Health::Good;
        if jobs.by_ref().all(is_good) || self.location == Location::Memory {
            jobs.for_each(|job| _ = job(&db));
            self.db = Some(db);
        } else {
            // The rest runs on the next connection.
            self.between.extend(jobs);
        }
    }

    /// Calls to apply; fetches join those that wait.
    fn sort(&mut self, commands: Vec<Command>) -> Vec<Box<dyn Call>> {
        let mut calls = Vec::with_capacity(commands.len());
        for command in commands {
            match command {
                Command::Call(call) => calls.push(call),
                Command::FetchTurn(waiter, _room) => self.turns.push(waiter),
                Command::FetchWork(waiter, _room) => self.work.push(waiter),
                Command::Release(kind, token) => calls.push(release(kind, token)),
                Command::Between(job) => self.between.push(job),
                Command::Stop => {}
            }
        }
        calls
    }

    fn reopen(&mut self) -> Result<()> {
        if self.db.is_none() && self.location == Location::Memory {
            return Err(SqliteError::Damaged {
                details: "a store in memory was lost with its connection".to_string(),
            });
        }
        if self.db.is_none() {
            let opened = open::writer(&self.location.again(), &self.options, &self.counters);
            self.db = Some(opened.map_err(SqliteError::while_reopening)?);
            self.counters.reopened.add(1);
            self.forget();
        }
        Ok(())
    }

    /// One transaction. After an error and after a panic it may still be open.
    fn transact(
        &mut self,
        db: &Db,
        calls: &mut Vec<Box<dyn Call>>,
        look: bool,
        more: &mut dyn FnMut() -> Vec<Command>,
    ) -> Result<Ran> {
        db.control("BEGIN IMMEDIATE")?;
        let before = db.conn.total_changes();
        self.met_others = self.location != Location::Memory && self.foreign_commit_in(db);
        self.moment = self.now();
        let looked_at = self.moment;
        let mut news = News { turns: look, work: look, later: u64::MAX };
        let careful = self.apply_and_serve(db, calls, &mut news, more).is_err();
        if careful {
            // Somebody failed half-way: put everything back, and let each call stand or fall alone.
            self.turns.return_served();
            self.work.return_served();
            self.forget();
            if self.has_panicked(calls) {
                return Ok(Ran::Panicked);
            }
            self.counters.careful_batches.add(1);
            if !db.conn.is_autocommit() {
                db.control("ROLLBACK")?;
            }
            db.control("BEGIN IMMEDIATE")?;
            news = News::default();
            self.apply_each(db, calls, &mut news)?;
            if self.has_panicked(calls) {
                return Ok(Ran::Panicked);
            }
        }
        let changed = db.conn.total_changes() != before;
        let mut log = self.log.as_mut().filter(|_| changed);
        if let Some(log) = &mut log {
            log.before_commit();
        }
        db.control("COMMIT")?;
        if let Some(log) = &mut log {
            log.after_commit();
        }
        if changed {
            self.counters.commits.add(1);
        }
        self.counters.calls.add(calls.len() + self.turns.served() + self.work.served());
        self.wake_at = self.wake_at.min(news.later);
        if look {
            // What is committed stays committed, even if this cannot be read.
            let later = self.now().saturating_add(REST_MS);
            self.wake_at = self.next_wake(db, looked_at).unwrap_or(later).min(news.later);
        }
        Ok(Ran::Committed { careful })
    }

    fn has_panicked(&self, calls: &[Box<dyn Call>]) -> bool {
        calls.iter().any(|call| call.has_panicked()) || self.turns.has_panicked() || self.work.has_panicked()
    }

    /// Applies what is there, and what arrives meanwhile, and serves the fetches that wait. An error means that a call
    /// or a fetch failed half-way.
    fn apply_and_serve(
        &mut self,
        db: &Db,
        calls: &mut Vec<Box<dyn Call>>,
        news: &mut News,
        more: &mut dyn FnMut() -> Vec<Command>,
    ) -> Result<()> {
        let mut applied = 0;
        loop {
            // Within a transaction time never goes back: what a call made visible, a fetch after it sees.
            self.moment = self.moment.max(self.now());
            self.apply_all(db, &mut calls[applied..], news)?;
            applied = calls.len();
            let mut arrived = more();
            if arrived.is_empty() {
                self.serve(db, news)?;
                arrived = more();
            }
            if arrived.is_empty() {
                return Ok(());
            }
            calls.extend(self.sort(arrived));
        }
    }

    /// The fast way: no savepoints. An error means that a call failed after it had written something.
    fn apply_all(&self, db: &Db, calls: &mut [Box<dyn Call>], news: &mut News) -> Result<()> {
        for call in calls {
            let before = db.conn.total_changes();
            let half_way = match call.apply(&mut self.cx(db, news)) {
                Applied::Done => false,
                Applied::Refused => db.conn.total_changes() != before || db.conn.is_autocommit(),
                Applied::Failed | Applied::Panicked => true,
            };
            if half_way {
                return Err(SqliteError::Other("a call failed half-way".to_string()));
            }
        }
        Ok(())
    }

    /// The careful way: every call inside its own savepoint, so that one that fails takes nothing with it.
    fn apply_each(&self, db: &Db, calls: &mut [Box<dyn Call>], news: &mut News) -> Result<()> {
        for call in calls {
            db.control("SAVEPOINT call")?;
            let applied = call.apply(&mut self.cx(db, news));
            if applied == Applied::Panicked {
                // The others are applied again without it, on a new connection.
                return Ok(());
            }
            if applied != Applied::Done {
                if db.conn.is_autocommit() {
                    // SQLite itself gave the transaction up, and the calls before this one with it.
                    return Err(SqliteError::Io { details: "the transaction was rolled back".to_string() });
                }
                db.control("ROLLBACK TO call")?;
            }
            db.control("RELEASE call")?;
        }
        Ok(())
    }

    fn cx<'a>(&'a self, db: &'a Db, news: &'a mut News) -> Cx<'a> {
        Cx { db, now: self.moment, entropy: &*self.options.entropy, news }
    }

    /// Gives waiting fetches what this transaction made available.
    fn serve(&mut self, db: &Db, news: &mut News) -> Result<()> {
        let (turns, work) = (news.turns, news.work);
        self.moment = self.moment.max(self.now());
        let mut cx = Cx { db, now: self.moment, entropy: &*self.options.entropy, news };
        self.turns.serve(&mut cx, turns, &mut self.horizons, &self.counters)?;
        self.work.serve(&mut cx, work, &mut self.horizons, &self.counters)?;
        (news.turns, news.work) = (false, false);
        Ok(())
    }

    /// When something becomes available next, from the tables. What became available since the look began counts, since
    /// the look may have missed it.
    fn next_wake(&self, db: &Db, looked_at: u64) -> Result<u64> {
        let now = crate::db::column(looked_at);
        let mut next = i64::MAX;
        for statement in [
            sql::NEXT_MESSAGE,
            sql::NEXT_LEASE_END,
            sql::NEXT_WORK_LEASE_END,
            sql::NEXT_DELAYED_WORK,
            sql::NEXT_SESSION_END,
        ] {
            let at = db.one(statement, [now], |row| moment(row, 0))?.flatten();
            next = next.min(at.unwrap_or(i64::MAX));
        }
        Ok(u64::try_from(next).unwrap_or(0))
    }

    fn deliver(&mut self, handle: &Handle) {
        let mut unwanted = self.turns.deliver(handle);
        unwanted.extend(self.work.deliver(handle));
        if !unwanted.is_empty() {
            self.process(unwanted, false, handle);
        }
    }

    /// Nothing could be committed. Parked fetches rest a little: a disk that is full or gone would be asked all the
    /// time.
    fn fail(&mut self, calls: Vec<Box<dyn Call>>, fault: &SqliteError) -> bool {
        self.forget();
        self.wake_at = self.now().saturating_add(REST_MS);
        calls.into_iter().for_each(|call| call.answer(Some(fault)));
        // Whoever waits for one of these sees that it is gone.
        self.between.clear();
        self.turns.fail(fault);
        self.work.fail(fault);
        false
    }

    /// A read on the connection of the writer. One that panics costs a store on a file its connection.
    pub(crate) fn read<T>(
        &mut self,
        operation: &'static str,
        body: impl FnOnce(&Db) -> Result<T>,
    ) -> Result<T> {
        self.reopen()?;
        let Some(db) = self.db.take() else { return Err(SqliteError::Closed) };
        let read = contain(|| body(&db));
        self.give_back(db, read.is_none(), false);
        read.unwrap_or_else(|| {
            self.counters.panics.add(1);
            contain::report(operation, None);
            Err(SqliteError::Panicked { operation, instance: None })
        })
    }

    /// Something outside of any transaction panicked: fetches that wait are not tried at once.
    pub(crate) fn rest(&mut self) {
        self.counters.panics.add(1);
        self.forget();
        self.wake_at = self.now().saturating_add(REST_MS);
    }
}

/// How a transaction ended that did not fail.
enum Ran {
    Committed {
        /// It had to be done the careful way, and served no fetches.
        careful: bool,
    },
    /// A call or a fetch panicked, and nothing may be committed.
    Panicked,
}

/// How long waiting fetches rest after a failure.
const REST_MS: u64 = 200;

fn release(kind: LeaseKind, token: String) -> Box<dyn Call> {
    let (reply, _) = tokio::sync::oneshot::channel();
    Box::new(crate::command::Body {
        operation: "release",
        instance: None,
        bytes: 0,
        body: move |cx: &mut Cx<'_>| match kind {
            LeaseKind::Turn => write::abandon(cx, &token, None, true),
            LeaseKind::Work => work::abandon(cx, &token, None, true),
        },
        then: |(): &()| {},
        outcome: None,
        reply,
        room: None,
    })
}

#[cfg(test)]
mod tests;

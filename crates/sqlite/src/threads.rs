//! The threads of a store: the writer, and the readers.

use crate::command::{Command, Health};
use crate::contain::{self, contain};
use crate::counters::Counters;
use crate::db::{Db, Result};
use crate::handle::Handle;
use crate::large_requests::LargeRequests;
use crate::open::{self, LOCK_PATIENCE};
use crate::park::LargeTurns;
use crate::url::{Access, Location};
use crate::writer::Writer;
use crate::{SqliteError, SqliteOptions};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};

/// The number of calls that share one transaction at most, so that no caller waits for an endless batch.
const MAX_BATCH: usize = 512;

/// How long the writer does not take the database lock after it saw a commit of another process.
const YIELD_TO_OTHERS: Duration = Duration::from_micros(400);

/// A read. It gets the connection or the reason why there is none, and returns whether the connection can be used again.
pub(crate) type ReadJob = Box<dyn FnOnce(std::result::Result<&Db, SqliteError>) -> Health + Send>;

/// The number of permits for calls that the writer has not answered, and for reads. A call takes one permit, and one more for
/// every [`PERMIT_BYTES`] that it carries, so that both the number and the bytes of calls are bounded. There are more permits
/// than calls in a batch, so that a busy writer always finds the next batch.
pub(crate) const PERMITS: usize = 2_048;
pub(crate) const PERMIT_BYTES: usize = 16 << 10;

/// The number of permits of a call with this many bytes. A call that is larger than all permits waits until it is alone.
pub(crate) fn permits_for(bytes: usize) -> u32 {
    u32::try_from((1 + bytes / PERMIT_BYTES).min(PERMITS)).unwrap_or(u32::MAX)
}

/// The running threads. The drop stops and joins them, so that the files are closed when it returns.
pub(crate) struct Threads {
    pub(crate) commands: Sender<Command>,
    /// Callers wait for a permit before they send. Commands that release a lease and the command to stop need no permit: they
    /// are sent by code that cannot wait, and there are never more of them than leases.
    pub(crate) call_permits: Arc<Semaphore>,
    /// The permits of large calls, so that small calls do not wait behind them.
    pub(crate) large_call_permits: Arc<Semaphore>,
    /// The permits of reads.
    pub(crate) read_permits: Arc<Semaphore>,
    /// `None` if reads run on the writer.
    pub(crate) reads: Option<Sender<ReadJob>>,
    /// The writer, then the readers.
    running: Vec<JoinHandle<()>>,
    /// The threads of jobs that run on threads of their own.
    jobs: Mutex<Vec<JoinHandle<()>>>,
}

impl Threads {
    /// Opens the store on the thread that will write it.
    pub(crate) async fn start(
        location: Location,
        options: SqliteOptions,
        counters: Arc<Counters>,
    ) -> Result<Self> {
        let (commands, receiver) = mpsc::channel();
        let (opened, result) = oneshot::channel();
        let handle = Handle::Threaded(commands.clone());
        let (writer_location, writer_options, writer_counters) =
            (location.clone(), options.clone(), Arc::clone(&counters));
        let writer = spawn("outlast-writer", move || {
            match Writer::open(writer_location, writer_options.clone(), Arc::clone(&writer_counters)) {
                Ok(writer) => {
                    // If the caller was dropped, the store closes at once.
                    if opened.send(Ok(())).is_ok() {
                        write_loop(writer, &receiver, &handle, &writer_options, &writer_counters);
                    }
                }
                Err(error) => drop(opened.send(Err(error))),
            }
        })?;
        let mut threads = Self {
            commands,
            call_permits: Arc::new(Semaphore::new(PERMITS)),
            large_call_permits: Arc::new(Semaphore::new(PERMITS)),
            read_permits: Arc::new(Semaphore::new(PERMITS)),
            reads: None,
            running: vec![writer],
            jobs: Mutex::default(),
        };
        result.await.map_err(|_| SqliteError::Closed)??;
        if let Location::File { path, access } = &location
            && *access != Access::ReadOnly
            && options.reader_connections > 0
        {
            let (sender, receiver) = mpsc::channel::<ReadJob>();
            let receiver = Arc::new(Mutex::new(receiver));
            for _ in 0..options.reader_connections {
                let db = open::reader(path, &options, &counters)?;
                let receiver = Arc::clone(&receiver);
                let reopen =
                    Reopen { path: path.clone(), options: options.clone(), counters: Arc::clone(&counters) };
                threads.running.push(spawn("outlast-reader", move || read_loop(db, &receiver, &reopen))?);
            }
            threads.reads = Some(sender);
        }
        Ok(threads)
    }

    /// Runs a job on a thread of its own.
    pub(crate) fn run_on_own_thread(&self, job: impl FnOnce() + Send + 'static) -> Result<()> {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.retain(|thread| !thread.is_finished());
        jobs.push(spawn("outlast-job", job)?);
        Ok(())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // The writer closes last: only a connection that can write can empty and remove the write-ahead log.
        self.reads = None;
        let jobs = self.jobs.get_mut().unwrap_or_else(PoisonError::into_inner);
        for thread in jobs.drain(..).chain(self.running.drain(1..)) {
            let _ = thread.join();
        }
        // The send fails if the writer has ended, and the join fails after a panic, which is already logged.
        let _ = self.commands.send(Command::Stop);
        for thread in self.running.drain(..) {
            let _ = thread.join();
        }
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let spawned = thread::Builder::new().name(name.to_string()).spawn(body);
    spawned.map_err(|error| SqliteError::Other(format!("cannot start thread {name}: {error}")))
}

/// The arguments with which a reader opens its connection again.
struct Reopen {
    path: PathBuf,
    options: SqliteOptions,
    counters: Arc<Counters>,
}

/// Runs reads. A connection on which a read panicked is closed; the next read gets a new connection.
fn read_loop(db: Db, jobs: &Mutex<Receiver<ReadJob>>, reopen: &Reopen) {
    let mut db = Some(db);
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        let opened = match db.take() {
            Some(db) => Ok(db),
            None => open::reader(&reopen.path, &reopen.options, &reopen.counters)
                .map_err(SqliteError::while_reopening)
                .inspect(|_| reopen.counters.reopened.add(1)),
        };
        match opened {
            Ok(opened) => match job(Ok(&opened)) {
                Health::Good => db = Some(opened),
                Health::Panicked => reopen.counters.panics.add(1),
            },
            Err(error) => drop(job(Err(error))),
        }
    }
}

/// Runs transactions until the store is closed. The writer never delays a call to fill a batch, and it polls the parked fetches
/// when an item becomes available by itself.
fn write_loop(
    mut writer: Writer,
    commands: &Receiver<Command>,
    handle: &Handle,
    options: &SqliteOptions,
    counters: &Counters,
) {
    let mut large = LargeRequests::new();
    // A panic must not lose the command to stop: the owner of the store waits for the end of this thread.
    let mut stop = false;
    while !stop {
        // The writer contains a panic inside a transaction; this contains all other panics.
        let step =
            contain(|| write_step(&mut writer, &mut large, &mut stop, commands, handle, options, counters));
        if step.is_none() {
            contain::report("writer", None);
            writer.back_off();
        }
    }
}

/// Runs one transaction. Sets `stop` if it is the last one.
fn write_step(
    writer: &mut Writer,
    large: &mut LargeRequests,
    stop: &mut bool,
    commands: &Receiver<Command>,
    handle: &Handle,
    options: &SqliteOptions,
    counters: &Counters,
) {
    match next(writer, large, commands, handle, options) {
        Next::Small(first) => small_step(writer, large, stop, first, commands, handle),
        Next::Large => large_step(writer, large, handle),
        Next::Closed => *stop = true,
    }
    if *stop {
        let left = large.take_all();
        if !left.is_empty() {
            writer.process(left, false, handle);
        }
        return;
    }
    if writer.saw_foreign_commit() {
        counters.yields_to_processes.add(1);
        pause(YIELD_TO_OTHERS);
    }
}

/// Runs a transaction with small requests. Sets `stop` if it is the last one.
fn small_step(
    writer: &mut Writer,
    large: &mut LargeRequests,
    stop: &mut bool,
    first: Command,
    commands: &Receiver<Command>,
    handle: &Handle,
) {
    *stop |= matches!(first, Command::Stop);
    let Some(first) = large.keep_if_large(first) else { return };
    let mut taken = 1;
    let begun = writer.now();
    let may_next_fetch_take_large = begin_small(writer, large);
    // A busy writer never reaches the wait in `next`, so it checks the time here.
    let due = writer.wake_at().is_some_and(|at| at <= begun);
    let mut more = || {
        let mut arrived = Vec::new();
        while taken < MAX_BATCH
            && let Ok(command) = commands.try_recv()
        {
            *stop |= matches!(command, Command::Stop);
            taken += 1;
            arrived.extend(large.keep_if_large(command));
        }
        arrived
    };
    writer.process_with(vec![first], due, handle, &mut more);
    end_small(writer, large, may_next_fetch_take_large, begun);
}

/// Prepares a transaction with small requests; returns whether it may hand out a large turn.
fn begin_small(writer: &mut Writer, large: &mut LargeRequests) -> bool {
    let may_next_fetch_take_large = large.may_next_fetch_take_large();
    large.small_begins();
    writer.set_large_turns(match may_next_fetch_take_large {
        true => LargeTurns::One,
        false => LargeTurns::Held { was_passed_over: false },
    });
    may_next_fetch_take_large
}

/// Records whether a transaction with small requests handed out a large turn, or passed over one.
fn end_small(writer: &Writer, large: &mut LargeRequests, was_turn_owed: bool, begun: u64) {
    if was_turn_owed && !writer.has_large_turn_to_give() {
        large.done(begun, writer.now());
    }
    if writer.passed_over_large_turn() {
        large.turn_was_passed_over(writer.has_fetch_that_does_not_park());
    }
}

/// Runs a transaction with large requests.
fn large_step(writer: &mut Writer, large: &mut LargeRequests, handle: &Handle) {
    let begun = writer.now();
    let beside_small = large.saw_small();
    let (calls, hand_out_a_turn) = large.take();
    writer.set_large_turns(LargeTurns::One);
    writer.process(calls, hand_out_a_turn, handle);
    if beside_small {
        writer.connection.checkpoint();
    }
    large.done(begun, writer.now());
    if writer.passed_over_large_turn() {
        large.turn_was_passed_over(writer.has_fetch_that_does_not_park());
    }
    if hand_out_a_turn && writer.has_large_turn_to_give() {
        large.large_turn_not_taken();
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

/// Waits for the next step. Polls of the parked fetches that are due meanwhile are made here.
fn next(
    writer: &mut Writer,
    large: &mut LargeRequests,
    commands: &Receiver<Command>,
    handle: &Handle,
    options: &SqliteOptions,
) -> Next {
    // Longer than a tick of the clock of a file system: two writes within one tick have the same time.
    const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
    // `next` returns with every request, so no request has come since this time.
    let idle_from = writer.now();
    loop {
        let now = writer.now();
        let until_large = large.due_in(now);
        let is_large_due = until_large.is_some_and(|until| until.is_zero());
        if is_large_due && !large.was_last() {
            return Next::Large;
        }
        if let Ok(command) = commands.try_recv() {
            return Next::Small(command);
        }
        if is_large_due {
            return Next::Large;
        }
        let idle = Duration::from_millis(now.saturating_sub(idle_from));
        let until_pause_ends = until_large.map(|until| until.min(large.idle_limit().saturating_sub(idle)));
        let until_wake = match writer.wake_at() {
            None => None,
            Some(wake_at) => {
                let now = writer.now();
                if now >= wake_at {
                    poll_parked(writer, large, handle);
                    continue;
                }
                let until = Duration::from_millis(wake_at - now);
                Some(until.min(options.foreign_poll_interval.max(SHORTEST_PAUSE)))
            }
        };
        let received = match until_wake.into_iter().chain(until_pause_ends).min() {
            None => commands.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(patience) => commands.recv_timeout(patience),
        };
        match received {
            Ok(command) => return Next::Small(command),
            Err(RecvTimeoutError::Disconnected) => return Next::Closed,
            Err(RecvTimeoutError::Timeout) => {
                let has_pause_ended =
                    until_pause_ends.is_some_and(|pause| until_wake.is_none_or(|wake| pause <= wake));
                if has_pause_ended {
                    large.end_pause();
                } else if writer.has_foreign_commit() {
                    poll_parked(writer, large, handle);
                }
            }
        }
    }
}

/// Polls the parked fetches.
fn poll_parked(writer: &mut Writer, large: &mut LargeRequests, handle: &Handle) {
    let begun = writer.now();
    let may_next_fetch_take_large = begin_small(writer, large);
    writer.process(Vec::new(), true, handle);
    end_small(writer, large, may_next_fetch_take_large, begun);
}

/// Waits before the next attempt to lock the database; the pauses become longer. Returns whether to try again.
pub(crate) fn wait_for_lock(attempt: i32) -> bool {
    let waited = match attempt {
        0..100 => Duration::from_micros(100),
        100..1_000 => Duration::from_micros(500),
        _ => Duration::from_millis(2),
    };
    pause(waited);
    let patience = i32::try_from(LOCK_PATIENCE.as_millis() / 2).unwrap_or(i32::MAX);
    attempt < patience
}

#[allow(clippy::disallowed_methods, reason = "a file lock of another process has no wake-up to wait for")]
fn pause(duration: Duration) {
    thread::sleep(duration);
}

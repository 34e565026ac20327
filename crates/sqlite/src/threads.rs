//! The threads of a store: one that writes, a few that read.

use crate::command::{Command, Health};
use crate::contain::{self, contain};
use crate::counters::Counters;
use crate::db::{Db, Result};
use crate::fetch::LargeTurns;
use crate::handle::Handle;
use crate::open::{self, LOCK_PATIENCE};
use crate::share::LargeRequests;
use crate::store::Store;
use crate::url::{Access, Location};
use crate::{SqliteError, SqliteOptions};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};

/// Calls that share one transaction at most, so that no caller waits for an endless batch.
const MAX_BATCH: usize = 512;

/// How long the writer leaves the lock alone after another process was seen to want it.
const YIELD_TO_OTHERS: Duration = Duration::from_micros(400);

/// Says what it left of the connection. Without a connection it is told why there is none.
pub(crate) type ReadJob = Box<dyn FnOnce(std::result::Result<&Db, SqliteError>) -> Health + Send>;

/// Room for calls that were given to the writer and are not answered, and for reads. A call takes one unit, and one more for
/// every [`UNIT_BYTES`] that it carries, so both their number and their bytes are bounded. More than a batch fits in, so that a
/// writer always finds the next batch waiting.
pub(crate) const ROOM: usize = 2_048;
pub(crate) const UNIT_BYTES: usize = 16 << 10;

/// The units of room that a call with this many bytes takes. One that is larger than all of the room waits until it is alone.
pub(crate) fn units(bytes: usize) -> u32 {
    u32::try_from((1 + bytes / UNIT_BYTES).min(ROOM)).unwrap_or(u32::MAX)
}

/// The running threads. Dropping it stops and joins them, so that the files are closed when it returns.
pub(crate) struct Threads {
    pub(crate) commands: Sender<Command>,
    /// Callers wait for room before they send. Leases that are given back by a fetch that went away, and the end, do not:
    /// they are sent where nothing can wait, and there are never more of them than leases.
    pub(crate) room: Arc<Semaphore>,
    /// The same for large calls, so that small ones do not wait behind them.
    pub(crate) large_room: Arc<Semaphore>,
    /// The same for reads.
    pub(crate) read_room: Arc<Semaphore>,
    /// `None` where reads run on the writer.
    pub(crate) reads: Option<Sender<ReadJob>>,
    /// The writer, then the readers.
    running: Vec<JoinHandle<()>>,
    /// Threads of jobs that run beside them.
    apart: Mutex<Vec<JoinHandle<()>>>,
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
            match Store::open(writer_location, writer_options.clone(), Arc::clone(&writer_counters)) {
                Ok(store) => {
                    // If nobody waits for the store any more, it closes at once.
                    if opened.send(Ok(())).is_ok() {
                        write_loop(store, &receiver, &handle, &writer_options, &writer_counters);
                    }
                }
                Err(error) => drop(opened.send(Err(error))),
            }
        })?;
        let mut threads = Self {
            commands,
            room: Arc::new(Semaphore::new(ROOM)),
            large_room: Arc::new(Semaphore::new(ROOM)),
            read_room: Arc::new(Semaphore::new(ROOM)),
            reads: None,
            running: vec![writer],
            apart: Mutex::default(),
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
                let again =
                    Reopen { path: path.clone(), options: options.clone(), counters: Arc::clone(&counters) };
                threads.running.push(spawn("outlast-reader", move || read_loop(db, &receiver, &again))?);
            }
            threads.reads = Some(sender);
        }
        Ok(threads)
    }

    /// Runs a job on a thread of its own.
    pub(crate) fn run_apart(&self, job: impl FnOnce() + Send + 'static) -> Result<()> {
        let mut apart = self.apart.lock().unwrap_or_else(PoisonError::into_inner);
        apart.retain(|thread| !thread.is_finished());
        apart.push(spawn("outlast-apart", job)?);
        Ok(())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // The writer closes last: only a connection that can write can empty and remove the log.
        self.reads = None;
        let apart = self.apart.get_mut().unwrap_or_else(PoisonError::into_inner);
        for thread in apart.drain(..).chain(self.running.drain(1..)) {
            let _ = thread.join();
        }
        // A writer that is gone already needs no telling, and a thread that panicked has said so.
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

/// How a reader opens its connection again.
struct Reopen {
    path: PathBuf,
    options: SqliteOptions,
    counters: Arc<Counters>,
}

/// A connection on which a job panicked is thrown away; the next job gets a new one.
fn read_loop(db: Db, jobs: &Mutex<Receiver<ReadJob>>, again: &Reopen) {
    let mut db = Some(db);
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        let opened = match db.take() {
            Some(db) => Ok(db),
            None => open::reader(&again.path, &again.options, &again.counters)
                .map_err(SqliteError::while_reopening)
                .inspect(|_| again.counters.reopened.add(1)),
        };
        match opened {
            Ok(opened) => match job(Ok(&opened)) {
                Health::Good => db = Some(opened),
                Health::Panicked => again.counters.panics.add(1),
            },
            Err(error) => drop(job(Err(error))),
        }
    }
}

/// Takes what waits, never waits for company, and wakes up when something becomes available by itself.
fn write_loop(
    mut store: Store,
    commands: &Receiver<Command>,
    handle: &Handle,
    options: &SqliteOptions,
    counters: &Counters,
) {
    let mut large = LargeRequests::new();
    // A panic must not lose the order to stop: the owner of the store waits for the end of this thread.
    let mut stop = false;
    while !stop {
        // A panic inside a transaction is contained there; this is for all others.
        let step =
            contain(|| write_step(&mut store, &mut large, &mut stop, commands, handle, options, counters));
        if step.is_none() {
            contain::report("writer", None);
            store.rest();
        }
    }
}

/// One transaction. Sets `stop` if it is the last one.
fn write_step(
    store: &mut Store,
    large: &mut LargeRequests,
    stop: &mut bool,
    commands: &Receiver<Command>,
    handle: &Handle,
    options: &SqliteOptions,
    counters: &Counters,
) {
    match next(store, large, commands, handle, options) {
        Next::Small(first) => small_step(store, large, stop, first, commands, handle),
        Next::Large => large_step(store, large, handle),
        Next::Closed => *stop = true,
    }
    if *stop {
        let left = large.take_all();
        if !left.is_empty() {
            store.process(left, false, handle);
        }
        return;
    }
    if store.met_others() {
        counters.stood_back.add(1);
        pause(YIELD_TO_OTHERS);
    }
}

/// A transaction with small requests. Sets `stop` if it is the last one.
fn small_step(
    store: &mut Store,
    large: &mut LargeRequests,
    stop: &mut bool,
    first: Command,
    commands: &Receiver<Command>,
    handle: &Handle,
) {
    *stop |= matches!(first, Command::Stop);
    let Some(first) = large.keep_if_large(first) else { return };
    let mut taken = 1;
    let begun = store.now();
    let is_turn_owed = begin_small(store, large);
    // A writer that always has requests must not forget the time.
    let due = store.wake_at().is_some_and(|at| at <= begun);
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
    store.process_with(vec![first], due, handle, &mut more);
    end_small(store, large, is_turn_owed, begun);
}

/// Says whether the transaction may hand out a large turn.
fn begin_small(store: &mut Store, large: &mut LargeRequests) -> bool {
    let is_turn_owed = large.is_turn_owed();
    large.small_begins();
    store.set_large_turns(match is_turn_owed {
        true => LargeTurns::One,
        false => LargeTurns::Held { was_passed_over: false },
    });
    is_turn_owed
}

fn end_small(store: &Store, large: &mut LargeRequests, was_turn_owed: bool, begun: u64) {
    if was_turn_owed && !store.has_a_large_turn_to_give() {
        large.done(begun, store.now());
    }
    if store.passed_a_large_turn_over() {
        large.turn_was_passed_over(store.has_fetch_that_does_not_park());
    }
}

/// A transaction with large requests.
fn large_step(store: &mut Store, large: &mut LargeRequests, handle: &Handle) {
    let begun = store.now();
    let beside_small = large.saw_small();
    let (calls, hand_out_a_turn) = large.take();
    store.set_large_turns(LargeTurns::One);
    store.process(calls, hand_out_a_turn, handle);
    if beside_small {
        store.empty_log();
    }
    large.done(begun, store.now());
    if store.passed_a_large_turn_over() {
        large.turn_was_passed_over(store.has_fetch_that_does_not_park());
    }
    if hand_out_a_turn && store.has_a_large_turn_to_give() {
        large.no_fetch_came();
    }
}

/// What the writer does next.
enum Next {
    /// A transaction that begins with this.
    Small(Command),
    /// A transaction with large requests.
    Large,
    /// Nothing: no request can come any more.
    Closed,
}

fn next(
    store: &mut Store,
    large: &mut LargeRequests,
    commands: &Receiver<Command>,
    handle: &Handle,
    options: &SqliteOptions,
) -> Next {
    // Longer than a tick of any file system's clock: looks within one would not tell two writes apart.
    const SHORTEST_LOOK: Duration = Duration::from_millis(10);
    loop {
        let until_large = large.due_in(store.now());
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
        let until_rested = until_large.map(|until| until.min(large.idle_limit()));
        let until_wake = match store.wake_at() {
            None => None,
            Some(wake_at) => {
                let now = store.now();
                if now >= wake_at {
                    look(store, large, handle);
                    continue;
                }
                let until = Duration::from_millis(wake_at - now);
                Some(until.min(options.foreign_poll_interval.max(SHORTEST_LOOK)))
            }
        };
        let received = match until_wake.into_iter().chain(until_rested).min() {
            None => commands.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(patience) => commands.recv_timeout(patience),
        };
        match received {
            Ok(command) => return Next::Small(command),
            Err(RecvTimeoutError::Disconnected) => return Next::Closed,
            Err(RecvTimeoutError::Timeout) => {
                let is_rested =
                    until_rested.is_some_and(|rested| until_wake.is_none_or(|wake| rested <= wake));
                if is_rested {
                    large.end_rest();
                } else if store.foreign_commit() {
                    look(store, large, handle);
                }
            }
        }
    }
}

/// Tries the fetches that wait.
fn look(store: &mut Store, large: &mut LargeRequests, handle: &Handle) {
    let begun = store.now();
    let is_turn_owed = begin_small(store, large);
    store.process(Vec::new(), true, handle);
    end_small(store, large, is_turn_owed, begun);
}

/// Waits for another process to let go of the database: often at first, then less so.
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

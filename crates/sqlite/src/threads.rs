//! The threads of a store: start, end, and pauses.

use crate::command::{Command, Handle};
use crate::counters::Counters;
use crate::db::Result;
use crate::readers::Readers;
use crate::url::Location;
use crate::writer::{Writer, WriterLoop};
use crate::{LockPatience, SqliteError, SqliteOptions};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};

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
    /// `None` if reads run on the writer.
    pub(crate) readers: Option<Readers>,
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
            match Writer::open(writer_location, writer_options, writer_counters) {
                Ok(writer) => {
                    // If the caller was dropped, the store closes at once.
                    if opened.send(Ok(())).is_ok() {
                        WriterLoop::new(writer, receiver, handle).run();
                    }
                }
                Err(error) => drop(opened.send(Err(error))),
            }
        })?;
        let mut threads = Self {
            commands,
            call_permits: Arc::new(Semaphore::new(PERMITS)),
            large_call_permits: Arc::new(Semaphore::new(PERMITS)),
            readers: None,
            running: vec![writer],
            jobs: Mutex::default(),
        };
        result.await.map_err(|_| SqliteError::Closed)??;
        if let Location::File { path, .. } = location
            && options.reader_connections > 0
        {
            threads.readers = Some(Readers::start(path, options, counters, &mut threads.running)?);
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
        self.readers = None;
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

pub(crate) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let spawned = thread::Builder::new().name(name.to_string()).spawn(body);
    spawned.map_err(|error| SqliteError::Other(format!("cannot start thread {name}: {error}")))
}

/// The function that waits before the next attempt to lock the database. SQLite takes a function without data, so each patience has
/// its own.
pub(crate) fn busy_handler(patience: LockPatience) -> fn(i32) -> bool {
    match patience {
        LockPatience::Minute => wait_for_lock,
        LockPatience::FiveSeconds => |attempt| wait_at_most(attempt, LockPatience::FiveSeconds),
        #[cfg(feature = "test-hooks")]
        LockPatience::Nothing => |_| false,
    }
}

/// Waits before the next attempt to lock the database, for about a minute in all. Returns whether to try again.
pub(crate) fn wait_for_lock(attempt: i32) -> bool {
    wait_at_most(attempt, LockPatience::Minute)
}

fn wait_at_most(attempt: i32, patience: LockPatience) -> bool {
    pause(pause_of(attempt));
    attempt < attempts(patience)
}

/// The pauses become longer with the number of attempts.
fn pause_of(attempt: i32) -> Duration {
    match attempt {
        0..100 => Duration::from_micros(100),
        100..1_000 => Duration::from_micros(500),
        _ => Duration::from_millis(2),
    }
}

/// The number of attempts whose pauses take as long as the patience.
fn attempts(patience: LockPatience) -> i32 {
    /// The time of the first thousand pauses.
    const SHORT_MS: u128 = 460;
    let long = patience.longest().as_millis().saturating_sub(SHORT_MS) / 2;
    1_000 + i32::try_from(long).unwrap_or(i32::MAX - 1_000)
}

#[allow(clippy::disallowed_methods, reason = "a file lock of another process has no wake-up to wait for")]
pub(crate) fn pause(duration: Duration) {
    thread::sleep(duration);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pauses_before_a_lock_take_as_long_as_the_patience() {
        for patience in [LockPatience::Minute, LockPatience::FiveSeconds] {
            let all: Duration = (0..attempts(patience)).map(pause_of).sum();
            assert_eq!(all, patience.longest(), "{patience:?}");
        }
    }
}

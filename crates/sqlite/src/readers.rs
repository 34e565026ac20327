//! Reads: sent to the threads of the readers and run there, or run on the writer's connection.

use crate::command::CallInfo;
use crate::contain::{Health, run_contained};
use crate::counters::Counters;
use crate::db::{Db, Result};
use crate::executor::{Answer, Executor};
use crate::threads::{PERMITS, Threads, spawn};
use crate::transaction::Transaction;
use crate::writer::Writer;
use crate::{SqliteError, SqliteOptions, SqliteProvider, open};
use std::borrow::Borrow;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::{Semaphore, oneshot};

/// Reads on a connection.
type Read<B, T> = fn(&Db, &B) -> Result<T>;

impl SqliteProvider {
    /// Runs a read on a reader's connection, or on the writer's if the store has no readers.
    pub(crate) async fn read_with<A, B, T>(
        &self,
        operation: &'static str,
        args: A,
        read: Read<B, T>,
    ) -> Answer<T>
    where
        A: Borrow<B> + Send + 'static,
        B: ?Sized + 'static,
        T: Send + 'static,
    {
        let done = match &self.executor {
            Executor::Threaded(Threads { readers: Some(readers), .. }) => {
                readers.read(operation, args, read).await
            }
            Executor::Threaded(_) => {
                let apply =
                    |tx: &mut Transaction<'_>, (args, read): &(A, Read<B, T>)| read(tx.db, args.borrow());
                return self.write(CallInfo::of(operation), (args, read), apply).await;
            }
            Executor::Inline(inline) => inline.writer().read(operation, |db| read(db, args.borrow())),
        };
        done.map_err(|error| error.during(operation))
    }
}

impl Writer {
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
}

/// A read. It gets the connection or the reason why there is none, and returns whether the connection can be used again.
type ReadJob = Box<dyn FnOnce(Result<&Db>) -> Health + Send>;

/// The threads that read, each with a connection of its own.
pub(crate) struct Readers {
    jobs: Sender<ReadJob>,
    permits: Arc<Semaphore>,
}

impl Readers {
    /// Opens the connections and starts the threads, which are added to `running`.
    pub(crate) fn start(
        path: PathBuf,
        options: SqliteOptions,
        counters: Arc<Counters>,
        running: &mut Vec<JoinHandle<()>>,
    ) -> Result<Self> {
        let readers = options.reader_connections;
        let (jobs, receiver) = mpsc::channel::<ReadJob>();
        let receiver = Arc::new(Mutex::new(receiver));
        let file = Arc::new(ReaderFile { path, options, counters });
        for _ in 0..readers {
            let db = file.open()?;
            let (receiver, file) = (Arc::clone(&receiver), Arc::clone(&file));
            running.push(spawn("outlast-reader", move || read_loop(db, &receiver, &file))?);
        }
        Ok(Self { jobs, permits: Arc::new(Semaphore::new(PERMITS)) })
    }

    async fn read<A, B, T>(&self, operation: &'static str, args: A, read: Read<B, T>) -> Result<T>
    where
        A: Borrow<B> + Send + 'static,
        B: ?Sized + 'static,
        T: Send + 'static,
    {
        // The store never closes the semaphore.
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok();
        let (reply, answer) = oneshot::channel();
        let job = move |db: Result<&Db>| {
            let (done, health) = run_contained(operation, || read(db?, args.borrow()));
            drop((reply.send(done), permit));
            health
        };
        // Without readers the job is dropped, and the answer fails.
        drop(self.jobs.send(Box::new(job)));
        answer.await.unwrap_or(Err(SqliteError::Closed))
    }
}

/// The file of the store, as readers open it.
struct ReaderFile {
    path: PathBuf,
    options: SqliteOptions,
    counters: Arc<Counters>,
}

impl ReaderFile {
    fn open(&self) -> Result<Db> {
        open::reader(&self.path, &self.options, &self.counters)
    }

    fn open_again(&self) -> Result<Db> {
        let db = self.open().map_err(SqliteError::while_reopening)?;
        self.counters.reopened.add(1);
        Ok(db)
    }
}

/// Runs reads. A connection on which a read panicked is closed; the next read gets a new connection.
fn read_loop(db: Db, jobs: &Mutex<Receiver<ReadJob>>, file: &ReaderFile) {
    let mut db = Some(db);
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        match db.take().map_or_else(|| file.open_again(), Ok) {
            Ok(opened) => match job(Ok(&opened)) {
                Health::Good => db = Some(opened),
                Health::Panicked => file.counters.panics.add(1),
            },
            Err(error) => drop(job(Err(error))),
        }
    }
}

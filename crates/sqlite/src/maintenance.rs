//! Maintenance: checkpoint, backup, integrity check, dump for people.

use crate::command::{CallInfo, Command};
use crate::contain::run_contained;
use crate::db::{Db, Result, unsigned};
use crate::executor::Executor;
use crate::threads::wait_for_lock;
use crate::url::Location;
use crate::{SqliteError, SqliteProvider, open, sql};
use outlast_provider::ProviderError;
use rusqlite::backup::StepResult;
use std::fmt::Write;
use std::path::Path;
use tokio::sync::oneshot;

impl SqliteProvider {
    /// Moves everything from the write-ahead log into the database file and empties the log. Does nothing for a store
    /// in memory.
    pub async fn checkpoint(&self) -> std::result::Result<(), SqliteError> {
        if self.location == Location::Memory {
            return Ok(());
        }
        self.maintain(checkpoint).await
    }

    /// Writes a consistent copy of the store to a new file, while the store is in use. An existing file is refused.
    pub async fn backup_to(&self, path: impl AsRef<Path>) -> std::result::Result<(), SqliteError> {
        let path = path.as_ref().to_owned();
        self.maintain(move |db| {
            open::create_new_private(&path)?;
            copy(db, &path).inspect_err(|_| {
                // An incomplete copy is of no use.
                let _ = std::fs::remove_file(&path);
            })
        })
        .await
    }

    /// Asks SQLite to check every page and index. An empty list means that SQLite found no damage.
    pub async fn integrity_check(&self) -> std::result::Result<Vec<String>, SqliteError> {
        let found = self.maintain(|db| {
            let mut statement = db.conn.prepare("PRAGMA integrity_check")?;
            let mut found = Vec::new();
            for line in statement.query_map([], |row| row.get::<_, String>(0))? {
                match line.map_err(SqliteError::from) {
                    Ok(line) => found.push(line),
                    // The damage ended the check itself, which is a finding too.
                    Err(SqliteError::Damaged { details }) => found.push(details),
                    Err(error) => return Err(error),
                }
            }
            Ok(found)
        });
        Ok(found.await?.into_iter().filter(|line| line != "ok").collect())
    }

    /// Row counts and the first rows of both queues, for a person to read. Payloads are not shown.
    pub async fn debug_dump(&self) -> String {
        match self.read_with("debug_dump", (), dump).await {
            Ok(text) => text,
            Err(error) => format!("the store could not be read: {error}"),
        }
    }

    /// Returns free pages to the file system, a few per transaction, so that no call waits for long.
    pub(crate) async fn return_space(&self) -> std::result::Result<(), ProviderError> {
        let mut free = u64::MAX;
        loop {
            let left = self.write(CallInfo::of("return_space"), (), |tx, ()| tx.db.shrink()).await?;
            if left == 0 || left >= free {
                break;
            }
            free = left;
        }
        // The file becomes shorter when the log is moved into it. If a reader prevents that, a later checkpoint does it.
        let shortened = self.run_between_transactions(|db| {
            Ok(db.conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?)
        });
        shortened.await.map_err(|error| error.during("return_space"))
    }

    /// Runs maintenance on a connection and a thread of its own, so that other calls continue. A store in memory runs it on its
    /// only connection.
    async fn maintain<T: Send + 'static>(
        &self,
        body: impl FnOnce(&Db) -> Result<T> + Send + 'static,
    ) -> std::result::Result<T, SqliteError> {
        if self.location == Location::Memory {
            return self.run_between_transactions(body).await;
        }
        let location = self.location.again();
        let (options, counters) = (self.options.clone(), self.counters().clone());
        self.run_on_own_thread(move || body(&open::writer(&location, &options, &counters)?)).await
    }

    /// Runs a job on a thread of its own. The job opens its own connection.
    async fn run_on_own_thread<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let Executor::Threaded(threads) = &self.executor else { return run_contained("maintenance", job).0 };
        let (reply, answer) = oneshot::channel();
        threads.run_on_own_thread(move || drop(reply.send(run_contained("maintenance", job).0)))?;
        answer.await.unwrap_or(Err(SqliteError::Closed))
    }

    /// Runs a job on the writer's connection, between two transactions.
    async fn run_between_transactions<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Db) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let job = move |db: &Db| {
            let (done, health) = run_contained("maintenance", || job(db));
            drop(reply.send(done));
            health
        };
        self.submit(Command::BetweenTransactions(Box::new(job)));
        answer.await.unwrap_or(Err(SqliteError::Closed))
    }
}

/// Moves the whole write-ahead log into the database and empties the log.
fn checkpoint(db: &Db) -> Result<()> {
    let mut attempt = 0;
    loop {
        let answer = |row: &rusqlite::Row<'_>| Ok((row.get::<_, bool>(0)?, row.get::<_, i64>(1)?));
        match db.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], answer)? {
            (false, _) => return Ok(()),
            // -1: another checkpoint is running. SQLite does not wait for its end.
            (true, -1) if wait_for_lock(attempt) => attempt += 1,
            (true, _) => {
                let details = "a reader or another checkpoint keeps the write-ahead log in use".to_string();
                return Err(SqliteError::Busy { details });
            }
        }
    }
}

/// Copies all pages in one step, so that the copy is consistent.
fn copy(db: &Db, path: &Path) -> Result<()> {
    let mut copy = rusqlite::Connection::open(path)?;
    // The copy is written with a journal. With less than EXTRA a power cut can undo the removal of the journal, and a journal that
    // exists again empties the copy.
    copy.pragma_update(None, "synchronous", "EXTRA")?;
    let step = rusqlite::backup::Backup::new(&db.conn, &mut copy)?.step(-1)?;
    if step != StepResult::Done {
        return Err(SqliteError::Busy { details: format!("the backup ended early ({step:?})") });
    }
    copy.close().map_err(|(_, error)| SqliteError::from(error))
}

/// Row counts and the first rows of both queues.
fn dump(db: &Db, (): &()) -> Result<String> {
    let mut text = String::new();
    for (table, count) in
        db.all(sql::ROW_COUNTS, [], |row| Ok((row.get::<_, String>(0)?, unsigned(row, 1)?)))?
    {
        // A write to a String cannot fail.
        let _ = writeln!(text, "{table}: {count} rows");
    }
    for (name, sql) in [("orchestrator_queue", sql::DUMP_MESSAGES), ("worker_queue", sql::DUMP_ACTIVITIES)] {
        let _ = writeln!(text, "first rows of {name}:");
        for line in db.all(sql, [], |row| row.get::<_, String>(0))? {
            let _ = writeln!(text, "  {line}");
        }
    }
    Ok(text)
}

//! Looking after a store: checkpoint, backup, check, dump.

use crate::db::{Db, Result, unsigned};
use crate::provider::About;
use crate::threads::wait_for_lock;
use crate::url::Location;
use crate::{SqliteError, SqliteProvider, open, sql};
use outlast_provider::ProviderError;
use rusqlite::backup::StepResult;
use std::fmt::Write;
use std::path::Path;

impl SqliteProvider {
    /// Moves everything from the write-ahead log into the database file and empties the log. Does nothing for a store
    /// in memory.
    pub async fn checkpoint(&self) -> std::result::Result<(), SqliteError> {
        if self.location == Location::Memory {
            return Ok(());
        }
        self.maintain(empty_log).await
    }

    /// Writes a consistent copy of the store to a new file, while the store is in use. An existing file is refused.
    pub async fn backup_to(&self, path: impl AsRef<Path>) -> std::result::Result<(), SqliteError> {
        let path = path.as_ref().to_owned();
        self.maintain(move |db| {
            open::create_new_private(&path)?;
            copy(db, &path).inspect_err(|_| {
                // What was created here and did not become a copy is of no use to anybody.
                let _ = std::fs::remove_file(&path);
            })
        })
        .await
    }

    /// Asks SQLite to check every page and index. An empty list means that nothing is wrong.
    pub async fn integrity_check(&self) -> std::result::Result<Vec<String>, SqliteError> {
        let found = self.maintain(|db| {
            let mut statement = db.conn.prepare("PRAGMA integrity_check")?;
            let mut found = Vec::new();
            for line in statement.query_map([], |row| row.get::<_, String>(0))? {
                match line.map_err(SqliteError::from) {
                    Ok(line) => found.push(line),
                    // So damaged that the check itself gives up: that is a finding too.
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
        match self.read_with("debug_dump", dump).await {
            Ok(text) => text,
            Err(error) => format!("the store could not be read: {error}"),
        }
    }

    /// Returns freed pages to the file system, a few at a time so that nobody waits for long.
    pub(crate) async fn return_space(&self) -> std::result::Result<(), ProviderError> {
        let mut free = u64::MAX;
        loop {
            let left = self.write(About::of("return_space"), |cx| cx.db.shrink()).await?;
            if left == 0 || left >= free {
                break;
            }
            free = left;
        }
        // The file becomes shorter when the log is moved into it. If somebody is in the way, that is done later.
        let shortened =
            self.between(|db| Ok(db.conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?));
        shortened.await.map_err(|error| error.during("return_space"))
    }

    /// Runs maintenance on a connection and a thread of its own, so that everybody else goes on; on the only
    /// connection for a store in memory.
    async fn maintain<T: Send + 'static>(
        &self,
        body: impl FnOnce(&Db) -> Result<T> + Send + 'static,
    ) -> std::result::Result<T, SqliteError> {
        if self.location == Location::Memory {
            return self.between(body).await;
        }
        let location = self.location.again();
        let (options, counters) = (self.options.clone(), self.counters().clone());
        self.apart(move || body(&open::writer(&location, &options, &counters)?)).await
    }
}

fn empty_log(db: &Db) -> Result<()> {
    let mut attempt = 0;
    loop {
        let answer = |row: &rusqlite::Row<'_>| Ok((row.get::<_, bool>(0)?, row.get::<_, i64>(1)?));
        match db.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], answer)? {
            (false, _) => return Ok(()),
            // Nothing was even counted: somebody else empties the log just now. SQLite does not wait for that by itself.
            (true, -1) if wait_for_lock(attempt) => attempt += 1,
            (true, _) => {
                let details = "somebody reads from the log for too long, or empties it".to_string();
                return Err(SqliteError::Busy { details });
            }
        }
    }
}

/// Copies all pages in one step, so that the copy is of one moment.
fn copy(db: &Db, path: &Path) -> Result<()> {
    let mut copy = rusqlite::Connection::open(path)?;
    // A new file is written under a journal. With less than EXTRA its removal can be undone by a power cut, and a journal that
    // comes back empties the copy.
    copy.pragma_update(None, "synchronous", "EXTRA")?;
    let step = rusqlite::backup::Backup::new(&db.conn, &mut copy)?.step(-1)?;
    if step != StepResult::Done {
        return Err(SqliteError::Busy { details: format!("the backup ended early ({step:?})") });
    }
    copy.close().map_err(|(_, error)| SqliteError::from(error))
}

fn dump(db: &Db) -> Result<String> {
    let mut text = String::new();
    for (table, count) in
        db.all(sql::ROW_COUNTS, [], |row| Ok((row.get::<_, String>(0)?, unsigned(row, 1)?)))?
    {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{table}: {count} rows");
    }
    for (name, sql) in [("orchestrator_queue", sql::DUMP_MESSAGES), ("worker_queue", sql::DUMP_WORK)] {
        let _ = writeln!(text, "first rows of {name}:");
        for line in db.all(sql, [], |row| row.get::<_, String>(0))? {
            let _ = writeln!(text, "  {line}");
        }
    }
    Ok(text)
}

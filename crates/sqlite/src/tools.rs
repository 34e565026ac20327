//! Looking after a store: checkpoint, backup, check, dump.

use crate::db::{Db, Result, unsigned};
use crate::url::Location;
use crate::{SqliteError, SqliteProvider, open, sql};
use outlast_provider::ProviderError;
use std::fmt::Write;
use std::path::Path;

impl SqliteProvider {
    /// Moves everything from the write-ahead log into the database file and empties the log. Does nothing for a store
    /// in memory.
    pub async fn checkpoint(&self) -> std::result::Result<(), SqliteError> {
        self.maintain(|db| {
            db.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
            Ok(())
        })
        .await
    }

    /// Writes a consistent copy of the store to a new file, while the store is in use. An existing file is refused.
    pub async fn backup_to(&self, path: impl AsRef<Path>) -> std::result::Result<(), SqliteError> {
        let path = path.as_ref().to_owned();
        self.maintain(move |db| {
            open::create_new_private(&path)?;
            let mut copy = rusqlite::Connection::open(&path)?;
            let backup = rusqlite::backup::Backup::new(&db.conn, &mut copy)?;
            // All pages in one step: the copy is of one moment.
            backup.step(-1)?;
            drop(backup);
            copy.close().map_err(|(_, error)| SqliteError::from(error))
        })
        .await
    }

    /// Asks SQLite to check every page and index. An empty list means that nothing is wrong.
    pub async fn integrity_check(&self) -> std::result::Result<Vec<String>, SqliteError> {
        let found = self.maintain(|db| {
            let mut statement = db.conn.prepare("PRAGMA integrity_check")?;
            let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
            Ok(rows.collect::<rusqlite::Result<Vec<_>>>()?)
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
            let left = self.write("return_space", |cx| cx.db.shrink()).await?;
            if left == 0 || left >= free {
                return Ok(());
            }
            free = left;
        }
    }

    /// Runs maintenance on a connection of its own, so that the writer goes on; on the only one for a store in
    /// memory.
    async fn maintain<T: Send + 'static>(
        &self,
        mut body: impl FnMut(&Db) -> Result<T> + Send + 'static,
    ) -> std::result::Result<T, SqliteError> {
        let location = self.location.clone();
        let (options, counters) = (self.options.clone(), self.counters().clone());
        let work = move |db: &Db| match &location {
            Location::Memory => body(db),
            Location::File { .. } => body(&open::writer(&location, &options, &counters)?),
        };
        let done = self.read_with("maintenance", work).await;
        done.map_err(|error| SqliteError::Other(error.message))
    }
}

fn dump(db: &Db) -> Result<String> {
    let mut text = String::new();
    for table in db.all(sql::TABLE_NAMES, [], |row| row.get::<_, String>(0))? {
        let count = db.conn.query_row(&format!("{} {table}", sql::COUNT_PREFIX.trim()), [], |row| unsigned(row, 0))?;
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

//! The facts that `outlast doctor` reads from a store: settings of the file, leases that have ended, and rows that no call
//! reaches.

use crate::command::CallInfo;
use crate::db::{Db, Result, column, unsigned};
use crate::transaction::Transaction;
use crate::url::Location;
use crate::{SqliteProvider, sql};
use outlast_provider::ProviderError;
use std::path::PathBuf;

/// A lease that ended this long ago was not taken over.
const ENDED_MS: u64 = 10_000;

/// The result of [`SqliteProvider::examine`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SqliteExamination {
    /// The file; `None` for a store in memory.
    pub path: Option<PathBuf>,
    /// The size of the database, without the write-ahead log.
    pub bytes: u64,
    /// The setting `journal_mode`; a store file has `wal`.
    pub journal_mode: String,
    /// The setting `auto_vacuum`; a store file has 2, which is incremental.
    pub auto_vacuum: u64,
    /// Turns whose lease ended some time ago, and that no process has taken over.
    pub ended_turn_leases: u64,
    /// Activities whose lease ended some time ago, and that no process has taken over.
    pub ended_activity_leases: u64,
    /// Instances with a message that is due for the given time, and that no process has taken.
    pub overdue_turns: u64,
    /// The number of rows without an instance, by table.
    pub orphans: Vec<(String, u64)>,
}

impl SqliteProvider {
    /// Reads settings of the file, and counts leases that have ended, turns that are due for `overdue_ms`, and rows without an
    /// instance. It reads whole tables.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn examine(&self, overdue_ms: u64) -> std::result::Result<SqliteExamination, ProviderError> {
        let now = self.options.clock.now_ms();
        let since = [now.saturating_sub(ENDED_MS), now.saturating_sub(overdue_ms)];
        let seen = self.read_with("examine", since, examine).await?;
        let path = match &self.location {
            Location::File { path, .. } => Some(path.clone()),
            Location::Memory => None,
        };
        Ok(SqliteExamination { path, ..seen })
    }

    /// Removes the rows that [`SqliteExamination::orphans`] counts, in one transaction, and returns their number.
    ///
    /// Cancellation safety: a removal that was begun is finished.
    pub async fn remove_orphans(&self) -> std::result::Result<u64, ProviderError> {
        self.write(CallInfo::of("remove_orphans"), (), remove_orphans).await
    }
}

fn examine(db: &Db, [ended, due]: &[u64; 2]) -> Result<SqliteExamination> {
    let number = |pragma: &str| db.conn.pragma_query_value(None, pragma, |row| unsigned(row, 0));
    let late = db.one(sql::COUNT_LATE, [column(*ended), column(*due)], |row| {
        Ok((unsigned(row, 0)?, unsigned(row, 1)?, unsigned(row, 2)?))
    })?;
    let (ended_turn_leases, ended_activity_leases, overdue_turns) = late.unwrap_or_default();
    Ok(SqliteExamination {
        path: None,
        bytes: number("page_count")?.saturating_mul(number("page_size")?),
        journal_mode: db.conn.pragma_query_value(None, "journal_mode", |row| row.get(0))?,
        auto_vacuum: number("auto_vacuum")?,
        ended_turn_leases,
        ended_activity_leases,
        overdue_turns,
        orphans: db.all(sql::COUNT_ORPHANS, [], |row| Ok((row.get(0)?, unsigned(row, 1)?)))?,
    })
}

fn remove_orphans(tx: &mut Transaction<'_>, (): &()) -> Result<u64> {
    let mut removed = 0;
    for statement in [
        sql::DELETE_ORPHAN_TEXTS,
        sql::DELETE_ORPHAN_VALUES,
        sql::DELETE_ORPHAN_CHANGES,
        sql::DELETE_ORPHAN_ACTIVITIES,
    ] {
        removed += tx.db.run(statement, [])? as u64;
    }
    Ok(removed)
}

//! SQLite: one file that all processes share.

use super::Known;
use outlast::providers::sqlite::{SqliteOptions, SqliteProvider};
use rusqlite::{Connection, OpenFlags};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const FILE: &str = "store.db";
const INSTANCES_AND_STARTS: &str = include_str!("../sql/instances_and_starts.sql");
const ENDED: &str = include_str!("../sql/ended_instances.sql");
const LEFTOVERS: &str = include_str!("../sql/leftovers.sql");

#[derive(Clone)]
pub(super) struct Tools {
    pub(super) provider: Arc<SqliteProvider>,
    path: PathBuf,
}

impl Tools {
    pub(super) async fn open(disk: &Path) -> Result<Self, String> {
        let path = disk.join(FILE);
        let url = format!("sqlite:{}", path.display());
        // A small log is checkpointed often, so that kills also happen during checkpoints.
        let options = SqliteOptions { wal_limit_bytes: 1 << 20, ..SqliteOptions::default() };
        for tries in 1.. {
            match SqliteProvider::new(&url, Some(options.clone())).await {
                Ok(provider) => return Ok(Self { provider: Arc::new(provider), path }),
                // A full disk is cleared and failing syncs end; a minute is enough.
                Err(error) if error.is_retryable() && tries < 600 => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                Err(error) => return Err(format!("the store could not be opened: {error}")),
            }
        }
        Err("the store could not be opened".to_string())
    }

    pub(super) async fn backup(&self, to: &Path, known: Known) -> Result<Vec<String>, String> {
        let copy = to.join("copy.db");
        remove(&copy);
        self.provider.backup_to(&copy).await.map_err(|error| format!("backup: {error}"))?;
        blocking(move || {
            let connection = read_only(&copy)?;
            let mut problems = integrity(&connection)?;
            let present = strings(&connection, INSTANCES_AND_STARTS)?;
            problems
                .extend(known.started.difference(&present).map(|id| format!("'{id}' is not in the copy")));
            let ended = strings(&connection, ENDED)?;
            problems
                .extend(known.ended.difference(&ended).map(|id| format!("'{id}' has not ended in the copy")));
            drop(connection);
            if problems.is_empty() {
                remove(&copy);
            }
            Ok(problems)
        })
        .await
    }

    pub(super) async fn damage(&self) -> Result<Vec<String>, String> {
        let path = self.path.clone();
        blocking(move || integrity(&read_only(&path)?)).await
    }

    pub(super) async fn leftovers(&self) -> Result<Vec<String>, String> {
        let path = self.path.clone();
        blocking(move || Ok(strings(&read_only(&path)?, LEFTOVERS)?.into_iter().collect())).await
    }
}

async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> rusqlite::Result<T> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(read).await.map_err(|error| error.to_string())?;
    done.map_err(|error| format!("the store's file: {error}"))
}

/// Removes a database with its log and index. Missing files are ignored.
fn remove(path: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
    }
    let _ = std::fs::remove_dir_all(format!("{}-owners", path.display()));
}

fn read_only(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(Duration::from_secs(60))?;
    Ok(connection)
}

/// Checks every page and index, and every reference between tables.
fn integrity(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut problems = Vec::new();
    connection.pragma_query(None, "integrity_check", |row| {
        problems.push(row.get::<_, String>(0)?);
        Ok(())
    })?;
    problems.retain(|line| line != "ok");
    connection.pragma_query(None, "foreign_key_check", |row| {
        problems.push(format!("a row of {} has a dangling reference", row.get::<_, String>(0)?));
        Ok(())
    })?;
    Ok(problems)
}

fn strings(connection: &Connection, sql: &str) -> rusqlite::Result<BTreeSet<String>> {
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| row.get(0))?;
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast::Client;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_backup_without_acknowledged_instances_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let tools = Tools::open(folder.path()).await.unwrap();
        let client = Client::new(tools.provider.clone());
        client.start_orchestration("here", "chain", "").await.unwrap();
        let ids = |ids: &[&str]| ids.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        let known = |started: &[&str], ended: &[&str]| Known { started: ids(started), ended: ids(ended) };
        assert_eq!(tools.backup(folder.path(), known(&["here"], &[])).await, Ok(vec![]));
        let problems = tools.backup(folder.path(), known(&["here", "gone"], &["here"])).await.unwrap();
        assert_eq!(problems, ["'gone' is not in the copy", "'here' has not ended in the copy"]);
        let leftovers = tools.leftovers().await.unwrap();
        assert_eq!(leftovers, ["message for 'here'"]);
        assert_eq!(tools.damage().await, Ok(vec![]));
    }
}

//! The PostgreSQL server of the benchmarks: one server for all runs, and a new database for each run.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::postgres::{Cluster, Options};
use crate::process;

/// How often the server is asked whether all connections are closed.
const ATTEMPTS: usize = 200;

/// The folder of the stores: below `target`, because a temporary folder in memory would make a sync free.
pub fn base() -> PathBuf {
    match std::env::var_os("OUTLAST_BENCH_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => process::target().join("compare"),
    }
}

/// A server for benchmarks.
pub struct Server(Cluster);

impl Server {
    /// Starts the server on a disk, and without TLS because not every peer uses TLS.
    pub fn start() -> Result<Self, String> {
        let within = vec![base(), PathBuf::from("/var/tmp")];
        Cluster::start(&Options { tls: false, within, ..Options::default() }).map(Self)
    }

    /// Creates an empty database for one run.
    pub fn database(&self) -> Result<Database<'_>, String> {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        let name = format!("run_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.0.tool("createdb", &[&name], "postgres")?;
        Ok(Database { server: &self.0, name })
    }
}

/// A database that is removed when the value is dropped.
pub struct Database<'a> {
    server: &'a Cluster,
    name: String,
}

impl Database<'_> {
    /// The variables that tell a benchmark the URL, and the process whose processor time the benchmark counts.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let mut variables = vec![("OUTLAST_BENCH_POSTGRES_URL", self.server.url(&self.name))];
        variables.extend(self.server.process().map(|id| ("OUTLAST_BENCH_POSTGRES_PID", id.to_string())));
        variables
    }

    /// Adds the server's counters to the figures of a run that has ended.
    pub fn count(&self, answer: &mut Value) -> Result<(), String> {
        let sql = include_str!("sql/activity_of_the_run.sql");
        for _ in 0..ATTEMPTS {
            let row = self.server.tool("psql", &["-AtqX", "-c", sql], &self.name)?;
            let numbers: Vec<u64> = row.trim().split('|').filter_map(|part| part.parse().ok()).collect();
            match numbers[..] {
                [0, deadlocks, rollbacks, transactions] => {
                    let counted =
                        [("deadlocks", deadlocks), ("rollbacks", rollbacks), ("transactions", transactions)];
                    for (metric, value) in counted {
                        answer["figures"][metric] = json!({"value": value, "unit": "in a run"});
                    }
                    return Ok(());
                }
                [_, _, _, _] => {}
                _ => return Err(format!("psql printed {row:?}")),
            }
        }
        Err("the benchmark's connections are still open".to_string())
    }
}

impl Drop for Database<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.server.tool("dropdb", &["--force", &self.name], "postgres") {
            eprintln!("the database {} could not be removed: {error}", self.name);
        }
    }
}

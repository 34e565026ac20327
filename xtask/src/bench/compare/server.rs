//! The PostgreSQL of the comparison: one server for all, and a database for each run.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::contestant;
use crate::postgres::{Cluster, Options};

/// How often the server is asked whether all have left.
const PATIENCE: usize = 200;

pub(in crate::bench) struct Server(Cluster);

impl Server {
    pub(in crate::bench) fn start() -> Result<Self, String> {
        // Not in memory, where a sync costs nothing; and without TLS, which not all clients would choose.
        let within = vec![contestant::base(), PathBuf::from("/var/tmp")];
        Cluster::start(&Options { tls: false, pooled: false, within }).map(Self)
    }

    /// A fresh database for one run.
    pub(in crate::bench) fn database(&self) -> Result<Database<'_>, String> {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        let name = format!("run_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.0.tool("createdb", &[&name], "postgres")?;
        Ok(Database { server: &self.0, name })
    }
}

/// Removed at the end.
pub(in crate::bench) struct Database<'a> {
    server: &'a Cluster,
    name: String,
}

impl Database<'_> {
    /// Where a program finds it, and whose processor time it counts.
    pub(in crate::bench) fn variables(&self) -> Vec<(&'static str, String)> {
        let mut variables = vec![("OUTLAST_BENCH_POSTGRES_URL", self.server.url(&self.name))];
        variables.extend(self.server.process().map(|id| ("OUTLAST_BENCH_POSTGRES_PID", id.to_string())));
        variables
    }

    /// Adds what the server has counted to the figures of a run that has ended.
    pub(in crate::bench) fn count(&self, answer: &mut Value) -> Result<(), String> {
        let sql = include_str!("sql/activity_of_the_run.sql");
        for _ in 0..PATIENCE {
            let said = self.server.tool("psql", &["-AtqX", "-c", sql], &self.name)?;
            let numbers: Vec<u64> = said.trim().split('|').filter_map(|part| part.parse().ok()).collect();
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
                _ => return Err(format!("psql answered {said:?}")),
            }
        }
        Err("connections of the program are still open".to_string())
    }
}

impl Drop for Database<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.server.tool("dropdb", &["--force", &self.name], "postgres") {
            eprintln!("the database {} could not be removed: {error}", self.name);
        }
    }
}

//! The effect ledger: a separate database of the effects of activities. It shares no code and no file with the store,
//! so the store can be compared with it.

use crate::job::EffectRequest;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const SCHEMA: &str = include_str!("sql/ledger_schema.sql");
const ADD_ATTEMPT: &str = include_str!("sql/add_attempt.sql");
const FIND_EFFECT: &str = include_str!("sql/find_effect.sql");
const COUNT_EFFECTS: &str = include_str!("sql/count_effects.sql");
const ADD_EFFECT: &str = include_str!("sql/add_effect.sql");
const ALL_EFFECTS: &str = include_str!("sql/all_effects.sql");
const HISTOGRAM: &str = include_str!("sql/attempts_histogram.sql");
const WITHOUT_ATTEMPT: &str = include_str!("sql/effects_without_attempt.sql");

/// A stopped process may hold the lock for some time.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub(crate) struct EffectLedger(Arc<Mutex<Connection>>);

/// The effects of each job: labels with their numbers.
pub(crate) type Effects = BTreeMap<String, Vec<(String, u64)>>;

impl EffectLedger {
    pub(crate) fn open(folder: &Path) -> Result<Self, String> {
        let open = || {
            let connection = Connection::open(folder.join("ledger.db"))?;
            connection.busy_timeout(LOCK_TIMEOUT)?;
            connection.pragma_update(None, "journal_mode", "wal")?;
            // Only processes crash here, the machine does not.
            connection.pragma_update(None, "synchronous", "normal")?;
            connection.execute_batch(SCHEMA)?;
            Ok(connection)
        };
        open().map(|connection| Self(Arc::new(Mutex::new(connection)))).map_err(with_context)
    }

    /// Records that a body runs, and its effect unless the same key already has one. Returns the number of the effect
    /// among those with its label.
    pub(crate) async fn perform(
        &self,
        key: &str,
        worker: &str,
        request: &EffectRequest,
        keep: bool,
    ) -> Result<u64, String> {
        let (ledger, key, worker, request) =
            (self.clone(), key.to_string(), worker.to_string(), request.clone());
        let performed = tokio::task::spawn_blocking(move || {
            ledger.with(|transaction| {
                transaction.execute(ADD_ATTEMPT, params![key, worker])?;
                if let Some(number) = transaction.query_row(FIND_EFFECT, [&key], number).optional()? {
                    return Ok(number);
                }
                let next = transaction.query_row(COUNT_EFFECTS, [&request.job, &request.label], number)?;
                if keep {
                    let stored = i64::try_from(next).unwrap_or(i64::MAX);
                    transaction.execute(ADD_EFFECT, params![key, request.job, request.label, stored])?;
                }
                Ok(next)
            })
        });
        performed.await.map_err(|error| error.to_string())?
    }

    fn with<T>(&self, run: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>) -> Result<T, String> {
        let mut connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let run = || {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = run(&transaction)?;
            transaction.commit()?;
            Ok(done)
        };
        run().map_err(with_context)
    }

    pub(crate) fn effects(&self) -> Result<Effects, String> {
        self.with(|transaction| {
            let mut effects = Effects::new();
            let mut statement = transaction.prepare(ALL_EFFECTS)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                effects
                    .entry(row.get(0)?)
                    .or_default()
                    .push((row.get(1)?, row.get::<_, i64>(2)?.unsigned_abs()));
            }
            Ok(effects)
        })
    }

    /// The number of activities for each number of runs.
    pub(crate) fn histogram(&self) -> Result<BTreeMap<u64, u64>, String> {
        self.with(|transaction| {
            let mut statement = transaction.prepare(HISTOGRAM)?;
            let rows =
                statement.query_map([], |row| Ok((number(row)?, row.get::<_, i64>(1)?.unsigned_abs())))?;
            rows.collect()
        })
    }

    /// Number of effects without a recorded run.
    pub(crate) fn without_attempt(&self) -> Result<u64, String> {
        self.with(|transaction| transaction.query_row(WITHOUT_ATTEMPT, [], number))
    }
}

fn number(row: &rusqlite::Row<'_>) -> rusqlite::Result<u64> {
    row.get::<_, i64>(0).map(i64::unsigned_abs)
}

fn with_context(error: rusqlite::Error) -> String {
    format!("the effect ledger: {error}")
}

/// Describes differences between the expected and the recorded effects of a job.
pub(crate) fn difference(wanted: &BTreeSet<(String, u64)>, found: &[(String, u64)]) -> Vec<String> {
    let mut problems = Vec::new();
    let once: BTreeSet<&(String, u64)> = found.iter().collect();
    problems.extend(
        wanted.iter().filter(|effect| !once.contains(effect)).map(|effect| format!("no effect {effect:?}")),
    );
    problems.extend(
        once.iter()
            .filter(|effect| !wanted.contains(effect))
            .map(|effect| format!("unexpected effect {effect:?}")),
    );
    if once.len() < found.len() {
        problems.push(format!("an effect twice: {found:?}"));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(label: &str) -> EffectRequest {
        EffectRequest { job: "j".to_string(), label: label.to_string(), refusals: 0, takes_ms: 0 }
    }

    #[tokio::test]
    async fn a_key_has_one_effect() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = EffectLedger::open(folder.path()).unwrap();
        for (key, number) in [("k1", 0), ("k1", 0), ("k2", 1), ("k1", 0)] {
            assert_eq!(ledger.perform(key, "w", &request("a"), true).await, Ok(number));
        }
        let effects = vec![("a".to_string(), 0), ("a".to_string(), 1)];
        assert_eq!(ledger.effects(), Ok(Effects::from([("j".to_string(), effects)])));
        assert_eq!(ledger.histogram(), Ok(BTreeMap::from([(1, 1), (3, 1)])));
        assert_eq!(ledger.without_attempt(), Ok(0));
        ledger.0.lock().unwrap().execute("DELETE FROM attempts WHERE key = 'k1'", []).unwrap();
        assert_eq!(ledger.without_attempt(), Ok(1));
    }

    #[test]
    fn missing_added_and_repeated_effects_are_found() {
        let effect = |label: &str, number| (label.to_string(), number);
        let wanted = BTreeSet::from([effect("a", 0), effect("b", 0)]);
        assert!(difference(&wanted, &[effect("b", 0), effect("a", 0)]).is_empty());
        assert_eq!(difference(&wanted, &[effect("a", 0)]), ["no effect (\"b\", 0)"]);
        // One body ran under two keys.
        assert_eq!(
            difference(&wanted, &[effect("a", 0), effect("b", 0), effect("b", 1)]),
            ["unexpected effect (\"b\", 1)"]
        );
        assert_eq!(difference(&wanted, &[effect("a", 0), effect("a", 0), effect("b", 0)]).len(), 1);
    }
}

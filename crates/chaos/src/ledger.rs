//! What activities really did, in a database of its own: it shares nothing with the store, so that it can testify
//! about it.

use crate::job::Deed;
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

/// A process that is stopped may hold the lock for a while.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub(crate) struct Ledger(Arc<Mutex<Connection>>);

/// What stands in the ledger about one job: labels, each with its number.
pub(crate) type Effects = BTreeMap<String, Vec<(String, u64)>>;

impl Ledger {
    pub(crate) fn open(folder: &Path) -> Result<Self, String> {
        let open = || {
            let connection = Connection::open(folder.join("ledger.db"))?;
            connection.busy_timeout(PATIENCE)?;
            connection.pragma_update(None, "journal_mode", "wal")?;
            // Processes die here, the machine does not.
            connection.pragma_update(None, "synchronous", "normal")?;
            connection.execute_batch(SCHEMA)?;
            Ok(connection)
        };
        open().map(|connection| Self(Arc::new(Mutex::new(connection)))).map_err(told)
    }

    /// Notes that a body runs, and does its deed unless that was done under this key before. Says as the how-manieth of
    /// its label.
    pub(crate) async fn perform(
        &self,
        key: &str,
        worker: &str,
        deed: &Deed,
        keep: bool,
    ) -> Result<u64, String> {
        let (ledger, key, worker, deed) = (self.clone(), key.to_string(), worker.to_string(), deed.clone());
        let performed = tokio::task::spawn_blocking(move || {
            ledger.with(|transaction| {
                transaction.execute(ADD_ATTEMPT, params![key, worker])?;
                if let Some(number) = transaction.query_row(FIND_EFFECT, [&key], number).optional()? {
                    return Ok(number);
                }
                let next = transaction.query_row(COUNT_EFFECTS, [&deed.job, &deed.label], number)?;
                if keep {
                    let stored = i64::try_from(next).unwrap_or(i64::MAX);
                    transaction.execute(ADD_EFFECT, params![key, deed.job, deed.label, stored])?;
                }
                Ok(next)
            })
        });
        performed.await.map_err(|error| error.to_string())?
    }

    fn with<T>(&self, act: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>) -> Result<T, String> {
        let mut connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let act = || {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = act(&transaction)?;
            transaction.commit()?;
            Ok(done)
        };
        act().map_err(told)
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

    /// How many activities ran once, twice, and so on.
    pub(crate) fn histogram(&self) -> Result<BTreeMap<u64, u64>, String> {
        self.with(|transaction| {
            let mut statement = transaction.prepare(HISTOGRAM)?;
            let rows =
                statement.query_map([], |row| Ok((number(row)?, row.get::<_, i64>(1)?.unsigned_abs())))?;
            rows.collect()
        })
    }

    /// Effects that no body can have left.
    pub(crate) fn without_attempt(&self) -> Result<u64, String> {
        self.with(|transaction| transaction.query_row(WITHOUT_ATTEMPT, [], number))
    }
}

fn number(row: &rusqlite::Row<'_>) -> rusqlite::Result<u64> {
    row.get::<_, i64>(0).map(i64::unsigned_abs)
}

fn told(error: rusqlite::Error) -> String {
    format!("the ledger: {error}")
}

/// What differs between a job's effects and the ledger.
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

    fn deed(label: &str) -> Deed {
        Deed { job: "j".to_string(), label: label.to_string(), refusals: 0, takes_ms: 0 }
    }

    #[tokio::test]
    async fn a_key_is_good_for_one_effect() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(folder.path()).unwrap();
        for (key, number) in [("k1", 0), ("k1", 0), ("k2", 1), ("k1", 0)] {
            assert_eq!(ledger.perform(key, "w", &deed("a"), true).await, Ok(number));
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
        // A body that ran under two keys.
        assert_eq!(
            difference(&wanted, &[effect("a", 0), effect("b", 0), effect("b", 1)]),
            ["unexpected effect (\"b\", 1)"]
        );
        assert_eq!(difference(&wanted, &[effect("a", 0), effect("a", 0), effect("b", 0)]).len(), 1);
    }
}

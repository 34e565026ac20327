//! Deadlines: the store gives up a silent server, and the server undoes the open transaction of a silent client.

use crate::PostgresError;
use crate::connect::Closer;
use crate::db::{Db, Param, Result, cell};
use std::fmt::Write as _;
use std::future::Future;
use std::time::Duration;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

/// Waits for an answer of the server, at most `limit`. If no answer comes, closes this connection and all idle connections, which
/// use the same network path and may be dead too.
pub(crate) async fn within<T, E: Into<PostgresError>>(
    db: &Db,
    closer: &Closer,
    limit: Duration,
    asked: impl Future<Output = std::result::Result<T, E>>,
) -> Result<T> {
    match tokio::time::timeout(limit, asked).await {
        Ok(answered) => {
            let answered = answered.map_err(Into::into);
            if matches!(answered, Err(PostgresError::ReadOnly { .. })) {
                // Another host may be the primary by now: the next connection searches for the primary.
                closer.close();
                db.close_idle();
            }
            answered
        }
        Err(_) => {
            db.counters.silent.add(1);
            closer.close_and_cancel();
            db.close_idle();
            Err(PostgresError::Silent { limit })
        }
    }
}

/// Limits that the server enforces, all below the deadline of the client. Each transaction sets the limits: a session behind a
/// PgBouncer belongs to many clients, and PgBouncer refuses start-up options.
const NAMES: [&str; 3] = ["lock_timeout", "idle_in_transaction_session_timeout", "statement_timeout"];

/// Statements that begin transactions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BeginStatements {
    /// For the transaction of a lane.
    pub(crate) lane: String,
    /// The settings alone, for transactions that have begun: removals and migrations.
    pub(crate) long: String,
    /// For a call that is a transaction of its own.
    pub(crate) own: OwnLimits,
}

/// Limits that a call sets for itself, in milliseconds, because no `BEGIN` sets them. `None`: the server's limit stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnLimits {
    /// For the wait for one lock.
    pub(crate) lock_ms: Option<i64>,
    /// For the whole call.
    pub(crate) statement_ms: Option<i64>,
}

impl OwnLimits {
    pub(crate) const NONE: Self = Self { lock_ms: None, statement_ms: None };
}

/// Overrides the default of the server: every statement must see the commits before it.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

impl BeginStatements {
    /// The statements without limits.
    pub(crate) fn without_limits() -> Self {
        Self { lane: BEGIN.to_string(), long: String::new(), own: OwnLimits::NONE }
    }

    /// The statements with limits below these deadlines. A shorter limit that the server or the role has in force stays;
    /// `keeps_statement` leaves `statement_timeout` as it is.
    pub(crate) fn within(
        deadline: Duration,
        long: Duration,
        in_force_ms: [u64; 3],
        keeps_statement: bool,
    ) -> Self {
        let limit = |place: usize, wanted: Duration| {
            let ms = i64::try_from(wanted.as_millis()).unwrap_or(i64::MAX).clamp(1, i64::from(i32::MAX));
            let in_force = in_force_ms[place];
            let is_kept = (in_force > 0 && in_force <= ms.unsigned_abs()) || (place == 2 && keeps_statement);
            (!is_kept).then_some(ms)
        };
        let settings = |wanted: [Duration; 3]| {
            let mut all = String::new();
            for (place, (name, wanted)) in NAMES.iter().zip(wanted).enumerate() {
                if let Some(ms) = limit(place, wanted) {
                    let _ = write!(all, "; SET LOCAL {name} = {ms}");
                }
            }
            all
        };
        // A client that is alive never leaves a transaction idle for longer than a round trip.
        let idle = deadline / 2;
        let (lock, statement) = (deadline / 2, deadline / 4 * 3);
        let lane = settings([lock, idle, statement]);
        let long = settings([long / 2, idle, long / 4 * 3]);
        let own = OwnLimits { lock_ms: limit(0, lock), statement_ms: limit(2, statement) };
        Self { lane: format!("{BEGIN}{lane}"), long: long.trim_start_matches("; ").to_string(), own }
    }
}

/// The limits that the server has in force for this role, in milliseconds; 0 for none.
pub(crate) async fn limits_in_force(db: &Db, client: &Client) -> Result<[u64; 3]> {
    let names: &[&str] = &NAMES;
    let wanted: [Param<'_>; 1] = [(&names, Type::TEXT_ARRAY)];
    let mut limits = [0; 3];
    for row in client.query_typed(&db.statements.limits_in_force, &wanted).await? {
        let name: &str = cell(&row, "name")?;
        if let Some(place) = NAMES.iter().position(|known| *known == name) {
            limits[place] = u64::try_from(cell::<i64>(&row, "setting")?).unwrap_or(0);
        }
    }
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECONDS: fn(u64) -> Duration = Duration::from_secs;

    #[test]
    fn limits_are_below_the_deadline_and_shorter_ones_stay() {
        let all = BeginStatements::within(SECONDS(10), SECONDS(300), [0, 0, 0], false);
        assert_eq!(
            all.lane,
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL lock_timeout = 5000; \
             SET LOCAL idle_in_transaction_session_timeout = 5000; SET LOCAL statement_timeout = 7500"
        );
        assert_eq!(
            all.long,
            "SET LOCAL lock_timeout = 150000; SET LOCAL idle_in_transaction_session_timeout = 5000; \
             SET LOCAL statement_timeout = 225000"
        );
        assert_eq!(all.own, OwnLimits { lock_ms: Some(5_000), statement_ms: Some(7_500) });
        let shorter = BeginStatements::within(SECONDS(10), SECONDS(300), [1_000, 60_000, 7_500], false);
        assert_eq!(shorter.own, OwnLimits::NONE);
        assert_eq!(
            shorter.lane,
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL idle_in_transaction_session_timeout = 5000"
        );
        let kept = BeginStatements::within(SECONDS(10), SECONDS(300), [0, 0, 60_000], true);
        assert!(!kept.lane.contains("statement_timeout"), "{}", kept.lane);
        let tiny = BeginStatements::within(Duration::from_micros(1), SECONDS(1), [0, 0, 0], false);
        assert!(tiny.lane.contains("lock_timeout = 1;"), "0 would mean no limit: {}", tiny.lane);
    }
}

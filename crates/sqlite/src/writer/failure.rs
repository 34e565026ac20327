//! Transactions that fail: the calls are applied again one by one, callers get the error, and polls are delayed.

use super::Writer;
use crate::SqliteError;
use crate::command::{Applied, Call};
use crate::db::{Db, Result};
use crate::park::FetchState;
use crate::transaction::Wakeups;
use outlast_model::defect::{self, Defect};
use outlast_provider_kit::queue::PerQueue;

/// How long parked fetches are not polled after a failure.
pub(super) const BACKOFF_MS: u64 = 200;

impl Writer {
    /// Discards the times that this process derived from the tables, because the tables may have changed.
    pub(super) fn invalidate(&mut self) {
        self.fetch_state = FetchState { large_turns: self.fetch_state.large_turns, ..FetchState::default() };
        self.wake_at = 0;
    }

    /// A call or a fetch failed after it had written something: rolls back, and applies each call in a savepoint. No fetch is
    /// served. Returns whether a call or a fetch panicked: then the transaction must not be committed.
    pub(super) fn apply_again(
        &mut self,
        db: &Db,
        calls: &mut [Box<dyn Call>],
        wakeups: &mut Wakeups,
    ) -> Result<bool> {
        self.parked.turns.return_served();
        self.parked.activities.return_served();
        self.invalidate();
        if self.has_panicked(calls) {
            return Ok(true);
        }
        self.counters.batches_by_savepoints.add(1);
        if !db.conn.is_autocommit() {
            db.control("ROLLBACK")?;
        }
        db.control("BEGIN IMMEDIATE")?;
        *wakeups = Wakeups::of(PerQueue::NONE);
        self.apply_each(db, calls, wakeups)?;
        Ok(self.has_panicked(calls))
    }

    fn has_panicked(&self, calls: &[Box<dyn Call>]) -> bool {
        calls.iter().any(|call| call.has_panicked())
            || self.parked.turns.has_panicked()
            || self.parked.activities.has_panicked()
    }

    /// Applies every call in its own savepoint, so that a call that fails undoes no other call.
    fn apply_each(&self, db: &Db, calls: &mut [Box<dyn Call>], wakeups: &mut Wakeups) -> Result<()> {
        for call in calls {
            db.control("SAVEPOINT call")?;
            let applied = call.apply(&mut self.tx(db, wakeups));
            if applied == Applied::Panicked {
                // The caller of this method applies the other calls again, on a new connection.
                return Ok(());
            }
            if applied != Applied::Done {
                if db.conn.is_autocommit() {
                    // SQLite itself rolled the transaction back, and with it the calls before this one.
                    return Err(SqliteError::Io { details: "the transaction was rolled back".to_string() });
                }
                db.control("ROLLBACK TO call")?;
            }
            db.control("RELEASE call")?;
        }
        Ok(())
    }

    /// Answers calls and fetches with the error of their transaction.
    pub(super) fn fail(&mut self, calls: Vec<Box<dyn Call>>, fault: &SqliteError) -> bool {
        self.back_off();
        let fault_of_calls = Some(fault).filter(|_| !defect::is_on(Defect::FailedCommitAcknowledged));
        calls.into_iter().for_each(|call| call.answer(fault_of_calls));
        self.connection.drop_jobs();
        self.parked.turns.fail(fault);
        self.parked.activities.fail(fault);
        false
    }

    /// A panic outside of a transaction was contained.
    pub(crate) fn on_panic(&mut self) {
        self.counters.panics.add(1);
        self.back_off();
    }

    /// Delays the next poll of the parked fetches, so that they do not constantly poll a full or missing disk.
    fn back_off(&mut self) {
        self.invalidate();
        self.wake_at = self.now().saturating_add(BACKOFF_MS);
    }
}

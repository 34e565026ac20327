//! Transactions that failed: which requests are sent again alone, and which callers get the error.
//!
//! | the transaction | its requests | its fetches |
//! |---|---|---|
//! | was undone by an error of the server | each request is sent alone, so that a wrong request fails no other request; a request that was alone is sent again after a conflict | parked as they were; without requests beside them, new ones fail |
//! | was undone because the server cannot be reached | fail, or are sent later (`resend.rs`) | new ones fail, the others are parked |
//! | may be stored: its answer was lost | fail, or are sent later (`resend.rs`) | new ones fail, the others are parked; leases that were taken are searched for |
//! | panicked | each is sent alone; the one that panics again fails, and so does a client request that may be stored | parked as they were if a request panicked, else they fail |

use crate::PostgresError;
use crate::ask::{FETCH_ACTIVITIES, FETCH_TURN};
use crate::batch::{Batch, instance_of};
use crate::db::Result;
use crate::in_doubt::LeasesInDoubt;
use crate::lanes::{start_giving_back, transact};
use crate::leased::{ActivityFetch, TurnFetch};
use crate::reply::{Replied, reply_to_callers};
use crate::resend::{give_up, resend_or_fail_unknown};
use crate::shared::Shared;
use crate::transaction::{Done, Transaction};
use outlast_provider_kit::CommitPlan;
use outlast_provider_kit::plan::duplicate_event;
use outlast_provider_kit::queue::PerQueue;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::error::SqlState;

/// The failure of a transaction.
pub(crate) enum Failed {
    /// No request of the transaction is stored.
    Undone(PostgresError),
    /// The connection was lost or given up, so it is unknown whether the transaction is stored.
    Unknown(PostgresError, LeasesInDoubt),
}

impl Failed {
    pub(crate) fn cause(&self) -> &PostgresError {
        let (Self::Undone(cause) | Self::Unknown(cause, _)) = self;
        cause
    }
}

/// Handles a transaction that failed. If the transaction was undone, each request is sent alone, so that a wrong request fails no
/// other request.
pub(crate) async fn fail(shared: &Arc<Shared>, transaction: Transaction, failed: Failed) {
    let counters = &shared.db.counters;
    match &failed {
        Failed::Undone(PostgresError::Conflict { .. }) => counters.conflicts.add(1),
        Failed::Unknown(..) => counters.lost.add(1),
        Failed::Undone(PostgresError::Disconnected { .. } | PostgresError::Silent { .. }) => {
            counters.lost.add(1)
        }
        Failed::Undone(_) => {}
    }
    let cause = failed.cause();
    tracing::debug!(target: "duroxide::providers::postgres", error = %cause, "a transaction failed");
    let Transaction { batch, polls, hand_offs, puts_off, .. } = transaction;
    // The transaction may be stored. If its requests are sent again, the store recognises them, and notifies no process then.
    shared.put_off(puts_off);
    let had_polls = !polls.turns.is_empty() || !polls.activities.is_empty();
    let (is_lost, is_panic) = (cause.is_away(), matches!(cause, PostgresError::Panicked { .. }));
    let fetches = PerQueue {
        turns: hand_offs.turns.fetches.into_iter().chain(polls.turns.into_fetches()).collect(),
        activities: hand_offs.activities.fetches.into_iter().chain(polls.activities.into_fetches()).collect(),
    };
    if is_panic {
        return Box::pin(fail_panicked(shared, batch, fetches, failed)).await;
    }
    shared.update(|scheduler, _| scheduler.on_polls_lost(fetches));
    match failed {
        Failed::Undone(cause) if !is_lost && (batch.len() > 1 || (batch.len() == 1 && had_polls)) => {
            drop(cause);
            counters.alone.add(batch.len());
            counters.retried(&batch);
            for alone in batch.split() {
                Box::pin(alone_until_done(shared, alone)).await;
            }
        }
        Failed::Undone(cause) if !is_lost && batch.len() == 1 => alone_after(shared, batch, cause).await,
        Failed::Undone(cause) => {
            give_up(shared, batch, &cause);
            server_away(shared, &cause);
        }
        Failed::Unknown(cause, leases) => {
            resend_or_fail_unknown(shared, batch, &cause);
            server_away(shared, &cause);
            start_giving_back(shared, leases);
        }
    }
    shared.wake_lane();
}

/// Pauses the polls for parked fetches, and fails the new fetches with the cause.
fn server_away(shared: &Shared, cause: &PostgresError) {
    let new = shared.update(|scheduler, now| scheduler.on_server_away(now));
    fail_fetches(new, cause);
}

/// Sends the cause to the callers of the fetches.
fn fail_fetches(fetches: PerQueue<Vec<TurnFetch>, Vec<ActivityFetch>>, cause: &PostgresError) {
    for fetch in fetches.turns {
        drop(fetch.caller.send(Err(cause.classified(FETCH_TURN))));
    }
    for fetch in fetches.activities {
        drop(fetch.caller.send(Err(cause.classified(FETCH_ACTIVITIES))));
    }
}

/// A transaction that panicked. The caller of the request that panics again when it is sent alone gets the error; if none does,
/// the callers of the fetches get it. A client request that may be stored is not sent again.
async fn fail_panicked(
    shared: &Arc<Shared>,
    batch: Batch,
    fetches: PerQueue<Vec<TurnFetch>, Vec<ActivityFetch>>,
    failed: Failed,
) {
    let (cause, is_unknown) = match failed {
        Failed::Undone(cause) => (cause, false),
        Failed::Unknown(cause, leases) => {
            start_giving_back(shared, leases);
            (cause, true)
        }
    };
    let is_alone = batch.len() == 1 && fetches.turns.is_empty() && fetches.activities.is_empty();
    let mut is_told = false;
    match is_alone {
        true => {
            is_told = true;
            give_up(shared, batch, &cause);
        }
        false => {
            shared.db.counters.alone.add(batch.len());
            for mut alone in batch.split() {
                match is_unknown && alone.has_client_requests() {
                    true => {
                        let details = format!("another call of its transaction failed: {cause}");
                        resend_or_fail_unknown(shared, alone, &PostgresError::Disconnected { details });
                    }
                    false => {
                        if is_unknown {
                            alone.mark_unknown();
                        }
                        is_told |= Box::pin(alone_until_done(shared, alone)).await;
                    }
                }
            }
        }
    }
    match is_told {
        true => shared.update(|scheduler, _| scheduler.on_polls_lost(fetches)),
        false => fail_fetches(fetches, &cause),
    }
    shared.wake_lane();
}

/// The number of attempts at a transaction that conflicts with another one.
const TRIES: u32 = 5;

/// Sends a batch of one request. Returns whether it panicked.
async fn alone_until_done(shared: &Arc<Shared>, batch: Batch) -> bool {
    let transaction = Transaction::of_batch(batch);
    match transact(shared, &transaction).await {
        Ok((done, _)) => {
            finish_alone(shared, transaction, &done);
            false
        }
        Err(Failed::Undone(cause) | Failed::Unknown(cause, _))
            if matches!(cause, PostgresError::Panicked { .. }) =>
        {
            give_up(shared, transaction.batch, &cause);
            true
        }
        Err(Failed::Undone(cause)) => {
            alone_after(shared, transaction.batch, cause).await;
            false
        }
        Err(Failed::Unknown(cause, _)) => {
            resend_or_fail_unknown(shared, transaction.batch, &cause);
            false
        }
    }
}

/// A batch of one request that has failed once.
async fn alone_after(shared: &Arc<Shared>, mut batch: Batch, mut cause: PostgresError) {
    for tries in 1..TRIES {
        if !matches!(cause, PostgresError::Conflict { .. }) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(u64::from(tries) * 5)).await;
        shared.db.counters.retried(&batch);
        let transaction = Transaction::of_batch(batch);
        match transact(shared, &transaction).await {
            Ok((done, _)) => return finish_alone(shared, transaction, &done),
            Err(Failed::Undone(again)) => (batch, cause) = (transaction.batch, again),
            Err(Failed::Unknown(again, _)) => {
                return resend_or_fail_unknown(shared, transaction.batch, &again);
            }
        }
    }
    let cause = explained(shared, &batch, cause).await;
    give_up(shared, batch, &cause);
}

/// Replies to the caller of a request that was sent alone. No poll of this process has seen its commit.
fn finish_alone(shared: &Arc<Shared>, transaction: Transaction, done: &Done) {
    let activities = transaction.frees.activities;
    let Replied { visible_in_ms, .. } = reply_to_callers(shared, transaction.batch, done);
    shared.update(|scheduler, now| {
        if let Some(ms) = visible_in_ms {
            scheduler.on_due_in(ms, now);
        }
        scheduler.on_remote_change(PerQueue { turns: true, activities });
    });
}

/// The error of a turn that stores an event twice names the event.
async fn explained(shared: &Shared, batch: &Batch, cause: PostgresError) -> PostgresError {
    let is_duplicate =
        matches!(&cause, PostgresError::Other { code, .. } if code == SqlState::UNIQUE_VIOLATION.code());
    let plan = batch.commits.first().and_then(|commit| Some((instance_of(commit), commit.plan.as_ref()?)));
    let (true, Some((instance, plan))) = (is_duplicate, plan) else { return cause };
    match existing_event(shared, instance, plan).await {
        Ok(Some(event)) => PostgresError::Refused(duplicate_event(event)),
        Ok(None) => cause,
        Err(error) => error,
    }
}

async fn existing_event(shared: &Shared, instance: &str, plan: &CommitPlan) -> Result<Option<u64>> {
    let ids: Vec<u64> = plan.history.iter().map(|row| row.event_id).collect();
    crate::history::existing(&shared.db, instance, plan.execution_id, &ids).await
}

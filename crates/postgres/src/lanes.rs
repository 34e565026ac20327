//! Lanes: tasks that each take the next transaction from the scheduler, send it, and hand out its results.
//!
//! While one lane waits for the server, requests gather for the next: that is how concurrent calls share a transaction. A lone
//! call is held back for some milliseconds at most, and only while a large transaction is on its way.

use crate::PostgresError;
use crate::batch::{Batch, instance_of};
use crate::contain::contained;
use crate::db::Result;
use crate::in_doubt::{LeasesInDoubt, give_back};
use crate::leased::{ActivityFetch, Deliveries, LeaseSender, Leases, TurnFetch};
use crate::parked::Fetch;
use crate::queue::PerQueue;
use crate::reply::{Replied, reply_to_callers};
use crate::resend::{give_up, resend_or_fail_unknown};
use crate::scheduler::LaneDone;
use crate::serve::{handed_off_activities, handed_off_turns, polled_activities, polled_turns};
use crate::shared::Shared;
use crate::steps::Step;
use crate::transact::{Done, Failed, transact};
use crate::transaction::Transaction;
use outlast_provider_kit::CommitPlan;
use outlast_provider_kit::plan::duplicate_event;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::error::SqlState;

/// The operations that errors of fetches name.
const FETCH_TURN: &str = "fetch_orchestration_item";
const FETCH_ACTIVITIES: &str = "fetch_work_item";

/// Starts the lanes of a store. They end with it.
pub(crate) fn start(shared: &Arc<Shared>) {
    for _ in 0..shared.config.lanes_in_force() {
        tokio::spawn(run(Arc::clone(shared)));
    }
    if shared.config.has_lane_for_arrivals() {
        tokio::spawn(run_arrivals(Arc::clone(shared)));
    }
    tokio::spawn(crate::outcomes::run(Arc::clone(shared)));
}

async fn run(shared: Arc<Shared>) {
    while let Some(transaction) = next(&shared, || shared.next()).await {
        let (load, large) = (transaction.load, transaction.large);
        process_contained(&shared, *transaction).await;
        shared.update(|scheduler, now| scheduler.on_lane_free(load, large, now));
    }
}

/// The lane for arrivals: clients do not wait for the other lanes while these are in use.
async fn run_arrivals(shared: Arc<Shared>) {
    while let Some(transaction) = next(&shared, || shared.next_of_arrivals()).await {
        let large = transaction.large;
        process_contained(&shared, *transaction).await;
        if let Some(large) = large {
            shared.update(|scheduler, now| scheduler.on_arrivals_lane_free(large, now));
        }
    }
    // It may be the last lane of a closed store, and leases of its hand-offs may have been given back.
    run(shared).await;
}

/// The next transaction. A panic while it is put together drops the requests that were taken for it, whose callers get an error.
async fn next<N: Future<Output = Option<Box<Transaction>>>>(
    shared: &Shared,
    next: impl Fn() -> N,
) -> Option<Box<Transaction>> {
    loop {
        match contained(next()).await {
            Ok(transaction) => return transaction,
            Err(panic) => shared.panicked("taking requests", &panic),
        }
        tokio::task::yield_now().await;
    }
}

async fn process_contained(shared: &Arc<Shared>, transaction: Transaction) {
    if let Err(panic) = contained(process(shared, transaction)).await {
        // Callers whose replies were dropped by the panic get an error.
        shared.panicked("answering requests", &panic);
        shared.on_remote_change(PerQueue::BOTH);
    }
}

async fn process(shared: &Arc<Shared>, transaction: Transaction) {
    let outcome = transact(shared, &transaction).await;
    let polls = PerQueue {
        turns: !transaction.polls.turns.is_empty(),
        activities: !transaction.polls.activities.is_empty(),
    };
    shared.update(|scheduler, _| scheduler.on_polls_ended(polls));
    match outcome {
        Ok((done, leases)) => finish(shared, transaction, &done, Undelivered { shared, leases }),
        // Boxed: it is seldom needed, and would make the task of every lane larger.
        Err(failed) => Box::pin(fail(shared, transaction, failed)).await,
    }
}

/// Hands out the results of a committed transaction: replies to callers, leases to fetches.
fn finish(shared: &Arc<Shared>, transaction: Transaction, done: &Done, leases: Undelivered<'_>) {
    let Transaction { batch, polls, hand_offs, frees, asks_next_due, .. } = transaction;
    shared.db.counters.calls.add(batch.len());
    shared.fault(Step::Answer, || batch.all_subjects());
    let ends_turns = batch.ends_turns();
    let (mut turns, mut activities) = (Deliveries::default(), Deliveries::default());
    let hand_offs = PerQueue {
        turns: handed_off_turns(shared, hand_offs.turns, &batch, done.handed_off_turns(), &mut turns),
        activities: handed_off_activities(
            shared,
            hand_offs.activities,
            &batch,
            done.handed_off_activities(),
            &mut activities,
        ),
    };
    let Replied { has_more_messages, visible_in_ms } = reply_to_callers(shared, batch, done);
    shared.fault(Step::Serve, Vec::new);
    let changes = PerQueue { turns: polls.turns.changes, activities: polls.activities.changes };
    let polls = PerQueue {
        turns: polled_turns(shared, polls.turns, &done.turns, &mut turns),
        activities: polled_activities(shared, polls.activities, &done.activities, &mut activities),
    };
    // From here on the deliveries guard each lease until its caller has it.
    leases.are_delivered();
    let done = LaneDone {
        polls,
        hand_offs,
        changes,
        frees,
        visible_in_ms,
        has_more_messages,
        ends_turns,
        asked_next_due: asks_next_due,
    };
    let unserved = shared.update(|scheduler, now| scheduler.on_lane_done(done, now));
    turns.send();
    activities.send();
    unserved.turns.into_iter().for_each(reply_nothing);
    unserved.activities.into_iter().for_each(reply_nothing);
}

/// Tells the caller of a fetch that there is nothing to lease.
fn reply_nothing<A, L: Leases>(fetch: Fetch<A, LeaseSender<L>>) {
    drop(fetch.caller.send(Ok(None)));
}

/// Leases that a transaction has taken. If a panic keeps them from their fetches, they are given back.
struct Undelivered<'a> {
    shared: &'a Arc<Shared>,
    leases: LeasesInDoubt,
}

impl Undelivered<'_> {
    fn are_delivered(mut self) {
        self.leases.secrets.clear();
    }
}

impl Drop for Undelivered<'_> {
    fn drop(&mut self) {
        if !self.leases.secrets.is_empty() && std::thread::panicking() {
            tokio::spawn(give_back(Arc::clone(self.shared), std::mem::take(&mut self.leases)));
        }
    }
}

/// A transaction that failed. If it was undone, each request is sent alone, so that a wrong one harms no other.
async fn fail(shared: &Arc<Shared>, transaction: Transaction, failed: Failed) {
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
    let Transaction { batch, polls, hand_offs, .. } = transaction;
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
            find_leases(shared, leases);
        }
    }
    shared.wake_lane();
}

/// Pauses the polls for parked fetches, and tells the callers of new fetches why.
fn server_away(shared: &Shared, cause: &PostgresError) {
    let new = shared.update(|scheduler, now| scheduler.on_server_away(now));
    fail_fetches(new, cause);
}

fn fail_fetches(fetches: PerQueue<Vec<TurnFetch>, Vec<ActivityFetch>>, cause: &PostgresError) {
    for fetch in fetches.turns {
        drop(fetch.caller.send(Err(cause.classified(FETCH_TURN))));
    }
    for fetch in fetches.activities {
        drop(fetch.caller.send(Err(cause.classified(FETCH_ACTIVITIES))));
    }
}

/// A transaction that panicked. The caller of the request that panics again when it is sent alone gets the error; if none does,
/// the callers of the fetches get it. An arrival that may be stored is not sent again.
async fn fail_panicked(
    shared: &Arc<Shared>,
    batch: Batch,
    fetches: PerQueue<Vec<TurnFetch>, Vec<ActivityFetch>>,
    failed: Failed,
) {
    let (cause, is_unknown) = match failed {
        Failed::Undone(cause) => (cause, false),
        Failed::Unknown(cause, leases) => {
            find_leases(shared, leases);
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
                match is_unknown && alone.arrives() {
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

/// Looks for leases that a lost transaction may have taken, and gives them back.
fn find_leases(shared: &Arc<Shared>, leases: LeasesInDoubt) {
    if !leases.secrets.is_empty() {
        tokio::spawn(give_back(Arc::clone(shared), leases));
    }
}

/// How often a transaction is tried that conflicts with another one.
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

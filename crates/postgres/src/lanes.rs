//! Lanes: tasks that each take all that waits, and do it in one transaction and one round trip.
//!
//! While one lane waits for the server, requests gather for the next: that is how concurrent calls share a transaction. A lone
//! call is held back for some milliseconds at most, and only while a large transaction is on its way.

use crate::PostgresError;
use crate::answer::answer;
use crate::batch::{Batch, instance_of};
use crate::db::Result;
use crate::forsaken::give_back;
use crate::handover;
use crate::job::{Job, Others};
use crate::request::{Renew, Request};
use crate::serving::{serve_turns, serve_work};
use crate::shared::Shared;
use crate::transact::{Failed, transact};
use outlast_provider_kit::CommitPlan;
use outlast_provider_kit::plan::duplicate_event;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::error::SqlState;

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
    while let Some(job) = shared.next().await {
        let load = job.load;
        process(&shared, job).await;
        shared.is_back(load);
    }
}

/// Clients do not wait for a lane that is on its way: what they bring is done at once, and the lanes have more to share.
async fn run_arrivals(shared: Arc<Shared>) {
    while let Some(job) = shared.next_arrivals().await {
        process(&shared, job).await;
    }
    // It may be the last one that is there, and what it handed over may have come back.
    run(shared).await;
}

async fn process(shared: &Arc<Shared>, job: Job) {
    let outcome = transact(shared, &job).await;
    {
        let mut state = shared.state();
        state.turns.looking -= usize::from(!job.turns.is_empty());
        state.work.looking -= usize::from(!job.work.is_empty());
    }
    match outcome {
        Ok(done) => {
            let counters = &shared.db.counters;
            counters.calls.add(job.batch.len());
            let Job {
                batch,
                turns,
                work,
                handed_turns,
                handed_work,
                frees,
                turns_news,
                work_news,
                asks_next,
                ..
            } = job;
            let ends_leases = batch.ends_turns();
            let [commits, messages, starts] = done.told();
            let given_turns = handover::given_turns(&handed_turns, &batch, [messages, starts]);
            let given_work = handover::given_work(&handed_work, &batch, commits);
            let more = answer(shared, batch, &done);
            // What was freed may have been missed by a look that was on its way in another lane; not by our own.
            shared.freed(frees.0, frees.1);
            if handover::serve(shared, handed_turns.waiters, given_turns, |state| &mut state.turns) {
                // Nobody was told of it: it may be for a version that runs elsewhere.
                shared.pass_on(Some(0), None);
            }
            handover::serve(shared, handed_work.waiters, given_work, |state| &mut state.work);
            serve_turns(shared, turns, turns_news + u64::from(frees.0), asks_next, done.turns);
            serve_work(shared, work, work_news + u64::from(frees.1), asks_next, done.work);
            shared.wake();
            if more && !frees.0 {
                // Messages came while a turn was leased, or an outcome found no turn: nobody has looked for them.
                shared.tell(true, false);
            }
            if ends_leases {
                // What came while this was on its way found a lease, and may have come too late to be seen by it.
                shared.look_after(turns_news + u64::from(frees.0));
            }
        }
        Err(failed) => fail(shared, job, failed).await,
    }
}

/// A batch that failed. What was undone is done again, each request alone, so that one that is wrong hurts no other.
async fn fail(shared: &Arc<Shared>, job: Job, failed: Failed) {
    let counters = &shared.db.counters;
    match &failed {
        Failed::Undone(PostgresError::Conflict { .. }) => counters.conflicts.add(1),
        Failed::Unknown(..) | Failed::Undone(PostgresError::Disconnected { .. }) => counters.lost.add(1),
        Failed::Undone(_) => {}
    }
    let cause = failed.cause();
    tracing::debug!(target: "duroxide::providers::postgres", error = %cause, "a transaction failed");
    let Job { batch, turns, work, handed_turns, handed_work, .. } = job;
    let had_fetches = !turns.is_empty() || !work.is_empty();
    let is_lost = matches!(
        cause,
        PostgresError::Disconnected { .. } | PostgresError::Busy { .. } | PostgresError::Closed
    );
    {
        let mut state = shared.state();
        // They have not been tried. If they cannot be, they are told.
        for waiter in handed_turns.waiters.into_iter().chain(turns.into_iter().flatten()).rev() {
            state.turns.waiters.push_front(waiter);
        }
        for waiter in handed_work.waiters.into_iter().chain(work.into_iter().flatten()).rev() {
            state.work.waiters.push_front(waiter);
        }
        state.turns.look = true;
        state.work.look = true;
    }
    match failed {
        Failed::Undone(cause) if !is_lost && (batch.len() > 1 || (batch.len() == 1 && had_fetches)) => {
            drop(cause);
            counters.alone.add(batch.len());
            counters.retried(&batch);
            for alone in batch.split() {
                alone_until_done(shared, alone).await;
            }
        }
        Failed::Undone(cause) if !is_lost && batch.len() == 1 => alone_after(shared, batch, cause).await,
        Failed::Undone(cause) => {
            give_up(shared, batch, &cause);
            shared.rest(&cause);
        }
        Failed::Unknown(cause, forsaken) => {
            give_up(shared, batch, &cause);
            shared.rest(&cause);
            if !forsaken.secrets.is_empty() {
                tokio::spawn(give_back(Arc::clone(shared), forsaken));
            }
        }
    }
    shared.wake();
}

/// How often a transaction is done again that another was in the way of.
const TRIES: u32 = 5;

async fn alone_until_done(shared: &Arc<Shared>, batch: Batch) {
    let job = without_fetches(batch);
    match transact(shared, &job).await {
        Ok(done) => {
            answer(shared, job.batch, &done);
            shared.tell(true, job.frees.1);
        }
        Err(Failed::Undone(cause)) => alone_after(shared, job.batch, cause).await,
        Err(Failed::Unknown(cause, _)) => give_up(shared, job.batch, &cause),
    }
}

/// A single request that failed once.
async fn alone_after(shared: &Arc<Shared>, mut batch: Batch, mut cause: PostgresError) {
    for tries in 1..TRIES {
        if !matches!(cause, PostgresError::Conflict { .. }) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(u64::from(tries) * 5)).await;
        shared.db.counters.retried(&batch);
        let job = without_fetches(batch);
        match transact(shared, &job).await {
            Ok(done) => {
                answer(shared, job.batch, &done);
                return shared.tell(true, job.frees.1);
            }
            Err(Failed::Undone(again)) => (batch, cause) = (job.batch, again),
            Err(Failed::Unknown(again, _)) => return give_up(shared, job.batch, &again),
        }
    }
    let cause = explained(shared, &batch, cause).await;
    give_up(shared, batch, &cause);
}

fn without_fetches(batch: Batch) -> Job {
    let job = Job::without_fetches(batch, Others::default());
    let (turns, work) = job.frees;
    Job { others: Others { turns, work, watches: true }, ..job }
}

/// A turn with an event that exists is told which.
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

/// How often a renewal is tried when the server cannot be reached: whoever asks takes any error for the end of its lease.
const RENEWAL_TRIES: u32 = 10;

/// Tells everybody what went wrong, except renewals, which are tried again for a while.
fn give_up(shared: &Arc<Shared>, batch: Batch, cause: &PostgresError) {
    for commit in batch.commits {
        commit.reply.send(Err(cause));
    }
    for message in batch.messages {
        message.reply.send(Err(cause));
    }
    for work in batch.work {
        work.reply.send(Err(cause));
    }
    for start in batch.starts {
        start.reply.send(Err(cause));
    }
    for abandon in batch.abandons {
        abandon.reply.send(Err(cause));
    }
    for renew in batch.renewals {
        match cause.is_retryable() && renew.tries < RENEWAL_TRIES && !shared.is_closed() {
            true => drop(tokio::spawn(renew_later(Arc::clone(shared), renew))),
            false => renew.reply.send(Err(cause)),
        }
    }
}

async fn renew_later(shared: Arc<Shared>, mut renew: Renew) {
    renew.tries += 1;
    tokio::time::sleep(Duration::from_millis(50 * u64::from(renew.tries))).await;
    shared.submit(Request::Renew(renew));
}

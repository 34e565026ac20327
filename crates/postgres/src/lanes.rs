//! Lanes: tasks that each take all that waits, and do it in one transaction and one round trip.
//!
//! While one lane waits for the server, requests gather for the next: that is how concurrent calls share a transaction. A lone
//! call is held back for some milliseconds at most, and only while a large transaction is on its way.

use crate::PostgresError;
use crate::batch::{Batch, instance_of};
use crate::contain::contained;
use crate::db::Result;
use crate::hand_off;
use crate::in_doubt::{LeasesInDoubt, give_back};
use crate::reply::reply_to_callers;
use crate::resend::{doubt, give_up};
use crate::serve::{serve_activities, serve_turns};
use crate::shared::Shared;
use crate::steps::Step;
use crate::transact::{Failed, transact};
use crate::transaction::{Others, Transaction};
use crate::waiting::{ActivityAsk, TurnAsk, Waiter};
use outlast_provider_kit::CommitPlan;
use outlast_provider_kit::plan::duplicate_event;
use std::future::Future;
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
    while let Some(job) = next(&shared, || shared.next()).await {
        let load = job.load;
        process_contained(&shared, job).await;
        shared.is_back(load);
    }
}

/// Clients do not wait for a lane that is on its way: what they bring is done at once, and the lanes have more to share.
async fn run_arrivals(shared: Arc<Shared>) {
    while let Some(job) = next(&shared, || shared.next_arrivals()).await {
        process_contained(&shared, job).await;
    }
    // It may be the last one that is there, and what it handed over may have come back.
    run(shared).await;
}

/// The next job. A panic while it is put together drops the requests that were taken for it, whose callers are told.
async fn next<N: Future<Output = Option<Transaction>>>(
    shared: &Shared,
    job: impl Fn() -> N,
) -> Option<Transaction> {
    loop {
        match contained(job()).await {
            Ok(job) => return job,
            Err(panic) => shared.panicked("taking requests", &panic),
        }
        tokio::task::yield_now().await;
    }
}

async fn process_contained(shared: &Arc<Shared>, job: Transaction) {
    if let Err(panic) = contained(process(shared, job)).await {
        // Callers whose answers were dropped by it are told so.
        shared.panicked("answering requests", &panic);
        shared.tell(true, true);
    }
}

async fn process(shared: &Arc<Shared>, job: Transaction) {
    let outcome = transact(shared, &job).await;
    {
        let mut state = shared.state();
        state.turns.looking -= usize::from(!job.turns.is_empty());
        state.activities.looking -= usize::from(!job.activities.is_empty());
    }
    match outcome {
        Ok((done, leases)) => {
            let leases = Undelivered { shared, leases };
            let counters = &shared.db.counters;
            counters.calls.add(job.batch.len());
            shared.fault(Step::Answer, || job.batch.all_subjects());
            let Transaction {
                batch,
                turns,
                activities,
                handed_turns,
                handed_activities,
                frees,
                turns_news,
                activities_news,
                asks_next,
                ..
            } = job;
            let ends_leases = batch.ends_turns();
            let [commits, messages, starts] = done.told();
            let given_turns = hand_off::given_turns(&handed_turns, &batch, [messages, starts]);
            let given_activities = hand_off::given_activities(&handed_activities, &batch, commits);
            let more = reply_to_callers(shared, batch, &done);
            // What was freed may have been missed by a look that was on its way in another lane; not by our own.
            shared.freed(frees.0, frees.1);
            shared.fault(Step::Serve, Vec::new);
            // From here on each lease is guarded until its fetch has it.
            leases.are_delivered();
            if hand_off::serve(shared, handed_turns.waiters, given_turns, |state| &mut state.turns) {
                // Nobody was told of it: it may be for a version that runs elsewhere.
                shared.pass_on(Some(0), None);
            }
            hand_off::serve(shared, handed_activities.waiters, given_activities, |state| {
                &mut state.activities
            });
            serve_turns(shared, turns, turns_news + u64::from(frees.0), asks_next, done.turns);
            serve_activities(
                shared,
                activities,
                activities_news + u64::from(frees.1),
                asks_next,
                done.activities,
            );
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
        // Boxed: it is seldom needed, and would make the task of every lane larger.
        Err(failed) => Box::pin(fail(shared, job, failed)).await,
    }
}

/// Leases that a transaction has taken. If a panic keeps them from the fetches that they are for, they are given back.
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

/// A batch that failed. What was undone is done again, each request alone, so that one that is wrong hurts no other.
async fn fail(shared: &Arc<Shared>, job: Transaction, failed: Failed) {
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
    let Transaction { batch, turns, activities, handed_turns, handed_activities, .. } = job;
    let had_fetches = !turns.is_empty() || !activities.is_empty();
    let (is_lost, is_panic) = (cause.is_away(), matches!(cause, PostgresError::Panicked { .. }));
    let fetches = Fetches {
        turns: handed_turns.waiters.into_iter().chain(turns.into_iter().flatten()).collect(),
        activities: handed_activities.waiters.into_iter().chain(activities.into_iter().flatten()).collect(),
    };
    if is_panic {
        return Box::pin(fail_panicked(shared, batch, fetches, failed)).await;
    }
    // They have not been tried. If they cannot be, they are told.
    fetches.wait_again(shared);
    match failed {
        Failed::Undone(cause) if !is_lost && (batch.len() > 1 || (batch.len() == 1 && had_fetches)) => {
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
            shared.rest(&cause);
        }
        Failed::Unknown(cause, in_doubt) => {
            doubt(shared, batch, &cause);
            shared.rest(&cause);
            look_for(shared, in_doubt);
        }
    }
    shared.wake();
}

/// A batch that panicked. The request that panics again when it is done alone is told, and the fetches are if none does. What
/// came from outside and may be stored is not done again.
async fn fail_panicked(shared: &Arc<Shared>, batch: Batch, fetches: Fetches, failed: Failed) {
    let (cause, is_unknown) = match failed {
        Failed::Undone(cause) => (cause, false),
        Failed::Unknown(cause, in_doubt) => {
            look_for(shared, in_doubt);
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
                        doubt(shared, alone, &PostgresError::Disconnected { details });
                    }
                    false => {
                        if is_unknown {
                            alone.doubt();
                        }
                        is_told |= Box::pin(alone_until_done(shared, alone)).await;
                    }
                }
            }
        }
    }
    match is_told {
        true => fetches.wait_again(shared),
        false => fetches.fail(&cause),
    }
    shared.wake();
}

/// The fetches of a job that failed.
struct Fetches {
    turns: Vec<Waiter<TurnAsk>>,
    activities: Vec<Waiter<ActivityAsk>>,
}

impl Fetches {
    fn wait_again(self, shared: &Shared) {
        let mut state = shared.state();
        for waiter in self.turns.into_iter().rev() {
            state.turns.waiters.push_front(waiter);
        }
        for waiter in self.activities.into_iter().rev() {
            state.activities.waiters.push_front(waiter);
        }
        state.turns.look = true;
        state.activities.look = true;
    }

    fn fail(self, cause: &PostgresError) {
        for waiter in self.turns {
            drop(waiter.reply.send(Err(cause.classified("fetch_orchestration_item"))));
        }
        for waiter in self.activities {
            drop(waiter.reply.send(Err(cause.classified("fetch_work_item"))));
        }
    }
}

/// Looks for leases that a lost transaction may have taken.
fn look_for(shared: &Arc<Shared>, in_doubt: LeasesInDoubt) {
    if !in_doubt.secrets.is_empty() {
        tokio::spawn(give_back(Arc::clone(shared), in_doubt));
    }
}

/// How often a transaction is done again that another was in the way of.
const TRIES: u32 = 5;

/// Says whether it panicked.
async fn alone_until_done(shared: &Arc<Shared>, batch: Batch) -> bool {
    let job = without_fetches(batch);
    match transact(shared, &job).await {
        Ok((done, _)) => {
            reply_to_callers(shared, job.batch, &done);
            shared.tell(true, job.frees.1);
            false
        }
        Err(Failed::Undone(cause) | Failed::Unknown(cause, _))
            if matches!(cause, PostgresError::Panicked { .. }) =>
        {
            give_up(shared, job.batch, &cause);
            true
        }
        Err(Failed::Undone(cause)) => {
            alone_after(shared, job.batch, cause).await;
            false
        }
        Err(Failed::Unknown(cause, _)) => {
            doubt(shared, job.batch, &cause);
            false
        }
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
            Ok((done, _)) => {
                reply_to_callers(shared, job.batch, &done);
                return shared.tell(true, job.frees.1);
            }
            Err(Failed::Undone(again)) => (batch, cause) = (job.batch, again),
            Err(Failed::Unknown(again, _)) => return doubt(shared, job.batch, &again),
        }
    }
    let cause = explained(shared, &batch, cause).await;
    give_up(shared, batch, &cause);
}

fn without_fetches(batch: Batch) -> Transaction {
    let job = Transaction::without_fetches(batch, Others::default());
    let (turns, activities) = job.frees;
    Transaction { others: Others { turns, activities, watches: true }, ..job }
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

//! Lanes: tasks that each take all that waits, and do it in one transaction and one round trip.
//!
//! While one lane waits for the server, requests gather for the next: that is how concurrent calls share a transaction. A lone
//! call is never held back.

use crate::PostgresError;
use crate::batch::{
    AbandonColumns, Batch, CommitColumns, MessageColumns, RenewColumns, StartColumns, TurnColumns, WorkAskColumns,
    WorkColumns, instance_of,
};
use crate::db::{Param, Result, cell, text, text_option, unsigned};
use crate::request::{Renew, Request};
use crate::shared::{Job, Others, Shared};
use crate::waiting::{Ask, Guarded, RawMessage, RawTurn, RawWork, TurnAsk, Waiter, WorkAsk};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use outlast_provider::{Completion, StartOutcome};
use outlast_provider_kit::plan::duplicate_event;
use outlast_provider_kit::{CommitPlan, invalid_token};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

/// Starts the lanes of a store. They end with it.
pub(crate) fn start(shared: &Arc<Shared>) {
    for _ in 0..shared.config.lanes_in_force() {
        tokio::spawn(run(Arc::clone(shared)));
    }
}

async fn run(shared: Arc<Shared>) {
    while let Some(job) = shared.next().await {
        process(&shared, job).await;
    }
}

/// How a transaction failed.
enum Failed {
    /// Nothing of it is stored.
    Undone(PostgresError),
    /// Its connection was lost, and nobody knows.
    Unknown(PostgresError),
}

impl Failed {
    fn cause(&self) -> &PostgresError {
        let (Self::Undone(cause) | Self::Unknown(cause)) = self;
        cause
    }
}

async fn process(shared: &Arc<Shared>, mut job: Job) {
    job.batch.sort();
    let frees = (job.batch.frees_turns(), job.batch.frees_work());
    match transact(shared, &job).await {
        Ok(done) => {
            let counters = &shared.db.counters;
            counters.calls.add(job.batch.len());
            let Job { batch, turns, work, turns_news, work_news, .. } = job;
            answer(shared, batch, &done);
            serve_turns(shared, turns, turns_news, done.turns);
            serve_work(shared, work, work_news, done.work);
            // What was freed may have been missed by a look that was on its way in another lane.
            shared.tell(frees.0, frees.1);
        }
        Err(failed) => fail(shared, job, failed).await,
    }
}

/// What the functions answered.
#[derive(Default)]
struct Done {
    commits: Vec<Row>,
    messages: Vec<Row>,
    starts: Vec<Row>,
    renewals: Vec<Row>,
    abandons: Vec<Row>,
    turns: Vec<Vec<Row>>,
    work: Vec<Vec<Row>>,
}

/// One transaction, sent at once: whatever it does, it takes one round trip.
async fn transact(shared: &Shared, job: &Job) -> std::result::Result<Done, Failed> {
    let db = &shared.db;
    let undone = Failed::Undone;
    let commits = CommitColumns::of(&job.batch.commits).map_err(undone)?;
    let messages = MessageColumns::of(&job.batch.messages);
    let work = WorkColumns::of(&job.batch.work).map_err(undone)?;
    let starts = StartColumns::of(&job.batch.starts);
    let renewals = RenewColumns::of(&job.batch.renewals);
    let abandons = AbandonColumns::of(&job.batch.abandons);
    let secrets = |count: usize| -> Vec<Vec<u8>> {
        (0..count).map(|_| shared.config.entropy.next_u128().to_be_bytes().to_vec()).collect()
    };
    let turns: Vec<TurnColumns> =
        job.turns.iter().map(|group| TurnColumns::of(&group[0].ask, secrets(group.len()))).collect();
    let work_asks: Vec<WorkAskColumns> = job
        .work
        .iter()
        .map(|group| {
            let slots: Vec<&WorkAsk> = slots(group).map(|waiter| &group[waiter].ask).collect();
            let secrets = secrets(slots.len());
            WorkAskColumns::of(&group[0].ask, &slots, secrets)
        })
        .collect();
    let ended = if job.others.watches { bounded(job.batch.ends()) } else { Vec::new() };
    let Others { turns: tells_turns, work: tells_work, .. } = job.others;
    let (channel, sender) = (db.schema.channel(), &shared.id);

    let client = db.connection().await.map_err(undone)?;
    db.counters.round_trips.add(1);
    let mut calls: Vec<(Slot, BoxFuture<'_, std::result::Result<Vec<Row>, tokio_postgres::Error>>)> = Vec::new();
    let client: &Client = &client;
    let mut call = |slot, sql, params| calls.push((slot, ask(client, sql, params)));
    call(Slot::Nothing, BEGIN, Vec::new());
    let sql = &db.statements;
    if !job.batch.commits.is_empty() {
        call(Slot::Commits, &sql.commit, commits.params());
    }
    if !job.batch.messages.is_empty() {
        call(Slot::Messages, &sql.enqueue_messages, messages.params());
    }
    if !job.batch.work.is_empty() {
        call(Slot::Nothing, &sql.enqueue_work, work.params());
    }
    if !job.batch.starts.is_empty() {
        call(Slot::Starts, &sql.start, starts.params());
    }
    if !job.batch.renewals.is_empty() {
        call(Slot::Renewals, &sql.renew, renewals.params());
    }
    if !job.batch.abandons.is_empty() {
        call(Slot::Abandons, &sql.abandon, abandons.params());
    }
    for columns in &turns {
        call(Slot::Turns, &sql.fetch_turns, columns.params());
    }
    for columns in &work_asks {
        call(Slot::Work, &sql.fetch_work, columns.params());
    }
    if tells_turns || tells_work || !ended.is_empty() {
        let params: Vec<Param<'_>> = vec![
            (&channel as _, Type::TEXT),
            (sender as _, Type::TEXT),
            (&tells_turns as _, Type::BOOL),
            (&tells_work as _, Type::BOOL),
            (&ended as _, Type::TEXT_ARRAY),
        ];
        call(Slot::Nothing, &sql.tell, params);
    }
    call(Slot::Nothing, COMMIT, Vec::new());
    let (places, calls): (Vec<Slot>, Vec<_>) = calls.into_iter().unzip();
    // Each is sent when it is polled first, and they are polled in this order.
    let answers = join_all(calls).await;
    let mut done = Done::default();
    for (slot, rows) in places.into_iter().zip(answers) {
        let rows = rows.map_err(|error| match error.as_db_error() {
            Some(_) => Failed::Undone(error.into()),
            None => Failed::Unknown(error.into()),
        })?;
        match slot {
            Slot::Nothing => {}
            Slot::Commits => done.commits = rows,
            Slot::Messages => done.messages = rows,
            Slot::Starts => done.starts = rows,
            Slot::Renewals => done.renewals = rows,
            Slot::Abandons => done.abandons = rows,
            Slot::Turns => done.turns.push(rows),
            Slot::Work => done.work.push(rows),
        }
    }
    db.counters.transactions.add(1);
    Ok(done)
}

/// Where the rows of a call belong.
enum Slot {
    Nothing,
    Commits,
    Messages,
    Starts,
    Renewals,
    Abandons,
    Turns,
    Work,
}

/// Whatever the default of the server is: every statement is to see what was committed before it began.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
const COMMIT: &str = "COMMIT";

fn ask<'a>(
    client: &'a Client,
    sql: &'a str,
    params: Vec<Param<'a>>,
) -> BoxFuture<'a, std::result::Result<Vec<Row>, tokio_postgres::Error>> {
    async move { client.query_typed(sql, &params).await }.boxed()
}

/// Instances that are named in a notification, which is bounded; more than it can hold are told as all.
fn bounded(ended: Vec<String>) -> Vec<String> {
    const MOST_BYTES: usize = 3_000;
    let bytes: usize = ended.iter().map(|id| id.len() + 8).sum();
    if bytes > MOST_BYTES { vec![String::new()] } else { ended }
}

/// For each lease that a group asks for, the place of who asks.
fn slots(group: &[Waiter<WorkAsk>]) -> impl Iterator<Item = usize> + '_ {
    group.iter().enumerate().flat_map(|(place, waiter)| std::iter::repeat_n(place, waiter.ask.wants()))
}

/// A batch that failed. What was undone is done again, each request alone, so that one that is wrong hurts no other.
async fn fail(shared: &Arc<Shared>, job: Job, failed: Failed) {
    let counters = &shared.db.counters;
    match &failed {
        Failed::Undone(PostgresError::Conflict { .. }) => counters.conflicts.add(1),
        Failed::Unknown(_) | Failed::Undone(PostgresError::Disconnected { .. }) => counters.lost.add(1),
        Failed::Undone(_) => {}
    }
    let cause = failed.cause();
    tracing::debug!(target: "duroxide::providers::postgres", error = %cause, "a transaction failed");
    let Job { batch, turns, work, .. } = job;
    let had_fetches = !turns.is_empty() || !work.is_empty();
    let is_lost = matches!(cause, PostgresError::Disconnected { .. } | PostgresError::Busy { .. } | PostgresError::Closed);
    {
        let mut state = shared.state();
        // They have not been tried. If they cannot be, they are told.
        for waiter in turns.into_iter().flatten().rev() {
            state.turns.waiters.push_front(waiter);
        }
        for waiter in work.into_iter().flatten().rev() {
            state.work.waiters.push_front(waiter);
        }
        state.turns.look = true;
        state.work.look = true;
    }
    match failed {
        Failed::Undone(cause) if !is_lost && (batch.len() > 1 || (batch.len() == 1 && had_fetches)) => {
            drop(cause);
            counters.alone.add(batch.len());
            for alone in batch.split() {
                alone_until_done(shared, alone).await;
            }
        }
        Failed::Undone(cause) if !is_lost && batch.len() == 1 => alone_after(shared, batch, cause).await,
        failed => {
            let cause = failed.cause();
            give_up(shared, batch, cause);
            shared.rest(cause);
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
            let frees = (job.batch.frees_turns(), job.batch.frees_work());
            answer(shared, job.batch, &done);
            shared.tell(frees.0, frees.1);
        }
        Err(Failed::Undone(cause)) => alone_after(shared, job.batch, cause).await,
        Err(Failed::Unknown(cause)) => give_up(shared, job.batch, &cause),
    }
}

/// A single request that failed once.
async fn alone_after(shared: &Arc<Shared>, mut batch: Batch, mut cause: PostgresError) {
    for tries in 1..TRIES {
        if !matches!(cause, PostgresError::Conflict { .. }) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(u64::from(tries) * 5)).await;
        let job = without_fetches(batch);
        match transact(shared, &job).await {
            Ok(done) => {
                let frees = (job.batch.frees_turns(), job.batch.frees_work());
                answer(shared, job.batch, &done);
                return shared.tell(frees.0, frees.1);
            }
            Err(Failed::Undone(again)) => (batch, cause) = (job.batch, again),
            Err(Failed::Unknown(again)) => return give_up(shared, job.batch, &again),
        }
    }
    let cause = explained(shared, &batch, cause).await;
    give_up(shared, batch, &cause);
}

fn without_fetches(batch: Batch) -> Job {
    let others = Others { turns: batch.frees_turns(), work: batch.frees_work(), watches: true };
    Job { batch, turns: Vec::new(), work: Vec::new(), turns_news: 0, work_news: 0, others }
}

/// A turn with an event that exists is told which.
async fn explained(shared: &Shared, batch: &Batch, cause: PostgresError) -> PostgresError {
    let is_duplicate = matches!(&cause, PostgresError::Other { code, .. } if code == SqlState::UNIQUE_VIOLATION.code());
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

/// Tells the callers what became of their requests.
fn answer(shared: &Shared, batch: Batch, done: &Done) {
    let damaged = PostgresError::Damaged { details: "a function of the store answered for others than asked".to_string() };
    let mut later = batch.later_ms(answered_at(done).unwrap_or(0));
    if answered_at(done).is_none() {
        // Nothing in it has an absolute time.
        later = later.filter(|_| !batch.abandons.is_empty());
    }
    let mut answers = vec![None; batch.commits.len()];
    for row in &done.commits {
        if let (Ok(member), Ok(answer), Ok(at)) = (cell::<i32>(row, 0), cell::<i32>(row, 1), unsigned(row, 2))
            && let Some(place) = usize::try_from(member - 1).ok().and_then(|place| answers.get_mut(place))
        {
            *place = Some((answer, at));
        }
    }
    for (commit, answered) in batch.commits.into_iter().zip(answers) {
        let ended = commit.plan.as_ref().is_some_and(CommitPlan::ends_instance);
        match answered {
            Some((1, at_ms)) => {
                if commit.plan.is_some() && shared.watches.is_watched() {
                    shared.watches.committed(instance_of(&commit), ended);
                }
                let is_turn = commit.plan.is_some();
                commit.reply.send(Ok(if is_turn { Completion::WithTurn { at_ms } } else { Completion::Queued }));
            }
            Some((2, _)) => commit.reply.send(Ok(Completion::Queued)),
            Some(_) => {
                let token = commit.lease.text();
                commit.reply.refuse(invalid_token(&token));
            }
            None => commit.reply.send(Err(&damaged)),
        }
    }
    let mut taken = vec![None; batch.messages.len()];
    for row in &done.messages {
        if let (Ok(member), Ok(visible_at)) = (cell::<i32>(row, 0), cell::<Option<i64>>(row, 1))
            && let Some(place) = usize::try_from(member - 1).ok().and_then(|place| taken.get_mut(place))
        {
            *place = Some(visible_at.is_some());
        }
    }
    for (message, taken) in batch.messages.into_iter().zip(taken) {
        message.reply.send(taken.ok_or(&damaged));
    }
    for work in batch.work {
        work.reply.send(Ok(()));
    }
    let mut outcomes = vec![None; batch.starts.len()];
    for row in &done.starts {
        if let (Ok(member), Ok(is_taken), Ok(status)) = (cell::<i32>(row, 0), cell::<bool>(row, 1), text_option(row, 2))
            && let Some(place) = usize::try_from(member - 1).ok().and_then(|place| outcomes.get_mut(place))
        {
            *place = Some(if is_taken { StartOutcome::AlreadyExists { status } } else { StartOutcome::Started });
        }
    }
    for (start, outcome) in batch.starts.into_iter().zip(outcomes) {
        start.reply.send(outcome.ok_or(&damaged));
    }
    let members = |rows: &[Row]| -> Vec<i32> { rows.iter().filter_map(|row| cell::<i32>(row, 0).ok()).collect() };
    let renewed = members(&done.renewals);
    for (member, renew) in (1..).zip(batch.renewals) {
        match renewed.contains(&member) {
            true => renew.reply.send(Ok(())),
            false => {
                let token = renew.lease.text();
                renew.reply.refuse(invalid_token(&token));
            }
        }
    }
    let freed = members(&done.abandons);
    for (member, abandon) in (1..).zip(batch.abandons) {
        match freed.contains(&member) {
            true => abandon.reply.send(Ok(())),
            false => {
                let token = abandon.lease.text();
                abandon.reply.refuse(invalid_token(&token));
            }
        }
    }
    if let Some(ms) = later {
        shared.look_within(ms);
    }
}

/// The time of the store at which a transaction did something that it says the time of.
fn answered_at(done: &Done) -> Option<u64> {
    let commits = done.commits.iter().filter_map(|row| unsigned(row, 2).ok());
    let messages = done.messages.iter().filter_map(|row| unsigned(row, 2).ok());
    let starts = done.starts.iter().filter_map(|row| unsigned(row, 3).ok());
    commits.chain(messages).chain(starts).max()
}

/// Gives fetches the turns that were leased for them, in their order of arrival.
fn serve_turns(shared: &Arc<Shared>, groups: Vec<Vec<Waiter<TurnAsk>>>, news: u64, answers: Vec<Vec<Row>>) {
    for (group, rows) in groups.into_iter().zip(answers) {
        shared.db.counters.looks.add(1);
        let lock_ms = group[0].ask.lock_ms;
        let mut next = None;
        let mut leased = Vec::new();
        for row in &rows {
            match raw_turn(row) {
                Ok(Some(turn)) => leased.push(turn),
                Ok(None) => next = Some(due_in(row, 10, 15)),
                Err(error) => tracing::error!(target: "duroxide::providers::postgres", %error, "a turn cannot be read"),
            }
        }
        shared.db.counters.fetched.add(leased.len());
        if !leased.is_empty() {
            shared.state().turns.served_at = Some(Instant::now());
        }
        let mut leased = leased.into_iter();
        let mut unserved = Vec::new();
        for waiter in group {
            match leased.next() {
                Some(turn) => drop(waiter.reply.send(Ok(Some(Guarded::new(turn, Arc::clone(shared)))))),
                None => unserved.push(waiter),
            }
        }
        // Its lease may end.
        shared.look_within(lock_ms);
        park(shared, unserved, next, |state| &mut state.turns, news, true);
    }
}

/// Gives fetches the activities that were leased for them.
fn serve_work(shared: &Arc<Shared>, groups: Vec<Vec<Waiter<WorkAsk>>>, news: u64, answers: Vec<Vec<Row>>) {
    for (group, rows) in groups.into_iter().zip(answers) {
        shared.db.counters.looks.add(1);
        let lock_ms = group[0].ask.lock_ms;
        let owners: Vec<usize> = slots(&group).collect();
        let mut next = None;
        let mut leased: Vec<Vec<RawWork>> = group.iter().map(|_| Vec::new()).collect();
        for row in &rows {
            match raw_work(row) {
                Ok(Some((slot, work))) => {
                    shared.db.counters.fetched.add(1);
                    let owner = owners.get(slot).and_then(|owner| leased.get_mut(*owner));
                    if let Some(owner) = owner {
                        owner.push(work);
                    }
                }
                Ok(None) => next = Some(due_in(row, 8, 9)),
                Err(error) => tracing::error!(target: "duroxide::providers::postgres", %error, "an activity cannot be read"),
            }
        }
        if leased.iter().any(|work| !work.is_empty()) {
            shared.state().work.served_at = Some(Instant::now());
        }
        let mut unserved = Vec::new();
        for (waiter, work) in group.into_iter().zip(leased) {
            match work.is_empty() {
                false => drop(waiter.reply.send(Ok(Some(Guarded::new(work, Arc::clone(shared)))))),
                true => unserved.push(waiter),
            }
        }
        shared.look_within(lock_ms);
        park(shared, unserved, next, |state| &mut state.work, news, false);
    }
}

/// In how many milliseconds something becomes available, from the row that says so.
fn due_in(row: &Row, now: usize, next: usize) -> Option<u64> {
    let next = cell::<Option<i64>>(row, next).ok().flatten()?;
    Some(u64::try_from(next).unwrap_or(0).saturating_sub(unsigned(row, now).unwrap_or(0)))
}

/// Fetches that found nothing stay, or are told so.
fn park<A: Ask>(
    shared: &Shared,
    unserved: Vec<Waiter<A>>,
    next: Option<Option<u64>>,
    queue: fn(&mut crate::shared::State) -> &mut crate::waiting::Parked<A>,
    news: u64,
    turns: bool,
) {
    if unserved.is_empty() {
        return;
    }
    {
        let mut state = shared.state();
        let queue = queue(&mut state);
        for waiter in unserved.into_iter().rev() {
            queue.return_empty(waiter, news);
        }
    }
    let due = Some(next.flatten());
    match turns {
        true => shared.look_again(due, None),
        false => shared.look_again(None, due),
    }
    shared.changed.notify_one();
}

/// A leased turn; `None` for the row that says when to look again.
fn raw_turn(row: &Row) -> Result<Option<RawTurn>> {
    let Some(instance) = text_option(row, 1)? else { return Ok(None) };
    let secret: &[u8] = cell(row, 0)?;
    let name = text_option(row, 2)?;
    let known = match name {
        Some(name) => {
            let version = text_option(row, 3)?.unwrap_or_else(|| "unknown".to_string());
            let last_event = cell::<Option<i64>>(row, 5)?.and_then(|id| u64::try_from(id).ok()).unwrap_or(0);
            Some((name, version, unsigned(row, 4)?, last_event))
        }
        None => None,
    };
    let time = |index| Ok::<_, PostgresError>(cell::<Option<i64>>(row, index)?.and_then(|at| u64::try_from(at).ok()));
    let ids: Vec<i64> = cell(row, 11)?;
    let texts: Vec<String> = cell(row, 12)?;
    let available: Vec<i64> = cell(row, 13)?;
    let attempts: Vec<i32> = cell(row, 14)?;
    let messages = ids.into_iter().zip(texts).zip(available.into_iter().zip(attempts));
    Ok(Some(RawTurn {
        secret: secret.try_into().unwrap_or_default(),
        instance,
        row: known,
        created_at: time(6)?,
        has_ended: cell::<Option<bool>>(row, 7)?.unwrap_or(false),
        has_history: cell(row, 8)?,
        start_due: time(9)?,
        now: unsigned(row, 10)?,
        messages: messages
            .map(|((id, text), (available_at, attempts))| RawMessage {
                id,
                text,
                available_at: u64::try_from(available_at).unwrap_or(0),
                attempts: u32::try_from(attempts).unwrap_or(0),
            })
            .collect(),
    }))
}

/// A leased activity and the slot that it is for; `None` for the row that says when to look again.
fn raw_work(row: &Row) -> Result<Option<(usize, RawWork)>> {
    let Some(slot) = cell::<Option<i32>>(row, 0)? else { return Ok(None) };
    let name = text_option(row, 6)?;
    let secret: &[u8] = cell(row, 10)?;
    let work = RawWork {
        secret: secret.try_into().unwrap_or_default(),
        id: cell(row, 1)?,
        text: cell(row, 2)?,
        instance: text(row, 3)?,
        attempts: u32::try_from(cell::<i32>(row, 5)?).unwrap_or(0),
        orchestration: match name {
            Some(name) => Some((name, text(row, 7)?)),
            None => None,
        },
        now: unsigned(row, 8)?,
    };
    Ok(Some((usize::try_from(slot - 1).unwrap_or(0), work)))
}

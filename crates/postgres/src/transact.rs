//! One transaction in one round trip.

use crate::PostgresError;
use crate::batch::{
    AbandonColumns, CommitColumns, MessageColumns, RenewColumns, StartColumns, TurnColumns, WorkAskColumns,
    WorkColumns,
};
use crate::db::Param;
use crate::shared::{Job, Others, Shared};
use crate::waiting::{Ask, Waiter, WorkAsk};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

/// How a transaction failed.
pub(crate) enum Failed {
    /// Nothing of it is stored.
    Undone(PostgresError),
    /// Its connection was lost, and nobody knows.
    Unknown(PostgresError),
}

impl Failed {
    pub(crate) fn cause(&self) -> &PostgresError {
        let (Self::Undone(cause) | Self::Unknown(cause)) = self;
        cause
    }
}

/// What the functions answered.
#[derive(Default)]
pub(crate) struct Done {
    pub(crate) commits: Vec<Row>,
    pub(crate) messages: Vec<Row>,
    pub(crate) starts: Vec<Row>,
    pub(crate) renewals: Vec<Row>,
    pub(crate) abandons: Vec<Row>,
    pub(crate) turns: Vec<Vec<Row>>,
    pub(crate) work: Vec<Vec<Row>>,
}

/// One transaction, sent at once: whatever it does, it takes one round trip.
pub(crate) async fn transact(shared: &Shared, job: &Job) -> Result<Done, Failed> {
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
    let turns: Vec<TurnColumns> = job
        .turns
        .iter()
        .map(|group| TurnColumns::of(&group[0].ask, secrets(group.len()), job.asks_next))
        .collect();
    let work_asks: Vec<WorkAskColumns> = job
        .work
        .iter()
        .map(|group| {
            let slots: Vec<&WorkAsk> = slots(group).map(|waiter| &group[waiter].ask).collect();
            let secrets = secrets(slots.len());
            WorkAskColumns::of(&group[0].ask, &slots, secrets, job.asks_next)
        })
        .collect();
    let ended = if job.others.watches { bounded(job.batch.ends()) } else { Vec::new() };
    let Others { turns: tells_turns, work: tells_work, .. } = job.others;
    let (channel, sender) = (db.schema.channel(), &shared.id);

    let client = db.lane().await.map_err(undone)?;
    db.counters.round_trips.add(1);
    let mut calls: Vec<(Slot, Call<'_>)> = Vec::new();
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

/// A call that is sent when it is polled first.
type Call<'a> = BoxFuture<'a, Result<Vec<Row>, tokio_postgres::Error>>;

fn ask<'a>(client: &'a Client, sql: &'a str, params: Vec<Param<'a>>) -> Call<'a> {
    async move { client.query_typed(sql, &params).await }.boxed()
}

/// Instances that are named in a notification, which is bounded; more than it can hold are told as all.
fn bounded(ended: Vec<String>) -> Vec<String> {
    const MOST_BYTES: usize = 3_000;
    let bytes: usize = ended.iter().map(|id| id.len() + 8).sum();
    if bytes > MOST_BYTES { vec![String::new()] } else { ended }
}

/// For each lease that a group asks for, the place of who asks.
pub(crate) fn slots(group: &[Waiter<WorkAsk>]) -> impl Iterator<Item = usize> + '_ {
    group.iter().enumerate().flat_map(|(place, waiter)| std::iter::repeat_n(place, waiter.ask.wants()))
}

//! One transaction in one round trip.

use crate::PostgresError;
use crate::columns::{
    AbandonColumns, CommitColumns, MessageColumns, RenewColumns, StartColumns, TurnColumns, WorkAskColumns,
    WorkColumns,
};
use crate::db::{self, Param, prepared};
use crate::forsaken::Forsaken;
use crate::handover::{Gift, Told};
use crate::job::{Job, Others};
use crate::shared::Shared;
use crate::text::owned;
use crate::waiting::{Ask, Waiter, WorkAsk};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use std::iter::once;
use std::time::Duration;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row, Statement};

/// How a transaction failed.
pub(crate) enum Failed {
    /// Nothing of it is stored.
    Undone(PostgresError),
    /// Its connection was lost, and nobody knows.
    Unknown(PostgresError, Forsaken),
}

impl Failed {
    pub(crate) fn cause(&self) -> &PostgresError {
        let (Self::Undone(cause) | Self::Unknown(cause, _)) = self;
        cause
    }
}

/// What the functions answered.
#[derive(Default)]
pub(crate) struct Done {
    pub(crate) commits: Vec<Row>,
    /// How instances have ended.
    pub(crate) outcomes: Vec<Row>,
    pub(crate) messages: Vec<Row>,
    pub(crate) starts: Vec<Row>,
    pub(crate) renewals: Vec<Row>,
    pub(crate) abandons: Vec<Row>,
    pub(crate) turns: Vec<Vec<Row>>,
    pub(crate) work: Vec<Vec<Row>>,
}

impl Done {
    /// Where commits, messages and starts tell of leases.
    pub(crate) fn told(&self) -> [Told<'_>; 3] {
        [
            Told { rows: &self.commits, at: 2, id: 4 },
            Told { rows: &self.messages, at: 2, id: 3 },
            Told { rows: &self.starts, at: 3, id: 4 },
        ]
    }
}

/// One transaction, sent at once: whatever it does, it takes one round trip.
pub(crate) async fn transact(shared: &Shared, job: &Job) -> Result<Done, Failed> {
    let db = &shared.db;
    let undone = Failed::Undone;
    let commits = CommitColumns::of(&job.batch.commits, &job.handed_work).map_err(undone)?;
    let messages = MessageColumns::of(&job.batch.messages, &job.handed_turns);
    let work = WorkColumns::of(&job.batch.work).map_err(undone)?;
    let starts = StartColumns::of(&job.batch.starts, job.batch.messages.len(), &job.handed_turns);
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
    let ended = job.batch.ends();
    // Whoever waits for them here is told what they would ask next.
    let watched: Vec<String> = match shared.watches.is_watched() {
        true => ended.iter().map(|instance| owned(instance)).collect(),
        false => Vec::new(),
    };
    let ended = if job.others.watches { bounded(ended) } else { Vec::new() };
    let Others { turns: tells_turns, work: tells_work, .. } = job.others;
    let (channel, sender) = (db.schema.channel(), &shared.id);

    let leases_one = job.handed_work.gifts.is_empty() || job.batch.scheduled().count() == 1;
    let is_alone = job.batch.commits.len() == 1 && leases_one;

    let client = db.lane().await.map_err(undone)?;
    let mut calls: Vec<Call<'_>> = Vec::new();
    let mut call = |slot, sql, params| calls.push(Call { slot, sql, params, statement: None });
    let sql = &db.statements;
    if !job.batch.commits.is_empty() {
        let alone = is_alone && !shared.config.batches_only;
        let commit = if alone { &sql.commit_alone } else { &sql.commit };
        call(Slot::Commits, commit, commits.params());
    }
    if !watched.is_empty() {
        call(Slot::Outcomes, &sql.outcomes, vec![(&watched as _, Type::TEXT_ARRAY)]);
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
    if db.prepares {
        // Before the transaction: a call that waits for its statement would be overtaken by the commit.
        for call in &mut calls {
            let statement = prepared(&client, call.sql, &call.params).await;
            call.statement = Some(statement.map_err(|error| undone(error.into()))?);
        }
    }
    db.counters.round_trips.add(1);
    let client: &Client = &client;
    let sent = calls.iter().map(|call| ask(client, call).boxed());
    // Each is sent when it is polled first, and they are polled in this order.
    let answers =
        join_all(once(control(client, BEGIN)).chain(sent).chain(once(control(client, COMMIT)))).await;
    let mut done = Done::default();
    let slots = calls.iter().map(|call| call.slot);
    for (slot, rows) in once(Slot::Nothing).chain(slots).chain(once(Slot::Nothing)).zip(answers) {
        let rows = rows.map_err(|error| match error.as_db_error() {
            Some(_) => Failed::Undone(error.into()),
            None => Failed::Unknown(error.into(), forsaken(job, &turns, &work_asks)),
        })?;
        match slot {
            Slot::Nothing => {}
            Slot::Commits => done.commits = rows,
            Slot::Outcomes => done.outcomes = rows,
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

/// All that a transaction asks to be leased.
fn forsaken(job: &Job, turns: &[TurnColumns], work: &[WorkAskColumns]) -> Forsaken {
    let fetched =
        turns.iter().map(|columns| &columns.secrets).chain(work.iter().map(|columns| &columns.secrets));
    let given = job.handed_turns.gifts.iter().chain(&job.handed_work.gifts).map(Gift::secret);
    let longest = job.asks_for_ms().max().unwrap_or(0);
    Forsaken {
        secrets: fetched.flatten().cloned().chain(given).collect(),
        lasts: Duration::from_millis(longest),
    }
}

/// Where the rows of a call belong.
#[derive(Clone, Copy)]
enum Slot {
    Nothing,
    Commits,
    Outcomes,
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

/// One function with its arguments.
struct Call<'a> {
    slot: Slot,
    sql: &'a str,
    params: Vec<Param<'a>>,
    /// What the connection knows it as, if it was prepared.
    statement: Option<Statement>,
}

/// Is sent when it is polled first.
type Asked<'a> = BoxFuture<'a, Result<Vec<Row>, tokio_postgres::Error>>;

async fn ask(client: &Client, call: &Call<'_>) -> Result<Vec<Row>, tokio_postgres::Error> {
    match &call.statement {
        Some(statement) => db::ask(client, statement, &call.params).await,
        None => client.query_typed(call.sql, &call.params).await,
    }
}

fn control<'a>(client: &'a Client, sql: &'a str) -> Asked<'a> {
    async move { client.batch_execute(sql).await.map(|()| Vec::new()) }.boxed()
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

//! One transaction in one round trip.

use crate::PostgresError;
use crate::columns::{
    AbandonColumns, ActivityAskColumns, ActivityColumns, CommitColumns, MessageColumns, RenewColumns,
    StartColumns, TurnColumns,
};
use crate::connect::Closer;
use crate::contain::contained;
use crate::db::{self, Param};
use crate::hand_off::{HandOff, Told};
use crate::in_doubt::LeasesInDoubt;
use crate::shared::Shared;
use crate::steps::Step;
use crate::text::owned;
use crate::transaction::{Others, Transaction};
use crate::waiting::{ActivityAsk, Ask, Waiter};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use std::iter::once;
use std::time::Duration;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row, Statement};

/// How a transaction failed.
pub(crate) enum Failed {
    /// Nothing of it is stored.
    Undone(PostgresError),
    /// Its connection was lost or given up, so it is unknown whether it is stored.
    Unknown(PostgresError, LeasesInDoubt),
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
    pub(crate) activities: Vec<Vec<Row>>,
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

/// One transaction, sent at once: whatever it does, it takes one round trip. Gives the leases that it has taken too.
///
/// A connection whose server does not answer before the deadline is closed, and so is one whose transaction panicked.
pub(crate) async fn transact(shared: &Shared, job: &Transaction) -> Result<(Done, LeasesInDoubt), Failed> {
    let mut attempt = Attempt::default();
    let cause = match contained(attempt.run(shared, job).boxed()).await {
        Ok(Ok(done)) => return Ok((done, attempt.leases(job))),
        Ok(Err(cause)) => cause,
        Err(details) => {
            shared.panicked("a transaction", &details);
            if let Some(closer) = &attempt.closer {
                closer.close();
            }
            PostgresError::Panicked { instance: job.batch.subjects(), details }
        }
    };
    if let (PostgresError::ReadOnly { .. }, Some(closer)) = (&cause, &attempt.closer) {
        // The primary may be elsewhere by now: the next connection looks for it.
        closer.close();
        shared.db.close_idle();
    }
    Err(match attempt.in_doubt {
        true => Failed::Unknown(cause, attempt.leases(job)),
        false => Failed::Undone(cause),
    })
}

/// What must be known of a transaction however it ends.
#[derive(Default)]
struct Attempt {
    /// The secrets of the leases that fetches ask for, for each group of them.
    turns: Vec<Vec<Vec<u8>>>,
    activities: Vec<Vec<Vec<u8>>>,
    closer: Option<Closer>,
    /// Whether the server has been sent what it may have carried out.
    in_doubt: bool,
}

impl Attempt {
    /// All that the transaction asks to be leased.
    fn leases(self, job: &Transaction) -> LeasesInDoubt {
        let given =
            job.handed_turns.hand_offs.iter().chain(&job.handed_activities.hand_offs).map(HandOff::secret);
        let longest = job.asks_for_ms().max().unwrap_or(0);
        let fetched = self.turns.into_iter().chain(self.activities).flatten();
        LeasesInDoubt { secrets: fetched.chain(given).collect(), lasts: Duration::from_millis(longest) }
    }

    async fn run(&mut self, shared: &Shared, job: &Transaction) -> Result<Done, PostgresError> {
        let secrets = |count: usize| -> Vec<Vec<u8>> {
            (0..count).map(|_| shared.config.entropy.next_u128().to_be_bytes().to_vec()).collect()
        };
        self.turns = job.turns.iter().map(|group| secrets(group.len())).collect();
        self.activities = job.activities.iter().map(|group| secrets(slots(group).count())).collect();
        let Self { turns, activities, closer, in_doubt } = self;
        attempt(shared, job, [turns, activities], closer, in_doubt).await
    }
}

async fn attempt(
    shared: &Shared,
    job: &Transaction,
    [turn_secrets, work_secrets]: [&Vec<Vec<Vec<u8>>>; 2],
    closer: &mut Option<Closer>,
    in_doubt: &mut bool,
) -> Result<Done, PostgresError> {
    let db = &shared.db;
    shared.fault(Step::Encode, || job.batch.all_subjects());
    let commits = CommitColumns::of(&job.batch.commits, &job.handed_activities)?;
    let messages = MessageColumns::of(&job.batch.messages, &job.handed_turns);
    let activities = ActivityColumns::of(&job.batch.activities)?;
    let starts = StartColumns::of(&job.batch.starts, job.batch.messages.len(), &job.handed_turns);
    let renewals = RenewColumns::of(&job.batch.renewals);
    let abandons = AbandonColumns::of(&job.batch.abandons);
    let turns: Vec<TurnColumns<'_>> = job
        .turns
        .iter()
        .zip(turn_secrets)
        .map(|(group, secrets)| TurnColumns::of(&group[0].ask, secrets, job.asks_next))
        .collect();
    let activity_asks: Vec<ActivityAskColumns<'_>> = job
        .activities
        .iter()
        .zip(work_secrets)
        .map(|(group, secrets)| {
            let slots: Vec<&ActivityAsk> = slots(group).map(|waiter| &group[waiter].ask).collect();
            ActivityAskColumns::of(&group[0].ask, &slots, secrets, job.asks_next)
        })
        .collect();
    let ended = job.batch.ends();
    // Whoever waits for them here is told what they would ask next.
    let watched: Vec<String> = match shared.watches.is_watched() {
        true => ended.iter().map(|instance| owned(instance)).collect(),
        false => Vec::new(),
    };
    let ended = if job.others.watches { bounded(ended) } else { Vec::new() };
    let Others { turns: tells_turns, activities: tells_work, .. } = job.others;
    let (channel, sender) = (db.schema.channel(), &shared.id);

    let leases_one = job.handed_activities.hand_offs.is_empty() || job.batch.scheduled().count() == 1;
    let is_alone = job.batch.commits.len() == 1 && leases_one;

    let client = db.lane().await?;
    *closer = Some(client.closer());
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
    if !job.batch.activities.is_empty() {
        call(Slot::Nothing, &sql.enqueue_activities, activities.params());
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
    for columns in &activity_asks {
        call(Slot::Activity, &sql.fetch_activities, columns.params());
    }
    if tells_turns || tells_work || !ended.is_empty() {
        let params: Vec<Param<'_>> = vec![
            (&channel as _, Type::TEXT),
            (sender as _, Type::TEXT),
            (&tells_turns as _, Type::BOOL),
            (&tells_work as _, Type::BOOL),
            (&ended as _, Type::TEXT_ARRAY),
        ];
        call(Slot::Nothing, &sql.notify, params);
    }
    let exchanged = async {
        let begin = &db.beginnings(&client).await?.lane;
        if db.prepares {
            // Before the transaction: a call that waits for its statement would be overtaken by the commit.
            for call in &mut calls {
                call.statement = Some(client.prepared(call.sql, &call.params).await?);
            }
        }
        db.counters.round_trips.add(1);
        shared.fault(Step::Send, || job.batch.all_subjects());
        *in_doubt = true;
        let client: &Client = &client;
        let sent = calls.iter().map(|call| ask(client, call).boxed());
        // Each is sent when it is polled first, and they are polled in this order.
        let all = once(control(client, begin)).chain(sent).chain(once(control(client, COMMIT)));
        Ok::<_, PostgresError>(join_all(all).await)
    };
    let answers = match tokio::time::timeout(db.deadline, exchanged).await {
        Ok(answers) => answers?,
        Err(_) => {
            db.counters.silent.add(1);
            client.closer().close_and_cancel();
            db.close_idle();
            return Err(PostgresError::Silent { limit: db.deadline });
        }
    };
    shared.fault(Step::Receive, || job.batch.all_subjects());
    let mut done = Done::default();
    let slots = calls.iter().map(|call| call.slot);
    for (slot, rows) in once(Slot::Begin).chain(slots).chain(once(Slot::Nothing)).zip(answers) {
        let rows = rows.map_err(|error| {
            let Some(code) = error.as_db_error().map(|reported| reported.code().clone()) else {
                return error.into();
            };
            *in_doubt = false;
            match (slot, code == SqlState::FEATURE_NOT_SUPPORTED) {
                // A standby refuses to begin a transaction that writes.
                (Slot::Begin, true) => PostgresError::ReadOnly { details: error.to_string() },
                _ => error.into(),
            }
        })?;
        match slot {
            Slot::Begin | Slot::Nothing => {}
            Slot::Commits => done.commits = rows,
            Slot::Outcomes => done.outcomes = rows,
            Slot::Messages => done.messages = rows,
            Slot::Starts => done.starts = rows,
            Slot::Renewals => done.renewals = rows,
            Slot::Abandons => done.abandons = rows,
            Slot::Turns => done.turns.push(rows),
            Slot::Activity => done.activities.push(rows),
        }
    }
    db.counters.transactions.add(1);
    *in_doubt = false;
    Ok(done)
}

/// Where the rows of a call belong.
#[derive(Clone, Copy)]
enum Slot {
    Begin,
    Nothing,
    Commits,
    Outcomes,
    Messages,
    Starts,
    Renewals,
    Abandons,
    Turns,
    Activity,
}

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
pub(crate) fn slots(group: &[Waiter<ActivityAsk>]) -> impl Iterator<Item = usize> + '_ {
    group.iter().enumerate().flat_map(|(place, waiter)| std::iter::repeat_n(place, waiter.ask.wants()))
}

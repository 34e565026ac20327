//! Sends a transaction, in one round trip, and reads its answers.

use crate::ask::{ActivityAsk, Ask};
use crate::columns::{
    AbandonColumns, ActivityAskColumns, ActivityColumns, CommitColumns, MessageColumns, RenewColumns,
    StartColumns, TurnColumns,
};
use crate::connect::Closer;
use crate::contain::contained;
use crate::db::{self, Param};
use crate::in_doubt::LeasesInDoubt;
use crate::leased::ActivityFetch;
use crate::notify::named_in_notification;
use crate::queue::PerQueue;
use crate::serve::{HandOffColumns, HandOffRows};
use crate::shared::Shared;
use crate::steps::Step;
use crate::text::owned;
use crate::transaction::Transaction;
use crate::{PostgresError, functions};

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use std::iter::once;
use std::time::Duration;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row, Statement};

/// The failure of a transaction.
pub(crate) enum Failed {
    /// Nothing of it is stored.
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

/// The answers of the server's functions.
#[derive(Default)]
pub(crate) struct Done {
    pub(crate) commits: Vec<Row>,
    /// Outcomes of instances that ended.
    pub(crate) outcomes: Vec<Row>,
    pub(crate) messages: Vec<Row>,
    pub(crate) starts: Vec<Row>,
    pub(crate) renewals: Vec<Row>,
    pub(crate) abandons: Vec<Row>,
    /// The rows of each read.
    pub(crate) texts: Vec<Vec<Row>>,
    pub(crate) turns: Vec<Vec<Row>>,
    pub(crate) activities: Vec<Vec<Row>>,
}

impl Done {
    /// The rows of commits that tell of activities that were handed off.
    pub(crate) fn handed_off_activities(&self) -> HandOffRows<'_> {
        use functions::commit::{ACTIVITY_ID, AT, NAME, SECRET, VERSION};
        let orchestration = Some((NAME, VERSION));
        let columns = HandOffColumns { now: AT, id: ACTIVITY_ID, secret: SECRET, orchestration };
        HandOffRows { rows: &self.commits, columns }
    }

    /// The rows of messages and starts that tell of turns that were handed off.
    pub(crate) fn handed_off_turns(&self) -> [HandOffRows<'_>; 2] {
        use functions::{enqueue_messages, start};
        let columns = |now, id, secret| HandOffColumns { now, id, secret, orchestration: None };
        let of_message =
            columns(enqueue_messages::AT, enqueue_messages::MESSAGE_ID, enqueue_messages::SECRET);
        let of_start = columns(start::AT, start::MESSAGE_ID, start::SECRET);
        [
            HandOffRows { rows: &self.messages, columns: of_message },
            HandOffRows { rows: &self.starts, columns: of_start },
        ]
    }
}

/// Sends a transaction at once: whatever it does, it takes one round trip. Returns the leases that it has taken too.
///
/// A connection whose server does not answer before the deadline is closed, and so is one whose transaction panicked.
pub(crate) async fn transact(
    shared: &Shared,
    transaction: &Transaction,
) -> Result<(Done, LeasesInDoubt), Failed> {
    let mut attempt = Attempt::default();
    let cause = match contained(attempt.run(shared, transaction).boxed()).await {
        Ok(Ok(done)) => return Ok((done, attempt.leases(transaction))),
        Ok(Err(cause)) => cause,
        Err(details) => {
            shared.panicked("a transaction", &details);
            if let Some(closer) = &attempt.closer {
                closer.close();
            }
            PostgresError::Panicked { instance: transaction.batch.subjects(), details }
        }
    };
    if let (PostgresError::ReadOnly { .. }, Some(closer)) = (&cause, &attempt.closer) {
        // The primary may be elsewhere by now: the next connection looks for it.
        closer.close();
        shared.db.close_idle();
    }
    Err(match attempt.in_doubt {
        true => Failed::Unknown(cause, attempt.leases(transaction)),
        false => Failed::Undone(cause),
    })
}

/// The part of an attempt that is needed however the attempt ends.
#[derive(Default)]
struct Attempt {
    /// The secrets of the leases that polls ask for, for each group of fetches.
    secrets: PerQueue<Vec<Vec<Vec<u8>>>>,
    closer: Option<Closer>,
    /// Whether the transaction was sent, so that the server may have committed it.
    in_doubt: bool,
}

impl Attempt {
    /// All leases that the transaction asks for.
    fn leases(self, transaction: &Transaction) -> LeasesInDoubt {
        let PerQueue { turns, activities } = &transaction.hand_offs;
        let handed_off = turns.hand_offs.iter().chain(&activities.hand_offs);
        let handed_off = handed_off.map(|hand_off| hand_off.secret.to_vec());
        let longest = transaction.lease_durations_ms().max().unwrap_or(0);
        let polled = self.secrets.turns.into_iter().chain(self.secrets.activities).flatten();
        LeasesInDoubt { secrets: polled.chain(handed_off).collect(), lasts: Duration::from_millis(longest) }
    }

    async fn run(&mut self, shared: &Shared, transaction: &Transaction) -> Result<Done, PostgresError> {
        let secrets = |count: usize| -> Vec<Vec<u8>> {
            (0..count).map(|_| shared.config.entropy.next_u128().to_be_bytes().to_vec()).collect()
        };
        let PerQueue { turns, activities } = &transaction.polls;
        self.secrets = PerQueue {
            turns: turns.groups.iter().map(|group| secrets(group.len())).collect(),
            activities: activities.groups.iter().map(|group| secrets(slots(group).count())).collect(),
        };
        let Self { secrets, closer, in_doubt } = self;
        attempt(shared, transaction, secrets, closer, in_doubt).await
    }
}

async fn attempt(
    shared: &Shared,
    transaction: &Transaction,
    secrets: &PerQueue<Vec<Vec<Vec<u8>>>>,
    closer: &mut Option<Closer>,
    in_doubt: &mut bool,
) -> Result<Done, PostgresError> {
    let db = &shared.db;
    let Transaction { batch, polls, hand_offs, notifies, asks_next_due, .. } = transaction;
    shared.fault(Step::Encode, || batch.all_subjects());
    let commits = CommitColumns::of(&batch.commits, &hand_offs.activities)?;
    let messages = MessageColumns::of(&batch.messages, &hand_offs.turns);
    let activities = ActivityColumns::of(&batch.activities)?;
    let starts = StartColumns::of(&batch.starts, batch.messages.len(), &hand_offs.turns);
    let renewals = RenewColumns::of(&batch.renewals);
    let abandons = AbandonColumns::of(&batch.abandons);
    let turn_polls: Vec<TurnColumns<'_>> = polls
        .turns
        .groups
        .iter()
        .zip(&secrets.turns)
        .map(|(group, secrets)| TurnColumns::of(&group[0].ask, secrets, *asks_next_due))
        .collect();
    let activity_polls: Vec<ActivityAskColumns<'_>> = polls
        .activities
        .groups
        .iter()
        .zip(&secrets.activities)
        .map(|(group, secrets)| {
            let slots: Vec<&ActivityAsk> = slots(group).map(|fetch| &group[fetch].ask).collect();
            ActivityAskColumns::of(&group[0].ask, &slots, secrets, *asks_next_due)
        })
        .collect();
    let read_secrets: Vec<&[u8]> = batch.reads.iter().map(|read| read.lease.secret().as_slice()).collect();
    let ended = batch.ends();
    // Watches of this process get the outcomes with the notice, so that they need not read them.
    let watched: Vec<String> = match shared.watches.is_watched() {
        true => ended.iter().map(|instance| owned(instance)).collect(),
        false => Vec::new(),
    };
    let ended = if notifies.watches { named_in_notification(ended) } else { Vec::new() };
    let PerQueue { turns: notifies_turns, activities: notifies_activities } = &notifies.queues;
    let (channel, sender) = (db.schema.channel(), &shared.id);

    let leases_one = hand_offs.activities.hand_offs.is_empty() || batch.scheduled().count() == 1;
    let is_alone = batch.commits.len() == 1 && leases_one;

    let client = db.lane().await?;
    *closer = Some(client.closer());
    let mut calls: Vec<Call<'_>> = Vec::new();
    let mut call = |slot, sql, params| calls.push(Call { slot, sql, params, statement: None });
    let sql = &db.statements;
    if !batch.commits.is_empty() {
        let alone = is_alone && !shared.config.batches_only;
        let commit = if alone { &sql.commit_alone } else { &sql.commit };
        call(Slot::Commits, commit, commits.params());
    }
    if !watched.is_empty() {
        call(Slot::Outcomes, &sql.outcomes, vec![(&watched as _, Type::TEXT_ARRAY)]);
    }
    if !batch.messages.is_empty() {
        call(Slot::Messages, &sql.enqueue_messages, messages.params());
    }
    if !batch.activities.is_empty() {
        call(Slot::Nothing, &sql.enqueue_activities, activities.params());
    }
    if !batch.starts.is_empty() {
        call(Slot::Starts, &sql.start, starts.params());
    }
    if !batch.renewals.is_empty() {
        call(Slot::Renewals, &sql.renew, renewals.params());
    }
    if !batch.abandons.is_empty() {
        call(Slot::Abandons, &sql.abandon, abandons.params());
    }
    for (read, secret) in batch.reads.iter().zip(&read_secrets) {
        let params = vec![(&read.ids as _, Type::INT8_ARRAY), (secret as _, Type::BYTEA)];
        call(Slot::Texts, &sql.read_texts, params);
    }
    for columns in &turn_polls {
        call(Slot::Turns, &sql.fetch_turns, columns.params());
    }
    for columns in &activity_polls {
        call(Slot::Activity, &sql.fetch_activities, columns.params());
    }
    if notifies.queues.is_any() || !ended.is_empty() {
        let params: Vec<Param<'_>> = vec![
            (&channel as _, Type::TEXT),
            (sender as _, Type::TEXT),
            (notifies_turns as _, Type::BOOL),
            (notifies_activities as _, Type::BOOL),
            (&ended as _, Type::TEXT_ARRAY),
        ];
        call(Slot::Nothing, &sql.notify, params);
    }
    let exchanged = async {
        let begin = &db.begin_statements(&client).await?.lane;
        if db.prepares {
            // Before the transaction: a call that waits for its statement would be overtaken by the commit.
            // Reads are seldom, and planned for their ids: a plan from when the table was empty would read all of it.
            for call in calls.iter_mut().filter(|call| !matches!(call.slot, Slot::Texts)) {
                call.statement = Some(client.prepared(call.sql, &call.params).await?);
            }
        }
        db.counters.round_trips.add(1);
        shared.fault(Step::Send, || batch.all_subjects());
        *in_doubt = true;
        let client: &Client = &client;
        let sent = calls.iter().map(|call| ask(client, call).boxed());
        // A call is sent when its future is polled first, and the futures are polled in this order.
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
    shared.fault(Step::Receive, || batch.all_subjects());
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
            Slot::Texts => done.texts.push(rows),
            Slot::Turns => done.turns.push(rows),
            Slot::Activity => done.activities.push(rows),
        }
    }
    db.counters.transactions.add(1);
    *in_doubt = false;
    Ok(done)
}

/// The place in [`Done`] for the rows of a call.
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
    Texts,
    Turns,
    Activity,
}

const COMMIT: &str = "COMMIT";

/// A call of one server function.
struct Call<'a> {
    slot: Slot,
    sql: &'a str,
    params: Vec<Param<'a>>,
    /// The prepared statement, if the connection prepares statements.
    statement: Option<Statement>,
}

/// A call that is sent when it is polled first.
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

/// For each lease that a group wants, the index of its fetch.
pub(crate) fn slots(group: &[ActivityFetch]) -> impl Iterator<Item = usize> + '_ {
    group.iter().enumerate().flat_map(|(place, fetch)| std::iter::repeat_n(place, fetch.ask.wants()))
}

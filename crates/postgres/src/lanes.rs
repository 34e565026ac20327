//! Lanes: tasks that each take the next transaction from the scheduler, and send it in one round trip.
//!
//! While one lane waits for the server, requests gather for the next lane, so concurrent calls share a transaction. A lone call
//! waits some milliseconds at most, and only while the server works on a heavy transaction. `serve.rs` hands out the results of a
//! transaction; `failed.rs` decides about the requests of a failed one.

use crate::PostgresError;
use crate::ask::ActivityAsk;
use crate::batch::Batch;
use crate::columns::{
    AbandonColumns, ActivityAskColumns, ActivityColumns, CommitColumns, MessageColumns, RenewColumns,
    StartColumns, TurnColumns,
};
use crate::connect::{Closer, Connection};
use crate::contain::contained;
use crate::db::{self, Db, Param};
use crate::deadline::OwnLimits;
use crate::failed::{Failed, fail};
use crate::in_doubt::{LeasesInDoubt, give_back};
use crate::notify::{Wants, named_in_notification};
use crate::scheduler::{Next, Scheduler};
use crate::serve::finish;
use crate::shared::Shared;
use crate::sql::Statements;
use crate::steps::Step;
use crate::text::owned;
use crate::transaction::{Answers, Done, RowsOf, Transaction, fetch_of_each_lease};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use outlast_provider::Entropy;
use outlast_provider_kit::queue::PerQueue;
use std::future::pending;
use std::iter::once;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row, Statement};

/// Starts the lanes of a store, which end when the store is closed.
pub(crate) fn start(shared: &Arc<Shared>) {
    for _ in 0..shared.config.lanes_in_force() {
        tokio::spawn(run(Arc::clone(shared)));
    }
    if shared.config.has_client_lane() {
        tokio::spawn(run_client_lane(Arc::clone(shared)));
    }
    tokio::spawn(crate::outcomes::run(Arc::clone(shared)));
}

/// Starts a task that searches for leases that a transaction may have taken without their fetches, and gives them back.
pub(crate) fn start_giving_back(shared: &Arc<Shared>, leases: LeasesInDoubt) {
    if !leases.secrets.is_empty() {
        tokio::spawn(give_back(Arc::clone(shared), leases));
    }
}

/// Starts a task that sets messages of leased instances aside, unless one is running.
pub(crate) fn start_setting_aside(shared: &Arc<Shared>) {
    if shared.setting_aside.begin() {
        tokio::spawn(crate::aside::run(Arc::clone(shared)));
    }
}

/// The task of a lane: takes and processes transactions until the store is closed.
async fn run(shared: Arc<Shared>) {
    let next = |scheduler: &mut Scheduler, now| {
        shared.fault(Step::Take, Vec::new);
        scheduler.next(now, &shared.secrets)
    };
    while let Some(transaction) = next_transaction(&shared, &shared.wake_lane, next).await {
        let (load, large) = (transaction.load, transaction.large);
        process_contained(&shared, *transaction).await;
        shared.update(|scheduler, now| scheduler.on_lane_free(load, large, now));
    }
}

/// The client lane: clients do not wait for the other lanes while these are in use.
async fn run_client_lane(shared: Arc<Shared>) {
    let next = |scheduler: &mut Scheduler, now| scheduler.next_of_client_lane(now, &shared.secrets);
    while let Some(transaction) = next_transaction(&shared, &shared.wake_client_lane, next).await {
        let large = transaction.large;
        process_contained(&shared, *transaction).await;
        if let Some(large) = large {
            shared.update(|scheduler, now| scheduler.on_client_lane_free(large, now));
        }
    }
    // This lane may be the last lane of a closed store, and leases of its hand-offs may have been given back.
    run(Arc::clone(&shared)).await;
}

/// Waits for the next transaction of a lane; `None`: the store is closed, and no request waits for this lane. A panic while the
/// transaction is put together drops the requests that were taken for it, whose callers get an error.
async fn next_transaction(
    shared: &Shared,
    wake: &Notify,
    next: impl Fn(&mut Scheduler, Instant) -> Next,
) -> Option<Box<Transaction>> {
    loop {
        match contained(async { shared.update(&next) }).await {
            Ok(Next::Send(transaction)) => return Some(transaction),
            Ok(Next::End) => return None,
            Ok(Next::WaitUntil(at)) => {
                let due = async {
                    match at {
                        Some(at) => sleep_until(at).await,
                        None => pending().await,
                    }
                };
                futures::future::select(std::pin::pin!(wake.notified()), std::pin::pin!(due)).await;
            }
            Err(panic) => shared.panicked("taking requests", &panic),
        }
        // Tasks that were woken with this one submit their requests first, so that they share a transaction.
        tokio::task::yield_now().await;
    }
}

/// Processes a transaction. After a panic the store polls again, because the transaction may be committed.
async fn process_contained(shared: &Arc<Shared>, transaction: Transaction) {
    if let Err(panic) = contained(process(shared, transaction)).await {
        // Callers whose replies were dropped by the panic get an error.
        shared.panicked("answering requests", &panic);
        shared.on_remote_change(PerQueue::BOTH);
    }
}

/// Sends a transaction, and hands out its results or its failure.
async fn process(shared: &Arc<Shared>, transaction: Transaction) {
    let sent = transact(shared, &transaction).await;
    let polls = PerQueue {
        turns: !transaction.polls.turns.is_empty(),
        activities: !transaction.polls.activities.is_empty(),
    };
    shared.update(|scheduler, _| scheduler.on_polls_ended(polls));
    match sent {
        Ok((done, leases)) => finish(shared, transaction, &done, leases),
        // Boxed: this future is rarely needed, and would make the task of every lane larger.
        Err(failed) => Box::pin(fail(shared, transaction, failed)).await,
    }
}

/// Sends a transaction in one round trip, whatever its requests are. Also returns the leases that it has taken.
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
        // Another host may be the primary by now: the next connection searches for the primary.
        closer.close();
        shared.db.close_idle();
    }
    Err(match attempt.in_doubt {
        true => Failed::Unknown(cause, attempt.leases(transaction)),
        false => Failed::Undone(cause),
    })
}

/// The state of an attempt that the caller needs however the attempt ends.
#[derive(Default)]
struct Attempt {
    secrets: PollSecrets,
    closer: Option<Closer>,
    /// Whether the transaction was sent, so that the server may have committed it.
    in_doubt: bool,
}

/// The secrets of the leases that polls ask for, for each group of fetches.
pub(crate) type PollSecrets = PerQueue<Vec<Vec<Vec<u8>>>>;

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

    /// Sends the transaction on a connection of a lane, and reads the answers within the deadline. Stores the secrets, the closer
    /// and the doubt in `self`, so that they are known also after an error.
    async fn run(&mut self, shared: &Shared, transaction: &Transaction) -> Result<Done, PostgresError> {
        #[cfg(feature = "test-hooks")]
        if let Some(link) = &shared.db.modelled {
            return self.run_modelled(shared, transaction, link).await;
        }
        let (db, batch) = (&shared.db, &transaction.batch);
        let Self { secrets, closer, in_doubt } = self;
        // The connection comes first: while a new one opens, a process may register for notifications of this commit.
        let client = db.lane().await?;
        let frees = transaction.frees.without(transaction.puts_off);
        let notifies = transaction.notifies.or(shared.scheduler().notifies(frees));
        *secrets = poll_secrets(shared, transaction);
        shared.fault(Step::Encode, || batch.all_subjects());
        let parameters = Parameters::of(shared, transaction, notifies, secrets)?;
        *closer = Some(client.closer());
        let exchange = exchange(shared, &parameters, &client, in_doubt);
        let answers = match tokio::time::timeout(db.deadline, exchange).await {
            Ok(answers) => answers?,
            Err(_) => {
                db.counters.silent.add(1);
                client.closer().close_and_cancel();
                db.close_idle();
                return Err(PostgresError::Silent { limit: db.deadline });
            }
        };
        shared.fault(Step::Receive, || batch.all_subjects());
        let done = read(answers, in_doubt)?;
        db.counters.transactions.add(1);
        *in_doubt = false;
        Ok(done)
    }
}

#[cfg(feature = "test-hooks")]
impl Attempt {
    /// Sends the transaction to the model of the server.
    async fn run_modelled(
        &mut self,
        shared: &Shared,
        transaction: &Transaction,
        link: &crate::modelled::Link,
    ) -> Result<Done, PostgresError> {
        let frees = transaction.frees.without(transaction.puts_off);
        let notifies = transaction.notifies.or(shared.scheduler().notifies(frees));
        self.secrets = poll_secrets(shared, transaction);
        shared.db.counters.round_trips.add(1);
        self.in_doubt = true;
        let done = link.exchange(transaction, &self.secrets, notifies, &mut self.in_doubt).await?;
        shared.db.counters.transactions.add(1);
        self.in_doubt = false;
        Ok(done)
    }
}

/// Draws one secret for each lease that a poll of the transaction can take.
fn poll_secrets(shared: &Shared, transaction: &Transaction) -> PollSecrets {
    let secrets = |count: usize| -> Vec<Vec<u8>> {
        (0..count).map(|_| shared.secrets.next_u128().to_be_bytes().to_vec()).collect()
    };
    let PerQueue { turns, activities } = &transaction.polls;
    PerQueue {
        turns: turns.groups.iter().map(|group| secrets(group.len())).collect(),
        activities: activities
            .groups
            .iter()
            .map(|group| secrets(fetch_of_each_lease(group).count()))
            .collect(),
    }
}

/// The parameters of all calls of a transaction.
struct Parameters<'a> {
    batch: &'a Batch,
    /// Whether the batch has one commit, which the function for a lone commit takes.
    is_alone: bool,
    commits: CommitColumns,
    messages: MessageColumns,
    activities: ActivityColumns,
    starts: StartColumns,
    renewals: RenewColumns,
    abandons: AbandonColumns,
    read_secrets: Vec<&'a [u8]>,
    turn_polls: Vec<TurnColumns<'a>>,
    activity_polls: Vec<ActivityAskColumns<'a>>,
    /// Ended instances whose outcomes the watches of this process receive with the commit, so that no watch reads its outcome.
    watched: Vec<String>,
    /// The channel and the sender of the notification.
    channel: String,
    sender: &'a String,
    notified_queues: PerQueue<bool>,
    /// Ended instances that other processes are notified of.
    notified_ends: Vec<String>,
}

impl<'a> Parameters<'a> {
    fn of(
        shared: &'a Shared,
        transaction: &'a Transaction,
        notifies: Wants,
        secrets: &'a PollSecrets,
    ) -> Result<Self, PostgresError> {
        let Transaction { batch, polls, hand_offs, asks_next_due, .. } = transaction;
        let turn_polls = polls.turns.groups.iter().zip(&secrets.turns);
        let activity_polls = polls.activities.groups.iter().zip(&secrets.activities);
        let leases_one = hand_offs.activities.hand_offs.is_empty() || batch.scheduled().count() == 1;
        let ended = batch.ends();
        let is_alone = batch.commits.len() == 1 && leases_one && !shared.config.batches_only;
        Ok(Self {
            batch,
            is_alone,
            commits: CommitColumns::of(&batch.commits, &hand_offs.activities)?,
            messages: MessageColumns::of(&batch.messages, &hand_offs.turns),
            activities: ActivityColumns::of(&batch.activities)?,
            starts: StartColumns::of(&batch.starts, batch.messages.len(), &hand_offs.turns),
            renewals: RenewColumns::of(&batch.renewals),
            abandons: AbandonColumns::of(&batch.abandons),
            read_secrets: batch.reads.iter().map(|read| read.lease.secret().as_slice()).collect(),
            turn_polls: turn_polls
                .map(|(group, secrets)| TurnColumns::of(&group[0].ask, secrets, *asks_next_due))
                .collect(),
            activity_polls: activity_polls
                .map(|(group, secrets)| {
                    let asks: Vec<&ActivityAsk> =
                        fetch_of_each_lease(group).map(|fetch| &group[fetch].ask).collect();
                    ActivityAskColumns::of(&group[0].ask, &asks, secrets, *asks_next_due)
                })
                .collect(),
            // The answer of a lone commit has the outcomes.
            watched: match shared.watches.is_watched() && !is_alone {
                true => ended.iter().map(|instance| owned(instance)).collect(),
                false => Vec::new(),
            },
            channel: shared.db.schema.channel(),
            sender: &shared.id,
            notified_queues: notifies.queues,
            notified_ends: if notifies.watches { named_in_notification(ended) } else { Vec::new() },
        })
    }

    /// One call for each kind of request, and one for each group of fetches.
    fn calls<'b>(&'b self, sql: &'b Statements) -> Vec<Call<'b>> {
        let mut calls: Vec<Call<'b>> = Vec::new();
        let mut call = |rows_of, sql, params| calls.push(Call { rows_of, sql, params, statement: None });
        let batch = self.batch;
        if self.is_alone {
            call(RowsOf::Commits, &sql.commit_alone, self.alone_params(&false, &OwnLimits::NONE));
        } else if !batch.commits.is_empty() {
            call(RowsOf::Commits, &sql.commit, self.commits.params());
        }
        if !self.watched.is_empty() {
            call(RowsOf::Outcomes, &sql.outcomes, vec![(&self.watched as _, Type::TEXT_ARRAY)]);
        }
        if !batch.messages.is_empty() {
            call(RowsOf::Messages, &sql.enqueue_messages, self.messages.params());
        }
        if !batch.activities.is_empty() {
            call(RowsOf::Nothing, &sql.enqueue_activities, self.activities.params());
        }
        if !batch.starts.is_empty() {
            call(RowsOf::Starts, &sql.start, self.starts.params());
        }
        if !batch.renewals.is_empty() {
            call(RowsOf::Renewals, &sql.renew, self.renewals.params());
        }
        if !batch.abandons.is_empty() {
            call(RowsOf::Abandons, &sql.abandon, self.abandons.params());
        }
        for (read, secret) in batch.reads.iter().zip(&self.read_secrets) {
            let params = vec![(&read.ids as _, Type::INT8_ARRAY), (secret as _, Type::BYTEA)];
            call(RowsOf::Texts, &sql.read_texts, params);
        }
        for columns in &self.turn_polls {
            call(RowsOf::Turns, &sql.fetch_turns, columns.params());
        }
        for columns in &self.activity_polls {
            call(RowsOf::Activities, &sql.fetch_activities, columns.params());
        }
        if self.notified_queues.is_any() || !self.notified_ends.is_empty() {
            let params: Vec<Param<'_>> = vec![
                (&self.channel as _, Type::TEXT),
                (self.sender as _, Type::TEXT),
                (&self.notified_queues.turns as _, Type::BOOL),
                (&self.notified_queues.activities as _, Type::BOOL),
                (&self.notified_ends as _, Type::TEXT_ARRAY),
            ];
            call(RowsOf::Nothing, &sql.notify, params);
        }
        calls
    }
}

impl Parameters<'_> {
    /// The parameters of `commit_alone_1`.
    fn alone_params<'b>(&'b self, is_transaction: &'b bool, limits: &'b OwnLimits) -> Vec<Param<'b>> {
        let mut params = self.commits.params();
        params.push((is_transaction as _, Type::BOOL));
        params.push((&limits.lock_ms as _, Type::INT8));
        params.push((&limits.statement_ms as _, Type::INT8));
        params
    }
}

/// A call of one server function.
struct Call<'a> {
    rows_of: RowsOf,
    sql: &'a str,
    params: Vec<Param<'a>>,
    /// The prepared statement, if the connection prepares statements.
    statement: Option<Statement>,
}

const COMMIT: &str = "COMMIT";
/// The error of a call that is a transaction of its own, and began with other properties than those of lanes.
const OTHER_BEGIN: &str = "OL002";

/// Sends the calls of a transaction, and then waits for their answers: a lone commit as a transaction of its own, all others between
/// `BEGIN` and `COMMIT`.
async fn exchange(
    shared: &Shared,
    parameters: &Parameters<'_>,
    client: &Connection,
    in_doubt: &mut bool,
) -> Result<Answers, PostgresError> {
    let db = &shared.db;
    let begin = db.begin_statements(client).await?;
    let mut calls = parameters.calls(&db.statements);
    if parameters.is_alone && calls.len() == 1 && db.calls_are_transactions.load(Ordering::Relaxed) {
        calls[0].params = parameters.alone_params(&true, &begin.own);
        prepare(db, client, &mut calls).await?;
        note_sending(shared, parameters.batch, in_doubt);
        // The driver ends the rows of a call only after the answer to its commit.
        let answer = ask(client, &calls[0]).await;
        if !answer.as_ref().is_err_and(|error| error.code().is_some_and(|code| code.code() == OTHER_BEGIN)) {
            return Ok(vec![(calls[0].rows_of, answer)]);
        }
        db.calls_are_transactions.store(false, Ordering::Relaxed);
        *in_doubt = false;
        calls[0].params = parameters.alone_params(&false, &OwnLimits::NONE);
    }
    prepare(db, client, &mut calls).await?;
    note_sending(shared, parameters.batch, in_doubt);
    let client: &Client = client;
    let sent = calls.iter().map(|call| ask(client, call).boxed());
    // A call is sent when its future is polled first, and the futures are polled in this order.
    let all = once(control(client, &begin.lane)).chain(sent).chain(once(control(client, COMMIT)));
    let rows_of = calls.iter().map(|call| call.rows_of);
    let rows_of = once(RowsOf::Begin).chain(rows_of).chain(once(RowsOf::Nothing));
    Ok(rows_of.zip(join_all(all).await).collect())
}

/// Prepares the statements of calls, if connections keep statements. Before the transaction: a call that waits for its statement would be
/// overtaken by the commit. Reads are seldom, and planned for their ids: a plan from when the table was empty would read all of it.
async fn prepare(db: &Db, client: &Connection, calls: &mut [Call<'_>]) -> Result<(), PostgresError> {
    if db.prepares {
        for call in calls.iter_mut().filter(|call| !matches!(call.rows_of, RowsOf::Texts)) {
            call.statement = Some(client.prepared(call.sql, &call.params).await?);
        }
    }
    Ok(())
}

/// Notes that a transaction is sent now: until its answers are read, the server may have committed it.
fn note_sending(shared: &Shared, batch: &Batch, in_doubt: &mut bool) {
    shared.db.counters.round_trips.add(1);
    shared.fault(Step::Send, || batch.all_subjects());
    *in_doubt = true;
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

/// Reads the answers. If one of them is an error of the server, nothing is stored.
fn read(answers: Answers, in_doubt: &mut bool) -> Result<Done, PostgresError> {
    let mut done = Done::default();
    for (rows_of, rows) in answers {
        let rows = rows.map_err(|error| {
            let Some(reported) = error.as_db_error() else {
                return error.into();
            };
            *in_doubt = false;
            match (rows_of, *reported.code() == SqlState::FEATURE_NOT_SUPPORTED) {
                // A standby refuses to begin a transaction that writes.
                (RowsOf::Begin, true) => PostgresError::ReadOnly { details: reported.message().to_string() },
                _ => error.into(),
            }
        })?;
        done.add(rows_of, rows.into_iter().map(crate::row::Row::OfServer));
    }
    Ok(done)
}

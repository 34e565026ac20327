//! The floor in PostgreSQL: stores the same rows with prepared statements on a few connections. All statements of a
//! transaction are sent before the first answer is read. It searches no queue, checks no lease and sends no
//! notification.

use super::{ACTIVITY, DONE, EVENT, START, STEPS, TOKEN, first, id, number, second, waves};
use crate::measure::{Outcome, Tally};
use futures::future::{BoxFuture, FutureExt as _, maybe_done};
use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, NoTls, Statement};

const SCHEMA: &str = "
CREATE TABLE instances (instance_id text PRIMARY KEY, orchestration_name text, orchestration_version text,
    current_execution_id bigint, custom_status_version bigint DEFAULT 0, created_at bigint, updated_at bigint);
CREATE TABLE executions (instance_id text, execution_id bigint, status text, output text, started_at bigint,
    completed_at bigint, PRIMARY KEY (instance_id, execution_id));
CREATE TABLE history (instance_id text, execution_id bigint, event_id bigint, event_type text, event_data text,
    PRIMARY KEY (instance_id, execution_id, event_id));
CREATE TABLE orchestrator_queue (id bigint PRIMARY KEY, instance_id text, work_item text, visible_at bigint,
    lock_token text, locked_until bigint, attempt_count bigint DEFAULT 0);
CREATE TABLE instance_locks (instance_id text PRIMARY KEY, lock_token text, locked_until bigint);
CREATE TABLE worker_queue (id bigint PRIMARY KEY, work_item text, visible_at bigint, lock_token text,
    locked_until bigint, attempt_count bigint DEFAULT 0, instance_id text, execution_id bigint, activity_id bigint);
";

/// Runs the expected number of hello cycles on a few connections; returns the time per cycle.
pub(crate) async fn run(
    url: &str,
    steps_per_transaction: usize,
    connections: usize,
    outcome: &mut Outcome,
) -> Result<Duration, Error> {
    let cycles = outcome.expected;
    let client = connect(url).await?;
    client.batch_execute(SCHEMA).await?;
    let mut prepared = Vec::new();
    for _ in 0..connections {
        prepared.push(PreparedConnection::prepare(connect(url).await?).await?);
    }
    let tally = Tally::begin(Vec::new());
    let begun = Instant::now();
    let mut all = JoinSet::new();
    for (index, connection) in prepared.into_iter().enumerate() {
        all.spawn(async move {
            for wave in waves(cycles, steps_per_transaction).skip(index).step_by(connections) {
                for step in 0..STEPS {
                    let calls = wave.clone().flat_map(|instance| connection.calls(step, instance));
                    connection.transaction(calls.collect()).await?;
                }
            }
            Ok::<_, Error>(connection)
        });
    }
    // Sent bytes are counted while the connections are open.
    let prepared: Vec<PreparedConnection> = all.join_all().await.into_iter().collect::<Result<_, _>>()?;
    let time = begun.elapsed();
    tally.end(Vec::new(), outcome, cycles, "per orchestration");
    drop(prepared);
    let sql = "SELECT count(*) FROM executions WHERE status = 'Completed' AND output = 'hello, world'";
    let completed: i64 = client.query_one(sql, &[]).await?.get(0);
    outcome.completed = usize::try_from(completed).unwrap();
    Ok(time / u32::try_from(cycles).unwrap())
}

async fn connect(url: &str) -> Result<Client, Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// A connection with its prepared statements.
struct PreparedConnection {
    client: Client,
    enqueue: Statement,
    lock: Statement,
    lock_message: Statement,
    unlock: Statement,
    remove_message: Statement,
    instance: Statement,
    execution: Statement,
    event: Statement,
    add_activity: Statement,
    lease_activity: Statement,
    remove_activity: Statement,
    touch: Statement,
    complete: Statement,
}

type Value = Box<dyn ToSql + Sync + Send>;

macro_rules! values {
    ($($value:expr),+) => { vec![$(Box::new($value) as Value),+] };
}

/// A statement with its parameters, not sent yet.
type Call<'a> = BoxFuture<'a, Result<u64, Error>>;

impl PreparedConnection {
    async fn prepare(client: Client) -> Result<Self, Error> {
        let statement = |sql: &'static str| client.prepare(sql);
        Ok(Self {
            enqueue: statement(
                "INSERT INTO orchestrator_queue (id, instance_id, work_item, visible_at) VALUES ($1, $2, $3, 17)",
            )
            .await?,
            lock: statement("INSERT INTO instance_locks VALUES ($1, $2, 17)").await?,
            lock_message: statement(
                "UPDATE orchestrator_queue SET lock_token = $2, locked_until = 17, attempt_count = 1 WHERE id = $1",
            )
            .await?,
            unlock: statement("DELETE FROM instance_locks WHERE instance_id = $1").await?,
            remove_message: statement("DELETE FROM orchestrator_queue WHERE id = $1").await?,
            instance: statement("INSERT INTO instances VALUES ($1, 'Hello', '1.0.0', 1, 0, 17, 17)").await?,
            execution: statement("INSERT INTO executions VALUES ($1, 1, 'Running', NULL, 17, NULL)").await?,
            event: statement("INSERT INTO history VALUES ($1, 1, $2, 'ActivityScheduled', $3)").await?,
            add_activity: statement(
                "INSERT INTO worker_queue (id, work_item, visible_at, instance_id, execution_id, activity_id)
                 VALUES ($1, $2, 17, $3, 1, 2)",
            )
            .await?,
            lease_activity: statement(
                "UPDATE worker_queue SET lock_token = $2, locked_until = 17, attempt_count = 1 WHERE id = $1",
            )
            .await?,
            remove_activity: statement("DELETE FROM worker_queue WHERE id = $1").await?,
            touch: statement("UPDATE instances SET updated_at = 18 WHERE instance_id = $1").await?,
            complete: statement(
                "UPDATE executions SET status = 'Completed', output = 'hello, world', completed_at = 18
                 WHERE instance_id = $1 AND execution_id = 1",
            )
            .await?,
            client,
        })
    }

    fn calls(&self, step: usize, instance: usize) -> Vec<Call<'_>> {
        let (id, row) = (id(instance), number(instance + 1));
        let (first, second) = (first(instance), second(instance));
        match step {
            0 => vec![self.call(&self.enqueue, values![first, id, START])],
            1 => vec![
                self.call(&self.lock, values![id, TOKEN]),
                self.call(&self.lock_message, values![first, TOKEN]),
            ],
            2 => vec![
                self.call(&self.unlock, values![id.clone()]),
                self.call(&self.remove_message, values![first]),
                self.call(&self.instance, values![id.clone()]),
                self.call(&self.execution, values![id.clone()]),
                self.call(&self.event, values![id.clone(), 1_i64, EVENT]),
                self.call(&self.event, values![id.clone(), 2_i64, EVENT]),
                self.call(&self.add_activity, values![row, ACTIVITY, id]),
            ],
            3 => vec![self.call(&self.lease_activity, values![row, TOKEN])],
            4 => vec![
                self.call(&self.remove_activity, values![row]),
                self.call(&self.enqueue, values![second, id, DONE]),
            ],
            5 => vec![
                self.call(&self.lock, values![id, TOKEN]),
                self.call(&self.lock_message, values![second, TOKEN]),
            ],
            _ => vec![
                self.call(&self.unlock, values![id.clone()]),
                self.call(&self.remove_message, values![second]),
                self.call(&self.touch, values![id.clone()]),
                self.call(&self.complete, values![id.clone()]),
                self.call(&self.event, values![id.clone(), 3_i64, EVENT]),
                self.call(&self.event, values![id, 4_i64, EVENT]),
            ],
        }
    }

    fn call<'a>(&'a self, statement: &'a Statement, values: Vec<Value>) -> Call<'a> {
        self.client.execute_raw(statement, values).boxed()
    }

    /// Sends all statements, then reads the answers. Each statement changes one row.
    async fn transaction(&self, calls: Vec<Call<'_>>) -> Result<(), Error> {
        let control = |sql: &'static str| -> Call<'_> {
            async move { self.client.batch_execute(sql).await.map(|()| 1) }.boxed()
        };
        let calls = std::iter::once(control("BEGIN")).chain(calls).chain([control("COMMIT")]);
        let mut calls: Vec<_> = calls.map(|call| Box::pin(maybe_done(call))).collect();
        // A call sends its statement when it is polled for the first time.
        poll_fn(|context| {
            for call in &mut calls {
                let _ = call.poll_unpin(context);
            }
            Poll::Ready(())
        })
        .await;
        for mut call in calls {
            call.as_mut().await;
            let changed = call.as_mut().take_output().expect("the answer is there once")?;
            assert_eq!(changed, 1);
        }
        Ok(())
    }
}

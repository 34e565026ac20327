//! Two workers settle the lease of one turn or activity. The transaction of the first worker stops while it holds the lease's
//! row; then the second worker begins its call; then the first one continues.
//!
//! A trigger in the schema of the test stops the transaction: it waits for a lock that the test holds, so the tests run the
//! shipped code.

use crate::factory::{fresh_config, raw};
use crate::listening::quiet;
use crate::support::*;
use outlast_postgres::PostgresProvider;
use outlast_provider::{OrchestrationItem, Provider, ProviderError, TagFilter};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Fetch,
    Renew,
    Ack,
    Abandon,
}

const OPS: [Op; 4] = [Op::Fetch, Op::Renew, Op::Ack, Op::Abandon];

/// The item whose lease the two workers settle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Turn,
    Work,
}

impl Kind {
    fn table(self) -> &'static str {
        match self {
            Self::Turn => "instance_locks",
            Self::Work => "worker_queue",
        }
    }

    async fn fetch(self, store: &PostgresProvider) -> Result<Option<String>, ProviderError> {
        Ok(match self {
            Self::Turn => store.fetch_orchestration_item(LONG, NO_WAIT, None).await?.map(|turn| turn.1),
            Self::Work => {
                store.fetch_work_item(LONG, NO_WAIT, None, &TagFilter::DefaultOnly).await?.map(|work| work.1)
            }
        })
    }

    /// Runs the worker's call with its token. A fetch returns the token of the fetched item, other calls return none.
    async fn act(
        self,
        op: Op,
        store: &PostgresProvider,
        token: &str,
    ) -> Result<Option<String>, ProviderError> {
        match (op, self) {
            (Op::Fetch, _) => return self.fetch(store).await,
            (Op::Renew, Self::Turn) => store.renew_orchestration_item_lock(token, LONG).await?,
            (Op::Ack, Self::Turn) => ack(store, token, "i").await?,
            (Op::Abandon, Self::Turn) => store.abandon_orchestration_item(token, None, false).await?,
            (Op::Renew, Self::Work) => store.renew_work_item_lock(token, LONG).await?,
            (Op::Ack, Self::Work) => store.ack_work_item(token, Some(completed("i", 2))).await?,
            (Op::Abandon, Self::Work) => store.abandon_work_item(token, None, false).await?,
        }
        Ok(None)
    }

    /// The number of stored turns or outcomes.
    async fn done(self, client: &Client, schema: &str) -> i64 {
        let sql = match self {
            Self::Turn => format!("SELECT count(*) FROM {schema}.history"),
            Self::Work => format!("SELECT count(*) FROM {schema}.orchestrator_queue"),
        };
        client.query_one(&sql, &[]).await.unwrap().get(0)
    }
}

/// The running call of a worker.
type Task = JoinHandle<Result<Option<String>, ProviderError>>;

/// A trigger that stops the first worker after its transaction has changed the row of the lease.
fn stop(schema: &str, table: &str) -> String {
    format!(
        "CREATE FUNCTION {schema}.stop() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             IF current_setting('application_name') = 'first' THEN
                 PERFORM pg_advisory_xact_lock_shared(hashtext('{schema}'));
             END IF;
             RETURN NULL;
         END $$;
         CREATE TRIGGER stop AFTER INSERT OR UPDATE OR DELETE ON {schema}.{table}
         FOR EACH STATEMENT EXECUTE FUNCTION {schema}.stop()"
    )
}

async fn interleave(kind: Kind, first: Op, second: Op) {
    let what = format!("{kind:?}: {first:?} stopped, then {second:?}");
    let config = fresh_config();
    let schema = config.schema_name.clone().unwrap();
    let open = async |name: &str| {
        let config = config.clone().application_name(name).listen(false);
        Arc::new(PostgresProvider::new_with_config(config).await.unwrap())
    };
    let (one, other) = (open("first").await, open("second").await);
    match kind {
        Kind::Turn => enqueue(&*one, "i").await,
        Kind::Work => one.enqueue_for_worker(activity("i", 2)).await.unwrap(),
    }
    let token = kind.fetch(&other).await.unwrap().expect("the item is ready");
    let meddler = raw().await;
    if first == Op::Fetch {
        // The first worker can fetch the item only after its lease has expired; the second worker still has its token.
        let over = format!("UPDATE {schema}.{} SET locked_until = 1", kind.table());
        meddler.execute(&over, &[]).await.unwrap();
    }
    meddler.batch_execute(&stop(&schema, kind.table())).await.unwrap();
    let gate = format!("hashtext('{schema}')");
    meddler.execute(&format!("SELECT pg_advisory_lock({gate})"), &[]).await.unwrap();

    let started = |store: &Arc<PostgresProvider>, op: Op| -> Task {
        let (store, token) = (Arc::clone(store), token.clone());
        tokio::spawn(async move { kind.act(op, &store, &token).await })
    };
    let stopped = started(&one, first);
    let waits = |name: &str| {
        format!(
            "SELECT EXISTS (SELECT 1 FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid
             WHERE NOT l.granted AND a.application_name = '{name}' AND a.query LIKE '%{schema}%')"
        )
    };
    until(&meddler, &waits("first")).await;
    let after = started(&other, second);
    // The second call ends, or waits for the first one.
    let blocked = async {
        while !after.is_finished() {
            if meddler.query_one(&waits("second"), &[]).await.unwrap().get::<_, bool>(0) {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, blocked).await.unwrap_or_else(|_| panic!("{what}: the second call hangs"));
    meddler.execute(&format!("SELECT pg_advisory_unlock({gate})"), &[]).await.unwrap();
    let finish =
        async |task: Task| tokio::time::timeout(PATIENCE, task).await.expect("both calls end").unwrap();
    let (stopped, after) = (finish(stopped).await, finish(after).await);

    // The call of the first worker succeeds, because it locked the row first; the second call finds the row as the first one left
    // it.
    assert!(stopped.is_ok(), "{what}: {stopped:?}");
    let second_succeeds = match (first, second) {
        // The lease that the second worker names has ended, or belongs to the first worker.
        (Op::Fetch, Op::Renew | Op::Ack | Op::Abandon) => false,
        (Op::Ack | Op::Abandon, Op::Renew | Op::Ack | Op::Abandon) => false,
        (Op::Renew, _) | (_, Op::Fetch) => true,
    };
    assert_eq!(after.is_ok(), second_succeeds, "{what}: {after:?}");
    if let Err(error) = &after {
        assert!(!error.is_retryable() && error.message.contains("Invalid lock token"), "{what}: {error}");
    }
    for store in [&one, &other] {
        assert_eq!((store.stats().conflicts, store.stats().alone), (0, 0), "{what}");
    }
    let fetched: Vec<String> =
        [&stopped, &after].into_iter().filter_map(|done| done.clone().ok().flatten()).collect();
    assert!(fetched.len() <= 1, "{what}: leased twice");
    let acked = [(first, &stopped), (second, &after)]
        .iter()
        .filter(|(op, done)| *op == Op::Ack && done.is_ok())
        .count();
    assert_eq!(kind.done(&meddler, &schema).await, i64::try_from(acked).unwrap(), "{what}");

    // After both calls, the turn or the outcome can be stored, once.
    meddler.batch_execute(&format!("DROP FUNCTION {schema}.stop() CASCADE")).await.unwrap();
    if acked == 0 {
        let is_held = matches!((first, second), (Op::Renew, Op::Renew | Op::Fetch));
        let holder = match fetched.first() {
            Some(token) => token.clone(),
            None if is_held => token.clone(),
            None => tokio::time::timeout(Duration::from_secs(5), kind.fetch(&one))
                .await
                .unwrap()
                .unwrap()
                .unwrap_or_else(|| panic!("{what}: the item is lost")),
        };
        kind.act(Op::Ack, &one, &holder).await.unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    assert_eq!(kind.done(&meddler, &schema).await, 1, "{what}");
    assert_eq!(kind.fetch(&other).await.unwrap(), None, "{what}");
}

#[tokio::test]
async fn two_calls_on_one_turn_store_it_once_in_every_order() {
    for first in OPS {
        for second in OPS {
            interleave(Kind::Turn, first, second).await;
        }
    }
}

#[tokio::test]
async fn two_calls_on_one_activity_store_its_outcome_once_in_every_order() {
    for first in OPS {
        for second in OPS {
            interleave(Kind::Work, first, second).await;
        }
    }
}

/// A store without periodic polls, the token of a turn of "i", and a fetch that waits for the next turn.
struct Waiting {
    store: Arc<PostgresProvider>,
    schema: String,
    token: String,
    next: JoinHandle<(OrchestrationItem, String, u32)>,
}

impl Waiting {
    async fn open(batches_only: bool) -> Self {
        let mut config = fresh_config();
        config.idle_poll_interval = LONG;
        config.batches_only = batches_only;
        let schema = config.schema_name.clone().unwrap();
        let store = Arc::new(PostgresProvider::new_with_config(config).await.unwrap());
        enqueue(&*store, "i").await;
        let (_, token, _) = turn(&*store).await;
        let own = Arc::clone(&store);
        let next = tokio::spawn(async move { turn(&*own).await });
        quiet(|| store.stats().polls).await;
        Self { store, schema, token, next }
    }

    /// Commits the turn up to the stop, stores a message, and lets the commit continue. The fetch returns a turn with the
    /// message.
    async fn finds(self, stop: Stop, send_message: impl AsyncFnOnce(&PostgresProvider)) {
        let Self { store, token, next, .. } = self;
        let own = Arc::clone(&store);
        let committed = tokio::spawn(async move { own.commit_turn(&token, begin("i", vec![])).await });
        stop.reached().await;
        send_message(&store).await;
        stop.end().await;
        committed.await.unwrap().unwrap();
        let (item, ..) = next.await.unwrap();
        assert_eq!((item.instance.as_str(), item.messages.len()), ("i", 1));
    }
}

/// The message arrives after the commit has checked for messages, and while the lease still exists.
#[tokio::test]
async fn message_during_a_commit_is_fetched() {
    let waiting = Waiting::open(false).await;
    let stop = Stop::in_commit(&waiting.schema, "history").await;
    let late = async |store: &PostgresProvider| {
        store.enqueue_for_orchestrator(completed("i", 2), None).await.unwrap();
        quiet(|| store.stats().polls).await;
    };
    waiting.finds(stop, late).await;
}

/// Another process stores the message without a notification while the transaction of the commit runs.
#[tokio::test]
async fn unnotified_message_during_a_commit_is_fetched() {
    for batches_only in [true, false] {
        let waiting = Waiting::open(batches_only).await;
        let schema = waiting.schema.clone();
        let stop = Stop::after_insert(&schema, "history").await;
        // The message is visible at least a millisecond after the commit began: times are in whole milliseconds.
        let message = format!(
            "SELECT pg_sleep(0.005);
             INSERT INTO {schema}.orchestrator_queue (instance_id, work_item, visible_at, available_at, begins)
             SELECT 'i', '{}', n.now, n.now, false FROM {schema}.now_ms() AS n (now)",
            serde_json::to_string(&completed("i", 2)).unwrap()
        );
        waiting.finds(stop, async |_: &PostgresProvider| execute(&message).await).await;
    }
}

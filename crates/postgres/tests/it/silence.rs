//! A network that swallows packets: calls are stored once, and fail or continue within their deadlines.

use crate::factory::{fresh_config, fresh_name, raw};
use crate::line::{Flow, Flows, Line, Whose};
use crate::listening::quiet;
use crate::support::*;
use futures::future::BoxFuture;
use outlast_postgres::{ConnectionConfig, PostgresProvider, ProviderConfig};
use outlast_provider::{
    Completion, Interest, Provider, ProviderAdmin, ProviderError, StartPolicy, StartRequest, TagFilter,
    TurnAhead,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::Instant;

/// The deadline of the stores of these tests.
const DEADLINE: Duration = Duration::from_secs(2);
/// The time that a store on a busy machine may need to notice the silence, to connect again and to continue.
const RECOVERY: Duration = Duration::from_secs(10);

fn behind(line: &Line) -> ProviderConfig {
    let mut config = fresh_config().deadline(DEADLINE);
    config.connection = ConnectionConfig::Url(line.url.clone());
    config.acquire_timeout = RECOVERY;
    config
}

/// A store with one connection for all transactions: after it has prepared a statement there, a swallowed transaction is in
/// doubt.
fn one_lane(line: &Line) -> ProviderConfig {
    behind(line).listen(false).lanes(1).pool_size(2)
}

async fn open(config: ProviderConfig) -> Arc<PostgresProvider> {
    Arc::new(PostgresProvider::new_with_config(config).await.unwrap())
}

/// Repeats the start of each instance until it is stored or known to exist.
async fn start_all(store: Arc<PostgresProvider>, ids: Vec<String>) {
    for id in ids {
        loop {
            let (start, policy) = (start(&id), StartPolicy::FailIfExists);
            let request = StartRequest { start, delay: None, policy, messages: vec![] };
            match store.start_orchestration(request).await {
                Ok(_) => break,
                Err(error) => assert!(error.is_retryable(), "{error}"),
            }
        }
    }
}

/// Runs turns until all instances are completed.
async fn run_turns(store: Arc<PostgresProvider>, all: usize) {
    loop {
        match store.fetch_orchestration_item(Duration::from_secs(5), Duration::from_millis(500), None).await {
            Ok(Some((item, token, _))) => match ack(&*store, &token, &item.instance).await {
                Ok(()) => {}
                // The lease expired before the network recovered: the turn runs again.
                Err(error) => {
                    assert!(error.is_retryable() || error.message.contains("lock token"), "{error}")
                }
            },
            Ok(None) => {
                let done = store.list_instances_by_status("Completed").await;
                if done.is_ok_and(|done| done.len() == all) {
                    return;
                }
            }
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
    }
}

/// Changes the flows of open connections under load; every turn is then stored once, within the deadline and the recovery.
async fn all_instances_complete(whose: Whose, flows: Flows) {
    let line = Line::open().await;
    let config = behind(&line);
    let schema = config.schema_name.clone().unwrap();
    let store = open(config).await;
    let ids = |kind: &str| (0..40).map(|n| format!("{kind}{n}")).collect::<Vec<_>>();
    let all = 80;
    let workers: Vec<_> = (0..4).map(|_| tokio::spawn(run_turns(Arc::clone(&store), all))).collect();
    start_all(Arc::clone(&store), ids("before-")).await;
    let starter = tokio::spawn(start_all(Arc::clone(&store), ids("after-")));
    assert!(line.set(whose, flows) > 0, "the line has such a connection");
    let begun = Instant::now();
    let all_done = async {
        starter.await.unwrap();
        for worker in workers {
            worker.await.unwrap();
        }
    };
    tokio::time::timeout(2 * PATIENCE, all_done).await.expect("all instances complete");
    assert!(begun.elapsed() < DEADLINE + RECOVERY, "{:?} with {whose:?}, {flows:?}", begun.elapsed());
    let stored = format!(
        "SELECT count(*) = {all} AND count(DISTINCT instance_id) = {all} FROM {schema}.history
         HAVING NOT EXISTS (SELECT 1 FROM {schema}.orchestrator_queue)"
    );
    until(&raw().await, &format!("SELECT coalesce(({stored}), false)")).await;
}

#[tokio::test]
async fn calls_continue_after_all_connections_are_swallowed() {
    for flows in [Flows::SWALLOW, Flows::SWALLOW_UP, Flows::SWALLOW_DOWN] {
        all_instances_complete(Whose::All, flows).await;
    }
}

#[tokio::test]
async fn calls_continue_after_all_lanes_are_swallowed() {
    for flows in [Flows::SWALLOW, Flows::SWALLOW_UP, Flows::SWALLOW_DOWN] {
        all_instances_complete(Whose::Lanes, flows).await;
    }
}

#[tokio::test]
async fn calls_continue_after_one_lane_is_swallowed() {
    for flows in [Flows::SWALLOW, Flows::SWALLOW_UP, Flows::SWALLOW_DOWN] {
        all_instances_complete(Whose::OneLane, flows).await;
    }
}

#[tokio::test]
async fn calls_continue_over_a_slow_network() {
    let slow = Duration::from_millis(20);
    for flow in [Flow::Delay(slow), Flow::Trickle(Duration::from_millis(1))] {
        all_instances_complete(Whose::All, Flows { up: flow, down: flow }).await;
    }
}

#[tokio::test]
async fn calls_over_a_silent_network_fail_until_it_recovers() {
    let line = Line::open().await;
    let mut config = behind(&line);
    config.acquire_timeout = DEADLINE;
    let store = open(config).await;
    run(&*store, "before").await;
    line.set(Whose::All, Flows::SWALLOW);
    line.set_fresh(Some(Flows::SWALLOW));
    let begun = Instant::now();
    let error = store.enqueue_for_orchestrator(start("during"), None).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    let error = store.read("before").await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    assert!(begun.elapsed() < 2 * (DEADLINE + RECOVERY), "{:?}", begun.elapsed());
    line.set_fresh(Some(Flows::PASS));
    start_all(Arc::clone(&store), vec!["after".to_string()]).await;
    assert_eq!(turn(&*store).await.0.instance, "after");
}

#[tokio::test]
async fn swallowed_read_is_retried() {
    let line = Line::open().await;
    let store = open(behind(&line).listen(false)).await;
    run(&*store, "i").await;
    // The reads open several connections.
    futures::future::join_all((0..8).map(|_| store.read("i"))).await;
    line.set(Whose::All, Flows::SWALLOW);
    let begun = Instant::now();
    assert_eq!(store.read("i").await.unwrap().len(), 1);
    assert!(
        begun.elapsed() < DEADLINE + DEADLINE,
        "after one silent connection the store drops the idle ones"
    );
    assert_eq!(store.stats().silent, 1);
}

#[tokio::test]
async fn swallowed_listener_is_replaced() {
    for flows in [Flows::SWALLOW, Flows::SWALLOW_UP, Flows::SWALLOW_DOWN] {
        let line = Line::open().await;
        let mut config = behind(&line);
        config.idle_poll_interval = LONG;
        let there = open(config.clone()).await;
        config.connection = fresh_config().connection;
        let here = open(config.clone()).await;
        let own = Arc::clone(&there);
        let waiting = tokio::spawn(async move { turn(&*own).await.1 });
        let watch = there.watch_instance("i", Interest::Ended).unwrap();
        quiet(|| there.stats().polls).await;
        assert_eq!(line.set(Whose::Listener, flows), 1);
        let begun = Instant::now();
        enqueue(&*here, "i").await;
        let token = waiting.await.unwrap();
        ack(&*here, &token, "i").await.unwrap();
        tokio::time::timeout(PATIENCE, watch).await.expect("the watch resolves");
        assert!(begun.elapsed() < DEADLINE * 2 + RECOVERY, "{:?}", begun.elapsed());
    }
}

/// Only the listener of an idle process notices the silence. The poll that follows must not wait on another dead connection.
#[tokio::test]
async fn an_idle_process_loses_one_deadline_after_all_its_connections_are_swallowed() {
    let line = Line::open().await;
    let mut config = behind(&line);
    config.idle_poll_interval = LONG;
    let there = open(config.clone()).await;
    config.connection = fresh_config().connection;
    let here = open(config).await;
    let own = Arc::clone(&there);
    let waiting = tokio::spawn(async move { turn(&*own).await.1 });
    quiet(|| there.stats().polls).await;
    let before = there.stats().silent;
    assert!(line.set(Whose::All, Flows::SWALLOW) > 1, "the listener and a lane are open");
    enqueue(&*here, "i").await;
    let token = waiting.await.unwrap();
    assert_eq!(there.stats().silent - before, 1, "connections that did not answer in time");
    ack(&*there, &token, "i").await.unwrap();
}

/// Swallows the answers of the server while a transaction is in COMMIT, which the server then completes.
async fn swallow_commit(line: &Line, stop: Stop) {
    stop.reached().await;
    line.set(Whose::All, Flows::SWALLOW_DOWN);
    stop.end().await;
}

/// Swallows the answers of the server while a transaction is in COMMIT, and lets it wait until the server has undone it.
async fn swallow_and_undo(line: &Line, stop: Stop, store: &PostgresProvider) {
    stop.reached().await;
    line.set(Whose::All, Flows::SWALLOW_DOWN);
    let before = store.stats().silent;
    while store.stats().silent == before {
        tokio::task::yield_now().await;
    }
    stop.end().await;
}

/// The store resends a commit that is stored and not answered; the fence refuses it, and the store recognises its own events.
#[tokio::test]
async fn turn_with_a_swallowed_answer_is_recognised_as_committed() {
    let line = Line::open().await;
    let config = behind(&line);
    let schema = config.schema_name.clone().unwrap();
    let store = open(config).await;
    enqueue(&*store, "i").await;
    let (_, token, _) = turn(&*store).await;
    let stop = Stop::in_commit(&schema, "history").await;
    let commit = store.commit_turn(&token, begin("i", vec![activity("i", 2)]));
    let (committed, ()) = tokio::join!(commit, swallow_commit(&line, stop));
    assert!(committed.unwrap().is_some(), "the commit returns its time");
    assert!(store.stats().resent > 0);
    assert_eq!(store.read("i").await.unwrap().len(), 1);
    assert_eq!(work(&*store).await.2, 1);
}

#[tokio::test]
async fn completion_with_a_swallowed_answer_is_recognised_as_stored() {
    for with_turn in [true, false] {
        let line = Line::open().await;
        let config = behind(&line);
        let schema = config.schema_name.clone().unwrap();
        let store = open(config).await;
        enqueue(&*store, "i").await;
        let (_, token, _) = turn(&*store).await;
        let committed_at = store.commit_turn(&token, begin("i", vec![activity("i", 2)])).await.unwrap();
        let (_, token, _) = work(&*store).await;
        let table = if with_turn { "history" } else { "orchestrator_queue" };
        let stop = Stop::in_commit(&schema, table).await;
        let complete = async {
            if !with_turn {
                return store
                    .ack_work_item(&token, Some(completed("i", 2)))
                    .await
                    .map(|()| Completion::Queued);
            }
            let mut commit = begin("i", vec![]);
            commit.history_delta[0].event_id = 2;
            let ahead = TurnAhead { after_event_id: 1, ran_at_ms: committed_at.unwrap(), commit };
            store.complete_with_turn(&token, completed("i", 2), ahead).await
        };
        let (stored, ()) = tokio::join!(complete, swallow_commit(&line, stop));
        assert_eq!(matches!(stored.unwrap(), Completion::WithTurn { .. }), with_turn);
        let waits = format!("SELECT count(*) = {} FROM {schema}.orchestrator_queue", u8::from(!with_turn));
        until(&raw().await, &waits).await;
    }
}

/// The store resends a renewal and a give-back that the server did not receive, and those whose answers were swallowed; each
/// takes effect once.
#[tokio::test]
async fn leases_given_back_and_renewed_over_a_swallowed_lane_are_settled() {
    const SHORT: Duration = Duration::from_secs(60);
    let line = Line::open().await;
    let config = one_lane(&line);
    let schema = config.schema_name.clone().unwrap();
    let store = open(config).await;
    let client = raw().await;
    let is_leased_for_long = |table: &str| {
        format!(
            "SELECT count(*) = 1 AND bool_and(locked_until > {schema}.now_ms() + {}) FROM {schema}.{table}
             WHERE lock_token IS NOT NULL",
            2 * SHORT.as_millis()
        )
    };
    for (n, flows) in [Flows::SWALLOW_UP, Flows::SWALLOW_DOWN].into_iter().enumerate() {
        let instance = format!("i{n}");
        // The store resends the call of a swallowed lane over another lane.
        let in_doubt = async |call: BoxFuture<'_, Result<(), ProviderError>>| {
            let before = store.stats();
            line.set(Whose::All, flows);
            call.await.unwrap();
            let after = store.stats();
            assert!(after.silent > before.silent && after.resent > before.resent, "{flows:?}");
        };
        enqueue(&*store, &instance).await;
        let (_, token, _) =
            store.fetch_orchestration_item(SHORT, PATIENCE, None).await.unwrap().expect("a turn is ready");
        in_doubt(store.renew_orchestration_item_lock(&token, LONG)).await;
        until(&client, &is_leased_for_long("instance_locks")).await;
        in_doubt(store.abandon_orchestration_item(&token, None, true)).await;
        let (item, token, attempts) = turn(&*store).await;
        assert_eq!((item.instance.as_str(), attempts), (instance.as_str(), 1));
        store.commit_turn(&token, begin(&instance, vec![activity(&instance, 2)])).await.unwrap();

        let fetched = store.fetch_work_item(SHORT, PATIENCE, None, &TagFilter::DefaultOnly).await;
        let (_, token, _) = fetched.unwrap().expect("an activity is ready");
        in_doubt(store.renew_work_item_lock(&token, LONG)).await;
        until(&client, &is_leased_for_long("worker_queue")).await;
        in_doubt(store.abandon_work_item(&token, None, true)).await;
        let (_, token, attempts) = work(&*store).await;
        assert_eq!(attempts, 1);
        store.ack_work_item(&token, None).await.unwrap();
    }
}

#[tokio::test]
async fn starts_and_messages_in_doubt_are_not_resent() {
    let line = Line::open().await;
    let config = one_lane(&line);
    let schema = config.schema_name.clone().unwrap();
    let store = open(config).await;
    let request = |id: &str| StartRequest {
        start: start(id),
        delay: None,
        policy: StartPolicy::FailIfExists,
        messages: vec![],
    };
    store.start_orchestration(request("b-1")).await.unwrap();
    line.set(Whose::All, Flows::SWALLOW_DOWN);
    let started = store.start_orchestration(request("a-1")).await.map(drop);
    store.enqueue_for_orchestrator(completed("b-2", 2), None).await.unwrap();
    line.set(Whose::All, Flows::SWALLOW_DOWN);
    let sent = store.enqueue_for_orchestrator(completed("a-2", 2), None).await;
    store.enqueue_for_worker(activity("b-3", 2)).await.unwrap();
    line.set(Whose::All, Flows::SWALLOW_DOWN);
    let queued = store.enqueue_for_worker(activity("a-3", 2)).await;
    for (answer, instance) in [(started, "a-1"), (sent, "a-2"), (queued, "a-3")] {
        let error = answer.unwrap_err();
        assert!(error.is_retryable(), "{error}");
        let wanted = format!("unknown whether the call for instance '{instance}' was stored");
        assert!(error.message.contains(&wanted), "{error}");
        assert!(error.message.contains("a start may be repeated with the same instance id"), "{error}");
    }
    assert_eq!(store.stats().resent, 0);
    let once = format!(
        "SELECT (SELECT count(*) FROM {schema}.orchestrator_queue) = 4
            AND (SELECT count(*) FROM {schema}.worker_queue) = 2"
    );
    until(&raw().await, &once).await;
}

/// The server leases the turn to a fetch whose answer is swallowed; the store finds the lease and gives it back.
#[tokio::test]
async fn leases_of_a_swallowed_fetch_are_given_back() {
    let line = Line::open().await;
    let store = open(behind(&line).listen(false)).await;
    run(&*store, "other").await;
    enqueue(&*store, "i").await;
    line.set(Whose::All, Flows::SWALLOW_DOWN);
    let begun = Instant::now();
    let fetched = loop {
        match store.fetch_orchestration_item(LONG, PATIENCE, None).await {
            Ok(fetched) => break fetched,
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
    };
    let (item, _, attempts) = fetched.expect("the store gives the lease back before it expires");
    assert_eq!((item.instance.as_str(), attempts), ("i", 1), "no delivery is counted");
    assert!(begun.elapsed() < DEADLINE + RECOVERY);
}

/// The server receives a transaction without its COMMIT, and nothing more from the client.
#[tokio::test]
async fn half_swallowed_transaction_releases_its_locks() {
    let line = Line::open().await;
    let name = fresh_name("half");
    let store = open(one_lane(&line).application_name(&name)).await;
    run(&*store, "other").await;
    enqueue(&*store, "i").await;
    let (_, token, _) = turn(&*store).await;
    let half_way = Flows { up: Flow::SwallowCommit, down: Flow::Swallow };
    line.set(Whose::All, half_way);
    let own = Arc::clone(&store);
    let commit = tokio::spawn(async move { ack(&*own, &token, "i").await });
    let client = raw().await;
    let idle = format!(
        "FROM pg_stat_activity WHERE application_name = '{name}' AND state LIKE 'idle in transaction%'"
    );
    until(&client, &format!("SELECT count(*) = 1 {idle}")).await;
    let begun = Instant::now();
    until(&client, &format!("SELECT count(*) = 0 {idle}")).await;
    assert!(
        begun.elapsed() < DEADLINE,
        "the server ends the transaction before the deadline of the client: {:?}",
        begun.elapsed()
    );
    commit.await.unwrap().unwrap();
    assert_eq!(store.read("i").await.unwrap().len(), 1);
}

/// The limit of the server ends the wait for a lock of another transaction, and the error is retryable.
#[tokio::test]
async fn wait_for_a_lock_is_bounded() {
    let config = fresh_config().deadline(Duration::from_millis(400));
    let schema = config.schema_name.clone().unwrap();
    let store = open(config).await;
    enqueue(&*store, "i").await;
    let (_, token, _) = turn(&*store).await;
    let meddler = raw().await;
    let hold = format!("BEGIN; SELECT 1 FROM {schema}.instance_locks WHERE instance_id = 'i' FOR UPDATE");
    meddler.batch_execute(&hold).await.unwrap();
    let error = ack(&*store, &token, "i").await.unwrap_err();
    assert!(error.is_retryable() && error.message.contains("55P03"), "{error}");
    assert_eq!(store.stats().silent, 0, "the limit of the server is below the deadline");
    meddler.batch_execute("ROLLBACK").await.unwrap();
    ack(&*store, &token, "i").await.unwrap();
}

#[tokio::test]
async fn migrations_and_removals_have_the_long_deadline() {
    let config = fresh_config().deadline(Duration::from_millis(300)).long_deadline(PATIENCE);
    let schema = config.schema_name.clone().unwrap();
    let store = open(config).await;
    run(&*store, "i").await;
    let slow = format!(
        "CREATE FUNCTION {schema}.slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1); RETURN OLD; END $$;
         CREATE TRIGGER slow BEFORE DELETE ON {schema}.history FOR EACH ROW EXECUTE FUNCTION {schema}.slow()"
    );
    execute(&slow).await;
    assert_eq!(store.delete_instance("i", false).await.unwrap().instances_deleted, 1);
}

/// A server that accepts connections and sends nothing.
async fn mute() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((connection, _)) = listener.accept().await {
            kept.push(connection);
        }
    });
    port
}

#[tokio::test]
async fn opening_fails_if_the_server_is_mute() {
    let port = mute().await;
    for mode in ["disable", "prefer", "require"] {
        let mut config = ProviderConfig::url(format!("postgres://u:p@127.0.0.1:{port}/d?sslmode={mode}"));
        config.acquire_timeout = Duration::from_millis(200);
        let opened = PostgresProvider::new_with_config(config);
        let error = tokio::time::timeout(RECOVERY, opened).await.expect("opening ends").unwrap_err();
        assert!(error.is_retryable(), "{error}");
        assert!(error.to_string().contains("did not answer in time"), "{error}");
    }
}

/// The activities of a commit whose answer was swallowed are leased once, whether the server stored the commit or undid it.
#[tokio::test]
async fn activities_of_a_swallowed_commit_are_leased_once() {
    activities_are_run_once(true).await;
    activities_are_run_once(false).await;
}

async fn activities_are_run_once(is_stored: bool) {
    let line = Line::open().await;
    let mut config = behind(&line);
    config.idle_poll_interval = LONG;
    let schema = config.schema_name.clone().unwrap();
    let store = open(config).await;
    enqueue(&*store, "i").await;
    let (_, token, _) = turn(&*store).await;
    let own = Arc::clone(&store);
    let waiting = tokio::spawn(async move {
        loop {
            match own.fetch_work_item(LONG, PATIENCE, None, &TagFilter::DefaultOnly).await {
                Ok(work) => return work.expect("an activity is ready"),
                Err(error) => assert!(error.is_retryable(), "{error}"),
            }
        }
    });
    quiet(|| store.stats().polls).await;
    let stop = Stop::in_commit(&schema, "worker_queue").await;
    let commit = store.commit_turn(&token, begin("i", vec![activity("i", 2)]));
    let swallow = async {
        match is_stored {
            true => swallow_commit(&line, stop).await,
            false => swallow_and_undo(&line, stop, &store).await,
        }
    };
    let (committed, ()) = tokio::join!(commit, swallow);
    committed.unwrap();
    let (_, token, attempts) = waiting.await.unwrap();
    assert_eq!(attempts, 1);
    store.ack_work_item(&token, None).await.unwrap();
    until(&raw().await, &format!("SELECT count(*) = 0 FROM {schema}.worker_queue")).await;
}

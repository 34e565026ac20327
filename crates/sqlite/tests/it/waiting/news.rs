//! A parked fetch is answered as soon as an item is due, and runs no statements before.

use super::*;
use crate::factory::raw;
use outlast_model::wall_clock_ms;
use outlast_provider::{SessionFetchConfig, TurnRequest};
use tokio::time::Instant;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_that_a_call_makes_due_is_fetched_at_once() {
    let _alone = ALONE.lock().await;
    let (_folder, path) = fresh();
    let provider = open_alone(&path).await;
    let mut delays = Delays::default();
    for n in 0..10 {
        every_call(&provider, &format!("i{n}"), &mut delays).await;
    }
    let (median, worst) = median(delays.0);
    assert!(median < 50, "{median} ms (median), {worst} ms (worst)");
}

/// Runs every call that makes an item due, each with a fetch that waits for it.
async fn every_call(provider: &Arc<SqliteProvider>, instance: &str, delays: &mut Delays) {
    let p = &**provider;
    let waiting = parked_turn(provider).await;
    p.enqueue_for_orchestrator(start(instance), None).await.unwrap();
    let token = delays.soon("a start", waiting).await;

    let waiting = parked_work(provider).await;
    first_turn(p, instance, &token).await;
    let token = delays.soon("an activity of a turn", waiting).await;

    let waiting = parked_work(provider).await;
    p.abandon_work_item(&token, None, false).await.unwrap();
    let token = delays.soon("an activity given back", waiting).await;

    let waiting = parked_turn(provider).await;
    p.ack_work_item(&token, Some(completed(instance, 2))).await.unwrap();
    let token = delays.soon("a completion", waiting).await;

    let waiting = parked_turn(provider).await;
    p.abandon_orchestration_item(&token, None, false).await.unwrap();
    let token = delays.soon("a turn given back", waiting).await;

    // A message for a leased instance waits until the turn ends.
    p.enqueue_for_orchestrator(completed(instance, 9), None).await.unwrap();
    let waiting = parked_turn(provider).await;
    last_turn(p, instance, &token).await;
    let token = delays.soon("the message behind a turn", waiting).await;
    ack(p, &token, vec![], vec![], named()).await.unwrap();

    let waiting = parked_work(provider).await;
    p.enqueue_for_worker(activity(instance, 3)).await.unwrap();
    let token = delays.soon("an activity", waiting).await;
    p.ack_work_item(&token, None).await.unwrap();
}

/// Asserts that the fetch is answered after this time, neither before nor much later.
async fn on_time(what: &str, after: Duration, begun: Instant, fetch: JoinHandle<String>) -> String {
    let token = fetch.await.unwrap();
    let took = begun.elapsed().as_millis() as u64;
    let after = after.as_millis() as u64;
    assert!(took + 2 >= after, "{what}: {took} ms are too early, expected {after} ms");
    assert!(took < after + LATE_MS, "{what}: {took} ms are too late, expected {after} ms");
    token
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_that_becomes_due_is_fetched_on_time() {
    let _alone = ALONE.lock().await;
    const SHORT: Duration = Duration::from_millis(150);
    let (_folder, path) = fresh();
    let provider = open_alone(&path).await;
    let p = &*provider;
    create(p, "i").await;

    let begun = Instant::now();
    let fire_at_ms = wall_clock_ms() + 150;
    let timer = WorkItem::TimerFired { instance: "i".to_string(), execution_id: 1, id: 2, fire_at_ms };
    p.enqueue_for_orchestrator(timer, None).await.unwrap();
    let token = on_time("a timer", SHORT, begun, parked_turn(&provider).await).await;
    ack(p, &token, vec![], vec![], named()).await.unwrap();

    // The fetch parks before the message is sent.
    let waiting = parked_turn(&provider).await;
    let begun = Instant::now();
    p.enqueue_for_orchestrator(completed("i", 3), Some(SHORT)).await.unwrap();
    let token = on_time("a delayed message", SHORT, begun, waiting).await;

    let waiting = parked_turn(&provider).await;
    let begun = Instant::now();
    p.abandon_orchestration_item(&token, Some(SHORT), false).await.unwrap();
    let token = on_time("a turn given back with a delay", SHORT, begun, waiting).await;
    p.abandon_orchestration_item(&token, None, false).await.unwrap();

    let begun = Instant::now();
    p.fetch_orchestration_item(SHORT, NO_WAIT, None).await.unwrap().expect("a turn is ready");
    let token = on_time("a turn whose lease ends", SHORT, begun, parked_turn(&provider).await).await;
    ack(p, &token, vec![], vec![], named()).await.unwrap();

    p.enqueue_for_worker(activity("i", 2)).await.unwrap();
    let begun = Instant::now();
    p.fetch_work_item(SHORT, NO_WAIT, None, &ANY).await.unwrap().expect("an activity is ready");
    let token = on_time("an activity whose lease ends", SHORT, begun, parked_work(&provider).await).await;

    let waiting = parked_work(&provider).await;
    let begun = Instant::now();
    p.abandon_work_item(&token, Some(SHORT), false).await.unwrap();
    let token = on_time("an activity given back with a delay", SHORT, begun, waiting).await;
    p.ack_work_item(&token, None).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn activity_of_a_session_is_fetched_when_the_lease_of_its_owner_expires() {
    let _alone = ALONE.lock().await;
    const SHORT: Duration = Duration::from_millis(150);
    let (_folder, path) = fresh();
    let provider = open_alone(&path).await;
    for id in [1, 2] {
        let WorkItem::ActivityExecute { instance, execution_id, name, input, .. } = activity("i", id) else {
            unreachable!()
        };
        let session_id = Some("s".to_string());
        let item =
            WorkItem::ActivityExecute { instance, execution_id, id, name, input, session_id, tag: None };
        provider.enqueue_for_worker(item).await.unwrap();
    }
    let owner = |name: &str, lock_timeout| SessionFetchConfig { owner_id: name.to_string(), lock_timeout };
    let begun = Instant::now();
    provider.fetch_work_item(LONG, NO_WAIT, Some(&owner("first", SHORT)), &ANY).await.unwrap().expect("work");
    let own = Arc::clone(&provider);
    let waiting = parked(&provider, async move {
        own.fetch_work_item(LONG, PATIENCE, Some(&owner("second", LONG)), &ANY)
            .await
            .unwrap()
            .expect("work")
            .1
    });
    on_time("the second activity", SHORT, begun, waiting.await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_runs_no_statements() {
    let _alone = ALONE.lock().await;
    let (_folder, path) = fresh();
    // The store checks for commits of other processes as usual; the check runs no statement on its tables.
    let provider = Arc::new(open(&path).await);
    let own = [Arc::clone(&provider), Arc::clone(&provider)];
    let [first, second] = own;
    let patience = Duration::from_millis(400);
    let turns = parked(&provider, async move { first.fetch_orchestration_item(LONG, patience, None).await });
    let turns = turns.await;
    let work =
        parked(&provider, async move { second.fetch_work_item(LONG, patience, None, &ANY).await }).await;
    // A fetch that finds no item also reads the time of the next one; 50 ms suffice for these statements.
    let _ = timeout(Duration::from_millis(50), std::future::pending::<()>()).await;
    let before = provider.stats();
    assert!(turns.await.unwrap().unwrap().is_none());
    assert!(work.await.unwrap().unwrap().is_none());
    let after = provider.stats();
    assert_eq!((after.statements, after.commits), (before.statements, before.commits));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parked_fetch_is_served_in_the_transaction_that_makes_its_item_due() {
    let (_folder, path) = fresh();
    let provider = open_alone(&path).await;
    let p = &*provider;
    let before = p.stats();
    for n in 0..5 {
        let instance = &format!("i{n}");
        let waiting = parked_turn(&provider).await;
        p.enqueue_for_orchestrator(start(instance), None).await.unwrap();
        let token = waiting.await.unwrap();
        let waiting = parked_work(&provider).await;
        first_turn(p, instance, &token).await;
        let token = waiting.await.unwrap();
        let waiting = parked_turn(&provider).await;
        p.ack_work_item(&token, Some(completed(instance, 2))).await.unwrap();
        last_turn(p, instance, &waiting.await.unwrap()).await;
    }
    let after = p.stats();
    assert_eq!(after.commits - before.commits, 5 * 4, "enqueue, turn, activity, last turn");
    assert_eq!(after.parked_fetches_served - before.parked_fetches_served, 5 * 3);
    for n in 0..5 {
        hello(p, &format!("alone{n}")).await;
    }
    assert_eq!(
        p.stats().commits - after.commits,
        5 * 7,
        "each call without a parked fetch has a commit of its own"
    );
}

/// A writer under constant load still checks the clock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delayed_start_is_fetched_on_time_under_load() {
    let _alone = ALONE.lock().await;
    const SHORT: Duration = Duration::from_millis(200);
    let (_folder, path) = fresh();
    let provider = open_alone(&path).await;
    let loads = load(&provider, 600, tagged_work);
    for n in 0..3 {
        let waiting = {
            let own = Arc::clone(&provider);
            tokio::spawn(async move { turn(&*own).await.1 })
        };
        let begun = Instant::now();
        provider.enqueue_for_orchestrator(start(&format!("i{n}")), Some(SHORT)).await.unwrap();
        on_time("a delayed start", SHORT, begun, waiting).await;
    }
    drop(loads);
}

#[tokio::test]
async fn a_warm_fetch_reads_no_history() {
    let (_folder, path) = fresh();
    let provider = open(&path).await;
    create(&provider, "i").await;
    let events = (2..=10_000).map(|id| scheduled("i", id)).collect();
    provider.append_with_execution("i", 1, events).await.unwrap();
    raw(&path)
        .execute_batch(
            "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1000)
             INSERT INTO kv_store (instance_id, key, value) SELECT 'i', 'k' || n, 'v' FROM n",
        )
        .unwrap();
    provider.enqueue_for_orchestrator(completed("i", 2), None).await.unwrap();
    let request =
        TurnRequest { lock_timeout: LONG, poll_timeout: NO_WAIT, filter: None, with_history: false };
    let before = provider.stats();
    let fetched = provider.fetch_turn(request).await.unwrap().expect("a turn is ready");
    let warm = provider.stats();
    assert_eq!((warm.history_rows_read, warm.kv_rows_read), (before.history_rows_read, before.kv_rows_read));
    assert_eq!((fetched.history_loaded, fetched.last_event_id), (false, Some(10_000)));
    provider.abandon_orchestration_item(&fetched.lock_token, None, true).await.unwrap();
    let request = TurnRequest { with_history: true, ..request };
    let fetched = provider.fetch_turn(request).await.unwrap().expect("a turn is ready");
    assert_eq!((fetched.item.history.len(), fetched.item.kv_snapshot.len()), (10_000, 1_000));
    let cold = provider.stats();
    assert_eq!(cold.history_rows_read - warm.history_rows_read, 10_000, "the counter counts the read events");
    assert_eq!(cold.kv_rows_read - warm.kv_rows_read, 1_000, "the counter counts the read keys");
}

//! P1, P7, P8, P13, P14, P15: what a step costs.

use crate::support::{ALONE, Kind, Node, PATIENCE, Tap, World, activities, calls, orchestrations, pass};
use outlast::providers::sqlite::{SqliteOptions, SqliteProvider};
use outlast::runtime::Runtime;
use outlast::{ActivityContext, Client, Either2, OrchestrationContext, RuntimeOptions};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Counts messages in its key-value store and says how many there were.
async fn counter(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    loop {
        if ctx.dequeue_event("in").await == "end" {
            return Ok(ctx.get_kv_value("count").unwrap_or_default());
        }
        let count = ctx.get_kv_value_typed::<u64>("count")?.unwrap_or(0) + 1;
        ctx.set_kv_value_typed("count", &count);
        ctx.set_custom_status(count.to_string());
    }
}

/// The client has a store object of its own, so that the runtime's counters show what the runtime reads.
#[tokio::test]
async fn p1_a_warm_turn_reads_no_history_and_no_keys_at_any_length() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("store.db").display());
    let quick =
        SqliteOptions { foreign_poll_interval: Duration::from_millis(15), ..SqliteOptions::default() };
    let store = Arc::new(SqliteProvider::new(&url, Some(quick)).await.unwrap());
    let client = Client::new(Arc::new(SqliteProvider::new(&url, None).await.unwrap()));
    let runtime = Runtime::start_with_store(
        store.clone(),
        activities().build(),
        orchestrations().register("Counter", counter).build(),
    )
    .await;
    client.start_orchestration("i", "Counter", "").await.unwrap();
    for version in 1..=150 {
        client.enqueue_event("i", "in", "more").await.unwrap();
        client.wait_for_status_change("i", version - 1, Duration::from_millis(2), PATIENCE).await.unwrap();
        let stats = store.stats();
        assert_eq!((stats.history_rows_read, stats.kv_rows_read), (0, 0), "after {version} messages");
    }
    runtime.shutdown(None).await;
    // A runtime that does not know the instance reads it once.
    let runtime = Runtime::start_with_store(
        store.clone(),
        activities().build(),
        orchestrations().register("Counter", counter).build(),
    )
    .await;
    client.enqueue_event("i", "in", "more").await.unwrap();
    client.wait_for_status_change("i", 150, Duration::from_millis(2), PATIENCE).await.unwrap();
    let cold = store.stats().history_rows_read;
    assert!(cold > 450, "{cold} rows");
    client.enqueue_event("i", "in", "end").await.unwrap();
    client.wait_for_orchestration("i", PATIENCE).await.unwrap();
    assert_eq!(store.stats().history_rows_read, cold, "and is warm from then on");
    runtime.shutdown(None).await;
}

#[tokio::test]
async fn p7_no_activity_reads_a_history() {
    for kind in crate::support::ALL {
        let world = World::real(kind).await;
        let tap = Tap::counting();
        let program = |ctx: OrchestrationContext, _: String| async move {
            let mut seen = String::new();
            for _ in 0..10 {
                seen = ctx.schedule_activity("Who", "").await?;
            }
            Ok(seen)
        };
        let work = activities().register("Who", |ctx: ActivityContext, _: String| async move {
            Ok(format!("{} {}", ctx.orchestration_name(), ctx.orchestration_version()))
        });
        world
            .start_on(tap.around(world.store()), &Node::new(orchestrations().register("P", program), work))
            .await;
        assert_eq!(world.run("i", "P", "").await, "P 1.0.0");
        for call in
            ["read", "read_with_execution", "load_turn", "fetch_orchestration_item", "get_kv_all_values"]
        {
            assert_eq!(tap.count(call), 0, "{call} on {kind:?}");
        }
        world.end().await;
    }
}

/// The best of several, since the machine does other things too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p8_p15_hello_takes_milliseconds_and_its_client_knows_at_once() {
    let _alone = ALONE.lock().await;
    for kind in crate::support::ALL {
        let world = World::real(kind).await;
        let work = activities()
            .register("Work", |_: ActivityContext, _: String| async move { Ok("worked".to_string()) });
        world.start(&Node::new(calls("Work"), work)).await;
        let mut best = Duration::MAX;
        for n in 0..20 {
            let since = Instant::now();
            world.run(&format!("hello-{n}"), "Calls", "").await;
            best = best.min(since.elapsed());
        }
        println!("{kind:?}: {best:?}");
        assert!(best < Duration::from_millis(50), "{kind:?}: {best:?}");
        world.end().await;
    }
}

/// Under paused time a poll would show: nothing moves the clock, because everything is told.
#[tokio::test(start_paused = true)]
async fn p8_p15_nothing_is_polled_for_in_one_process() {
    let world = World::paused(Kind::Memory).await;
    let work = activities()
        .register("Work", |_: ActivityContext, _: String| async move { Ok("worked".to_string()) });
    world.start(&Node::new(calls("Work"), work)).await;
    let since = Instant::now();
    for n in 0..10 {
        world.run(&format!("hello-{n}"), "Calls", "").await;
    }
    assert_eq!(since.elapsed(), Duration::ZERO);
    world.end().await;
}

/// No worker, no second turn: the values are in the first commit.
#[tokio::test]
async fn p13_guids_and_times_cost_no_worker_and_no_turn() {
    for kind in crate::support::ALL {
        let world = World::real(kind).await;
        let tap = Tap::counting();
        let draws = |ctx: OrchestrationContext, _: String| async move {
            for _ in 0..20 {
                ctx.new_guid().await?;
                ctx.utc_now().await?;
            }
            Ok("drawn".to_string())
        };
        let node = Node::new(orchestrations().register("Draws", draws), activities())
            .with(|options| options.worker_concurrency = 0);
        world.start_on(tap.around(world.store()), &node).await;
        assert_eq!(world.run("i", "Draws", "").await, "drawn");
        assert_eq!(tap.count("ack_orchestration_item"), 1, "{kind:?}");
        world.end().await;
    }
}

/// A timer that lost its race writes nothing into the history and reads nothing of it: what fires together costs one
/// commit that takes it off the queue.
#[tokio::test(start_paused = true)]
async fn p14_timers_that_lost_are_dropped_by_their_ids() {
    for kind in crate::support::ALL {
        let world = World::paused(kind).await;
        let tap = Tap::counting();
        let race = |ctx: OrchestrationContext, _: String| async move {
            for _ in 0..5 {
                let timer = ctx.schedule_timer(Duration::from_secs(3));
                match ctx.select2(ctx.schedule_activity("Work", ""), timer).await {
                    Either2::First(result) => result?,
                    Either2::Second(()) => return Err("the timer won".to_string()),
                };
            }
            Ok(ctx.schedule_wait("end").await)
        };
        let work = activities()
            .register("Work", |_: ActivityContext, _: String| async move { Ok("worked".to_string()) });
        world
            .start_on(tap.around(world.store()), &Node::new(orchestrations().register("Race", race), work))
            .await;
        world.begin("i", "Race", "").await;
        pass(Duration::from_secs(1)).await;
        let (events, turns) = (world.history("i").await.len(), tap.count("ack_orchestration_item"));
        pass(Duration::from_secs(10)).await;
        assert_eq!(world.history("i").await.len(), events, "{kind:?}");
        assert!(tap.count("ack_orchestration_item") <= turns + 1, "{kind:?}");
        assert_eq!(tap.count("load_turn"), 0, "{kind:?}");
        world.client.raise_event("i", "end", "ended").await.unwrap();
        assert_eq!(world.output("i").await, "ended");
        world.end().await;
    }
}

/// Messages for an instance that has ended are dropped without reading what it did.
#[tokio::test]
async fn p14_messages_for_an_ended_instance_load_no_history() {
    for kind in crate::support::ALL {
        let world = World::real(kind).await;
        let quick = |_: OrchestrationContext, _: String| async move { Ok("done".to_string()) };
        let node = Node::new(orchestrations().register("Quick", quick), activities());
        let first = world.start(&node).await;
        world.run("i", "Quick", "").await;
        world.stop(first).await;
        // Another runtime, which has never seen the instance.
        let tap = Tap::counting();
        world.start_on(tap.around(world.store()), &node).await;
        for n in 0..5 {
            world.client.raise_event("i", "late", n.to_string()).await.unwrap();
            world.client.enqueue_event("i", "late", n.to_string()).await.unwrap();
        }
        world.run("j", "Quick", "").await;
        while world.client.get_queue_depths().await.unwrap().orchestrator_queue > 0 {
            tokio::task::yield_now().await;
        }
        for call in ["load_turn", "read", "read_with_execution", "fetch_orchestration_item"] {
            assert_eq!(tap.count(call), 0, "{call} on {kind:?}");
        }
        world.end().await;
    }
}

/// An idle runtime leaves the store alone: a waiting fetch per slot, renewed every 30 s.
#[tokio::test(start_paused = true)]
async fn p9_an_idle_runtime_asks_a_handful_of_times_a_minute() {
    let world = World::paused(Kind::Memory).await;
    let tap = Tap::counting();
    world.start_on(tap.around(world.store()), &Node::new(orchestrations(), activities())).await;
    pass(Duration::from_secs(600)).await;
    let slots = RuntimeOptions::default().orchestration_concurrency;
    let asked = tap.count("fetch_turn");
    assert!(asked <= 21 * slots, "{asked} fetches in ten minutes");
    world.end().await;
}

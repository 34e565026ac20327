//! P1, P7, P8, P13, P14, P15: the cost of a step.

use crate::support::{
    ALONE, CallHook, Cluster, Kind, LONGEST_WAIT, Node, activities, calls, orchestrations, pass,
};
use outlast::providers::sqlite::{SqliteOptions, SqliteProvider};
use outlast::runtime::Runtime;
use outlast::{ActivityContext, Client, Either2, OrchestrationContext, RuntimeOptions};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Counts messages in its key-value state and returns the count.
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

/// The client has a separate store object, so that the counters of the runtime's store object show only the runtime's reads.
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
        client
            .wait_for_status_change("i", version - 1, Duration::from_millis(2), LONGEST_WAIT)
            .await
            .unwrap();
        let stats = store.stats();
        assert_eq!((stats.history_rows_read, stats.kv_rows_read), (0, 0), "after {version} messages");
    }
    runtime.shutdown(None).await;
    // A runtime that does not have the instance in its warm cache reads it once.
    let runtime = Runtime::start_with_store(
        store.clone(),
        activities().build(),
        orchestrations().register("Counter", counter).build(),
    )
    .await;
    client.enqueue_event("i", "in", "more").await.unwrap();
    client.wait_for_status_change("i", 150, Duration::from_millis(2), LONGEST_WAIT).await.unwrap();
    let cold = store.stats().history_rows_read;
    assert!(cold > 450, "{cold} rows");
    client.enqueue_event("i", "in", "end").await.unwrap();
    client.wait_for_orchestration("i", LONGEST_WAIT).await.unwrap();
    assert_eq!(store.stats().history_rows_read, cold, "the instance is warm after the first read");
    runtime.shutdown(None).await;
}

#[tokio::test]
async fn p7_running_an_activity_reads_no_history() {
    for kind in crate::support::ALL {
        let cluster = Cluster::real(kind).await;
        let hook = CallHook::counting();
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
        cluster
            .start_on(hook.around(cluster.store()), &Node::new(orchestrations().register("P", program), work))
            .await;
        assert_eq!(cluster.run("i", "P", "").await, "P 1.0.0");
        for call in
            ["read", "read_with_execution", "load_turn", "fetch_orchestration_item", "get_kv_all_values"]
        {
            assert_eq!(hook.count(call), 0, "{call} on {kind:?}");
        }
        cluster.end().await;
    }
}

/// Measures the best of several runs, because of other load on the machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p8_p15_hello_takes_milliseconds_until_its_client_returns() {
    let _alone = ALONE.lock().await;
    for kind in crate::support::ALL {
        let cluster = Cluster::real(kind).await;
        let work = activities()
            .register("Work", |_: ActivityContext, _: String| async move { Ok("worked".to_string()) });
        cluster.start(&Node::new(calls("Work"), work)).await;
        let mut best = Duration::MAX;
        for n in 0..20 {
            let since = Instant::now();
            cluster.run(&format!("hello-{n}"), "Calls", "").await;
            best = best.min(since.elapsed());
        }
        println!("{kind:?}: {best:?}");
        assert!(best < Duration::from_millis(50), "{kind:?}: {best:?}");
        cluster.end().await;
    }
}

/// The start and the first turn are one commit, and the outcome of the activity and the last turn are another. The least of several
/// runs counts: a fetch that is not parked yet when its item becomes visible takes a commit of its own.
#[tokio::test]
async fn p8_an_idle_hello_costs_two_syncs() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("store.db").display());
    let store = Arc::new(SqliteProvider::new(&url, None).await.unwrap());
    let work = activities()
        .register("Work", |_: ActivityContext, _: String| async move { Ok("worked".to_string()) });
    let runtime = Runtime::start_with_store(store.clone(), work.build(), calls("Work").build()).await;
    let client = Client::new(store.clone());
    let mut least = [u64::MAX; 2];
    for n in 0..40 {
        let before = store.stats().commits;
        let (instance, has_receipt) = (format!("hello-{n}"), n % 2);
        match has_receipt {
            0 => client.start_orchestration(&instance, "Calls", "").await.unwrap(),
            _ => {
                assert!(client.start_request("Calls").instance(&instance).send().await.unwrap().is_started())
            }
        }
        client.wait_for_orchestration(&instance, LONGEST_WAIT).await.unwrap();
        least[has_receipt] = least[has_receipt].min(store.stats().commits - before);
    }
    assert_eq!(least, [2, 2]);
    runtime.shutdown(None).await;
}

/// A start with a receipt runs the first turn only for an instance that the store does not know.
#[tokio::test]
async fn p8_a_repeated_start_request_says_that_the_instance_exists() {
    for kind in crate::support::ALL {
        let cluster = Cluster::real(kind).await;
        let work = activities()
            .register("Work", |_: ActivityContext, _: String| async move { Ok("worked".to_string()) });
        cluster.start(&Node::new(calls("Work"), work)).await;
        let client = &cluster.client;
        for n in 0..5 {
            let instance = format!("i{n}");
            let start = async || client.start_request("Calls").instance(&instance).send().await.unwrap();
            let (one, other) = tokio::join!(start(), start());
            assert_ne!(one.is_started(), other.is_started(), "one of two starts finds the other, {kind:?}");
            client.wait_for_orchestration(&instance, LONGEST_WAIT).await.unwrap();
            let late = start().await.started().unwrap_err();
            assert_eq!(late.status.as_deref(), Some("Completed"), "{kind:?}");
            assert_eq!(client.read_execution_history(&instance, 1).await.unwrap().len(), 4, "{kind:?}");
        }
        cluster.end().await;
    }
}

/// Under paused time a poll would advance the clock. The clock does not move, so every wait ends by a notification.
#[tokio::test(start_paused = true)]
async fn p8_p15_one_process_runs_without_polling() {
    let cluster = Cluster::paused(Kind::Memory).await;
    let work = activities()
        .register("Work", |_: ActivityContext, _: String| async move { Ok("worked".to_string()) });
    cluster.start(&Node::new(calls("Work"), work)).await;
    let since = Instant::now();
    for n in 0..10 {
        cluster.run(&format!("hello-{n}"), "Calls", "").await;
    }
    assert_eq!(since.elapsed(), Duration::ZERO);
    cluster.end().await;
}

/// The values are in the first commit: no activity is scheduled and no second turn runs.
#[tokio::test]
async fn p13_guids_and_times_need_no_activity_and_no_second_turn() {
    for kind in crate::support::ALL {
        let cluster = Cluster::real(kind).await;
        let hook = CallHook::counting();
        let draws = |ctx: OrchestrationContext, _: String| async move {
            for _ in 0..20 {
                ctx.new_guid().await?;
                ctx.utc_now().await?;
            }
            Ok("drawn".to_string())
        };
        let node = Node::new(orchestrations().register("Draws", draws), activities())
            .with(|options| options.worker_concurrency = 0);
        cluster.start_on(hook.around(cluster.store()), &node).await;
        assert_eq!(cluster.run("i", "Draws", "").await, "drawn");
        assert_eq!(hook.count("ack_orchestration_item"), 1, "{kind:?}");
        cluster.end().await;
    }
}

/// A timer that lost its race does not read or write the history when it fires: all timers that fire together are removed from
/// the queue in one commit.
#[tokio::test(start_paused = true)]
async fn p14_timers_that_lost_a_race_are_dropped_without_reading_history() {
    for kind in crate::support::ALL {
        let cluster = Cluster::paused(kind).await;
        let hook = CallHook::counting();
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
        cluster
            .start_on(hook.around(cluster.store()), &Node::new(orchestrations().register("Race", race), work))
            .await;
        cluster.begin("i", "Race", "").await;
        pass(Duration::from_secs(1)).await;
        let (events, turns) = (cluster.history("i").await.len(), hook.count("ack_orchestration_item"));
        pass(Duration::from_secs(10)).await;
        assert_eq!(cluster.history("i").await.len(), events, "{kind:?}");
        assert!(hook.count("ack_orchestration_item") <= turns + 1, "{kind:?}");
        assert_eq!(hook.count("load_turn"), 0, "{kind:?}");
        cluster.client.raise_event("i", "end", "ended").await.unwrap();
        assert_eq!(cluster.output("i").await, "ended");
        cluster.end().await;
    }
}

/// Messages for an instance that has ended are dropped without reading its history.
#[tokio::test]
async fn p14_messages_for_an_ended_instance_load_no_history() {
    for kind in crate::support::ALL {
        let cluster = Cluster::real(kind).await;
        let quick = |_: OrchestrationContext, _: String| async move { Ok("done".to_string()) };
        let node = Node::new(orchestrations().register("Quick", quick), activities());
        let first = cluster.start(&node).await;
        cluster.run("i", "Quick", "").await;
        cluster.stop(first).await;
        // Another runtime, which does not have the instance in its warm cache.
        let hook = CallHook::counting();
        cluster.start_on(hook.around(cluster.store()), &node).await;
        for n in 0..5 {
            cluster.client.raise_event("i", "late", n.to_string()).await.unwrap();
            cluster.client.enqueue_event("i", "late", n.to_string()).await.unwrap();
        }
        cluster.run("j", "Quick", "").await;
        while cluster.client.get_queue_depths().await.unwrap().orchestrator_queue > 0 {
            tokio::task::yield_now().await;
        }
        for call in ["load_turn", "read", "read_with_execution", "fetch_orchestration_item"] {
            assert_eq!(hook.count(call), 0, "{call} on {kind:?}");
        }
        cluster.end().await;
    }
}

/// An idle runtime has one parked fetch per slot, repeated every 30 s.
#[tokio::test(start_paused = true)]
async fn p9_an_idle_runtime_fetches_only_at_the_long_poll_timeout() {
    let cluster = Cluster::paused(Kind::Memory).await;
    let hook = CallHook::counting();
    cluster.start_on(hook.around(cluster.store()), &Node::new(orchestrations(), activities())).await;
    pass(Duration::from_secs(600)).await;
    let slots = RuntimeOptions::default().orchestration_concurrency;
    let asked = hook.count("fetch_turn");
    assert!(asked <= 21 * slots, "{asked} fetches in ten minutes");
    cluster.end().await;
}

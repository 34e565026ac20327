//! O4: metrics count each event once.

use crate::support::{Cluster, Held, Kind, Node, activities, calls, orchestrations, pass};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use outlast::providers::{QueueBacklog, StoreGauges};
use outlast::runtime::Runtime;
use outlast::{ActivityContext, BackoffStrategy, OrchestrationContext, RetryPolicy};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Counters and gauges by name and labels. Each read resets them.
pub(super) fn read(snapshotter: &Snapshotter) -> BTreeMap<String, u64> {
    let rows = snapshotter.snapshot().into_vec().into_iter().filter_map(|(key, _, _, value)| {
        let labels: Vec<_> =
            key.key().labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let name = format!("{} {}", key.key().name(), labels.join(","));
        match value {
            DebugValue::Counter(count) => Some((name, count)),
            DebugValue::Gauge(value) => Some((name, value.into_inner() as u64)),
            DebugValue::Histogram(_) => None,
        }
    });
    rows.collect()
}

/// Runs a test on one thread, so that its recorder records only this test.
fn recorded(test: impl Future<Output = ()>) -> BTreeMap<String, u64> {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(test);
    });
    read(&snapshotter)
}

/// Waits until every gauge is read from the store again, which by default happens every minute.
async fn polled() {
    pass(Duration::from_secs(61)).await;
}

fn gauges(runtime: &Arc<Runtime>) -> StoreGauges {
    runtime.observability_handle().unwrap().metrics_provider().get_store_gauges()
}

fn active(runtime: &Arc<Runtime>) -> i64 {
    runtime.observability_handle().unwrap().metrics_provider().get_active_orchestrations()
}

#[test]
fn o4_starts_endings_and_activities_are_counted_once() {
    let rows = recorded(async {
        let cluster = Cluster::paused(Kind::Memory).await;
        let chain = |ctx: OrchestrationContext, _: String| async move {
            for _ in 0..7 {
                ctx.schedule_activity("Work", "").await?;
            }
            ctx.schedule_activity("Fails", "").await.unwrap_err();
            Ok(String::new())
        };
        let again = |ctx: OrchestrationContext, input: String| async move {
            match input.as_str() {
                "1" => ctx.continue_as_new("2").await,
                _ => Err("not today".to_string()),
            }
        };
        let work = activities()
            .register("Work", |_: ActivityContext, _: String| async move { Ok(String::new()) })
            .register("Fails", |_: ActivityContext, _: String| async move { Err("no".to_string()) });
        let all = orchestrations().register("Chain", chain).register("Again", again);
        let node = cluster.start(&Node::new(all, work)).await;
        cluster.run("chain-1", "Chain", "").await;
        cluster.run("chain-2", "Chain", "").await;
        cluster.begin("again-1", "Again", "1").await;
        cluster.failure("again-1").await;
        let runtime = cluster.runtime(node).await;
        let metrics = runtime.metrics_snapshot().unwrap();
        assert_eq!((metrics.orch_starts, metrics.orch_continue_as_new), (4, 1), "{metrics:?}");
        assert_eq!((metrics.orch_failures, metrics.orch_application_errors), (1, 1), "{metrics:?}");
        assert_eq!((metrics.activity_success, metrics.activity_app_errors), (14, 2), "{metrics:?}");
        assert_eq!((metrics.orch_poison, metrics.activity_poison, metrics.provider_errors), (0, 0, 0));
        assert_eq!(active(&runtime), 0);
        cluster.end().await;
    });
    let expected = [
        ("duroxide_orchestration_starts_total orchestration_name=Chain,version=1.0.0,initiated_by=client", 2),
        ("duroxide_orchestration_starts_total orchestration_name=Again,version=1.0.0,initiated_by=client", 1),
        (
            "duroxide_orchestration_starts_total orchestration_name=Again,version=1.0.0,initiated_by=continueAsNew",
            1,
        ),
        (
            "duroxide_orchestration_completions_total orchestration_name=Chain,version=1.0.0,status=success,final_turn_count=6-10",
            2,
        ),
        (
            "duroxide_orchestration_completions_total orchestration_name=Again,version=1.0.0,status=failed,final_turn_count=1-5",
            1,
        ),
        (
            "duroxide_activity_executions_total activity_name=Work,outcome=success,retry_attempt=0,tag=default",
            14,
        ),
        (
            "duroxide_activity_executions_total activity_name=Fails,outcome=app_error,retry_attempt=0,tag=default",
            2,
        ),
    ];
    for (row, count) in expected {
        assert_eq!(rows.get(row), Some(&count), "{row} in {rows:#?}");
    }
}

#[test]
fn o4_a_redelivery_is_counted_as_a_retry_and_the_gauge_follows_the_instance() {
    let rows = recorded(async {
        let cluster = Cluster::paused(Kind::Memory).await;
        let (held, mut begun) = Held::new();
        let node = Node::new(calls("Held"), held.activity(activities(), "Held"));
        let first = cluster.start(&node).await;
        cluster.begin("i", "Calls", "").await;
        begun.recv().await.unwrap();
        polled().await;
        assert_eq!(active(&cluster.runtime(first).await), 1);
        cluster.runtime(first).await.shutdown(Some(0)).await;

        let second = cluster.start(&node).await;
        assert_eq!(begun.recv().await.unwrap().attempt(), 2);
        let runtime = cluster.runtime(second).await;
        assert_eq!(active(&runtime), 1, "read from the store when the runtime started");
        held.release();
        cluster.output("i").await;
        polled().await;
        assert_eq!(active(&runtime), 0);
        cluster.end().await;
    });
    let row =
        "duroxide_activity_executions_total activity_name=Held,outcome=success,retry_attempt=1,tag=default";
    assert_eq!(rows.get(row), Some(&1), "{rows:#?}");
}

/// An orchestration that sleeps for an hour, one that waits for an event, and one that waits for an activity with a tag.
fn sleepers_and_waiters() -> Node {
    let sleeps = |ctx: OrchestrationContext, _: String| async move {
        ctx.schedule_timer(Duration::from_secs(3_600)).await;
        Ok(String::new())
    };
    let waits = |ctx: OrchestrationContext, _: String| async move { Ok(ctx.schedule_wait("go").await) };
    let tagged = |ctx: OrchestrationContext, _: String| async move {
        ctx.schedule_activity("Work", "").with_tag("gpu").await
    };
    let all = orchestrations().register("Sleeps", sleeps).register("Waits", waits).register("Tagged", tagged);
    Node::new(all, activities())
}

#[tokio::test(start_paused = true)]
async fn o4_gauges_of_two_runtimes_match_the_store_also_after_a_kill() {
    for kind in [Kind::Memory, Kind::SqliteFile] {
        let cluster = Cluster::paused(kind).await;
        let node = sleepers_and_waiters();
        let first = cluster.start(&node).await;
        let second = cluster.start_on(cluster.other_process().await, &node).await;
        let (first, second) = (cluster.runtime(first).await, cluster.runtime(second).await);
        for n in 0..4 {
            cluster.begin(&format!("waits-{n}"), "Waits", "").await;
            cluster.begin(&format!("sleeps-{n}"), "Sleeps", "").await;
        }
        // No worker runs its activity.
        cluster.begin("tagged", "Tagged", "").await;
        polled().await;
        let shown = |running| StoreGauges {
            running_instances: running,
            orchestrator_queue: 4,
            worker_queue: 1,
            orchestrator_backlog: Some(QueueBacklog { due: 0, delayed: 4 }),
            worker_backlog: Some(QueueBacklog { due: 1, delayed: 0 }),
        };
        assert_eq!((gauges(&first), gauges(&second)), (shown(9), shown(9)), "{kind:?}");

        // Both runtimes show the same numbers, whichever ran an instance.
        for n in 0..2 {
            cluster.client.raise_event(&format!("waits-{n}"), "go", "").await.unwrap();
            cluster.output(&format!("waits-{n}")).await;
        }
        assert_eq!((active(&first), active(&second)), (9, 9), "{kind:?}: both runtimes read the store");
        polled().await;
        assert_eq!((gauges(&first), gauges(&second)), (shown(7), shown(7)), "{kind:?}");

        Arc::clone(&first).shutdown(Some(0)).await;
        for n in 2..4 {
            cluster.client.raise_event(&format!("waits-{n}"), "go", "").await.unwrap();
            cluster.output(&format!("waits-{n}")).await;
        }
        polled().await;
        assert_eq!(gauges(&second), shown(5), "{kind:?}");
        assert_eq!(active(&first), 7, "the number of the last read");
        let third = cluster.start_on(cluster.other_process().await, &node).await;
        polled().await;
        let third = cluster.runtime(third).await;
        let totals = cluster.client.get_system_metrics().await.unwrap();
        let depths = cluster.client.get_queue_depths().await.unwrap();
        for runtime in [&second, &third] {
            let shown = gauges(runtime);
            assert_eq!(shown, cluster.client.get_gauges().await.unwrap(), "{kind:?}");
            assert_eq!(shown.running_instances, totals.running_instances, "{kind:?}");
            assert_eq!(shown.orchestrator_queue as usize, depths.orchestrator_queue, "{kind:?}");
            assert_eq!(shown.worker_queue as usize, depths.worker_queue, "{kind:?}");
            assert_eq!(active(runtime), 5, "{kind:?}");
        }
        cluster.end().await;
    }
}

#[test]
fn o4_policy_retries_are_counted_with_their_attempt() {
    let rows = recorded(async {
        let cluster = Cluster::paused(Kind::Memory).await;
        let retries = |ctx: OrchestrationContext, _: String| async move {
            let backoff = BackoffStrategy::Fixed { delay: Duration::from_secs(60) };
            let policy = RetryPolicy::new(5).with_backoff(backoff);
            ctx.schedule_activity_with_retry("Third", "", policy).await
        };
        let runs = Arc::new(AtomicU32::new(0));
        let third = activities().register("Third", move |_: ActivityContext, _: String| {
            let run = runs.fetch_add(1, Ordering::Relaxed);
            async move { if run < 3 { Err("not yet".to_string()) } else { Ok(String::new()) } }
        });
        let node = Node::new(orchestrations().register("Retries", retries), third);
        let first = cluster.start(&node).await;
        cluster.begin("i", "Retries", "").await;
        pass(Duration::from_secs(90)).await;
        // The attempt number comes from the history, so a runtime that replays it continues the count.
        let killed = cluster.runtime(first).await;
        Arc::clone(&killed).shutdown(Some(0)).await;
        let second = cluster.start(&node).await;
        cluster.output("i").await;
        let retried = |runtime: &Arc<Runtime>| {
            runtime.observability_handle().unwrap().metrics_provider().outlast_snapshot().activity_retries
        };
        assert_eq!((retried(&killed), retried(&cluster.runtime(second).await)), (1, 2));
        cluster.end().await;
    });
    let expected = [
        (
            "duroxide_activity_executions_total activity_name=Third,outcome=app_error,retry_attempt=0,tag=default",
            1,
        ),
        (
            "duroxide_activity_executions_total activity_name=Third,outcome=app_error,retry_attempt=1,tag=default",
            1,
        ),
        (
            "duroxide_activity_executions_total activity_name=Third,outcome=app_error,retry_attempt=2,tag=default",
            1,
        ),
        (
            "duroxide_activity_executions_total activity_name=Third,outcome=success,retry_attempt=3+,tag=default",
            1,
        ),
        ("outlast_activity_retries_total activity_name=Third,retry_attempt=1,tag=default", 1),
        ("outlast_activity_retries_total activity_name=Third,retry_attempt=2,tag=default", 1),
        ("outlast_activity_retries_total activity_name=Third,retry_attempt=3+,tag=default", 1),
    ];
    for (row, count) in expected {
        assert_eq!(rows.get(row), Some(&count), "{row} in {rows:#?}");
    }
}

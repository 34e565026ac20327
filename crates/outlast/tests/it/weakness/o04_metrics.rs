//! O4: metrics count what happened, once.

use crate::support::{Held, Kind, Node, World, activities, calls, orchestrations};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use outlast::runtime::Runtime;
use outlast::{ActivityContext, OrchestrationContext};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Counters and gauges by name and labels. Emptied by reading.
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

/// On one thread, so that the recorder of this test sees this test and nothing else.
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

fn active(runtime: &Arc<Runtime>) -> i64 {
    runtime.observability_handle().unwrap().metrics_provider().get_active_orchestrations()
}

#[test]
fn o4_starts_endings_and_activities_are_counted_once() {
    let rows = recorded(async {
        let world = World::paused(Kind::Memory).await;
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
        let node = world.start(&Node::new(all, work)).await;
        world.run("chain-1", "Chain", "").await;
        world.run("chain-2", "Chain", "").await;
        world.begin("again-1", "Again", "1").await;
        world.failure("again-1").await;
        let runtime = world.runtime(node).await;
        let metrics = runtime.metrics_snapshot().unwrap();
        assert_eq!((metrics.orch_starts, metrics.orch_continue_as_new), (4, 1), "{metrics:?}");
        assert_eq!((metrics.orch_failures, metrics.orch_application_errors), (1, 1), "{metrics:?}");
        assert_eq!((metrics.activity_success, metrics.activity_app_errors), (14, 2), "{metrics:?}");
        assert_eq!((metrics.orch_poison, metrics.activity_poison, metrics.provider_errors), (0, 0, 0));
        assert_eq!(active(&runtime), 0);
        world.end().await;
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
fn o4_a_second_delivery_is_a_retry_and_the_gauge_follows_the_instance() {
    let rows = recorded(async {
        let world = World::paused(Kind::Memory).await;
        let (held, mut begun) = Held::new();
        let node = Node::new(calls("Held"), held.activity(activities(), "Held"));
        let first = world.start(&node).await;
        world.begin("i", "Calls", "").await;
        begun.recv().await.unwrap();
        assert_eq!(active(&world.runtime(first).await), 1);
        world.runtime(first).await.shutdown(Some(0)).await;

        let second = world.start(&node).await;
        assert_eq!(begun.recv().await.unwrap().attempt(), 2);
        let runtime = world.runtime(second).await;
        assert_eq!(active(&runtime), 1, "counted from the store when the runtime started");
        held.release();
        world.output("i").await;
        assert_eq!(active(&runtime), 0);
        world.end().await;
    });
    let row =
        "duroxide_activity_executions_total activity_name=Held,outcome=success,retry_attempt=1,tag=default";
    assert_eq!(rows.get(row), Some(&1), "{rows:#?}");
}

//! Metrics of sub-orchestration calls: start, outcome and duration.

use super::{Row, recorded};
use crate::support::{Cluster, Kind, Node, activities, orchestrations};
use outlast::{Either2, OrchestrationContext};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Completes after three seconds, fails, or waits until it is cancelled, depending on its input.
async fn child(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    match input.as_str() {
        "completes" => {
            ctx.schedule_timer(3 * SECOND).await;
            Ok(String::new())
        }
        "fails" => Err("not today".to_string()),
        _ => Ok(ctx.schedule_wait("never").await),
    }
}

async fn parent(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    match input.as_str() {
        "drops" => {
            let child = ctx.schedule_sub_orchestration("Child", "waits");
            match ctx.select2(child, ctx.schedule_timer(2 * SECOND)).await {
                Either2::First(_) => return Err("the child waits for ever".to_string()),
                Either2::Second(()) => {}
            }
            // The child's failure by cancellation arrives during this timer.
            ctx.schedule_timer(5 * SECOND).await;
            Ok(String::new())
        }
        "returns" => {
            let _child = ctx.schedule_sub_orchestration("Child", "waits");
            ctx.schedule_timer(4 * SECOND).await;
            Ok(String::new())
        }
        other => ctx.schedule_sub_orchestration("Child", other).await,
    }
}

#[test]
fn each_child_call_is_counted_at_its_start_and_at_its_end_with_outcome_and_duration() {
    let rows = recorded(async {
        let cluster = Cluster::paused(Kind::Memory).await;
        let node =
            Node::new(orchestrations().register("Child", child).register("Parent", parent), activities());
        let number = cluster.start(&node).await;
        for input in ["completes", "fails", "drops", "returns"] {
            cluster.begin(input, "Parent", input).await;
            cluster.ended(input).await;
        }
        let snapshot = cluster.runtime(number).await.metrics_snapshot().unwrap();
        assert_eq!(snapshot.suborchestration_calls, 4, "the snapshot counts a call at its start only");
        cluster.end().await;
    });
    let labels = |outcome| {
        [("parent_orchestration", "Parent"), ("child_orchestration", "Child"), ("outcome", outcome)]
    };
    let of = |name: &str, outcome: &'static str| -> Vec<f64> {
        let found: Vec<&Row> = rows.iter().filter(|row| row.is(name, &labels(outcome))).collect();
        assert!(found.len() <= 1, "{found:?}");
        found.first().map(|row| row.values.clone()).unwrap_or_default()
    };
    let outcomes = ["started", "completed", "failed", "cancelled", "abandoned"];
    let counts = outcomes.map(|outcome| of("duroxide_suborchestration_calls_total", outcome));
    assert_eq!(counts, [vec![4.0], vec![1.0], vec![1.0], vec![1.0], vec![1.0]]);
    let seconds = outcomes.map(|outcome| {
        let durations = of("duroxide_suborchestration_duration_seconds", outcome);
        durations.iter().map(|duration| duration.floor() as u64).collect::<Vec<_>>()
    });
    assert_eq!(seconds, [vec![], vec![3], vec![0], vec![2], vec![4]], "a start has no duration");
    let all = rows.iter().filter(|row| row.name == "duroxide_suborchestration_calls_total").count();
    assert_eq!(all, outcomes.len(), "no other outcome and no other labels");
}

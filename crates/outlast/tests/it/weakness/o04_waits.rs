//! O4: the metrics count a turn before a wait that has seen it returns.

use super::o04_metrics::read;
use crate::support::{Cluster, Hook, Hooked, Kind, LONGEST_WAIT, Node, activities, orchestrations, pass};
use async_trait::async_trait;
use metrics_util::debugging::DebuggingRecorder;
use outlast::{ActivityContext, Client, OrchestrationContext};
use std::sync::Arc;
use std::time::Duration;

/// Answers commits late: after a client can read them, and before a client stops waiting for the count.
struct Late {
    watches: bool,
}

#[async_trait]
impl Hook for Late {
    async fn after(&self, call: &'static str) {
        if call == "ack_orchestration_item" {
            pass(Duration::from_millis(500)).await;
        }
    }

    fn watches(&self) -> bool {
        self.watches
    }
}

#[test]
fn o4_a_wait_returns_after_its_turn_is_counted() {
    for watches in [true, false] {
        let recorder = DebuggingRecorder::new();
        let snapshotter = recorder.snapshotter();
        metrics::with_local_recorder(&recorder, || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
            runtime.unwrap().block_on(async {
                let cluster = Cluster::paused(Kind::Memory).await;
                let store = Hooked::around(cluster.store(), Arc::new(Late { watches }));
                let client = Client::new(Arc::clone(&store));
                let returns = |_: OrchestrationContext, input: String| async move { Ok(input) };
                let node = Node::new(orchestrations().register("Returns", returns), activities());
                let number = cluster.start_on(store, &node).await;
                client.start_orchestration("i", "Returns", "").await.unwrap();
                client.wait_for_orchestration("i", LONGEST_WAIT).await.unwrap();
                let counted = cluster.runtime(number).await.metrics_snapshot().unwrap();
                assert_eq!((counted.orch_starts, counted.orch_completions), (1, 1), "watches: {watches}");
                let rows = read(&snapshotter);
                let row = "duroxide_orchestration_completions_total orchestration_name=Returns,version=1.0.0,status=success,final_turn_count=1-5";
                assert_eq!(rows.get(row), Some(&1), "watches: {watches}, {rows:#?}");
                cluster.end().await;
            });
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn o4_a_thousand_waits_return_after_their_turns_are_counted() {
    for kind in [Kind::Memory, Kind::SqliteFile] {
        let cluster = Cluster::real(kind).await;
        let works = |ctx: OrchestrationContext, input: String| async move {
            match input.as_str() {
                "" => Ok(input),
                _ => ctx.schedule_activity("Work", input).await,
            }
        };
        let work =
            activities().register("Work", |_: ActivityContext, input: String| async move { Ok(input) });
        let number = cluster.start(&Node::new(orchestrations().register("Works", works), work)).await;
        let runtime = cluster.runtime(number).await;
        for n in 1..=1_000_u64 {
            // Every second instance ends with a run-ahead turn.
            cluster.run(&format!("i-{n}"), "Works", if n % 2 == 0 { "" } else { "x" }).await;
            let counted = runtime.metrics_snapshot().unwrap();
            assert_eq!((counted.orch_starts, counted.orch_completions), (n, n), "{kind:?}");
        }
        cluster.end().await;
    }
}

//! Leasing ahead: a node leases more turns and activities than it runs, and no other item suffers for it.

use crate::support::{ALL, ALONE, Cluster, Held, Kind, Node, activities, calls, orchestrations};
use outlast::runtime::Runtime;
use outlast::{ActivityContext, ErrorDetails, OrchestrationContext, OrchestrationStatus};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

const ORDINARY: usize = 1_000;

/// A runtime that code can end as `abort` ends a process.
#[derive(Default)]
struct Process {
    runtime: Mutex<Option<Arc<Runtime>>>,
    has_ended: Notify,
}

impl Process {
    /// The tasks of the runtime are dropped. Nothing that they hold is committed or given back.
    fn abort(&self) {
        if let Some(runtime) = self.runtime.lock().unwrap().take() {
            // The first poll of a shutdown without grace period cancels all tasks.
            let _ = pin!(runtime.shutdown(Some(0))).poll(&mut Context::from_waker(Waker::noop()));
            self.has_ended.notify_one();
        }
    }
}

/// Runs ordinary instances and one that aborts its process, in new processes until all have ended. Returns the number of aborts.
async fn aborts_until_all_end(kind: Kind) -> usize {
    let cluster = Cluster::paused(kind).await;
    let process = Arc::new(Process::default());
    let of_turn = Arc::clone(&process);
    let functions = calls("Work").register("Aborts", move |_: OrchestrationContext, _: String| {
        of_turn.abort();
        std::future::pending()
    });
    let work = activities()
        .register("Work", |_: ActivityContext, _: String| async move { Ok("worked".to_string()) });
    let node = Node::new(functions, work);
    for n in 0..ORDINARY {
        if n == ORDINARY / 2 {
            cluster.begin("aborting", "Aborts", "").await;
        }
        cluster.begin(&format!("ordinary-{n}"), "Calls", "").await;
    }
    let all_ended = async {
        match cluster.ended("aborting").await {
            OrchestrationStatus::Failed { details: ErrorDetails::Poison { .. }, .. } => {}
            other => panic!("the aborting instance is not poisoned: {other:?}"),
        }
        for n in 0..ORDINARY {
            assert_eq!(cluster.output(&format!("ordinary-{n}")).await, "worked");
        }
    };
    let mut all_ended = pin!(all_ended);
    for aborts in 0.. {
        let number = cluster.start(&node).await;
        *process.runtime.lock().unwrap() = Some(cluster.runtime(number).await);
        tokio::select! {
            biased;
            () = process.has_ended.notified() => cluster.forget(number).await,
            () = &mut all_ended => {
                cluster.end().await;
                return aborts;
            }
        }
    }
    unreachable!("the loop ends when all instances have ended")
}

#[tokio::test(start_paused = true)]
async fn only_the_orchestration_that_aborts_its_process_is_poisoned() {
    for kind in ALL {
        assert_eq!(aborts_until_all_end(kind).await, 10, "{kind:?}");
    }
}

/// Schedules as many activities as its input says, at once.
async fn fan_out(ctx: OrchestrationContext, activity: &'static str, input: String) -> Result<String, String> {
    let count: usize = input.parse().map_err(|error| format!("{error}"))?;
    let scheduled = (0..count).map(|_| ctx.schedule_activity(activity, "")).collect();
    let outcomes: Result<Vec<String>, String> = ctx.join(scheduled).await.into_iter().collect();
    outcomes.map(|outcomes| outcomes.len().to_string())
}

/// A node that leases ahead gets activities that run for long, and another node becomes idle: it gets one of them soon.
pub(crate) async fn an_idle_node_gets_unstarted_activities(kind: Kind) {
    const HELD: usize = 20;
    let _alone = ALONE.lock().await;
    let cluster = Cluster::real(kind).await;
    let idle_store = cluster.other_process().await;
    let (held, mut begun) = Held::new();
    let work =
        activities().register("Quick", |_: ActivityContext, _: String| async move { Ok(String::new()) });
    let functions = orchestrations()
        .register("Quick", |ctx: OrchestrationContext, input: String| fan_out(ctx, "Quick", input))
        .register("Held", |ctx: OrchestrationContext, input: String| fan_out(ctx, "Held", input));
    let node = Node::new(functions, held.activity(work, "Held"));
    cluster.start(&node).await;
    assert_eq!(cluster.run("quick", "Quick", "500").await, "500");
    cluster.begin("held", "Held", &HELD.to_string()).await;
    let busy = begun.recv().await.unwrap();
    begun.recv().await.unwrap();
    let since = Instant::now();
    cluster.start_on(idle_store, &node).await;
    let first = begun.recv().await.unwrap();
    let waited = since.elapsed();
    let node_of = |ctx: &ActivityContext| ctx.worker_id().rsplit('-').next().map(str::to_string);
    assert_ne!(node_of(&first), node_of(&busy), "the busy node runs two activities at a time");
    // The promise is 100 ms. Other tests run at the same time, so the limit is ten times as long; without a give-back the idle
    // node would wait for a lease, which is longer.
    assert!(waited < Duration::from_secs(1), "the idle node waited for {waited:?} on {kind:?}");
    (0..HELD).for_each(|_| held.release());
    assert_eq!(cluster.output("held").await, HELD.to_string());
    cluster.end().await;
}

#[tokio::test]
async fn an_idle_process_gets_unstarted_activities_of_a_busy_one() {
    an_idle_node_gets_unstarted_activities(Kind::SqliteFile).await;
}

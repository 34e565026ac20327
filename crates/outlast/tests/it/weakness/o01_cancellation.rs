//! O1: cancellation reaches a running activity at once in the same process, and at its next renewal in another.

use crate::support::{ALL, Cluster, Held, Kind, Node, activities, calls, orchestrations};
use outlast::{Either2, OrchestrationContext};
use std::time::Duration;
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn o1_a_cancelled_instance_reaches_its_activity_at_once() {
    for kind in ALL {
        let cluster = Cluster::paused(kind).await;
        let (held, mut begun) = Held::new();
        cluster.start(&Node::new(calls("Held"), held.activity(activities(), "Held"))).await;
        cluster.begin("i", "Calls", "").await;
        let running = begun.recv().await.unwrap();
        let since = Instant::now();
        cluster.client.cancel_instance("i", "enough").await.unwrap();
        running.cancelled().await;
        assert!(since.elapsed() < Duration::from_millis(200), "{kind:?}: {:?}", since.elapsed());
        cluster.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn o1_the_loser_of_a_race_is_cancelled_at_once() {
    let cluster = Cluster::paused(Kind::Memory).await;
    let (held, mut begun) = Held::new();
    let race = |ctx: OrchestrationContext, _: String| async move {
        let call = ctx.schedule_activity("Held", "");
        match ctx.select2(call, ctx.schedule_wait("enough")).await {
            Either2::First(result) => result,
            Either2::Second(_) => {
                // The instance continues: the activity is cancelled because its future was dropped, not because the instance ended.
                ctx.schedule_wait("end").await;
                Ok("went on".to_string())
            }
        }
    };
    let all = orchestrations().register("Race", race);
    cluster.start(&Node::new(all, held.activity(activities(), "Held"))).await;
    cluster.begin("i", "Race", "").await;
    let running = begun.recv().await.unwrap();
    let since = Instant::now();
    cluster.client.raise_event("i", "enough", "").await.unwrap();
    running.cancelled().await;
    assert!(since.elapsed() < Duration::from_millis(200), "{:?}", since.elapsed());
    cluster.client.raise_event("i", "end", "").await.unwrap();
    assert_eq!(cluster.output("i").await, "went on");
    cluster.end().await;
}

#[tokio::test(start_paused = true)]
async fn o1_an_activity_in_another_process_is_cancelled_at_its_next_renewal() {
    for kind in ALL {
        let cluster = Cluster::paused(kind).await;
        let (held, mut begun) = Held::new();
        let brain = Node::new(calls("Held"), activities()).with(|options| options.worker_concurrency = 0);
        let hands = Node::new(orchestrations(), held.activity(activities(), "Held"))
            .with(|options| options.orchestration_concurrency = 0);
        cluster.start(&brain).await;
        cluster.start(&hands).await;
        cluster.begin("i", "Calls", "").await;
        let running = begun.recv().await.unwrap();
        let since = Instant::now();
        cluster.client.cancel_instance("i", "enough").await.unwrap();
        cluster.failure("i").await;
        running.cancelled().await;
        let waited = since.elapsed();
        assert!(waited <= Duration::from_secs(16), "{kind:?}: {waited:?} for a lease of 30 s");
        cluster.end().await;
    }
}

/// A handler that ignores its cancellation is aborted after the grace period; its slot is free again.
#[tokio::test(start_paused = true)]
async fn an_activity_that_ignores_its_cancellation_is_aborted_after_the_grace_period() {
    let cluster = Cluster::paused(Kind::Memory).await;
    let (held, mut begun) = Held::new();
    let node = Node::new(calls("Held"), held.activity(activities(), "Held")).with(|options| {
        options.worker_concurrency = 1;
        options.activity_cancellation_grace_period = Duration::from_secs(7);
    });
    cluster.start(&node).await;
    cluster.begin("deaf", "Calls", "").await;
    begun.recv().await.unwrap();
    cluster.client.cancel_instance("deaf", "enough").await.unwrap();
    cluster.failure("deaf").await;
    let since = Instant::now();
    cluster.begin("next", "Calls", "").await;
    begun.recv().await.unwrap();
    let waited = since.elapsed().as_secs_f64();
    assert!((6.9..7.5).contains(&waited), "{waited}");
    held.release();
    assert_eq!(cluster.output("next").await, "attempt 1");
    cluster.end().await;
}

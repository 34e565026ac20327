//! O1: cancellation reaches a running activity at once in the same process, and at its next renewal in another.

use crate::support::{ALL, Held, Kind, Node, World, activities, calls, orchestrations};
use outlast::{Either2, OrchestrationContext};
use std::time::Duration;
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn o1_a_cancelled_instance_reaches_its_activity_at_once() {
    for kind in ALL {
        let world = World::paused(kind).await;
        let (held, mut begun) = Held::new();
        world.start(&Node::new(calls("Held"), held.activity(activities(), "Held"))).await;
        world.begin("i", "Calls", "").await;
        let running = begun.recv().await.unwrap();
        let since = Instant::now();
        world.client.cancel_instance("i", "enough").await.unwrap();
        running.cancelled().await;
        assert!(since.elapsed() < Duration::from_millis(200), "{kind:?}: {:?}", since.elapsed());
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn o1_the_loser_of_a_race_is_told_at_once() {
    let world = World::paused(Kind::Memory).await;
    let (held, mut begun) = Held::new();
    let race = |ctx: OrchestrationContext, _: String| async move {
        let call = ctx.schedule_activity("Held", "");
        match ctx.select2(call, ctx.schedule_wait("enough")).await {
            Either2::First(result) => result,
            Either2::Second(_) => {
                // It goes on: the activity is told because it was dropped, not because the instance ended.
                ctx.schedule_wait("end").await;
                Ok("went on".to_string())
            }
        }
    };
    let all = orchestrations().register("Race", race);
    world.start(&Node::new(all, held.activity(activities(), "Held"))).await;
    world.begin("i", "Race", "").await;
    let running = begun.recv().await.unwrap();
    let since = Instant::now();
    world.client.raise_event("i", "enough", "").await.unwrap();
    running.cancelled().await;
    assert!(since.elapsed() < Duration::from_millis(200), "{:?}", since.elapsed());
    world.client.raise_event("i", "end", "").await.unwrap();
    assert_eq!(world.output("i").await, "went on");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn o1_another_process_tells_its_activity_at_the_next_renewal() {
    for kind in ALL {
        let world = World::paused(kind).await;
        let (held, mut begun) = Held::new();
        let brain = Node::new(calls("Held"), activities()).with(|options| options.worker_concurrency = 0);
        let hands = Node::new(orchestrations(), held.activity(activities(), "Held"))
            .with(|options| options.orchestration_concurrency = 0);
        world.start(&brain).await;
        world.start(&hands).await;
        world.begin("i", "Calls", "").await;
        let running = begun.recv().await.unwrap();
        let since = Instant::now();
        world.client.cancel_instance("i", "enough").await.unwrap();
        world.failure("i").await;
        running.cancelled().await;
        let waited = since.elapsed();
        assert!(waited <= Duration::from_secs(16), "{kind:?}: {waited:?} for a lease of 30 s");
        world.end().await;
    }
}

/// A handler that does not listen is aborted after the grace period; its slot is free again.
#[tokio::test(start_paused = true)]
async fn an_activity_that_does_not_listen_is_aborted_after_its_grace_period() {
    let world = World::paused(Kind::Memory).await;
    let (held, mut begun) = Held::new();
    let node = Node::new(calls("Held"), held.activity(activities(), "Held")).with(|options| {
        options.worker_concurrency = 1;
        options.activity_cancellation_grace_period = Duration::from_secs(7);
    });
    world.start(&node).await;
    world.begin("deaf", "Calls", "").await;
    begun.recv().await.unwrap();
    world.client.cancel_instance("deaf", "enough").await.unwrap();
    world.failure("deaf").await;
    let since = Instant::now();
    world.begin("next", "Calls", "").await;
    begun.recv().await.unwrap();
    let waited = since.elapsed().as_secs_f64();
    assert!((6.9..7.5).contains(&waited), "{waited}");
    held.release();
    assert_eq!(world.output("next").await, "attempt 1");
    world.end().await;
}

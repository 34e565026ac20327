//! C8, C15, O5: a runtime that ends hands its work back, at once and without counting a delivery.

use crate::support::{ALL, Fault, Held, Kind, Node, Tap, World, activities, calls};
use outlast::ActivityContext;
use std::time::Duration;
use tokio::time::Instant;

/// More deployments than a message may have deliveries.
const DEPLOYMENTS: usize = 15;

#[tokio::test(start_paused = true)]
async fn c08_deployments_do_not_count_against_an_activity() {
    for kind in ALL {
        let world = World::paused(kind).await;
        let (held, mut begun) = Held::new();
        let node = Node::new(calls("Held"), held.activity(activities(), "Held"));
        world.begin("i", "Calls", "").await;
        for _ in 0..DEPLOYMENTS {
            let runtime = world.start(&node).await;
            let running = begun.recv().await.unwrap();
            assert_eq!(running.attempt(), 1, "{kind:?}");
            world.stop(runtime).await;
        }
        world.start(&node).await;
        held.release();
        assert_eq!(world.output("i").await, "attempt 1", "{kind:?}");
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn c08_deployments_do_not_count_against_a_turn() {
    for kind in ALL {
        let world = World::paused(kind).await;
        let work = || {
            activities().register("Work", |_: ActivityContext, _: String| async move { Ok("worked".into()) })
        };
        let node = Node::new(calls("Work"), work());
        world.begin("i", "Calls", "").await;
        for _ in 0..DEPLOYMENTS {
            // The commit hangs until the runtime gives up.
            let tap =
                Tap::new(|call, _| if call == "ack_orchestration_item" { Fault::Hang } else { Fault::None });
            let runtime = world.start_on(tap.around(world.store()), &node).await;
            while tap.count("ack_orchestration_item") == 0 {
                tokio::task::yield_now().await;
            }
            world.stop(runtime).await;
        }
        world.start(&node).await;
        assert_eq!(world.output("i").await, "worked", "{kind:?}");
        world.end().await;
    }
}

/// The lease would last 30 s more.
#[tokio::test(start_paused = true)]
async fn c15_o5_what_a_runtime_gives_up_is_delivered_at_once() {
    for kind in ALL {
        let world = World::paused(kind).await;
        let (held, mut begun) = Held::new();
        let node = Node::new(calls("Held"), held.activity(activities(), "Held"));
        world.begin("i", "Calls", "").await;
        let first = world.start(&node).await;
        begun.recv().await.unwrap();
        world.runtime(first).await.shutdown(Some(10)).await;
        let since = Instant::now();
        world.start(&node).await;
        begun.recv().await.unwrap();
        assert!(since.elapsed() < Duration::from_secs(1), "{kind:?}: {:?}", since.elapsed());
        held.release();
        world.output("i").await;
        world.end().await;
    }
}

/// A crash gives nothing back: it is delivered when the lease ends, and not before.
#[tokio::test(start_paused = true)]
async fn a_crash_is_delivered_when_the_lease_ends() {
    for kind in ALL {
        let world = World::paused(kind).await;
        let (held, mut begun) = Held::new();
        let node = Node::new(calls("Held"), held.activity(activities(), "Held"));
        world.begin("i", "Calls", "").await;
        let first = world.start(&node).await;
        begun.recv().await.unwrap();
        let since = Instant::now();
        world.runtime(first).await.shutdown(Some(0)).await;
        world.start(&node).await;
        assert_eq!(begun.recv().await.unwrap().attempt(), 2);
        let waited = since.elapsed().as_secs();
        assert!((29..=31).contains(&waited), "{kind:?}: {waited} s");
        held.release();
        world.output("i").await;
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn turns_that_a_runtime_gives_up_are_delivered_at_once() {
    let world = World::paused(Kind::Memory).await;
    let work = activities()
        .register("Work", |_: ActivityContext, _: String| async move { Ok("worked".to_string()) });
    let node = Node::new(calls("Work"), work);
    let tap = Tap::new(|call, _| if call == "ack_orchestration_item" { Fault::Hang } else { Fault::None });
    let first = world.start_on(tap.around(world.store()), &node).await;
    world.begin("i", "Calls", "").await;
    while tap.count("ack_orchestration_item") == 0 {
        tokio::task::yield_now().await;
    }
    world.runtime(first).await.shutdown(Some(10)).await;
    let since = Instant::now();
    world.start(&node).await;
    assert_eq!(world.output("i").await, "worked");
    assert!(since.elapsed() < Duration::from_secs(1), "{:?}", since.elapsed());
    world.end().await;
}

//! C8, C15, O5: a runtime that shuts down gives its leases back at once and without counting a delivery.

use crate::support::{ALL, CallHook, Cluster, Fault, Held, Kind, Node, activities, calls};
use outlast::ActivityContext;
use std::time::Duration;
use tokio::time::Instant;

/// More deployments than `max_attempts`.
const DEPLOYMENTS: usize = 15;

#[tokio::test(start_paused = true)]
async fn c08_deployments_do_not_count_against_an_activity() {
    for kind in ALL {
        let cluster = Cluster::paused(kind).await;
        let (held, mut begun) = Held::new();
        let node = Node::new(calls("Held"), held.activity(activities(), "Held"));
        cluster.begin("i", "Calls", "").await;
        for _ in 0..DEPLOYMENTS {
            let runtime = cluster.start(&node).await;
            let running = begun.recv().await.unwrap();
            assert_eq!(running.attempt(), 1, "{kind:?}");
            cluster.stop(runtime).await;
        }
        cluster.start(&node).await;
        held.release();
        assert_eq!(cluster.output("i").await, "attempt 1", "{kind:?}");
        cluster.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn c08_deployments_do_not_count_against_a_turn() {
    for kind in ALL {
        let cluster = Cluster::paused(kind).await;
        let work = || {
            activities().register("Work", |_: ActivityContext, _: String| async move { Ok("worked".into()) })
        };
        let node = Node::new(calls("Work"), work());
        cluster.begin("i", "Calls", "").await;
        for _ in 0..DEPLOYMENTS {
            // The commit is not answered until the runtime is aborted.
            let hook =
                CallHook::new(
                    |call, _| if call == "ack_orchestration_item" { Fault::Hang } else { Fault::None },
                );
            let runtime = cluster.start_on(hook.around(cluster.store()), &node).await;
            while hook.count("ack_orchestration_item") == 0 {
                tokio::task::yield_now().await;
            }
            cluster.stop(runtime).await;
        }
        cluster.start(&node).await;
        assert_eq!(cluster.output("i").await, "worked", "{kind:?}");
        cluster.end().await;
    }
}

/// Without a give-back the lease would last 30 s more.
#[tokio::test(start_paused = true)]
async fn c15_o5_activities_that_a_shutdown_gives_back_are_delivered_at_once() {
    for kind in ALL {
        let cluster = Cluster::paused(kind).await;
        let (held, mut begun) = Held::new();
        let node = Node::new(calls("Held"), held.activity(activities(), "Held"));
        cluster.begin("i", "Calls", "").await;
        let first = cluster.start(&node).await;
        begun.recv().await.unwrap();
        cluster.runtime(first).await.shutdown(Some(10)).await;
        let since = Instant::now();
        cluster.start(&node).await;
        begun.recv().await.unwrap();
        assert!(since.elapsed() < Duration::from_secs(1), "{kind:?}: {:?}", since.elapsed());
        held.release();
        cluster.output("i").await;
        cluster.end().await;
    }
}

/// A crash gives no lease back: the activity is delivered again when its lease expires, and not before.
#[tokio::test(start_paused = true)]
async fn after_a_crash_an_activity_is_delivered_when_its_lease_expires() {
    for kind in ALL {
        let cluster = Cluster::paused(kind).await;
        let (held, mut begun) = Held::new();
        let node = Node::new(calls("Held"), held.activity(activities(), "Held"));
        cluster.begin("i", "Calls", "").await;
        let first = cluster.start(&node).await;
        begun.recv().await.unwrap();
        let since = Instant::now();
        cluster.runtime(first).await.shutdown(Some(0)).await;
        cluster.start(&node).await;
        assert_eq!(begun.recv().await.unwrap().attempt(), 2);
        let waited = since.elapsed().as_secs();
        assert!((29..=31).contains(&waited), "{kind:?}: {waited} s");
        held.release();
        cluster.output("i").await;
        cluster.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn turns_that_a_shutdown_gives_back_are_delivered_at_once() {
    let cluster = Cluster::paused(Kind::Memory).await;
    let work = activities()
        .register("Work", |_: ActivityContext, _: String| async move { Ok("worked".to_string()) });
    let node = Node::new(calls("Work"), work);
    let hook =
        CallHook::new(|call, _| if call == "ack_orchestration_item" { Fault::Hang } else { Fault::None });
    let first = cluster.start_on(hook.around(cluster.store()), &node).await;
    cluster.begin("i", "Calls", "").await;
    while hook.count("ack_orchestration_item") == 0 {
        tokio::task::yield_now().await;
    }
    cluster.runtime(first).await.shutdown(Some(10)).await;
    let since = Instant::now();
    cluster.start(&node).await;
    assert_eq!(cluster.output("i").await, "worked");
    assert!(since.elapsed() < Duration::from_secs(1), "{:?}", since.elapsed());
    cluster.end().await;
}

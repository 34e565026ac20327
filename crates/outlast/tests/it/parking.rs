//! Parked instances: those whose code changed, panics or is missing in a build wait for the next build.

use crate::support::{ALL, Cluster, Kind, LONGEST_WAIT, Node, activities, orchestrations, pass};
use outlast::providers::{HeldInstance, HoldKind};
use outlast::runtime::OnMisfit;
use outlast::{OrchestrationContext, OrchestrationStatus};
use std::time::Duration;

/// Waits until the instance is held.
async fn held(cluster: &Cluster, instance: &str) -> HeldInstance {
    let held = async {
        loop {
            if let Some(held) = cluster.client.held_instance(instance).await.unwrap() {
                return held;
            }
            pass(Duration::from_millis(5)).await;
        }
    };
    let held = tokio::time::timeout(LONGEST_WAIT, held).await;
    held.unwrap_or_else(|_| panic!("'{instance}' is not held"))
}

async fn takes_two(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.set_custom_status("ready");
    let first = ctx.dequeue_event("go").await;
    Ok(format!("{first} {}", ctx.dequeue_event("go").await))
}

/// The same name with code that does not fit the history of `takes_two`.
async fn sleeps(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.set_custom_status("ready");
    ctx.schedule_timer(Duration::from_secs(1)).await;
    Ok(String::new())
}

async fn panics(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.set_custom_status("ready");
    let first = ctx.dequeue_event("go").await;
    panic!("s3cret {first}")
}

async fn other(_: OrchestrationContext, _: String) -> Result<String, String> {
    Ok("other".to_string())
}

/// A build of the program. The broken one has changed one orchestration, panics in another, and lacks the third.
fn build(id: &'static str, is_broken: bool) -> Node {
    let all = orchestrations().register("Other", other);
    let all = match is_broken {
        true => all.register("Changed", sleeps).register("Panics", panics),
        false => {
            all.register("Changed", takes_two).register("Panics", takes_two).register("Missing", takes_two)
        }
    };
    Node::new(all, activities()).with(move |options| {
        options.on_misfit = OnMisfit::Park;
        options.build_id = id.to_string();
        options.max_attempts = 2;
        options.unregistered_backoff.base_delay = Duration::from_millis(10);
        options.unregistered_backoff.max_delay = Duration::from_millis(10);
    })
}

pub(crate) async fn a_build_that_does_not_fit_parks_and_the_next_build_goes_on(cluster: &Cluster) {
    let client = &cluster.client;
    let first = cluster.start(&build("1", false)).await;
    let parked =
        [("Changed", "the code now asks for"), ("Panics", "panicked"), ("Missing", "not registered")];
    for instance in ["Changed", "Panics", "Missing"] {
        cluster.begin(instance, instance, "").await;
        cluster.says(instance, "ready").await;
    }
    cluster.begin("doomed", "Changed", "").await;
    cluster.says("doomed", "ready").await;
    cluster.stop(first).await;
    let mut histories = Vec::new();
    for (instance, _) in parked {
        histories.push(cluster.history(instance).await);
    }

    let broken = cluster.start_on(cluster.other_process().await, &build("2", true)).await;
    for instance in ["Changed", "Panics", "Missing", "doomed"] {
        client.enqueue_event(instance, "go", "1").await.unwrap();
    }
    let mut holds = Vec::new();
    for (instance, reason) in parked {
        let found = held(cluster, instance).await;
        assert_eq!((found.hold.kind, found.hold.actor.as_str()), (HoldKind::Parked, "build 2"), "{instance}");
        assert!(found.hold.reason.contains(reason), "{instance}: {}", found.hold.reason);
        assert!(!found.hold.reason.contains("s3cret"), "{instance}: {}", found.hold.reason);
        holds.push(found);
    }
    let why = client.diagnose_instance("Panics", 10).await.unwrap().sentence();
    assert!(why.contains("was parked by 'build 2'") && why.contains("instance resume Panics"), "{why}");
    held(cluster, "doomed").await;
    client.cancel_instance("doomed", "enough").await.unwrap();
    assert!(matches!(cluster.ended("doomed").await, OrchestrationStatus::Failed { .. }));

    cluster.stop(broken).await;
    let same = cluster.start_on(cluster.other_process().await, &build("2", true)).await;
    for instance in ["Changed", "Panics", "Missing"] {
        client.enqueue_event(instance, "go", "2").await.unwrap();
    }
    assert_eq!(cluster.run("other", "Other", "").await, "other");
    let counts = client.count_held().await.unwrap().unwrap();
    assert_eq!((counts.instances, counts.messages), (3, 6), "the same build releases nothing");
    for ((instance, _), (hold, history)) in parked.into_iter().zip(holds.into_iter().zip(histories)) {
        assert_eq!(client.held_instance(instance).await.unwrap(), Some(hold));
        assert_eq!(cluster.history(instance).await, history, "the turn that did not fit is not stored");
    }
    cluster.stop(same).await;

    cluster.start_on(cluster.other_process().await, &build("3", false)).await;
    for (instance, _) in parked {
        assert_eq!(cluster.output(instance).await, "1 2", "{instance}");
    }
    assert_eq!(client.count_held().await.unwrap().unwrap().instances, 0);
    cluster.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_build_that_does_not_fit_parks_and_the_next_build_goes_on_under_paused_time() {
    for kind in ALL {
        a_build_that_does_not_fit_parks_and_the_next_build_goes_on(&*Cluster::paused(kind).await).await;
    }
}

#[tokio::test]
async fn a_build_that_does_not_fit_parks_and_the_next_build_goes_on_with_sqlite() {
    a_build_that_does_not_fit_parks_and_the_next_build_goes_on(&*Cluster::real(Kind::SqliteFile).await).await;
}

#[tokio::test]
async fn a_build_that_does_not_fit_parks_and_the_next_build_goes_on_with_cosmos_db() {
    a_build_that_does_not_fit_parks_and_the_next_build_goes_on(&*Cluster::real(Kind::Cosmos).await).await;
}

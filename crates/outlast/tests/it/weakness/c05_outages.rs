//! C5, C11: trouble with the store delays instances. It never fails them, and it is not answered with a hot loop.

use crate::support::{ALL, Fault, Kind, Node, Tap, World, activities, orchestrations, pass};
use outlast::{ActivityContext, OrchestrationContext};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

fn family() -> Node {
    let child = |ctx: OrchestrationContext, _: String| async move { ctx.schedule_activity("Work", "").await };
    let parent = |ctx: OrchestrationContext, _: String| async move {
        ctx.schedule_sub_orchestration("Child", "").await
    };
    Node::new(
        orchestrations().register("Parent", parent).register("Child", child),
        activities()
            .register("Work", |_: ActivityContext, _: String| async move { Ok("worked".to_string()) }),
    )
}

/// The store refuses some calls for a while, longer than any lease: then all is well again.
async fn outage(kind: Kind, calls: &'static [&'static str], fault: fn() -> Fault) -> Arc<Tap> {
    let world = World::paused(kind).await;
    let out = Arc::new(AtomicBool::new(true));
    let still_out = Arc::clone(&out);
    let tap = Tap::new(move |call, _| match still_out.load(SeqCst) && calls.contains(&call) {
        true => fault(),
        false => Fault::None,
    });
    world.start_on(tap.around(world.store()), &family()).await;
    world.begin("i", "Parent", "").await;
    pass(Duration::from_secs(600)).await;
    out.store(false, SeqCst);
    assert_eq!(world.output("i").await, "worked");
    let metrics = world.client.get_system_metrics().await.unwrap();
    assert_eq!((metrics.failed_instances, metrics.completed_instances), (0, 2), "{calls:?}");
    world.end().await;
    tap
}

#[tokio::test(start_paused = true)]
async fn c05_a_commit_that_fails_for_ten_minutes_fails_no_instance() {
    for kind in ALL {
        outage(kind, &["ack_orchestration_item"], || Fault::Transient).await;
    }
}

#[tokio::test(start_paused = true)]
async fn c05_a_commit_that_is_refused_for_ten_minutes_fails_no_instance() {
    outage(Kind::Memory, &["ack_orchestration_item"], || Fault::Permanent).await;
}

#[tokio::test(start_paused = true)]
async fn c05_an_outcome_that_cannot_be_stored_is_stored_later() {
    outage(Kind::Memory, &["ack_work_item"], || Fault::Transient).await;
    outage(Kind::Memory, &["ack_work_item"], || Fault::Permanent).await;
}

/// Histories that cannot be loaded: neither does that count against the instance.
#[tokio::test(start_paused = true)]
async fn c05_an_outage_of_everything_is_survived() {
    const EVERYTHING: &[&str] = &[
        "fetch_turn",
        "load_turn",
        "fetch_work_items",
        "ack_orchestration_item",
        "ack_work_item",
        "abandon_orchestration_item",
        "abandon_work_item",
        "renew_work_item_lock",
        "renew_orchestration_item_lock",
        "renew_session_lock",
    ];
    outage(Kind::Memory, EVERYTHING, || Fault::Transient).await;
}

#[tokio::test(start_paused = true)]
async fn c11_ten_minutes_without_a_store_are_no_hot_loop() {
    let tap = outage(Kind::Memory, &["fetch_turn", "fetch_work_items"], || Fault::Transient).await;
    for call in ["fetch_turn", "fetch_work_items"] {
        let tries = tap.count(call);
        // Two slots, one try in 2.25 s to 3 s.
        assert!((300..700).contains(&tries), "{tries} times {call} in ten minutes");
    }
}

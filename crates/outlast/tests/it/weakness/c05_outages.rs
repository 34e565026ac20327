//! C5, C11: errors of the store delay instances. They fail no instance, and cause no busy loop.

use crate::support::{ALL, CallHook, Cluster, Fault, Kind, Node, activities, orchestrations, pass};
use outlast::providers::Entropy;
use outlast::{ActivityContext, OrchestrationContext};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
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

/// The store fails some calls for longer than any lease, then works again.
async fn outage(kind: Kind, calls: &'static [&'static str], fault: fn() -> Fault) -> Arc<CallHook> {
    let cluster = Cluster::paused(kind).await;
    let out = Arc::new(AtomicBool::new(true));
    let still_out = Arc::clone(&out);
    let hook = CallHook::new(move |call, _| match still_out.load(SeqCst) && calls.contains(&call) {
        true => fault(),
        false => Fault::None,
    });
    cluster.start_on(hook.around(cluster.store()), &family()).await;
    cluster.begin("i", "Parent", "").await;
    pass(Duration::from_secs(600)).await;
    out.store(false, SeqCst);
    assert_eq!(cluster.output("i").await, "worked");
    let metrics = cluster.client.get_system_metrics().await.unwrap();
    assert_eq!((metrics.failed_instances, metrics.completed_instances), (0, 2), "{calls:?}");
    cluster.end().await;
    hook
}

#[tokio::test(start_paused = true)]
async fn c05_a_commit_that_fails_for_ten_minutes_fails_no_instance() {
    for kind in ALL {
        outage(kind, &["ack_orchestration_item"], || Fault::Transient).await;
    }
}

#[tokio::test(start_paused = true)]
async fn c05_a_commit_that_is_rejected_for_ten_minutes_fails_no_instance() {
    outage(Kind::Memory, &["ack_orchestration_item"], || Fault::Permanent).await;
}

#[tokio::test(start_paused = true)]
async fn c05_an_outcome_is_committed_after_an_outage() {
    let hook = outage(Kind::Memory, &["ack_work_item"], || Fault::Transient).await;
    let tries = hook.count("ack_work_item");
    // One attempt in 0.75 s to 1 s.
    assert!((600..900).contains(&tries), "{tries} tries in ten minutes");
    outage(Kind::Memory, &["ack_work_item"], || Fault::Permanent).await;
}

/// Fails the first call of a kind. Returns the number of give-backs until the instance ended.
async fn given_back_after(call: &'static str, fault: fn() -> Fault, give_back: &str) -> usize {
    let cluster = Cluster::paused(Kind::Memory).await;
    let hook = CallHook::new(move |name, nth| if (name, nth) == (call, 0) { fault() } else { Fault::None });
    cluster.start_on(hook.around(cluster.store()), &family()).await;
    assert_eq!(cluster.run("i", "Parent", "").await, "worked");
    let given_back = hook.count(give_back);
    cluster.end().await;
    given_back
}

#[tokio::test(start_paused = true)]
async fn c05_retryable_errors_are_retried_and_permanent_errors_give_the_lease_back() {
    for (call, give_back) in
        [("ack_orchestration_item", "abandon_orchestration_item"), ("ack_work_item", "abandon_work_item")]
    {
        assert_eq!(given_back_after(call, || Fault::Transient, give_back).await, 0, "{call}");
        assert_eq!(given_back_after(call, || Fault::Permanent, give_back).await, 1, "{call}");
    }
}

/// Entropy that does not shorten pauses.
struct Whole;
impl Entropy for Whole {
    fn next_u128(&self) -> u128 {
        0
    }
}

#[tokio::test(start_paused = true)]
async fn c05_a_commit_is_retried_with_backoff_for_the_length_of_a_lease() {
    let cluster = Cluster::paused(Kind::Memory).await;
    let (tries, given_up) = (Arc::new(AtomicUsize::new(0)), AtomicBool::new(false));
    let counted = Arc::clone(&tries);
    let hook = CallHook::new(move |call, _| match (call, given_up.load(SeqCst)) {
        ("ack_orchestration_item", false) => {
            counted.fetch_add(1, SeqCst);
            Fault::Transient
        }
        ("abandon_orchestration_item", false) => {
            given_up.store(true, SeqCst);
            Fault::None
        }
        _ => Fault::None,
    });
    // Attempts after 0, 10, 30, 70, 150, 310, 630 and 1,270 ms.
    let node = family().with(|options| {
        options.entropy = Arc::new(Whole);
        options.orchestrator_lock_timeout = Duration::from_millis(1_270);
    });
    cluster.start_on(hook.around(cluster.store()), &node).await;
    assert_eq!(cluster.run("i", "Parent", "").await, "worked");
    assert_eq!(tries.load(SeqCst), 8);
    cluster.end().await;
}

/// Deliveries whose history cannot be loaded are not counted either.
#[tokio::test(start_paused = true)]
async fn c05_instances_complete_after_an_outage_of_all_calls() {
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
async fn c11_a_ten_minute_outage_causes_no_busy_loop() {
    let hook = outage(Kind::Memory, &["fetch_turn", "fetch_work_items"], || Fault::Transient).await;
    for call in ["fetch_turn", "fetch_work_items"] {
        let tries = hook.count(call);
        // Two slots, one attempt in 2.25 s to 3 s.
        assert!((300..700).contains(&tries), "{tries} times {call} in ten minutes");
    }
}

//! C17: a panic ends only the turn or activity in which it happens, never a slot.

use crate::support::{CallHook, Cluster, Fault, Kind, Node, activities, calls, orchestrations};
use outlast::{ActivityContext, OrchestrationContext};

fn one_slot_each(node: Node) -> Node {
    node.with(|options| {
        options.orchestration_concurrency = 1;
        options.worker_concurrency = 1;
    })
}

/// With one slot per queue, no instance would complete if a slot ended.
#[tokio::test(start_paused = true)]
async fn c17_a_panic_in_any_store_call_ends_no_slot() {
    const CALLS: [&str; 5] =
        ["fetch_turn", "load_turn", "fetch_work_items", "ack_orchestration_item", "ack_work_item"];
    for panicking in CALLS {
        let cluster = Cluster::paused(Kind::Memory).await;
        let hook = CallHook::new(move |call, nth| match call == panicking && nth < 3 {
            true => Fault::Panic,
            false => Fault::None,
        });
        let work = activities()
            .register("Work", |_: ActivityContext, _: String| async move { Ok("worked".to_string()) });
        cluster.start_on(hook.around(cluster.store()), &one_slot_each(Node::new(calls("Work"), work))).await;
        for instance in ["a", "b", "c"] {
            assert_eq!(cluster.run(instance, "Calls", "").await, "worked", "{panicking}");
        }
        cluster.end().await;
    }
}

/// Separate tasks renew leases and sessions and read gauges: a panic must not end them either.
#[tokio::test(start_paused = true)]
async fn c17_a_panic_in_a_renewal_loses_no_activity() {
    let cluster = Cluster::paused(Kind::Memory).await;
    let hook = CallHook::new(|call, nth| match call.starts_with("renew_") && nth < 2 {
        true => Fault::Panic,
        false => Fault::None,
    });
    let work = activities().register("Long", |ctx: ActivityContext, _: String| async move {
        crate::support::pass(std::time::Duration::from_secs(100)).await;
        Ok(format!("attempt {}", ctx.attempt()))
    });
    cluster.start_on(hook.around(cluster.store()), &one_slot_each(Node::new(calls("Long"), work))).await;
    let output = cluster.run("i", "Calls", "").await;
    assert!(output.starts_with("attempt "), "{output}");
    assert!(hook.count("renew_work_item_lock") > 2, "renewals continue");
    cluster.end().await;
}

#[tokio::test]
async fn c17_a_panic_in_an_activity_is_an_error_of_that_activity() {
    let cluster = Cluster::real(Kind::Memory).await;
    let work = activities()
        .register("Panics", |_: ActivityContext, input: String| async move { panic!("no {input}") })
        .register("Works", |_: ActivityContext, _: String| async move { Ok("worked".to_string()) });
    let program = |ctx: OrchestrationContext, _: String| async move {
        for _ in 0..5 {
            let error = ctx.schedule_activity("Panics", "way").await.unwrap_err();
            if !error.contains("panic") {
                return Err(error);
            }
        }
        ctx.schedule_activity("Works", "").await
    };
    cluster.start(&one_slot_each(Node::new(orchestrations().register("Program", program), work))).await;
    assert_eq!(cluster.run("i", "Program", "").await, "worked");
    cluster.end().await;
}

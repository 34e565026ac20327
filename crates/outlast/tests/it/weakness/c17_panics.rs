//! C17: a panic costs what it happened in, never a loop.

use crate::support::{Fault, Kind, Node, Tap, World, activities, calls, orchestrations};
use outlast::{ActivityContext, OrchestrationContext};

fn one_slot_each(node: Node) -> Node {
    node.with(|options| {
        options.orchestration_concurrency = 1;
        options.worker_concurrency = 1;
    })
}

/// With one slot per queue, a loop that ended would be missed.
#[tokio::test(start_paused = true)]
async fn c17_a_store_that_panics_anywhere_stops_no_loop() {
    const CALLS: [&str; 5] =
        ["fetch_turn", "load_turn", "fetch_work_items", "ack_orchestration_item", "ack_work_item"];
    for panicking in CALLS {
        let world = World::paused(Kind::Memory).await;
        let tap = Tap::new(move |call, nth| match call == panicking && nth < 3 {
            true => Fault::Panic,
            false => Fault::None,
        });
        let work = activities()
            .register("Work", |_: ActivityContext, _: String| async move { Ok("worked".to_string()) });
        world.start_on(tap.around(world.store()), &one_slot_each(Node::new(calls("Work"), work))).await;
        for instance in ["a", "b", "c"] {
            assert_eq!(world.run(instance, "Calls", "").await, "worked", "{panicking}");
        }
        world.end().await;
    }
}

/// Leases, sessions and gauges are kept by tasks of their own: a panic there must not end them either.
#[tokio::test(start_paused = true)]
async fn c17_a_store_that_panics_at_a_renewal_loses_no_activity() {
    let world = World::paused(Kind::Memory).await;
    let tap = Tap::new(|call, nth| match call.starts_with("renew_") && nth < 2 {
        true => Fault::Panic,
        false => Fault::None,
    });
    let work = activities().register("Long", |ctx: ActivityContext, _: String| async move {
        crate::support::pass(std::time::Duration::from_secs(100)).await;
        Ok(format!("attempt {}", ctx.attempt()))
    });
    world.start_on(tap.around(world.store()), &one_slot_each(Node::new(calls("Long"), work))).await;
    let output = world.run("i", "Calls", "").await;
    assert!(output.starts_with("attempt "), "{output}");
    assert!(tap.count("renew_work_item_lock") > 2, "renewals go on");
    world.end().await;
}

#[tokio::test]
async fn c17_an_activity_that_panics_is_an_error_of_that_activity() {
    let world = World::real(Kind::Memory).await;
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
    world.start(&one_slot_each(Node::new(orchestrations().register("Program", program), work))).await;
    assert_eq!(world.run("i", "Program", "").await, "worked");
    world.end().await;
}

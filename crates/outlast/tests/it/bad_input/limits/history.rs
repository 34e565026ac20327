//! Events and bytes of a history. Whoever makes it grow, the instance fails in the turn that takes it above, and goes on
//! exactly at the limit.

use super::{ALL, Node, World, activities, broken, judge, orchestrations, sizes};
use outlast::runtime::limits::Limits;
use outlast::{ActivityContext, OrchestrationContext, OrchestrationStatus};

const EVENTS: usize = 6;
const BYTES: usize = 1_000;
/// What the history holds without being asked: the start, and the wait for the end.
const STARTED: usize = "Collects".len() + "1.0.0".len() + "end".len();

/// Grows by what its input says, then waits for its end.
async fn collects(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    match input.split_once(' ') {
        // Its own decisions, one event each.
        Some(("events", n)) => (0..n.parse().unwrap()).for_each(|_| ctx.reset_custom_status()),
        Some(("bytes", n)) => ctx.set_custom_status("x".repeat(n.parse().unwrap())),
        // What an activity gives back.
        Some(("result", n)) => drop(ctx.schedule_activity("Make", n).await?),
        _ => {}
    }
    Ok(ctx.dequeue_event("end").await)
}

fn node(limits: Limits) -> Node {
    let make = |_: ActivityContext, size: String| async move { Ok("x".repeat(size.parse().unwrap())) };
    Node::new(orchestrations().register("Collects", collects), activities().register("Make", make))
        .with(move |options| options.limits = limits.clone())
}

/// A world in which only the history has a limit.
async fn world(kind: crate::support::Kind) -> std::sync::Arc<World> {
    let world = World::real(kind).await;
    let limits = Limits {
        history_events: EVENTS,
        history_events_warning: EVENTS / 2,
        history_bytes: BYTES,
        payload_bytes: 2_000 * BYTES,
        custom_status_bytes: 2_000 * BYTES,
        decisions_per_turn: 2_000 * EVENTS,
        ..Limits::default()
    };
    world.start(&node(limits)).await;
    world
}

/// Waits until the instance is as large as it will be, and then tells it to end.
async fn judged(world: &World, instance: &str, field: &str, events: usize, fits: bool) {
    if fits {
        let until = tokio::time::Instant::now() + crate::support::PATIENCE;
        loop {
            let stats = world.client.get_orchestration_stats(instance).await.unwrap();
            match stats.map(|stats| stats.history_event_count as usize) {
                Some(found) if found == events => break,
                found => assert!(tokio::time::Instant::now() < until, "{instance}: {found:?} events"),
            }
            tokio::task::yield_now().await;
        }
        world.client.enqueue_event(instance, "end", "well").await.unwrap();
    }
    match (world.ended(instance).await, fits) {
        (OrchestrationStatus::Completed { output, .. }, true) => assert_eq!(output, "well"),
        (failed, false) => judge(&broken(failed), field, instance),
        (other, true) => panic!("{instance}: {:.300}", format!("{other:?}")),
    }
}

#[tokio::test]
async fn a_history_has_no_more_events_than_its_limit() {
    for kind in ALL {
        let world = world(kind).await;
        for (events, fits) in sizes(EVENTS) {
            // Without the start and the wait.
            let more = events - 2;
            let instance = format!("messages-{events}");
            let mut request = world.client.start_request("Collects").instance(&instance);
            for _ in 0..more {
                request = request.with_event("others", "");
            }
            request.send().await.unwrap().started().unwrap();
            judged(&world, &instance, "limits.history_events", events, fits).await;
            let instance = format!("decisions-{events}");
            world.begin(&instance, "Collects", &format!("events {more}")).await;
            judged(&world, &instance, "limits.history_events", events, fits).await;
        }
        world.end().await;
    }
}

#[tokio::test]
async fn a_history_has_no_more_bytes_than_its_limit() {
    for kind in ALL {
        let world = world(kind).await;
        for (bytes, fits) in sizes(BYTES) {
            // A payload of the client's, one of the code's, one of an activity's; each with the input that asks for it.
            let instance = format!("message-{bytes}");
            let data = "x".repeat(bytes - STARTED - "others".len());
            let client =
                world.client.clone().with_limits(Limits { payload_bytes: bytes, ..Limits::default() });
            let request = client.start_request("Collects").instance(&instance).with_event("others", data);
            request.send().await.unwrap().started().unwrap();
            judged(&world, &instance, "limits.history_bytes", 3, fits).await;
            for (what, rest) in [("bytes", 0), ("result", "Make".len())] {
                let instance = format!("{what}-{bytes}");
                let size = size_beside(bytes - STARTED - rest, what);
                world.begin(&instance, "Collects", &format!("{what} {size}")).await;
                let events = if what == "bytes" { 3 } else { 4 };
                judged(&world, &instance, "limits.history_bytes", events, fits).await;
            }
        }
        world.end().await;
    }
}

/// How large a value must be so that it and the words that ask for it have this many bytes. The words of an activity's
/// input are in the history twice.
fn size_beside(bytes: usize, what: &str) -> String {
    let found = (0..bytes).rev().find_map(|size| {
        // Zeros in front fill what no number of digits fits.
        (1..10).map(|width| format!("{size:0width$}")).find(|digits| {
            let asked = what.len() + 1 + digits.len() + if what == "result" { digits.len() } else { 0 };
            asked + size == bytes
        })
    });
    found.unwrap()
}

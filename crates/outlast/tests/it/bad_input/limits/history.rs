//! The limits of events and bytes of a history. The instance fails in the turn that exceeds a limit, and continues exactly at the
//! limit.

use super::{ALL, Cluster, Node, activities, broken, check_message, orchestrations, sizes};
use outlast::runtime::limits::Limits;
use outlast::{ActivityContext, OrchestrationContext, OrchestrationStatus};

const EVENTS: usize = 6;
const BYTES: usize = 1_000;
/// The events that every history has: the start, and the wait for the event that ends it.
const STARTED: usize = "Collects".len() + "1.0.0".len() + "end".len();

/// Adds the events that its input names to its history, then waits for the event that ends it.
async fn collects(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    match input.split_once(' ') {
        // Decisions of the code, one event each.
        Some(("events", n)) => (0..n.parse().unwrap()).for_each(|_| ctx.reset_custom_status()),
        Some(("bytes", n)) => ctx.set_custom_status("x".repeat(n.parse().unwrap())),
        // The result of an activity.
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

/// A cluster in which only the history is limited.
async fn cluster(kind: crate::support::Kind) -> std::sync::Arc<Cluster> {
    let cluster = Cluster::real(kind).await;
    let limits = Limits {
        history_events: EVENTS,
        history_events_warning: EVENTS / 2,
        history_bytes: BYTES,
        payload_bytes: 2_000 * BYTES,
        custom_status_bytes: 2_000 * BYTES,
        decisions_per_turn: 2_000 * EVENTS,
        ..Limits::default()
    };
    cluster.start(&node(limits)).await;
    cluster
}

/// Waits until the history has its final size, then ends the instance. Checks whether it completes or fails.
async fn assert_ended(cluster: &Cluster, instance: &str, field: &str, events: usize, fits: bool) {
    if fits {
        let until = tokio::time::Instant::now() + crate::support::LONGEST_WAIT;
        loop {
            let stats = cluster.client.get_orchestration_stats(instance).await.unwrap();
            match stats.map(|stats| stats.history_event_count as usize) {
                Some(found) if found == events => break,
                found => assert!(tokio::time::Instant::now() < until, "{instance}: {found:?} events"),
            }
            tokio::task::yield_now().await;
        }
        cluster.client.enqueue_event(instance, "end", "well").await.unwrap();
    }
    match (cluster.ended(instance).await, fits) {
        (OrchestrationStatus::Completed { output, .. }, true) => assert_eq!(output, "well"),
        (failed, false) => check_message(&broken(failed), field, instance),
        (other, true) => panic!("{instance}: {:.300}", format!("{other:?}")),
    }
}

#[tokio::test]
async fn an_instance_fails_when_its_history_exceeds_the_event_limit() {
    for kind in ALL {
        let cluster = cluster(kind).await;
        for (events, fits) in sizes(EVENTS) {
            // Without the start and the wait for the end.
            let more = events - 2;
            let instance = format!("messages-{events}");
            let mut request = cluster.client.start_request("Collects").instance(&instance);
            for _ in 0..more {
                request = request.with_event("others", "");
            }
            request.send().await.unwrap().started().unwrap();
            assert_ended(&cluster, &instance, "limits.history_events", events, fits).await;
            let instance = format!("decisions-{events}");
            cluster.begin(&instance, "Collects", &format!("events {more}")).await;
            assert_ended(&cluster, &instance, "limits.history_events", events, fits).await;
        }
        cluster.end().await;
    }
}

#[tokio::test]
async fn an_instance_fails_when_its_history_exceeds_the_byte_limit() {
    for kind in ALL {
        let cluster = cluster(kind).await;
        for (bytes, fits) in sizes(BYTES) {
            // A payload of the client, of the code, and of an activity, each with the input that requests it.
            let instance = format!("message-{bytes}");
            let data = "x".repeat(bytes - STARTED - "others".len());
            let client =
                cluster.client.clone().with_limits(Limits { payload_bytes: bytes, ..Limits::default() });
            let request = client.start_request("Collects").instance(&instance).with_event("others", data);
            request.send().await.unwrap().started().unwrap();
            assert_ended(&cluster, &instance, "limits.history_bytes", 3, fits).await;
            for (what, rest) in [("bytes", 0), ("result", "Make".len())] {
                let instance = format!("{what}-{bytes}");
                let size = size_beside(bytes - STARTED - rest, what);
                cluster.begin(&instance, "Collects", &format!("{what} {size}")).await;
                let events = if what == "bytes" { 3 } else { 4 };
                assert_ended(&cluster, &instance, "limits.history_bytes", events, fits).await;
            }
        }
        cluster.end().await;
    }
}

/// The size of a value such that value and input together have this number of bytes. The input of an activity is in the history
/// twice.
fn size_beside(bytes: usize, what: &str) -> String {
    let found = (0..bytes).rev().find_map(|size| {
        // Leading zeros pad the number to the required length.
        (1..10).map(|width| format!("{size:0width$}")).find(|digits| {
            let asked = what.len() + 1 + digits.len() + if what == "result" { digits.len() } else { 0 };
            asked + size == bytes
        })
    });
    found.unwrap()
}

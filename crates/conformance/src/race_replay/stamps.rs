//! Stamps: the version of the contract under which an execution was started.

use super::node::Node;
use super::program::{ending, history, only, perform};
use super::{IMMEDIATE, LEGACY};
use crate::ProviderFactory;
use crate::support::*;
use outlast_engine::{Either2, OrchestrationContext};
use outlast_provider::model::{Event, EventKind, current_build_version};
use semver::Version;

const ONE: &str = "one";

/// Every event keeps the stamp that it was written with, on every way to read it.
pub async fn test_queue_replay_version_stamp_roundtrip<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    // Older, newer and unreadable stamps, and one that is more than a version.
    let stamps = [LEGACY, IMMEDIATE, "0.1.31-beta.2", "99.0.0", "0.1.32+buffered", "yesterday", ""];
    let queue = |n: usize| EventKind::QueueEventDelivered { name: "q".to_string(), data: n.to_string() };
    let events: Vec<Event> = stamps
        .iter()
        .enumerate()
        .map(|(n, stamp)| {
            let kind = if n == 0 { started_kind() } else { queue(n) };
            Event { duroxide_version: stamp.to_string(), ..event(ONE, n as u64 + 1, kind) }
        })
        .collect();
    let (committed, appended) = events.split_at(4);
    let token = first_turn(provider, ONE).await;
    Turn::new(&token).events(committed.to_vec()).metadata(named()).commit(provider).await;
    provider.append_with_execution(ONE, 1, appended.to_vec()).await.expect("append_with_execution succeeds");

    assert_eq!(provider.read(ONE).await.unwrap(), events, "read");
    assert_eq!(provider.read_with_execution(ONE, 1).await.unwrap(), events, "read_with_execution");
    operator(provider).sees_history(ONE, 1, &events).await;
    operator(provider).sees_newest_history(ONE, &events).await;
    poke(provider, ONE).await;
    let (item, ..) = must_fetch(provider, LONG).await;
    assert_eq!(item.history, events, "fetch_orchestration_item");
}

/// Races a dequeue against an activity, and records what the next dequeue reads.
async fn program(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let first = ctx.dequeue_event("q");
    let stop = ctx.schedule_activity("Stop", "");
    if let Either2::First(data) = ctx.select2(first, stop).await {
        return Ok(data);
    }
    let message = ctx.dequeue_event("q").await;
    ctx.schedule_activity("Record", message).await
}

/// The stored stamp, not the version of the node, selects the rules of an execution: by the older ones a dropped dequeue keeps its
/// message until the end of the turn, and the next dequeue reads the following message.
pub async fn test_legacy_queue_race_decision_preserved<F: ProviderFactory>(factory: &F) {
    let current = current_build_version().to_string();
    let cases = [(LEGACY, IMMEDIATE, "b"), (LEGACY, current.as_str(), "b"), (current.as_str(), LEGACY, "a")];
    for (begun_under, taken_over_by, expected) in cases {
        let what = format!("begun under {begun_under}, taken over by {taken_over_by}");
        let provider = &*factory.create_provider().await;
        let orchestrations = only("TestOrch", program);
        let node = |stamp: &str| Node::new(factory, provider, &orchestrations).stamping(stamp);
        enqueue(provider, start_item(ONE)).await;
        node(begun_under).commit(ONE).await;

        perform(provider, "Stop").await;
        enqueue_all(provider, &["a", "b"].map(|data| queue_message(ONE, "q", data))).await;
        // The capability filter uses the stamp too.
        let [begun, zero] = [begun_under, "0.0.0"].map(|version| Version::parse(version).unwrap());
        let older = Version::new(begun.major, begun.minor, begun.patch - 1);
        assert!(node(taken_over_by).supporting(zero, older).try_fetch().await.is_none(), "{what}");
        node(taken_over_by).supporting(begun.clone(), begun).commit(ONE).await;

        let decided = history(provider, ONE).await;
        let recorded = decided.iter().rev().find_map(|event| match &event.kind {
            EventKind::ActivityScheduled { name, input, .. } if name == "Record" => Some(input.as_str()),
            _ => None,
        });
        assert_eq!(recorded, Some(expected), "{what}");
        assert_eq!(decided[0].duroxide_version, begun_under, "{what}");

        perform(provider, "Record").await;
        let last = node(taken_over_by).commit(ONE).await;
        assert_eq!(ending(&last), ("Completed", expected), "{what}: replay finds what was decided");
        operator(provider).sees_current(ONE, 1, "Completed", Some(expected)).await;
    }
}

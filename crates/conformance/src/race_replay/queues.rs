//! Dequeues that lose a race.

use super::IMMEDIATE;
use super::program::{ending, history, only, perform, recorded_messages};
use super::turns::{ONE, Turns};
use crate::ProviderFactory;
use crate::support::*;
use outlast_engine::{Either2, OrchestrationContext};
use outlast_provider::WorkItem;
use outlast_provider::model::{Event, EventKind};

/// Races a dequeue against an activity.
async fn race(ctx: &OrchestrationContext) -> Option<String> {
    let message = ctx.dequeue_event("q");
    let stop = ctx.schedule_activity("Stop", "");
    match ctx.select2(message, stop).await {
        Either2::First(message) => Some(message),
        Either2::Second(_) => None,
    }
}

fn kinds(events: &[Event]) -> Vec<EventKind> {
    events.iter().map(|event| event.kind.clone()).collect()
}

fn q(data: &str) -> WorkItem {
    queue_message(ONE, "q", data)
}

/// When dequeues are dropped before a message arrives, messages go to the remaining dequeues in order. Every node reads the same
/// from a history.
pub async fn test_queue_race_cancellation_replay<F: ProviderFactory>(factory: &F) {
    let program = only("TestOrch", |ctx, _| async move {
        let mut read =
            vec![race(&ctx).await.unwrap_or("-".to_string()), race(&ctx).await.unwrap_or("-".to_string())];
        for _ in 0..3 {
            let message = ctx.dequeue_event("q").await;
            read.push(ctx.schedule_activity("Record", message).await?);
        }
        Ok(read.join(" "))
    });
    let mut histories = Vec::new();
    for restarts in [false, true] {
        let provider = &*factory.create_provider().await;
        let turns = Turns::new(factory, provider, &program, IMMEDIATE, restarts);
        turns.commit(&[start_item(ONE)]).await;
        perform(provider, "Stop").await;
        turns.commit(&[]).await;
        perform(provider, "Stop").await;
        // The second race is lost in the batch of the messages, before them.
        let decided = turns.commit(&[q("a"), q("b")]).await;
        assert_eq!(recorded_messages(&decided.history_delta), ["activity: ", "queue q: a", "queue q: b"]);
        let dropped = |event: &&Event| matches!(event.kind, EventKind::QueueSubscriptionCancelled { .. });
        assert_eq!(decided.history_delta.iter().filter(dropped).count(), 1, "the second dequeue was dropped");
        for (message, next) in [("a", vec![]), ("b", vec![q("c")]), ("c", vec![])] {
            let waiting = history(provider, ONE).await;
            let recorded = waiting.iter().rev().find_map(|event| match &event.kind {
                EventKind::ActivityScheduled { name, input, .. } if name == "Record" => Some(input.as_str()),
                _ => None,
            });
            assert_eq!(recorded, Some(message), "first in, first out");
            perform(provider, "Record").await;
            turns.commit(&next).await;
        }
        operator(provider).sees_current(ONE, 1, "Completed", Some("- - a b c")).await;
        operator(provider).sees_waiting(0, 0, "every message was read").await;
        let stored = history(provider, ONE).await;
        operator(provider).sees_history(ONE, 1, &stored).await;
        histories.push(kinds(&stored));
    }
    assert_eq!(histories[0], histories[1], "with and without restarts, live and replayed");
}

/// A successor gets exactly the messages that no dequeue returned, in the order of their arrival across queues, and reads them
/// before later messages.
pub async fn test_continue_as_new_queue_race_replay<F: ProviderFactory>(factory: &F) {
    let program = only("TestOrch", |ctx, input| async move {
        if input != "{}" {
            let rest = [
                ctx.dequeue_event("q").await,
                ctx.dequeue_event("q").await,
                ctx.dequeue_event("other").await,
            ];
            return Ok(format!("{input} {}", rest.join(" ")));
        }
        let lost = race(&ctx).await.unwrap_or("-".to_string());
        let read = ctx.dequeue_event("q").await;
        let _unread = ctx.dequeue_event("other");
        ctx.continue_as_new(format!("{lost} {read}")).await
    });
    let unread = [("other".to_string(), "x".to_string()), ("q".to_string(), "b".to_string())];
    for restarts in [false, true] {
        let provider = &*factory.create_provider().await;
        let turns = Turns::new(factory, provider, &program, IMMEDIATE, restarts);
        turns.commit(&[start_item(ONE)]).await;
        perform(provider, "Stop").await;
        let last = turns.commit(&[q("a"), queue_message(ONE, "other", "x"), q("b")]).await;
        assert_eq!(ending(&last), ("ContinuedAsNew", "- a"));

        let done = turns.commit(&[q("c")]).await;
        assert_eq!(recorded_messages(&done.history_delta), ["queue other: x", "queue q: b", "queue q: c"]);
        assert_eq!(ending(&done), ("Completed", "- a b c x"));

        let begins = history(provider, ONE).await.swap_remove(0).kind;
        let EventKind::OrchestrationStarted { carry_forward_events: Some(carried), .. } = &begins else {
            panic!("the start says what it was given: {begins:?}");
        };
        assert_eq!(carried[..], unread);
        let stats = provider.get_instance_stats(ONE).await.unwrap().expect("the instance is known");
        assert_eq!(stats.queue_pending_count, 2, "messages that were carried over");
        operator(provider).sees_current(ONE, 2, "Completed", Some("- a b c x")).await;
        operator(provider).sees_waiting(0, 0, "every message was used").await;
    }
}

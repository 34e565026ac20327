//! A successor whose orchestration the running nodes do not have.

use super::node::Node;
use super::program::{ending, history, recorded_messages};
use crate::ProviderFactory;
use crate::support::*;
use outlast_engine::OrchestrationContext;
use outlast_provider::model::{ErrorDetails, Event, EventKind};
use outlast_provider::{Provider, WorkItem};
use outlast_runtime::registry::OrchestrationRegistry;

const NEWER: &str = "2.0.0";

/// The old version continues as the new version at once.
fn old_node() -> OrchestrationRegistry {
    let hand_over =
        |ctx: OrchestrationContext, _| async move { ctx.continue_as_new_versioned(NEWER, "next").await };
    let parent = |ctx: OrchestrationContext, _| async move {
        ctx.schedule_sub_orchestration_with_id("TestOrch", "child", "").await
    };
    OrchestrationRegistry::builder().register("TestOrch", hand_over).register("Parent", parent).build()
}

/// The new version reads three messages.
fn new_node() -> OrchestrationRegistry {
    let read = |ctx: OrchestrationContext, input| async move {
        let mut read = vec![input];
        for _ in 0..3 {
            read.push(ctx.dequeue_event("q").await);
        }
        Ok(read.join(" "))
    };
    OrchestrationRegistry::builder().register_versioned("TestOrch", NEWER, read).build()
}

/// Ends execution 1 as a node that stored neither name nor version: there is a history, and no instance row.
async fn hand_over_rowless(provider: &dyn Provider) {
    let token = first_turn(provider, "one").await;
    let mut successor = continue_item("one");
    if let WorkItem::ContinueAsNew { version, carry_forward_events, .. } = &mut successor {
        *version = Some(NEWER.to_string());
        carry_forward_events.clear();
    }
    Turn::new(&token)
        .events([started("one"), event("one", 2, continued_kind("next"))])
        .message(successor)
        .metadata(status("ContinuedAsNew", "next"))
        .commit(provider)
        .await;
    operator(provider).sees_no_instance("one").await;
}

/// While no node has the orchestration of the successor, its start and later messages are delayed; the first node that has it gets
/// all of them in order.
pub async fn test_continue_as_new_unregistered_backoff<F: ProviderFactory>(factory: &F) {
    for has_row in [true, false] {
        let provider = &*factory.create_provider().await;
        let old = Node::new(factory, provider, &old_node());
        if has_row {
            enqueue(provider, start_item("one")).await;
            old.commit("one").await;
        } else {
            hand_over_rowless(provider).await;
        }
        let held = old.fetch("one").await;
        assert!(matches!(held.item.messages[..], [WorkItem::ContinueAsNew { .. }]), "the successor's start");
        assert!(old.run(held).await.is_none(), "this node cannot run the successor");

        for data in ["1", "2"] {
            enqueue(provider, queue_message("one", "q", data)).await;
            let held = old.fetch("one").await;
            let expected = [queue_message("one", "q", data)];
            assert_eq!(
                held.item.messages, expected,
                "the start and the messages that were put off are hidden"
            );
            assert_eq!((held.attempt, held.item.execution_id), (1, 1));
            assert!(old.run(held).await.is_none(), "the start of the successor is still hidden");
        }
        assert!(old.try_fetch().await.is_none(), "all messages are delayed");
        operator(provider).sees_waiting(3, 0, "no message is lost").await;
        assert_eq!(history(provider, "one").await.len(), 2, "no event is added to the predecessor");

        let new = Node::new(factory, provider, &new_node());
        let held = within(3 * new.backoff(), || new.try_fetch()).await;
        assert_eq!(held.attempt, 2, "the start was delivered once before");
        let first = new.run(held).await.expect("the successor begins");
        assert_eq!(first.execution_id, 2);
        while recorded_messages(&history(provider, "one").await).len() < 2 {
            let held = within(3 * new.backoff(), || new.try_fetch()).await;
            new.run(held).await.expect("the successor continues");
        }
        enqueue(provider, queue_message("one", "q", "3")).await;
        assert_eq!(ending(&new.commit("one").await), ("Completed", "next 1 2 3"));
        operator(provider).sees_executions("one", &[1, 2]).await;
        operator(provider).sees_current("one", 2, "Completed", Some("next 1 2 3")).await;
        operator(provider).sees_waiting(0, 0, "every message was delivered").await;
    }
}

/// A successor that is delivered too often fails as execution 2, with a separate history. Its predecessor does not change, and
/// the parent of both gets the failure.
pub async fn test_continue_as_new_poisoned_successor_is_own_execution<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let node = Node::new(factory, provider, &old_node()).giving_up_after(2);
    enqueue(provider, start_of("parent", "Parent", None)).await;
    node.commit("parent").await;
    let handed_over = node.commit("child").await;
    assert_eq!(ending(&handed_over), ("ContinuedAsNew", "next"));
    let predecessor = history(provider, "child").await;
    assert!(matches!(predecessor.last().unwrap().kind, EventKind::OrchestrationContinuedAsNew { .. }));

    for attempt in [1, 2] {
        let held = within(3 * node.backoff(), || node.try_fetch()).await;
        assert_eq!((held.attempt, held.item.execution_id), (attempt, 1), "deliveries are counted");
        assert!(node.run(held).await.is_none(), "no node has the successor's version");
    }
    let held = within(3 * node.backoff(), || node.try_fetch()).await;
    let poisoned = node.run(held).await.expect("an item that was delivered too often is ended");
    assert_eq!((poisoned.execution_id, ending(&poisoned).0), (2, "Failed"));

    let kept = provider.read_with_execution("child", 1).await.unwrap();
    assert_eq!(kept, predecessor, "the predecessor stays as it ended");
    let successor = provider.read_with_execution("child", 2).await.unwrap();
    let [begins, ends] = &successor[..] else { panic!("a start and a failure: {successor:?}") };
    assert!(matches!(&begins.kind, EventKind::OrchestrationStarted { input, .. } if input == "next"));
    let EventKind::OrchestrationFailed { details: ErrorDetails::Poison { attempt_count, .. } } = &ends.kind
    else {
        panic!("it failed by poison: {ends:?}");
    };
    assert_eq!(*attempt_count, 3);
    assert_eq!(history(provider, "child").await, successor, "the newest execution is the failed one");
    operator(provider).sees_executions("child", &[1, 2]).await;
    operator(provider).sees_current("child", 2, "Failed", Some(ending(&poisoned).1)).await;

    let told = node.commit("parent").await;
    assert_eq!(ending(&told).0, "Failed", "a child that cannot be run fails its parent");
    let told = history(provider, "parent").await;
    let is_news = |event: &Event| {
        matches!(&event.kind, EventKind::SubOrchestrationFailed { details: ErrorDetails::Poison { .. } })
    };
    assert!(told.iter().any(is_news), "the parent's history has the failure: {told:?}");
    operator(provider).sees_waiting(0, 0, "every message was used").await;
}

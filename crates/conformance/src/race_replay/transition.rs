//! Messages that arrive while an instance is between two executions.

use super::node::Node;
use super::program::{ending, history, only, recorded_messages};
use crate::ProviderFactory;
use crate::support::*;
use outlast_engine::OrchestrationContext;
use outlast_provider::{Provider, WorkItem};

const ONE: &str = "one";

/// Messages that arrive between the executions: some while the successor's start is delayed, the others while those are leased; and
/// the events that the successor's history must have.
struct Shape {
    first: Vec<WorkItem>,
    then: Vec<WorkItem>,
    recorded: &'static [&'static str],
    ends: (&'static str, &'static str),
}

fn q(data: &str) -> WorkItem {
    queue_message(ONE, "q", data)
}

/// The messages that the successor reads if it is not cancelled: all of queue `q`, up to `end`.
fn shapes() -> [Shape; 7] {
    let other = |data: &str| queue_message(ONE, "other", data);
    let go = |data: &str| raised(ONE, "go", data);
    let shape = |first, then, recorded, output| Shape { first, then, recorded, ends: ("Completed", output) };
    [
        shape(vec![q("a")], vec![], &["queue q: a"], "carried a end"),
        shape(
            vec![q("a"), q("b")],
            vec![q("c")],
            &["queue q: a", "queue q: b", "queue q: c"],
            "carried a b c end",
        ),
        shape(
            vec![q("a"), other("x")],
            vec![other("y"), q("b")],
            &["queue q: a", "queue other: x", "queue other: y", "queue q: b"],
            "carried a b end",
        ),
        shape(vec![go("x")], vec![go("y")], &["event go: x", "event go: y"], "carried end"),
        shape(
            vec![go("x"), q("a")],
            vec![q("b"), go("y")],
            &["event go: x", "queue q: a", "queue q: b", "event go: y"],
            "carried a b end",
        ),
        // Outcomes for the predecessor are dropped and remove no other message.
        shape(
            vec![completed(ONE, 2), q("a"), timer(ONE, 3, 1)],
            vec![child_completed(ONE, 4), q("b")],
            &["queue q: a", "queue q: b"],
            "carried a b end",
        ),
        Shape {
            first: vec![q("a")],
            then: vec![cancel(ONE)],
            recorded: &["queue q: a", "cancel: stop"],
            ends: ("Failed", "canceled: stop"),
        },
    ]
}

/// The first execution continues as new when it gets an event and leaves a message unread; the second reads until the end.
async fn program(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    if input != "next" {
        ctx.dequeue_event("handover").await;
        return ctx.continue_as_new("next").await;
    }
    let mut read = Vec::new();
    while read.last().map(String::as_str) != Some("end") {
        read.push(ctx.dequeue_event("q").await);
    }
    Ok(read.join(" "))
}

/// Messages that arrive after an execution has continued as new and before its successor starts are delivered to the successor, once
/// and in order, after any number of give-backs. `stamp` is the version of the contract that the nodes write: "0.1.30" for the
/// older rules, "0.1.31" for today's.
pub async fn test_continue_as_new_transition_delivery<F: ProviderFactory>(factory: &F, stamp: &str) {
    for shape in shapes() {
        let provider = &*factory.create_provider().await;
        let node = Node::new(factory, provider, &only("TestOrch", program)).stamping(stamp);
        hand_over(provider, &node).await;
        hide_the_start(provider, &node).await;
        enqueue_all(provider, &shape.first).await;
        let held = node.fetch(ONE).await;
        assert_eq!(held.item.messages, shape.first, "the start is hidden");
        // A message that arrives during the lease of the others is not given back with them.
        enqueue_all(provider, &shape.then).await;
        assert!(node.run(held).await.is_none(), "the successor has not started");
        if !shape.then.is_empty() {
            let held = node.fetch(ONE).await;
            assert_eq!(
                (&held.item.messages, held.attempt),
                (&shape.then, 1),
                "the given-back messages are delayed"
            );
            assert!(node.run(held).await.is_none(), "the successor has still not started");
        }
        deliver(provider, &node, &shape).await;
    }
}

/// Brings the instance to the end of its first execution, with one message unread.
async fn hand_over(provider: &dyn Provider, node: &Node<'_>) {
    enqueue(provider, start_item(ONE)).await;
    node.commit(ONE).await;
    enqueue_all(provider, &[q("carried"), queue_message(ONE, "handover", "")]).await;
    assert_eq!(ending(&node.commit(ONE).await), ("ContinuedAsNew", "next"));
}

/// Fetches the successor's start and gives it back with a delay.
async fn hide_the_start(provider: &dyn Provider, node: &Node<'_>) {
    let (item, token, _) = must_fetch(provider, LONG).await;
    let [WorkItem::ContinueAsNew { carry_forward_events, .. }] = &item.messages[..] else {
        panic!("the successor's start: {:?}", item.messages);
    };
    assert_eq!(carry_forward_events[..], [("q".to_string(), "carried".to_string())]);
    provider.abandon_orchestration_item(&token, Some(node.backoff()), true).await.unwrap();
}

async fn deliver(provider: &dyn Provider, node: &Node<'_>, shape: &Shape) {
    let mut expected = vec!["queue q: carried"];
    expected.extend(shape.recorded);
    let mut recorded = Vec::new();
    let mut last = None;
    while recorded.len() < expected.len() {
        let held = within(4 * node.backoff(), || node.try_fetch()).await;
        let done = node.run(held).await.expect("the successor's start comes first");
        assert_eq!(done.execution_id, 2, "the inputs are the successor's");
        recorded = recorded_messages(&history(provider, ONE).await);
        last = Some(done);
    }
    assert_eq!(recorded, expected, "each input once, in order");
    if shape.ends.0 == "Completed" {
        enqueue(provider, q("end")).await;
        last = Some(node.commit(ONE).await);
    }
    assert_eq!(last.as_ref().map(ending), Some(shape.ends));
    operator(provider).sees_current(ONE, 2, shape.ends.0, Some(shape.ends.1)).await;
    operator(provider).sees_waiting(0, 0, "every input was used").await;
}

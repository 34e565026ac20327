//! Starts with a policy for an id that exists.

use crate::ProviderFactory;
use crate::snapshot::snapshot;
use crate::support::*;
use futures::future::join_all;
use outlast_provider::model::{AppErrorKind, EventKind};
use outlast_provider::{Provider, StartOutcome, StartPolicy, StartRequest, WorkItem};

const POLICIES: [StartPolicy; 2] = [StartPolicy::FailIfExists, StartPolicy::UseExisting];

/// A start with two queue messages.
fn request(instance: &str, policy: StartPolicy) -> StartRequest {
    StartRequest { start: start_item(instance), delay: None, policy, messages: messages(instance) }
}

fn messages(instance: &str) -> Vec<WorkItem> {
    ["z", "a"].map(|data| queue_message(instance, "signals", data)).to_vec()
}

/// The messages of a new instance: the start, then the queue messages.
fn first_batch(instance: &str) -> Vec<WorkItem> {
    [vec![start_item(instance)], messages(instance)].concat()
}

async fn start(provider: &dyn Provider, request: StartRequest) -> StartOutcome {
    provider.start_orchestration(request).await.expect("start_orchestration succeeds")
}

/// Creates the instance and brings it to this status, with the event that a runtime commits along with it.
async fn create_in_status(provider: &dyn Provider, instance: &str, state: &str) {
    create_instance(provider, instance).await;
    let kind = match state {
        "Completed" => completed_kind("out"),
        "Failed" => {
            EventKind::OrchestrationFailed { details: failure(AppErrorKind::OrchestrationFailed, "out") }
        }
        "ContinuedAsNew" => continued_kind("out"),
        _ => return,
    };
    let token = next_turn(provider, instance).await;
    Turn::new(&token).event(event(instance, 2, kind)).metadata(status(state, "out")).commit(provider).await;
}

const STATES: [&str; 4] = ["Running", "Completed", "Failed", "ContinuedAsNew"];

/// A free id is started under either policy, and the messages come with the start, in order.
pub async fn a_free_id_is_started(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    for (instance, policy) in ["strict", "lenient"].into_iter().zip(POLICIES) {
        assert_eq!(start(provider, request(instance, policy)).await, StartOutcome::Started, "{policy:?}");
        assert!(provider.read(instance).await.unwrap().is_empty(), "a start creates no instance");
        let (item, token, attempt) = must_fetch(provider, LONG).await;
        assert_eq!((item.instance.as_str(), attempt), (instance, 1));
        assert_eq!(item.messages, first_batch(instance), "{policy:?}");
        Turn::new(&token).event(started(instance)).metadata(named()).commit(provider).await;
        assert!(fetch(provider, LONG).await.is_none());
    }
}

/// `FailIfExists` changes nothing if the instance exists, in any status, and returns that status.
pub async fn fail_if_exists_changes_nothing(factory: &dyn ProviderFactory) {
    for state in STATES {
        let provider = &*factory.create_provider().await;
        create_in_status(provider, "taken", state).await;
        let before = snapshot(provider, &["taken"]).await;
        let refused = start(provider, request("taken", StartPolicy::FailIfExists)).await;
        assert_eq!(refused, StartOutcome::AlreadyExists { status: Some(state.to_string()) });
        assert_eq!(snapshot(provider, &["taken"]).await, before, "{state}");
        assert!(fetch(provider, LONG).await.is_none(), "{state}: nothing was enqueued");
    }
}

/// `UseExisting` delivers the messages to the existing instance, and stores no start.
pub async fn use_existing_delivers_the_messages(factory: &dyn ProviderFactory) {
    for state in STATES {
        let provider = &*factory.create_provider().await;
        create_in_status(provider, "taken", state).await;
        let used = start(provider, request("taken", StartPolicy::UseExisting)).await;
        assert_eq!(used, StartOutcome::AlreadyExists { status: Some(state.to_string()) });
        operator(provider).sees_waiting(2, 0, "the messages").await;
        let (item, _, attempt) = must_fetch(provider, LONG).await;
        assert_eq!((item.messages, attempt), (messages("taken"), 1), "{state}: no start among them");
        let output = Some("out").filter(|_| state != "Running");
        operator(provider).sees_current("taken", 1, state, output).await;
    }
}

/// The answers are correct while the first start waits: the number of queued starts equals the number of `Started` answers.
pub async fn started_answers_equal_queued_starts(factory: &dyn ProviderFactory) {
    for policy in POLICIES {
        let provider = &*factory.create_provider().await;
        assert_eq!(start(provider, request("twice", policy)).await, StartOutcome::Started);
        let second = start(provider, request("twice", policy)).await;
        let mut expected = first_batch("twice");
        match second {
            // A store that does not search its queue.
            StartOutcome::Started => expected.extend(first_batch("twice")),
            StartOutcome::AlreadyExists { status } => {
                assert_eq!(status, None, "it has no status before its first commit");
                if policy == StartPolicy::UseExisting {
                    expected.extend(messages("twice"));
                }
            }
        }
        let (item, token, _) = must_fetch(provider, LONG).await;
        assert_eq!(item.messages, expected, "{policy:?}");
        Turn::new(&token).event(started("twice")).metadata(named()).commit(provider).await;
        let third = start(provider, request("twice", policy)).await;
        assert_eq!(third, StartOutcome::AlreadyExists { status: Some("Running".to_string()) });
    }
}

/// Many concurrent starts create one instance with one first turn, and the number of queued starts equals the number of `Started`
pub async fn concurrent_starts_create_one_instance(factory: &dyn ProviderFactory) {
    for policy in POLICIES {
        let provider = &*factory.create_provider().await;
        let outcomes = join_all((0..10).map(|_| start(provider, request("raced", policy)))).await;
        let told = outcomes.iter().filter(|outcome| **outcome == StartOutcome::Started).count();
        assert!(told >= 1, "at least one call started it: {outcomes:?}");
        let (item, token, _) = must_fetch(provider, LONG).await;
        let starts = item.messages.iter().filter(|message| **message == start_item("raced")).count();
        assert_eq!(starts, told, "{policy:?}: {outcomes:?}");
        assert!(fetch(provider, LONG).await.is_none(), "there is one turn, not several");
        Turn::new(&token).event(started("raced")).metadata(named()).commit(provider).await;
        operator(provider).sees_instances(&["raced"]).await;
        assert!(fetch(provider, LONG).await.is_none(), "nothing is left over");
    }
}

/// A delay hides the start and its messages.
pub async fn a_delayed_start_is_hidden(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let delay = factory.lock_timeout();
    let delayed = StartRequest { delay: Some(delay), ..request("later", StartPolicy::FailIfExists) };
    assert_eq!(start(provider, delayed).await, StartOutcome::Started);
    operator(provider).sees_waiting(3, 0, "the start and its messages").await;
    assert!(fetch(provider, LONG).await.is_none(), "hidden at once");
    tokio::time::sleep(delay / 2).await;
    assert!(fetch(provider, LONG).await.is_none(), "hidden until the delay is over");
    outlive(delay / 2).await;
    assert_eq!(must_fetch(provider, LONG).await.0.messages, first_batch("later"));
}

/// A request that is not a start, or whose messages are not queue messages for the same instance, is a permanent error and changes
/// nothing.
pub async fn a_bad_request_changes_nothing(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "taken").await;
    let before = snapshot(provider, &["taken", "new"]).await;
    for policy in POLICIES {
        let good = |instance| request(instance, policy);
        let with =
            |message| StartRequest { messages: vec![queue_message("new", "q", ""), message], ..good("new") };
        let bad = [
            ("a cancellation", StartRequest { start: cancel("new"), ..good("new") }),
            ("an activity", StartRequest { start: activity("new", 1), ..good("new") }),
            ("a queue message", StartRequest { start: queue_message("new", "q", ""), ..good("new") }),
            ("a start without an id", good("")),
            ("a start with a control character", good("a\0b")),
            ("an event along", with(raised("new", "event", ""))),
            ("an activity along", with(activity("new", 1))),
            ("a second start along", with(start_item("new"))),
            ("a message for another instance along", with(queue_message("taken", "q", ""))),
        ];
        for (what, request) in bad {
            permanent(provider.start_orchestration(request).await, what);
            assert_eq!(snapshot(provider, &["taken", "new"]).await, before, "after {what}");
        }
    }
    assert_eq!(start(provider, request("new", StartPolicy::FailIfExists)).await, StartOutcome::Started);
}

/// A deleted instance's id is free again.
pub async fn a_deleted_id_is_free_again(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_in_status(provider, "reused", "Completed").await;
    let taken = start(provider, request("reused", StartPolicy::FailIfExists)).await;
    assert!(matches!(taken, StartOutcome::AlreadyExists { .. }), "{taken:?}");
    admin(provider).delete_instance("reused", false).await.expect("it has completed");
    assert_eq!(start(provider, request("reused", StartPolicy::FailIfExists)).await, StartOutcome::Started);
    let (item, _, _) = must_fetch(provider, LONG).await;
    assert_eq!((item.messages, item.history), (first_batch("reused"), vec![]));
}

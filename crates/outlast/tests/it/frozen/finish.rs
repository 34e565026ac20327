//! Ends the instances of a frozen store, and checks how each ends.

use super::programs::{Build, Runs, says, start};
use super::write::LONG;
use crate::support::LONGEST_WAIT;
use outlast::providers::{EnqueueOnce, Provider, TagFilter};
use outlast::{Client, EventKind, OrchestrationStatus, RuntimeOptions};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How each instance ends.
fn outcomes() -> Vec<(&'static str, Result<String, &'static str>)> {
    let ends = |instance, output: &str| (instance, Ok(output.to_string()));
    vec![
        ends("begins", "did begins"),
        ("cancelled", Err("no longer needed")),
        ends("continues", "round 3, kept, now"),
        ends("damaged", "damaged now"),
        ends("delayed", "did delayed"),
        ends("detached", "detaches now"),
        ends("detached-works", "did tag later detaches"),
        ends("detaches", "detaches now"),
        ends("done", "did done"),
        ("failed", Err("broken x")),
        ends("forked", "did reset 1, did reset 2, now"),
        ends("held", "held kept"),
        ends("keeps", "Some(\"value\") None"),
        ends("leased", "did leased"),
        ends("noted", "did noted"),
        ends("once", "first,second"),
        ends("parent", "child: child now"),
        ends("parked", "parked on"),
        ends("paused", "paused kept"),
        ends("paused-start", "paused-start now"),
        ends("queued", "did queued"),
        ends("races", "did race, now"),
        ("reads", Ok(format!("first,second,{}", LONG.repeat(1_500)))),
        ends("reset", "did reset 1, did reset 2, now"),
        ends("session", "did session two"),
        ends("session-leased", "did session one"),
        ends("sleeps", "slept"),
        ends("tagged", "did tag later"),
        ends("the-child", "child now"),
        ends("turn", "turn now"),
        ("undoes", Err("no longer needed")),
        ends("waits", "waits now"),
    ]
}

/// The activities that had not run.
const RUNS: [&str; 11] = [
    "begins",
    "delayed",
    "leased",
    "noted",
    "queued",
    "reset 2",
    "reset 2",
    "session one",
    "session two",
    "tag later",
    "tag later detaches",
];

/// Runs a node, sends the messages that the instances wait for, and checks that each instance ends once, with its outcome.
pub(crate) async fn finish(
    store: &Arc<dyn Provider>,
    build: Build,
    tune: impl FnOnce(&mut RuntimeOptions),
    runs: &Runs,
) {
    let client = Client::new(Arc::clone(store));
    check_what_is_stored(&client).await;
    let take_all = |options: &mut RuntimeOptions| {
        options.worker_tag_filter = TagFilter::Any;
        options.build_id = "a later build".to_string();
        tune(options);
    };
    let node = start(store, build, runs, take_all).await;
    send(&client).await;
    for (instance, expected) in outcomes() {
        let status = client.wait_for_orchestration(instance, LONGEST_WAIT).await;
        let status = status.unwrap_or_else(|error| panic!("{instance}: {error}"));
        let fits = match (&status, &expected) {
            (OrchestrationStatus::Completed { output, .. }, Ok(expected)) => output == expected,
            (OrchestrationStatus::Failed { details, .. }, Err(expected)) => {
                details.display_message().contains(expected)
            }
            _ => false,
        };
        assert!(fits, "{instance}: {status:?}, not {expected:?}");
    }
    node.shutdown(None).await;
    let mut expected: Vec<(String, u32)> = RUNS.iter().map(|input| (input.to_string(), 1)).collect();
    expected.push(("undone".to_string(), 1));
    assert_eq!(runs.all(), expected, "each activity runs once");
    check_what_is_left(&client).await;
}

async fn check_what_is_stored(client: &Client) {
    let held = client.count_held().await.unwrap().unwrap();
    assert_eq!(held.instances, 3, "held, paused and parked");
    assert_eq!(client.list_dead_letters(10).await.unwrap().len(), 1);
    let audit = client.audit_page(None, 10).await.unwrap().unwrap();
    let actions: Vec<&str> = audit.iter().map(|record| record.entry.action.as_str()).collect();
    let expected = ["instance.reset", "instance.fork", "orchestration.pause", "instance.pause"];
    assert!(expected.iter().all(|action| actions.contains(action)), "{actions:?}");
    let value = client.get_kv_value("continues", "round-2").await.unwrap();
    assert_eq!(value.as_deref(), Some("2"));
}

async fn send(client: &Client) {
    let again = client.enqueue_event_once("once", "q", "first", "key 1").await.unwrap();
    assert_eq!(again, EnqueueOnce::Repeated);
    let second = client.enqueue_event_once("once", "q", "second", "key 2").await.unwrap();
    assert_eq!(second, EnqueueOnce::Stored);
    assert!(client.resume_instance("held", "ann", "looked").await.unwrap());
    client.resume_orchestration("Pauses", "ann", "deployed").await.unwrap();
    for instance in ["reset", "forked", "paused-start"] {
        says(client, instance, "waits").await;
    }
    for instance in [
        "continues",
        "damaged",
        "detached",
        "detaches",
        "forked",
        "keeps",
        "paused-start",
        "races",
        "reset",
        "the-child",
        "waits",
    ] {
        client.raise_event(instance, "go", "now").await.unwrap();
    }
}

/// Every instance is there, and every decision has at most one outcome.
async fn check_what_is_left(client: &Client) {
    for (instance, _) in outcomes() {
        for execution in client.list_executions(instance).await.unwrap() {
            let history = client.read_execution_history(instance, execution).await.unwrap();
            let ids: Vec<u64> = history.iter().map(|event| event.event_id).collect();
            assert_eq!(ids, (1..=history.len() as u64).collect::<Vec<_>>(), "{instance}");
            let is_outcome = |kind: &EventKind| {
                matches!(
                    kind,
                    EventKind::ActivityCompleted { .. }
                        | EventKind::ActivityFailed { .. }
                        | EventKind::TimerFired { .. }
                        | EventKind::SubOrchestrationCompleted { .. }
                        | EventKind::SubOrchestrationFailed { .. }
                )
            };
            let mut answered = BTreeSet::new();
            for event in history.iter().filter(|event| is_outcome(&event.kind)) {
                assert!(answered.insert(event.source_event_id), "{instance}: {event:?} is a second outcome");
            }
            assert_eq!(history.iter().filter(|event| event.is_terminal()).count(), 1, "{instance}");
        }
    }
    let metrics = client.get_system_metrics().await.unwrap();
    assert_eq!((metrics.running_instances, metrics.failed_instances), (0, 3));
    assert_eq!(client.list_dead_letters(10).await.unwrap().len(), 1);
    assert_eq!(client.get_kv_value("keeps", "kept").await.unwrap().as_deref(), Some("value"));
    assert_eq!(client.get_kv_value("continues", "round-1").await.unwrap(), None);
    assert_eq!(client.list_executions("continues").await.unwrap(), [1, 2, 3]);
    assert_eq!(client.list_executions("reset").await.unwrap(), [1, 2]);
}

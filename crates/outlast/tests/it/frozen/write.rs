//! Writes the instances of a frozen store.

use super::programs::{Build, Runs, begin, says, start};
use crate::support::{LONGEST_WAIT, pass};
use outlast::client::Reset;
use outlast::providers::{EnqueueOnce, Provider, SessionFetchConfig, TagFilter, WorkItem};
use outlast::{Client, EventKind};
use std::sync::Arc;
use std::time::Duration;

/// The leases of dead workers.
const SHORT: Duration = Duration::from_secs(1);
/// Timers and delays end after the store is written.
const LATER: Duration = Duration::from_secs(20);

/// Waits until the history of an instance has an event.
async fn has(store: &Arc<dyn Provider>, instance: &str, is_it: impl Fn(&EventKind) -> bool) {
    let found = async {
        while !store.read(instance).await.unwrap().iter().any(|event| is_it(&event.kind)) {
            pass(Duration::from_millis(5)).await;
        }
    };
    let found = tokio::time::timeout(LONGEST_WAIT, found).await;
    found.unwrap_or_else(|_| panic!("the event of {instance} is missing"));
}

async fn has_activity(store: &Arc<dyn Provider>, instance: &str) {
    has(store, instance, |kind| matches!(kind, EventKind::ActivityScheduled { .. })).await;
}

/// Fills an empty store. `damage` makes the message of the instance `damaged` undecodable.
pub(crate) async fn write(store: &Arc<dyn Provider>, damage: impl AsyncFnOnce()) {
    let (client, runs) = (Client::new(Arc::clone(store)), Runs::default());

    let node = start(store, Build::First, &runs, |_| ()).await;
    run_to_the_waits(store, &client).await;
    node.shutdown(None).await;

    client.raise_event("parked", "go", "on").await.unwrap();
    client.raise_event("damaged", "go", "lost").await.unwrap();
    damage().await;
    let turns_only = |options: &mut outlast::RuntimeOptions| {
        options.worker_concurrency = 0;
        options.max_attempts = 1;
    };
    let node = start(store, Build::Broken, &runs, turns_only).await;
    for (instance, place) in [
        ("leased", "leased"),
        ("noted", "noted"),
        ("session-leased", "session one"),
        ("session", "session two"),
        ("queued", "queued"),
    ] {
        begin(&client, instance, "Works", place).await;
        has_activity(store, instance).await;
    }
    begin(&client, "sleeps", "Sleeps", &LATER.as_secs().to_string()).await;
    has(store, "sleeps", |kind| matches!(kind, EventKind::TimerCreated { .. })).await;
    let parked_and_dead = async {
        while client.held_instance("parked").await.unwrap().is_none()
            || client.list_dead_letters(1).await.unwrap().is_empty()
        {
            pass(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONGEST_WAIT, parked_and_dead).await.expect("an instance is parked");
    node.shutdown(None).await;

    lease_as_dead_workers(store, &client).await;
    leave_messages(&client).await;
}

/// Instances that have ended, and those that wait for more than an activity.
async fn run_to_the_waits(store: &Arc<dyn Provider>, client: &Client) {
    begin(client, "done", "Works", "done").await;
    begin(client, "failed", "Fails", "x").await;
    for (instance, orchestration) in [
        ("cancelled", "Waits"),
        ("waits", "Waits"),
        ("held", "Waits"),
        ("paused", "Pauses"),
        ("parked", "Parks"),
        ("damaged", "Waits"),
        ("turn", "Waits"),
        ("reset", "Steps"),
        ("detaches", "Detaches"),
    ] {
        begin(client, instance, orchestration, instance).await;
        says(client, instance, "waits").await;
    }
    says(client, "detached", "waits").await;
    has_activity(store, "detached-works").await;
    begin(client, "parent", "Parent", "child").await;
    says(client, "the-child", "waits").await;
    begin(client, "tagged", "Works", "tag later").await;
    has_activity(store, "tagged").await;
    begin(client, "reads", "Reads", "3").await;
    client.enqueue_event("reads", "unread", "x").await.unwrap();
    client.enqueue_event("reads", "q", "first").await.unwrap();
    says(client, "reads", "read 1").await;
    let unread =
        |kind: &EventKind| matches!(kind, EventKind::QueueEventDelivered { name, .. } if name == "unread");
    has(store, "reads", unread).await;
    begin(client, "once", "Reads", "2").await;
    says(client, "once", "read 0").await;
    let continues = client.start_request("Continues").instance("continues").input("1");
    assert!(continues.with_event("carried", "kept").send().await.unwrap().is_started());
    says(client, "continues", "round 3").await;
    begin(client, "keeps", "Keeps", "value").await;
    says(client, "keeps", "keeps").await;
    begin(client, "races", "Races", "race").await;
    says(client, "races", "races").await;
    begin(client, "undoes", "Undoes", "null").await;
    says(client, "undoes", "waits").await;
    for instance in ["undoes", "cancelled"] {
        client.cancel_instance(instance, "no longer needed").await.unwrap();
    }
    has_activity(store, "undoes").await;
    for instance in ["done", "failed", "cancelled"] {
        client.wait_for_orchestration(instance, LONGEST_WAIT).await.unwrap();
    }
}

fn instance_of(item: &WorkItem) -> &str {
    match item {
        WorkItem::ActivityExecute { instance, .. } => instance,
        other => panic!("{other:?} is no activity"),
    }
}

/// No runtime runs: the leases are never given back.
async fn lease_as_dead_workers(store: &Arc<dyn Provider>, client: &Client) {
    let none = Duration::ZERO;
    let work = || store.fetch_work_item(SHORT, none, None, &TagFilter::DefaultOnly);
    let (item, ..) = work().await.unwrap().unwrap();
    assert_eq!(instance_of(&item), "leased");
    let (item, token, _) = work().await.unwrap().unwrap();
    assert_eq!(instance_of(&item), "noted");
    store.abandon_work_noted(&token, Some(LATER), "the service is down").await.unwrap();
    let owner = SessionFetchConfig { owner_id: "dead worker".to_string(), lock_timeout: SHORT };
    let leased = store.fetch_work_item(SHORT, none, Some(&owner), &TagFilter::DefaultOnly).await.unwrap();
    let (item, ..) = leased.unwrap();
    assert_eq!(instance_of(&item), "session-leased");
    client.raise_event("turn", "go", "now").await.unwrap();
    let (item, ..) = store.fetch_orchestration_item(SHORT, none, None).await.unwrap().unwrap();
    assert_eq!(item.instance, "turn");
}

async fn leave_messages(client: &Client) {
    assert!(client.pause_instance("held", "ann", "look").await.unwrap());
    client.raise_event("held", "go", "kept").await.unwrap();
    assert_eq!(client.pause_orchestration("Pauses", "ann", "deploy").await.unwrap(), 1);
    client.raise_event("paused", "go", "kept").await.unwrap();
    begin(client, "paused-start", "Pauses", "paused-start").await;
    client.enqueue_event("reads", "q", "second").await.unwrap();
    client.enqueue_event("reads", "q", LONG.repeat(1_500)).await.unwrap();
    let stored = client.enqueue_event_once("once", "q", "first", "key 1").await.unwrap();
    assert_eq!(stored, EnqueueOnce::Stored);
    // The first activity of the instance is done after its third event.
    let again = || Reset::to_event(3).by("ann").because("try again");
    client.fork_instance("reset", "forked", &again()).await.unwrap();
    client.reset_instance("reset", &again()).await.unwrap();
    begin(client, "begins", "Works", "begins").await;
    let delayed = client.start_request("Works").instance("delayed").input("delayed");
    assert!(delayed.delay(LATER).send().await.unwrap().is_started());
}

/// A part of a message that is too long for its row in SQLite.
pub(crate) const LONG: &str = "a long text ";

//! The custom status belongs to the instance, and its version counts the commits that changed it.

use crate::ProviderFactory;
use crate::support::*;
use outlast_provider::model::limits::MAX_CUSTOM_STATUS_BYTES;
use outlast_provider::{ExecutionMetadata, Provider};

type Seen = Option<(Option<String>, u64)>;

/// Commits a turn of execution 1 with these status updates, as events from `event_id` on.
async fn update(provider: &dyn Provider, instance: &str, event_id: u64, statuses: &[Option<&str>]) {
    let token = next_turn(provider, instance).await;
    let events =
        statuses.iter().zip(event_id..).map(|(status, id)| event(instance, id, custom_status_kind(*status)));
    Turn::new(&token).events(events).commit(provider).await;
}

async fn poll(provider: &dyn Provider, instance: &str, last_seen: u64) -> Seen {
    provider.get_custom_status(instance, last_seen).await.expect("get_custom_status succeeds")
}

fn seen(status: Option<&str>, version: u64) -> Seen {
    Some((status.map(str::to_string), version))
}

/// The first status has version 1, in whichever turn it is set and however long it is.
pub async fn test_custom_status_set<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "later").await;
    update(provider, "later", 2, &[Some("working")]).await;
    assert_eq!(poll(provider, "later", 0).await, seen(Some("working"), 1));

    let long = "ü".repeat(MAX_CUSTOM_STATUS_BYTES / "ü".len());
    let token = first_turn(provider, "at-once").await;
    let first = event("at-once", 2, custom_status_kind(Some(&long)));
    Turn::new(&token).event(started("at-once")).event(first).metadata(named()).commit(provider).await;
    assert!(poll(provider, "at-once", 0).await == seen(Some(&long), 1), "a long first-turn status is kept");
    assert_eq!(
        poll(provider, "later", 0).await,
        seen(Some("working"), 1),
        "it belongs to the other instance"
    );
}

/// Clearing is a change: no status, and the next version.
pub async fn test_custom_status_clear<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "cleared").await;
    update(provider, "cleared", 2, &[Some("working")]).await;
    update(provider, "cleared", 3, &[None]).await;
    for last_seen in [0, 1] {
        assert_eq!(poll(provider, "cleared", last_seen).await, seen(None, 2));
    }
    update(provider, "cleared", 4, &[Some("")]).await;
    assert_eq!(poll(provider, "cleared", 2).await, seen(Some(""), 3), "an empty status is a status");
}

/// Turns without a status event change neither status nor version, and neither does a new execution.
pub async fn test_custom_status_none_preserves<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "kept").await;
    update(provider, "kept", 2, &[Some("working")]).await;

    let second = started_in("kept", 2);
    let turns = [
        (1, vec![event("kept", 3, scheduled_kind("Work"))], ExecutionMetadata::default()),
        (1, vec![], named()),
        (1, vec![], status("ContinuedAsNew", "{}")),
        (2, vec![second], named()),
        (2, vec![], status("Completed", "done")),
    ];
    for (execution_id, events, metadata) in turns {
        let token = next_turn(provider, "kept").await;
        Turn::new(&token).execution(execution_id).events(events).metadata(metadata).commit(provider).await;
        assert_eq!(poll(provider, "kept", 0).await, seen(Some("working"), 1));
    }
    operator(provider).sees_current("kept", 2, "Completed", Some("done")).await;
}

/// Every commit that changes the status raises its version by one; of several updates in a turn the last one stays.
pub async fn test_custom_status_version_increments<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "counted").await;
    update(provider, "counted", 2, &[Some("one")]).await;
    assert_eq!(poll(provider, "counted", 0).await, seen(Some("one"), 1));
    update(provider, "counted", 3, &[Some("one")]).await;
    assert_eq!(poll(provider, "counted", 1).await, seen(Some("one"), 2), "setting it again is a change");
    update(provider, "counted", 4, &[Some("z"), None, Some("three")]).await;
    assert_eq!(poll(provider, "counted", 2).await, seen(Some("three"), 3));
}

/// A poll with the current version, or a later one, returns nothing; one with an older version returns the status.
pub async fn test_custom_status_polling_no_change<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "polled").await;
    update(provider, "polled", 2, &[Some("one")]).await;
    assert_eq!(poll(provider, "polled", 0).await, seen(Some("one"), 1));
    for last_seen in [1, 2, 1000] {
        assert_eq!(poll(provider, "polled", last_seen).await, None);
    }
    update(provider, "polled", 3, &[Some("two")]).await;
    assert_eq!(poll(provider, "polled", 1).await, seen(Some("two"), 2));
    assert_eq!(poll(provider, "polled", 2).await, None);
}

/// An unknown instance has no status, even while its start waits in the queue.
pub async fn test_custom_status_nonexistent_instance<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "known").await;
    update(provider, "known", 2, &[Some("working")]).await;
    enqueue(provider, start_item("queued")).await;
    for instance in ["unknown", "queued"] {
        assert_eq!(poll(provider, instance, 0).await, None, "instance '{instance}'");
    }
    assert_eq!(poll(provider, "known", 0).await, seen(Some("working"), 1));
}

/// A new instance is at version 0, so a poll from 0 returns nothing until the first update.
pub async fn test_custom_status_default_on_new_instance<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "new").await;
    operator(provider).sees_instances(&["new"]).await;
    assert_eq!(poll(provider, "new", 0).await, None);
    update(provider, "new", 2, &[Some("working")]).await;
    assert_eq!(poll(provider, "new", 0).await, seen(Some("working"), 1));
}

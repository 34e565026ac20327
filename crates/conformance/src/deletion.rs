//! Deletion removes all data of an instance and its descendants, or nothing.

use crate::ProviderFactory;
use crate::support::*;
use outlast_provider::model::{AppErrorKind, EventKind};
use outlast_provider::{Provider, ProviderError};

async fn delete(provider: &dyn Provider, instance: &str, force: bool) -> [u64; 4] {
    deleted(&admin(provider).delete_instance(instance, force).await.expect("delete_instance succeeds"))
}

async fn delete_all(
    provider: &dyn Provider,
    instances: &[&str],
    force: bool,
) -> Result<[u64; 4], ProviderError> {
    let ids: Vec<String> = instances.iter().map(ToString::to_string).collect();
    Ok(deleted(&admin(provider).delete_instances_atomic(&ids, force).await?))
}

/// The call must return a permanent error whose message holds one of these words.
fn refused<T>(result: Result<T, ProviderError>, what: &str, words: &[&str]) {
    let message = permanent(result, what).message.to_lowercase();
    assert!(words.iter().any(|word| message.contains(word)), "{what}: none of {words:?} in: {message}");
}

async fn assert_gone(provider: &dyn Provider, instance: &str) {
    permanent(admin(provider).get_instance_info(instance).await, "info about a deleted instance");
    assert!(!instances(provider).await.contains(&instance.to_string()), "{instance} is no longer listed");
    assert_eq!(provider.read(instance).await.unwrap(), [], "{instance} has no history");
    assert_eq!(admin(provider).list_executions(instance).await.unwrap(), [0; 0]);
    assert_eq!(provider.get_instance_stats(instance).await.unwrap(), None);
}

const FAMILY: [&str; 4] = ["leaf", "left", "right", "root"];
const PARENTS: [(&str, Option<&str>); 4] =
    [("root", None), ("left", Some("root")), ("right", Some("root")), ("leaf", Some("left"))];

/// Four completed instances of one event each: `root` > (`left` > `leaf`), `right`.
async fn create_family(provider: &dyn Provider) {
    for (instance, parent) in PARENTS {
        create_with(provider, instance, ended("Completed", "done", parent)).await;
    }
}

/// Completed, failed and cancelled instances can be deleted, and the counts are those of the deleted rows.
pub async fn test_delete_terminal_instances<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let failed = |kind| EventKind::OrchestrationFailed { details: failure(kind, "broken") };
    let cancelled = AppErrorKind::Cancelled { reason: "stop".to_string() };
    create_completed(provider, "kept", "done").await;
    for (instance, state, kind) in [
        ("completed", "Completed", completed_kind("done")),
        ("failed", "Failed", failed(AppErrorKind::OrchestrationFailed)),
        ("cancelled", "Failed", failed(cancelled)),
    ] {
        create_instance(provider, instance).await;
        let token = next_turn(provider, instance).await;
        Turn::new(&token)
            .event(event(instance, 2, kind))
            .metadata(status(state, "out"))
            .commit(provider)
            .await;
        assert_eq!(instances(provider).await, [instance, "kept"]);
        assert_eq!(delete(provider, instance, false).await, [1, 1, 2, 0], "{instance}");
        assert_gone(provider, instance).await;
        assert_eq!(instances(provider).await, ["kept"]);
    }
    assert_eq!(provider.read("kept").await.unwrap().len(), 1);
}

/// A running instance is deleted only with `force`; a rejected deletion changes nothing.
pub async fn test_delete_running_rejected_force_succeeds<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "busy").await;
    let history = provider.read("busy").await.unwrap();
    refused(
        admin(provider).delete_instance("busy", false).await,
        "deleting a running instance",
        &["running"],
    );
    assert_eq!(provider.read("busy").await.unwrap(), history);
    assert_eq!(history.len(), 1);
    assert_eq!(admin(provider).get_instance_info("busy").await.unwrap().status, "Running");

    assert_eq!(delete(provider, "busy", true).await, [1, 1, 1, 0]);
    assert_gone(provider, "busy").await;
}

/// Deleting an unknown instance is a permanent "not found", with force or without.
pub async fn test_delete_nonexistent_instance<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_completed(provider, "known", "done").await;
    for force in [false, true] {
        let result = admin(provider).delete_instance("unknown", force).await;
        refused(result, "deleting an unknown instance", &["not found"]);
    }
    assert_eq!(delete(provider, "known", false).await, [1, 1, 1, 0]);
    let again = admin(provider).delete_instance("known", false).await;
    refused(again, "deleting an instance twice", &["not found"]);
}

/// Deletion removes waiting, delayed and leased messages and the leases, so that the id can be used again.
pub async fn test_delete_cleans_queues_and_locks<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "reused-not").await;
    create_instance(provider, "reused").await;
    for (instance, id) in [("reused", 2), ("reused-not", 2), ("reused", 3)] {
        enqueue_activity(provider, activity(instance, id)).await;
    }
    let (_, worker, _) = must_fetch_activity(provider, LONG).await;
    let turn = next_turn(provider, "reused").await;
    enqueue(provider, raised("reused", "late", "")).await;
    provider.enqueue_for_orchestrator(raised("reused", "later", ""), Some(LONG)).await.unwrap();
    poke(provider, "reused-not").await;

    assert_eq!(delete(provider, "reused", true).await, [1, 1, 1, 5], "three messages and two activities");
    assert_gone(provider, "reused").await;
    permanent(provider.renew_work_item_lock(&worker, LONG).await, "renewing a deleted activity");
    permanent(provider.renew_orchestration_item_lock(&turn, LONG).await, "renewing a deleted turn");

    let start = start_of("reused", "Reborn", Some("2.0.0"));
    enqueue(provider, start.clone()).await;
    let (neighbour, _, _) = must_fetch(provider, LONG).await;
    assert_eq!(neighbour.instance, "reused-not", "its message was enqueued first");
    let (item, token, attempt) = must_fetch(provider, LONG).await;
    assert_eq!((item.instance.as_str(), item.execution_id, attempt), ("reused", 1, 1));
    assert_eq!((item.orchestration_name.as_str(), item.version.as_str()), ("Reborn", "2.0.0"));
    assert_eq!((item.history, item.messages), (vec![], vec![start]));
    let metadata = named_as("Reborn", "2.0.0");
    Turn::new(&token).event(started("reused")).metadata(metadata).commit(provider).await;
    operator(provider).sees_name("reused", "Reborn", "2.0.0").await;

    assert_eq!(must_fetch_activity(provider, LONG).await.0, activity("reused-not", 2));
    assert!(
        fetch_activity(provider, LONG).await.is_none(),
        "the activities of the deleted instance are deleted"
    );
}

/// A child cannot be deleted on its own, even with `force`; deleting its root deletes every level.
pub async fn test_cascade_delete_hierarchy<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_completed(provider, "stranger", "done").await;
    create_family(provider).await;
    for child in ["left", "right", "leaf"] {
        for force in [false, true] {
            let result = admin(provider).delete_instance(child, force).await;
            refused(result, "deleting a child", &["sub-orchestration", "root", "parent"]);
        }
    }
    assert_eq!(instances(provider).await, ["leaf", "left", "right", "root", "stranger"]);

    assert_eq!(delete(provider, "root", false).await, [4, 4, 4, 0]);
    for instance in FAMILY {
        assert_gone(provider, instance).await;
    }
    assert_eq!(instances(provider).await, ["stranger"]);
}

/// A turn that runs while its instance is deleted cannot be committed, and stores nothing.
pub async fn test_force_delete_prevents_ack_recreation<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "deleted").await;
    let token = next_turn(provider, "deleted").await;
    assert_eq!(delete(provider, "deleted", true).await, [1, 1, 1, 1]);

    let late = Turn::new(&token)
        .event(event("deleted", 2, scheduled_kind("Activity2")))
        .activity(activity("deleted", 2))
        .message(start_item("child"))
        .metadata(ended("Completed", "done", None));
    permanent(late.try_commit(provider).await, "the commit of a deleted instance's turn");
    assert_gone(provider, "deleted").await;
    assert!(fetch(provider, LONG).await.is_none(), "no message of the refused turn was enqueued");
    assert!(fetch_activity(provider, LONG).await.is_none(), "no activity of the refused turn was enqueued");
}

/// Children are listed one level deep; a missing instance has none.
pub async fn test_list_children<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_family(provider).await;
    let cases: [(&str, &[&str]); 5] =
        [("root", &["left", "right"]), ("left", &["leaf"]), ("right", &[]), ("leaf", &[]), ("unknown", &[])];
    for (instance, expected) in cases {
        let mut children = admin(provider).list_children(instance).await.unwrap();
        children.sort();
        assert_eq!(children, expected, "children of {instance}");
    }
}

/// A root has no parent, a child has its parent, and a missing instance is an error.
pub async fn test_delete_get_parent_id<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_family(provider).await;
    for (instance, parent) in PARENTS {
        let found = admin(provider).get_parent_id(instance).await.unwrap();
        assert_eq!(found.as_deref(), parent, "parent of {instance}");
    }
    permanent(admin(provider).get_parent_id("unknown").await, "asking for an unknown instance's parent");
}

/// A tree holds the instance first and then every descendant; the tree of a leaf or of a missing instance holds only its id.
pub async fn test_delete_get_instance_tree<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_family(provider).await;
    let cases: [(&str, &[&str]); 4] =
        [("root", &FAMILY), ("left", &["leaf", "left"]), ("leaf", &["leaf"]), ("unknown", &["unknown"])];
    for (instance, expected) in cases {
        let tree = admin(provider).get_instance_tree(instance).await.unwrap();
        assert_eq!((tree.root_id.as_str(), tree.all_ids[0].as_str()), (instance, instance));
        assert_eq!((tree.size(), tree.is_root_only()), (expected.len(), expected.len() == 1));
        let mut ids = tree.all_ids;
        ids.sort();
        assert_eq!(ids, expected, "tree of {instance}");
    }
}

/// The listed instances are deleted with all their data; the counts are those of the deleted rows.
pub async fn test_delete_instances_atomic<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    for instance in ["a", "b", "c", "kept"] {
        create_instance(provider, instance).await;
    }
    continue_as_new(provider, "a", 1).await;
    for (instance, execution_id) in [("a", 2), ("b", 1), ("c", 1), ("kept", 1)] {
        set_status(provider, instance, execution_id, "Completed", "done").await;
    }
    enqueue_activity(provider, activity("b", 2)).await;
    enqueue_activity(provider, activity("kept", 2)).await;
    poke(provider, "c").await;

    assert_eq!(delete_all(provider, &[], false).await, Ok([0; 4]), "nothing listed, nothing deleted");
    assert_eq!(instances(provider).await, ["a", "b", "c", "kept"]);
    let deleted = delete_all(provider, &["a", "unknown", "b", "c"], false).await;
    assert_eq!(deleted, Ok([3, 4, 5, 2]), "four executions, five events, a message and an activity");
    for instance in ["a", "b", "c"] {
        assert_gone(provider, instance).await;
    }
    assert_eq!(instances(provider).await, ["kept"]);
    assert!(fetch(provider, LONG).await.is_none(), "the message went along");
    assert_eq!(must_fetch_activity(provider, LONG).await.0, activity("kept", 2));
    assert!(fetch_activity(provider, LONG).await.is_none(), "the activity went along");
}

/// Without `force`, one running instance in the list prevents the deletion of all.
pub async fn test_delete_instances_atomic_force<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_completed(provider, "a", "done").await;
    create_instance(provider, "b").await;
    create_completed(provider, "c", "done").await;
    let listed = ["a", "b", "c"];

    refused(delete_all(provider, &listed, false).await, "deleting a running instance", &["running"]);
    assert_eq!(instances(provider).await, listed);
    for instance in listed {
        assert_eq!(provider.read(instance).await.unwrap().len(), 1, "{instance} keeps its history");
    }
    assert_eq!(delete_all(provider, &listed, true).await, Ok([3, 3, 3, 0]));
    for instance in listed {
        assert_gone(provider, instance).await;
    }
}

/// A list that would leave a child without its parent is rejected, even with `force`.
pub async fn test_delete_instances_atomic_orphan_detection<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_family(provider).await;
    let incomplete: [&[&str]; 3] = [&["root"], &["root", "left", "right"], &["right", "left"]];
    for listed in incomplete {
        for force in [false, true] {
            let result = delete_all(provider, listed, force).await;
            refused(result, "deleting a parent without its child", &["child", "orphan", "tree"]);
        }
    }
    assert_eq!(instances(provider).await, FAMILY);
    for instance in FAMILY {
        assert_eq!(provider.read(instance).await.unwrap().len(), 1, "{instance} keeps its history");
    }
    assert_eq!(delete_all(provider, &FAMILY, false).await, Ok([4, 4, 4, 0]));
    assert_eq!(instances(provider).await, [""; 0]);
}

/// An activity of a deleted instance cannot be completed into a new instance with the same id.
pub async fn test_stale_activity_after_delete_recreate<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "reused").await;
    enqueue_activity(provider, activity("reused", 2)).await;
    let (_, stale, _) = must_fetch_activity(provider, LONG).await;
    assert_eq!(delete(provider, "reused", true).await, [1, 1, 1, 1]);
    create_instance(provider, "reused").await;
    enqueue_activity(provider, activity("reused", 2)).await;

    let completion = Some(completed("reused", 2));
    permanent(provider.renew_work_item_lock(&stale, LONG).await, "renewing the old activity");
    permanent(provider.ack_work_item(&stale, completion.clone()).await, "completing the old activity");
    assert!(fetch(provider, LONG).await.is_none(), "the old result does not reach the new instance");

    let (item, token, attempt) = must_fetch_activity(provider, LONG).await;
    assert_eq!((item, attempt), (activity("reused", 2), 1), "the new activity is untouched");
    provider.ack_work_item(&token, completion).await.expect("the new activity completes");
    assert_eq!(must_fetch(provider, LONG).await.0.messages, [completed("reused", 2)]);
}

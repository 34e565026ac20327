//! Retention deletes ended trees, old records of the audit and old dead letters, in bounded steps.

use crate::ProviderFactory;
use crate::support::*;
use futures::future::join_all;
use outlast_provider::{
    AuditEntry, DeadLetter, DeadLetterQueue, Hold, HoldKind, HoldOutcome, OldInstance, OldestPage, Provider,
};

/// Later than every end.
const LATER: u64 = 8_000_000_000_000_000;

async fn oldest(provider: &dyn Provider, after: Option<u64>, limit: usize) -> Option<OldestPage> {
    admin(provider).oldest_instances(after, limit).await.expect("oldest_instances succeeds")
}

/// The deleted instances; `None` if the store has no retention.
async fn delete_ended(provider: &dyn Provider, roots: &[&str], before: u64) -> Option<[u64; 4]> {
    let roots: Vec<String> = roots.iter().map(ToString::to_string).collect();
    let result = admin(provider).delete_ended(&roots, before).await.expect("delete_ended succeeds");
    result.map(|result| deleted(&result))
}

/// The oldest instances are listed page by page in order of creation, children included, with the time at which they ended.
pub async fn the_oldest_instances_are_listed_first(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "z").await;
    create_completed(provider, "y", "done").await;
    create_with(provider, "x", ended("Failed", "broken", Some("z"))).await;
    create_completed(provider, "w", "done").await;
    let Some(first) = oldest(provider, None, 3).await else { return };
    let seen = |row: &OldInstance| {
        (row.instance_id.clone(), row.status.clone(), row.is_root, row.ended_at.is_some())
    };
    let row =
        |id: &str, status: &str, is_root, has_ended| (id.to_string(), status.to_string(), is_root, has_ended);
    let found: Vec<_> = first.instances.iter().map(seen).collect();
    let expected = [
        row("z", "Running", true, false),
        row("y", "Completed", true, true),
        row("x", "Failed", false, true),
    ];
    assert_eq!(found, expected);
    assert_eq!(first.instances[1].ended_at, Some(ended_at(provider, "y", 1).await));
    let info = admin(provider).get_instance_info("y").await.expect("the instance is known");
    let y = &first.instances[1];
    assert_eq!((&y.orchestration_name, y.created_at), (&info.orchestration_name, info.created_at));
    // The position stays valid when the instance before it is deleted.
    assert_eq!(delete_ended(provider, &["y"], LATER).await, Some([1, 1, 1, 0]));
    let rest = oldest(provider, first.next, 3).await.expect("the store lists its oldest instances");
    assert_eq!(rest.instances.iter().map(seen).collect::<Vec<_>>(), [row("w", "Completed", true, true)]);
    assert_eq!(rest.next, None, "no instance follows");
    let mut after = None;
    let mut singly = Vec::new();
    loop {
        let page = oldest(provider, after, 1).await.expect("the store lists its oldest instances");
        singly.extend(page.instances.into_iter().map(|row| row.instance_id));
        let Some(next) = page.next else { break };
        after = Some(next);
    }
    assert_eq!(singly, ["z", "x", "w"]);
}

/// Only roots that ended before the time are deleted, to the millisecond, each with its descendants. Running instances, children and
/// unknown ids are passed over.
pub async fn only_old_roots_are_deleted(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "running").await;
    create_with(provider, "between", ended("ContinuedAsNew", "next", None)).await;
    create_completed(provider, "root", "done").await;
    create_with(provider, "child", ended("Completed", "done", Some("root"))).await;
    create_with(provider, "grandchild", ended("Failed", "broken", Some("child"))).await;
    tokio::time::sleep(APART).await;
    create_with(provider, "late", ended("Failed", "broken", None)).await;
    let all = ["running", "between", "root", "child", "grandchild", "late", "unknown", "' OR '1'='1"];
    let end = ended_at(provider, "root", 1).await;
    let Some(none) = delete_ended(provider, &all, end).await else { return };
    assert_eq!(none, [0; 4], "no root ended before {end}");
    assert_eq!(delete_ended(provider, &["child", "grandchild"], LATER).await, Some([0; 4]), "children stay");
    assert_eq!(instances(provider).await.len(), 6);
    assert_eq!(delete_ended(provider, &all, end + 1).await, Some([3, 3, 3, 0]), "the tree of root");
    assert_eq!(instances(provider).await, ["between", "late", "running"]);
    assert_eq!(delete_ended(provider, &all, LATER).await, Some([1, 1, 1, 0]), "late");
    assert_eq!(instances(provider).await, ["between", "running"]);
    assert_eq!(delete_ended(provider, &[], LATER).await, Some([0; 4]));
}

/// A tree stays as a whole while one of its instances runs; its neighbours in the same call are deleted.
pub async fn a_running_descendant_keeps_its_tree(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    for root in ["busy", "free"] {
        create_completed(provider, root, "done").await;
    }
    create_with(provider, "child", ended("Completed", "done", Some("busy"))).await;
    create_instance_with_parent(provider, "grandchild", "child").await;
    let Some(counts) = delete_ended(provider, &["busy", "free"], LATER).await else { return };
    assert_eq!(counts, [1, 1, 1, 0], "free");
    assert_eq!(instances(provider).await, ["busy", "child", "grandchild"]);
    set_status(provider, "grandchild", 1, "Completed", "done").await;
    let counts = delete_ended(provider, &["busy"], LATER).await;
    assert_eq!(counts.map(|counts| counts[0]), Some(3), "no instance of the tree runs");
    assert_eq!(instances(provider).await, [""; 0]);
}

/// A message or an activity that waits for an instance, or is under a lease, keeps the tree of the instance, also the one of a
/// child. A timer does not: it is deleted with its instance.
pub async fn undelivered_items_keep_their_tree(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    for (root, child) in [("message", "message-child"), ("activity", "activity-child")] {
        create_completed(provider, root, "done").await;
        create_with(provider, child, ended("Completed", "done", Some(root))).await;
    }
    create_completed(provider, "timer", "done").await;
    enqueue(provider, timer("timer", 7, factory.now_ms() + 3_600_000)).await;
    enqueue(provider, raised("message-child", "event", "data")).await;
    enqueue_activity(provider, activity("activity-child", 2)).await;
    let all = ["message", "activity", "timer"];
    let Some(counts) = delete_ended(provider, &all, LATER).await else { return };
    assert_eq!(counts, [1, 1, 1, 1], "timer");
    assert_eq!(instances(provider).await, ["activity", "activity-child", "message", "message-child"]);
    let (item, token, _) = must_fetch(provider, LONG).await;
    assert_eq!(item.messages, [raised("message-child", "event", "data")], "the message is still there");
    let (_, work, _) = must_fetch_activity(provider, LONG).await;
    assert_eq!(delete_ended(provider, &all, LATER).await, Some([0; 4]), "both are under a lease");
    Turn::new(&token).commit(provider).await;
    assert_eq!(delete_ended(provider, &all, LATER).await.map(|counts| counts[0]), Some(2), "message");
    provider.ack_work_item(&work, None).await.expect("its lease is live");
    assert_eq!(delete_ended(provider, &all, LATER).await.map(|counts| counts[0]), Some(2), "activity");
    assert_eq!(instances(provider).await, [""; 0]);
}

/// A held instance stays until it is released.
pub async fn a_held_instance_is_not_deleted_by_age(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_completed(provider, "held", "done").await;
    enqueue(provider, timer("held", 7, 1)).await;
    let (_, token, _) = must_fetch(provider, LONG).await;
    let hold = Hold { kind: HoldKind::Parked, actor: "build".to_string(), reason: "test".to_string() };
    if provider.hold_turn(&token, &hold).await != Ok(HoldOutcome::Held) {
        return Turn::new(&token).commit(provider).await;
    }
    let Some(counts) = delete_ended(provider, &["held"], LATER).await else { return };
    assert_eq!(counts, [0; 4], "the instance is held");
    assert_eq!(instances(provider).await, ["held"]);
    admin(provider).release_instance("held").await.expect("release_instance succeeds");
    assert_eq!(delete_ended(provider, &["held"], LATER).await, Some([1, 1, 1, 1]));
}

/// Callers that delete the same roots at once delete each of them once.
pub async fn concurrent_deletions_by_age_count_each_tree_once(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let ids: Vec<String> = (0..8).map(|n| format!("root-{n}")).collect();
    for id in &ids {
        create_completed(provider, id, "done").await;
    }
    create_with(provider, "child", ended("Completed", "done", Some("root-3"))).await;
    let callers = (0..4).map(|_| admin(provider).delete_ended(&ids, LATER));
    let mut total = 0;
    for result in join_all(callers).await {
        let Some(result) = result.expect("delete_ended succeeds") else { return };
        total += result.instances_deleted;
    }
    assert_eq!((total, instances(provider).await.len()), (9, 0));
}

fn record(reason: &str) -> AuditEntry {
    AuditEntry {
        actor: "operator".to_string(),
        action: "test".to_string(),
        target: "target".to_string(),
        reason: reason.to_string(),
        request: None,
        result: "done".to_string(),
    }
}

/// A call examines the oldest records of the audit, deletes those from before the time, and never the newest record.
pub async fn old_records_of_the_audit_are_pruned(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "witness").await;
    let admin = admin(provider);
    for reason in ["1", "2", "3"] {
        if !admin.append_audit(&record(reason)).await.expect("append_audit succeeds") {
            assert_eq!(admin.prune_audit(LATER, 10).await, Ok(None), "a store without an audit");
            return;
        }
    }
    let reasons = || async {
        let page = admin.audit_page(None, 10).await.expect("audit_page succeeds").unwrap_or_default();
        page.into_iter().map(|record| (record.id, record.entry.reason)).collect::<Vec<_>>()
    };
    let page = admin.audit_page(None, 10).await.expect("audit_page succeeds").unwrap_or_default();
    let young = page[0].at_ms + 1;
    tokio::time::sleep(APART).await;
    admin.append_audit(&record("4")).await.expect("append_audit succeeds");
    let Some(pruned) = admin.prune_audit(1, 10).await.expect("prune_audit succeeds") else { return };
    assert_eq!((pruned, reasons().await.len()), (0, 4), "no record is that old");
    assert_eq!(admin.prune_audit(young, 2).await, Ok(Some(2)), "two records are examined");
    assert_eq!(admin.prune_audit(young, 10).await, Ok(Some(1)), "the fourth record is young");
    let left = reasons().await;
    assert_eq!(left.iter().map(|(_, reason)| reason.as_str()).collect::<Vec<_>>(), ["4"]);
    assert_eq!(admin.prune_audit(LATER, 10).await, Ok(Some(0)), "the newest record stays");
    admin.append_audit(&record("5")).await.expect("append_audit succeeds");
    let after = reasons().await;
    assert!(after[0].0 > left[0].0, "ids grow: {after:?}");
    assert_eq!(
        admin.prune_audit(LATER, 10).await,
        Ok(Some(1)),
        "the fourth record is not the newest any more"
    );
}

/// A call examines the dead letters with the lowest numbers and deletes those from before the time.
pub async fn old_dead_letters_are_pruned(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "buried").await;
    let letter = |text: &str, dead_at| DeadLetter {
        queue: DeadLetterQueue::Orchestrator,
        instance_id: Some("buried".to_string()),
        work_item: text.to_string(),
        reason: "does not decode".to_string(),
        attempt_count: 1,
        dead_at,
    };
    let admin = admin(provider);
    let Some(none) = admin.prune_dead_letters(LATER, 10).await.expect("prune_dead_letters succeeds") else {
        return;
    };
    assert_eq!(none, 0);
    for (text, dead_at) in [("a", 1_000), ("b", 1_001), ("c", 5_000), ("d", 1_002)] {
        let is_written = factory.write_dead_letter(&letter(text, dead_at)).await;
        assert!(is_written, "a store that prunes dead letters needs the hook write_dead_letter");
    }
    let texts = || async {
        let listed = admin.list_dead_letters(10).await.expect("list_dead_letters succeeds");
        listed.into_iter().map(|letter| letter.work_item).collect::<Vec<_>>()
    };
    assert_eq!(admin.prune_dead_letters(1_000, 10).await, Ok(Some(0)), "the time is excluded");
    assert_eq!(admin.prune_dead_letters(2_000, 1).await, Ok(Some(1)), "one dead letter is examined");
    assert_eq!(texts().await, ["d", "c", "b"]);
    assert_eq!(admin.prune_dead_letters(2_000, 10).await, Ok(Some(2)));
    assert_eq!(texts().await, ["c"]);
    assert_eq!(instances(provider).await, ["buried"]);
}

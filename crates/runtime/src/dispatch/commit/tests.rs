//! The effects of a commit inside the runtime, and how refusals are counted.

use super::*;
use crate::dispatch::fixture::{busy, core, start, started, store};

fn completed(parent: &str, parent_execution_id: u64) -> WorkItem {
    WorkItem::SubOrchCompleted {
        parent_instance: parent.to_string(),
        parent_execution_id,
        parent_id: 2,
        result: String::new(),
    }
}

#[test]
fn only_queues_with_new_items_are_woken() {
    let woken = |commit: &TurnCommit| {
        let summary = CommitSummary::of(commit);
        (summary.has_activities, summary.has_messages)
    };
    let activity = WorkItem::ActivityExecute {
        instance: "i".to_string(),
        execution_id: 1,
        id: 2,
        name: "A".to_string(),
        input: String::new(),
        session_id: None,
        tag: None,
    };
    let work = TurnCommit { worker_items: vec![activity], ..TurnCommit::default() };
    let message = TurnCommit { orchestrator_items: vec![start("child")], ..TurnCommit::default() };
    assert_eq!(woken(&work), (true, false));
    assert_eq!(woken(&message), (false, true));
}

#[test]
fn an_ended_execution_is_not_kept() {
    let kept_after = |status: Option<ExecutionStatus>| {
        let mut commit = TurnCommit::default();
        commit.metadata.status = status.map(|status| status.to_string());
        kept(Box::new(busy()), &CommitSummary::of(&commit))
    };
    assert!(matches!(kept_after(None), Kept::Suspended(_)));
    assert!(matches!(kept_after(Some(ExecutionStatus::ContinuedAsNew)), Kept::Continued(_)));
    assert!(matches!(kept_after(Some(ExecutionStatus::Completed)), Kept::Ended));
    assert!(matches!(kept_after(Some(ExecutionStatus::Failed)), Kept::Ended));
}

#[tokio::test(start_paused = true)]
async fn a_parent_is_looked_up_if_its_execution_is_not_known() {
    let core = core();
    store(&core, "parent", 3, vec![started()]).await;
    let mut items = [
        completed("parent", UNKNOWN_EXECUTION),
        completed("parent", 2),
        completed("gone", UNKNOWN_EXECUTION),
    ];
    find_parents(&core, &mut items).await.unwrap();
    assert_eq!(items, [completed("parent", 3), completed("parent", 2), completed("gone", 1)]);
}

#[tokio::test(start_paused = true)]
async fn refusals_are_counted_until_a_commit_succeeds() {
    let core = core();
    let refusals = || core.refused.lock().unwrap().clone();
    let (one, other): (Arc<str>, Arc<str>) = ("one".into(), "other".into());
    let error = ProviderError::permanent("commit", "no");
    for instance in [&one, &other, &one] {
        let lease =
            core.leases.hold(&core, crate::dispatch::lease::Kind::Turn, "t".into(), Arc::clone(instance));
        give_back_refused(&core, instance, lease, &error).await;
    }
    assert_eq!(refusals(), [(Arc::clone(&one), 2), (Arc::clone(&other), 1)].into());
    reset_refusals(&core, &one);
    assert_eq!(refusals(), [(other, 1)].into());
}

//! Plans of resets and forks. `property` plays histories on from every cut.

use crate::kit::*;
use outlast_engine::reset::{Branch, ChildState, Cut, CutError, ResetSummary};
use outlast_engine::{KvValue, new_stamp};
use outlast_model::{AppErrorKind, AuditEntry, ErrorDetails, Event, EventKind, ResetPlan, WorkItem};
use std::collections::BTreeMap;

const RESET: Branch<'_> = Branch::Reset { cancel_children: false };

fn cut(events: &[Event], to_event: u64, branch: Branch<'_>) -> Result<(ResetPlan, ResetSummary), CutError> {
    let keys = BTreeMap::from([("old".to_string(), KvValue { value: "1".to_string(), updated_at_ms: 5 })]);
    Cut::at(events, to_event)?.plan(branch, &keys, &BTreeMap::new(), AuditEntry::default(), 900)
}

fn stored(events: Vec<Stored>) -> Vec<Event> {
    let all = std::iter::once(started("in")).chain(events).collect();
    history(&new_stamp(false), all)
}

#[test]
fn activities_whose_completion_is_left_out_are_counted() {
    let events = stored(vec![
        activity("Kept", "a"),
        completed(2, "r"),
        activity("Cut", "b"),
        completed(4, "r"),
        activity("Left", "c"),
        completed(6, "r"),
        activity("Open", "d"),
    ]);
    let (_, summary) = cut(&events, 4, RESET).unwrap();
    assert_eq!((summary.activities, summary.repeated_activities), (1, 2));
}

#[test]
fn open_work_is_scheduled_again_in_the_next_execution() {
    let events = stored(vec![
        activity("Done", "a"),
        completed(2, "r"),
        activity("Open", "b"),
        activity("Dropped", "c"),
        activity_dropped(5),
        timer(7_000),
        status("here"),
        activity("Later", "d"),
        status("there"),
    ]);
    let (plan, summary) = cut(&events, 8, RESET).unwrap();
    assert_eq!((plan.begin.execution_id, plan.last_event_id, plan.target.as_str()), (2, 10, "i"));
    assert_eq!(plan.custom_status.as_deref(), Some("here"));
    assert_eq!(plan.keys["old"].value, "1");
    let names: Vec<&str> = plan.begin.worker_items.iter().map(WorkItem::kind_name).collect();
    assert_eq!((names, summary.activities, summary.timers), (vec!["ActivityExecute"], 1, 1));
    let fires = WorkItem::TimerFired { instance: "i".into(), execution_id: 2, id: 7, fire_at_ms: 7_000 };
    assert_eq!(plan.begin.orchestrator_items[1..], [fires]);
    let cancelled: Vec<u64> =
        plan.begin.cancelled_activities.iter().map(|activity| activity.activity_id).collect();
    assert_eq!(cancelled, [4, 9], "open activities of the whole execution");
    let end = plan.end.unwrap();
    assert_eq!((end.event_id, end.execution_id, end.timestamp_ms), (11, 1, 900));
    assert!(plan.begin.history_delta.iter().all(|event| event.execution_id == 2));
}

#[test]
fn fork_has_no_parent_and_leaves_its_source_alone() {
    let mut events = stored(vec![activity("Open", "b")]);
    if let EventKind::OrchestrationStarted { parent_instance, parent_id, .. } = &mut events[0].kind {
        (*parent_instance, *parent_id) = (Some("boss".to_string()), Some(3));
    }
    let (plan, _) = cut(&events, 2, Branch::Fork { id: "f" }).unwrap();
    assert!(plan.is_fork() && plan.end.is_none() && plan.begin.cancelled_activities.is_empty());
    let first = &plan.begin.history_delta[0];
    assert_eq!((first.instance_id.as_str(), first.execution_id), ("f", 1));
    assert!(matches!(
        &first.kind,
        EventKind::OrchestrationStarted { parent_instance: None, parent_id: None, .. }
    ));
    assert_eq!(plan.begin.metadata.parent_instance_id, None);
    let (plan, _) = cut(&events, 2, RESET).unwrap();
    assert_eq!(plan.begin.metadata.parent_instance_id.as_deref(), Some("boss"));
}

#[test]
fn child_with_an_id_of_its_own_after_the_cut_is_refused() {
    let events = stored(vec![activity("A", ""), child("C", "own", ""), child("C", "sub::4", "")]);
    let error = cut(&events, 2, RESET).unwrap_err();
    assert_eq!(error, CutError::TakenChild { child: "own".to_string(), event: 3 });
    let error = cut(&events, 3, RESET).unwrap_err();
    let children = vec!["own".to_string(), "i::sub::4".to_string()];
    assert_eq!(error, CutError::RunningChildren { children, event: 3, can_cancel: true });
    let error = cut(&events, 3, Branch::Fork { id: "f" }).unwrap_err();
    let children = vec!["own".to_string()];
    assert_eq!(error, CutError::RunningChildren { children, event: 3, can_cancel: false });
    let (plan, summary) = cut(&events, 3, Branch::Reset { cancel_children: true }).unwrap();
    assert_eq!(summary.cancelled_children, ["own", "i::sub::4"]);
    let answers = plan.begin.orchestrator_items.iter();
    let answers = answers.filter(|item| matches!(item, WorkItem::SubOrchFailed { parent_id: 3, .. }));
    assert_eq!(answers.count(), 1, "the kept child is answered as cancelled");
}

#[test]
fn child_that_has_ended_is_answered() {
    let events = stored(vec![child("C", "sub::2", ""), child("C", "sub::3", "")]);
    let found = Cut::at(&events, 3).unwrap();
    let details = ErrorDetails::Application {
        kind: AppErrorKind::OrchestrationFailed,
        message: "no".to_string(),
        retryable: false,
    };
    let states = BTreeMap::from([
        (2, ChildState::Completed("out".to_string())),
        (3, ChildState::Failed(details.clone())),
    ]);
    let planned = found.plan(RESET, &BTreeMap::new(), &states, AuditEntry::default(), 0);
    let (plan, summary) = planned.unwrap();
    assert_eq!(summary.answered_children, ["i::sub::2", "i::sub::3"]);
    let expected = [
        WorkItem::SubOrchCompleted {
            parent_instance: "i".to_string(),
            parent_execution_id: 2,
            parent_id: 2,
            result: "out".to_string(),
        },
        WorkItem::SubOrchFailed {
            parent_instance: "i".to_string(),
            parent_execution_id: 2,
            parent_id: 3,
            details,
        },
    ];
    assert_eq!(plan.begin.orchestrator_items[1..], expected);
}

#[test]
fn end_of_an_execution_and_a_cancellation_are_not_kept() {
    let cancel = plain(EventKind::OrchestrationCancelRequested { reason: "stop".to_string() });
    let events = stored(vec![activity("A", ""), cancel]);
    assert_eq!(cut(&events, 3, RESET).unwrap_err(), CutError::Cancelled { event: 3 });
    assert!(cut(&events, 2, RESET).is_ok());
    let end = plain(EventKind::OrchestrationCompleted { output: "out".to_string() });
    let events = stored(vec![activity("A", ""), completed(2, "r"), end, activity_ended(2)]);
    assert_eq!(cut(&events, 4, RESET).unwrap_err(), CutError::Ending { event: 4 });
    assert!(cut(&events, 3, RESET).is_ok());
    let next = plain(EventKind::OrchestrationContinuedAsNew { input: "next".to_string() });
    assert_eq!(cut(&stored(vec![next]), 1, RESET).unwrap_err(), CutError::Continues);
    let range = cut(&events, 6, RESET).unwrap_err();
    assert_eq!(range, CutError::OutOfRange { event: 6, last: 5 });
}

#[test]
fn keys_of_an_ended_execution_are_empty_at_first_and_lost_later() {
    let end = || plain(EventKind::OrchestrationCompleted { output: String::new() });
    let mut events = stored(vec![key_set("k", "1", 5), end()]);
    assert!(cut(&events, 2, RESET).unwrap().0.keys.is_empty(), "execution 1 begins without keys");
    events.iter_mut().for_each(|event| event.execution_id = 2);
    let error = cut(&events, 2, RESET).unwrap_err();
    assert_eq!(error, CutError::KeysLost { key: Some("k".to_string()) });
    let mut events = stored(vec![activity("A", ""), end()]);
    events.iter_mut().for_each(|event| event.execution_id = 2);
    assert_eq!(cut(&events, 2, RESET).unwrap().0.keys["old"].value, "1", "it changed no key");
}

//! Which execution a batch belongs to (spec runtime 1.2, 1.3, 6.5).

use crate::kit::*;
use outlast_engine::{
    Admission, Admitted, Ended, Opening, Past, Poison, Setup, UNKNOWN_EXECUTION, admit, new_stamp, poison,
};
use outlast_model::{ErrorDetails, Event, EventKind, PoisonMessageType, WorkItem};
use std::collections::BTreeMap;
use std::sync::Arc;

fn text(items: &[WorkItem]) -> String {
    let mut output = outlast_engine::TurnOutput { commit: Default::default(), report: Default::default() };
    output.commit.orchestrator_items = items.to_vec();
    output_text(&output)
}

fn admitted(past: &Past, messages: Vec<WorkItem>) -> Admitted {
    match admit("i", 1, past, messages) {
        Admission::Run(admitted) => *admitted,
        other => panic!("{other:?}"),
    }
}

fn running() -> Past {
    Past::of_history(&history("0.1.32", vec![started("in"), activity("A", "")]))
}

fn message() -> WorkItem {
    raise("s", "x").address("i", 1)
}

#[test]
fn start_without_history_begins_execution_1() {
    let batch = vec![message(), start("i", None), start("i", None)];
    let admitted = admitted(&Past::default(), batch);
    assert!(admitted.is_new);
    assert_eq!((admitted.execution_id, admitted.ignored_starts), (1, 1));
    assert_eq!(admitted.messages, [message()]);
    assert_eq!(admitted.opening.version, None);
    assert_eq!(admitted.notices, []);
}

#[test]
fn successor_start_is_preferred_to_a_start_without_history() {
    for batch in [vec![start("i", None), next("i", "two")], vec![next("i", "two"), start("i", None)]] {
        assert_eq!(admitted(&Past::default(), batch).opening.input, "two");
    }
}

#[test]
fn batch_without_start_or_history_is_nameless() {
    assert_eq!(admit("i", 1, &Past::default(), vec![message()]), Admission::Nameless);
    assert_eq!(admit("i", 1, &Past::default(), vec![]), Admission::Nameless);
}

#[test]
fn start_for_a_running_instance_is_ignored() {
    let mut other = start("i", None);
    if let WorkItem::StartOrchestration { orchestration, input, .. } = &mut other {
        (*orchestration, *input) = ("Other".to_string(), "other".to_string());
    }
    let admitted = admitted(&running(), vec![other, message()]);
    assert!(!admitted.is_new);
    assert_eq!((admitted.opening.name.as_str(), admitted.opening.input.as_str()), ("Main", "in"));
    assert_eq!(admitted.messages, [message()]);
    // A start of a successor that runs already is one too many.
    let again = admitted_twice();
    assert!(!again.is_new);
}

fn admitted_twice() -> Admitted {
    admitted(&running(), vec![next("i", "again"), message()])
}

fn continued() -> Past {
    let stored = vec![
        started("in"),
        plain(EventKind::OrchestrationContinuedAsNew { input: "two".to_string() }),
        activity_dropped(9),
    ];
    Past::of_history(&history("0.1.32", stored))
}

#[test]
fn successor_begins_with_its_own_start_only() {
    assert_eq!(continued().ended, Some(Ended::Continued { input: "two".to_string() }));
    assert_eq!(admit("i", 1, &continued(), vec![message()]), Admission::SuccessorMissing(vec![]));
    assert_eq!(admit("i", 1, &continued(), vec![start("i", None)]), Admission::SuccessorMissing(vec![]));
    for batch in [vec![start("i", None), next("i", "two")], vec![next("i", "two"), start("i", None)]] {
        let admitted = admitted(&continued(), batch);
        assert!(admitted.is_new);
        assert_eq!((admitted.execution_id, admitted.opening.input.as_str()), (2, "two"));
        assert_eq!(admitted.ignored_starts, 1);
    }
}

#[test]
fn cancellation_between_two_executions_cancels_the_successor() {
    let batch = || vec![cancel("no").address("i", 1)];
    assert_eq!(admit("i", 1, &continued(), batch()), Admission::SuccessorMissing(vec![]));
    let with_start = batch().into_iter().chain([next("i", "two")]).collect();
    assert_eq!(admitted(&continued(), with_start).messages, batch());
}

#[test]
fn parent_of_a_start_between_executions_gets_a_failure_when_the_instance_is_poisoned() {
    let batch = vec![message(), start("i", Some(("p", 4, Some(2))))];
    let Admission::SuccessorMissing(notices) = admit("i", 1, &continued(), batch) else {
        panic!("the successor's start is not there")
    };
    same(
        &text(&notices),
        r#"
        > tell p/2#4 application: sub-orchestration instance id 'i' already exists and is terminal
    "#,
    );
}

#[test]
fn messages_for_an_ended_instance_are_dropped() {
    let completed = EventKind::OrchestrationCompleted { output: String::new() };
    let past = Past::of_history(&history("0.1.32", vec![started("in"), plain(completed)]));
    assert_eq!(past.ended, Some(Ended::Finished));
    assert_eq!(admit("i", 1, &past, vec![message(), start("i", None)]), Admission::Ended(vec![]));
    let Admission::Ended(notices) = admit("i", 1, &past, vec![start("i", Some(("p", 4, Some(1))))]) else {
        panic!("it ended")
    };
    same(
        &text(&notices),
        r#"
        > tell p/1#4 application: sub-orchestration instance id 'i' already exists and is terminal
    "#,
    );
}

#[test]
fn failure_after_continue_as_new_ends_the_instance() {
    // How older runtimes recorded a successor that was poisoned.
    let stored = vec![
        started("in"),
        plain(EventKind::OrchestrationContinuedAsNew { input: "two".to_string() }),
        plain(EventKind::OrchestrationFailed { details: infrastructure() }),
    ];
    assert_eq!(Past::of_history(&history("0.1.30", stored)).ended, Some(Ended::Finished));
}

#[test]
fn the_version_of_old_histories_may_mean_none() {
    let mut events = history("0.1.32", vec![started("in")]);
    if let EventKind::OrchestrationStarted { version, .. } = &mut events[0].kind {
        *version = "0.0.0".to_string();
    }
    assert_eq!(Past::of_history(&events).opening.unwrap().version, None);
    assert_eq!(running().opening.unwrap().version.as_deref(), Some("1.0.0"));
}

#[test]
fn child_id_that_exists_fails_the_call_of_the_parent() {
    // (parent of the running instance, parent of the start, whether they collide)
    let own = ("p", 4, Some(1));
    let cases = [
        (None, own, true),
        (Some(own), own, false),
        (Some(own), ("p", 5, Some(1)), true),
        (Some(own), ("q", 4, Some(1)), true),
        (Some(own), ("p", 4, Some(2)), true),
        (Some(own), ("p", 4, None), true),
        (Some(("p", 4, None)), ("p", 4, None), true),
    ];
    for (runs, asks, collides) in cases {
        let past = Past { opening: opening(runs), ended: None };
        let notices = admitted(&past, vec![start("i", Some(asks))]).notices;
        assert_eq!(notices.len(), usize::from(collides), "{runs:?} {asks:?}");
        // A child that is over has sent its outcome already, which no answer may overtake.
        let over = Past { ended: Some(Ended::Finished), ..past };
        let Admission::Ended(late) = admit("i", 1, &over, vec![start("i", Some(asks))]) else {
            panic!("it ended")
        };
        assert_eq!(late.len(), usize::from(collides), "{runs:?} {asks:?}, over");
        // The same in one batch with the start that won.
        let both = admitted(&Past::default(), vec![start("i", runs), start("i", Some(asks))]);
        assert_eq!(both.notices, notices);
    }
    let past = Past { opening: opening(None), ended: None };
    same(
        &text(&admitted(&past, vec![start("i", Some(own)), start("i", Some(("q", 9, None)))]).notices),
        r#"
        > tell p/1#4 application: sub-orchestration instance id 'i' already exists
        > tell q/0#9 application: sub-orchestration instance id 'i' already exists
    "#,
    );
    assert_eq!(UNKNOWN_EXECUTION, 0);
}

fn opening(parent: Option<(&str, u64, Option<u64>)>) -> Option<Opening> {
    Some(admitted(&Past::default(), vec![start("i", parent)]).opening)
}

fn poisoned(parent: Option<(&str, u64, Option<u64>)>, history: Vec<Event>) -> String {
    let setup = Setup {
        instance: "i".to_string(),
        execution_id: 1,
        opening: opening(parent).unwrap(),
        stamp: new_stamp(false),
        kv: BTreeMap::new(),
        limits: Arc::default(),
    };
    let message_type = PoisonMessageType::Orchestration { instance: "i".to_string(), execution_id: 1 };
    let details =
        ErrorDetails::Poison { attempt_count: 11, max_attempts: 10, message_type, message: "[]".to_string() };
    let parent_close = outlast_engine::ParentClosePolicy::Contract;
    output_text(&poison(Poison { setup, history, details, notices: Vec::new(), now_ms: 7, parent_close }))
}

#[test]
fn c7_poisoned_instance_fails_its_parent_and_cancels_its_activities() {
    let boss = Some(("boss", 7, Some(2)));
    same(
        &poisoned(boss, vec![]),
        r#"
        1 OrchestrationStarted Main "in" parent=boss#7
        2 OrchestrationFailed poison: poison: orchestration i exceeded 11 attempts (max 10)
        > tell boss/2#7 poison: poison: orchestration i exceeded 11 attempts (max 10)
        = Failed
    "#,
    );
    let stored =
        vec![started("in"), activity("A", ""), child("C", "sub::3", ""), activity("B", ""), completed(2, "")];
    same(
        &poisoned(boss, history("0.1.32", stored)),
        r#"
        6 OrchestrationFailed poison: poison: orchestration i exceeded 11 attempts (max 10)
        7 ActivityCancelRequested <-4 "orchestration_terminal_failed"
        > tell boss/2#7 poison: poison: orchestration i exceeded 11 attempts (max 10)
        - activity 4
        = Failed
    "#,
    );
}

#[test]
fn poisoning_an_ended_execution_commits_no_event() {
    let completed = plain(EventKind::OrchestrationCompleted { output: String::new() });
    same(&poisoned(None, history("0.1.32", vec![started("in"), completed])), r#""#);
}

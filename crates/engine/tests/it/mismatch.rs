//! Code and history disagree: each message says what is stored, what the code does, where, and what to do (spec runtime 2,
//! api 2.4).

use crate::kit::*;
use outlast_engine::OrchestrationContext;
use outlast_model::EventKind;
use std::time::Duration;

const NOW: &str = "0.1.32";

type Answer = Result<String, String>;

/// Replays a history against changed code, with nothing new.
fn replay<F, Fut>(function: F, events: Vec<Stored>) -> InstanceDriver
where
    F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Answer> + Send + 'static,
{
    InstanceDriver::new(function).stored(history(NOW, events))
}

async fn a_then_b(ctx: OrchestrationContext, _: String) -> Answer {
    ctx.schedule_activity("A", "x").await?;
    ctx.schedule_activity("B", "y").await
}

#[test]
fn another_activity_than_the_stored_one_fails_the_instance() {
    let mut driver = replay(a_then_b, vec![started("in"), activity("Z", "x")]);
    driver.turn([], r#"
        3 OrchestrationFailed configuration: nondeterministic: schedule mismatch: event 2 of instance 'i' execution 1 is activity 'Z', and the code now asks for activity 'A' at mismatch.rs; run the code that wrote this history, keep its way for running instances with ctx.patched(..), or register the changed code as a new version
        4 ActivityCancelRequested <-2 "orchestration_terminal_failed"
        - activity 2
        = Failed
    "#);
}

#[test]
fn the_stored_decisions_in_another_order_have_the_advice_about_order() {
    let swapped = |ctx: OrchestrationContext, _| async move {
        let (b, a) = (ctx.schedule_activity("B", "y"), ctx.schedule_activity("A", "x"));
        a.await?;
        b.await
    };
    let mut driver = replay(swapped, vec![started("in"), activity("A", "x"), activity("B", "y")]);
    driver.give([]);
    let advice = "; if the code has not changed, it decides in another order at each replay: iterate in a fixed order, and take time \
                  and random values from ctx; if it has changed, run the code that wrote this history, keep its way";
    assert!(driver.error().contains(advice), "{}", driver.error());
    let mut added = replay(swapped, vec![started("in"), activity("A", "x")]);
    added.give([]);
    assert!(!added.error().contains("another order"), "{}", added.error());
}

#[test]
fn another_input_session_or_tag_than_the_stored_one_fails() {
    let mut driver = replay(a_then_b, vec![started("in"), activity("A", "other")]);
    driver.turn([], r#"
        3 OrchestrationFailed configuration: nondeterministic: schedule mismatch: event 2 of instance 'i' execution 1 is activity 'A', and the code now asks for activity 'A' with another payload at mismatch.rs; if the code has not changed, it makes another payload at each replay: take time and random values from ctx, and iterate in a fixed order; if it has changed, run the code that wrote this history, keep its way for running instances with ctx.patched(..), or register the changed code as a new version
        4 ActivityCancelRequested <-2 "orchestration_terminal_failed"
        - activity 2
        = Failed
    "#);
    let tagged = |ctx: OrchestrationContext, _| async move {
        ctx.schedule_activity_on_session("A", "x", "s").with_tag("gpu").await
    };
    let mut driver = replay(tagged, vec![started("in"), activity("A", "x")]);
    driver.turn([], r#"
        3 OrchestrationFailed configuration: nondeterministic: schedule mismatch: event 2 of instance 'i' execution 1 is activity 'A', and the code now asks for activity 'A' on session 's' with tag 'gpu' at mismatch.rs; run the code that wrote this history, keep its way for running instances with ctx.patched(..), or register the changed code as a new version
        4 ActivityCancelRequested <-2 "orchestration_terminal_failed"
        - activity 2
        = Failed
    "#);
}

#[test]
fn another_kind_of_operation_than_the_stored_one_fails() {
    let mut driver = replay(a_then_b, vec![started("in"), timer(700)]);
    driver.turn([], r#"
        3 OrchestrationFailed configuration: nondeterministic: schedule mismatch: event 2 of instance 'i' execution 1 is a timer, and the code now asks for activity 'A' at mismatch.rs; run the code that wrote this history, keep its way for running instances with ctx.patched(..), or register the changed code as a new version
        = Failed
    "#);
    let mut driver = replay(a_then_b, vec![started("in"), subscribed("go")]);
    driver.turn([], r#"
        3 OrchestrationFailed configuration: nondeterministic: schedule mismatch: event 2 of instance 'i' execution 1 is a wait for event 'go', and the code now asks for activity 'A' at mismatch.rs; run the code that wrote this history, keep its way for running instances with ctx.patched(..), or register the changed code as a new version
        = Failed
    "#);
    let mut driver = replay(a_then_b, vec![started("in"), dequeued("mail")]);
    driver.turn([], r#"
        3 OrchestrationFailed configuration: nondeterministic: schedule mismatch: event 2 of instance 'i' execution 1 is a wait for a message of queue 'mail', and the code now asks for activity 'A' at mismatch.rs; run the code that wrote this history, keep its way for running instances with ctx.patched(..), or register the changed code as a new version
        = Failed
    "#);
}

#[test]
fn another_child_wait_queue_or_detached_start_than_the_stored_one_fails() {
    let cases = |ctx: OrchestrationContext, input: String| async move {
        match input.as_str() {
            "child" => ctx.schedule_sub_orchestration("C", "new").await,
            "wait" => Ok(ctx.schedule_wait("new").await),
            "queue" => Ok(ctx.dequeue_event("new").await),
            _ => {
                ctx.schedule_orchestration("D", "d-new", "");
                std::future::pending().await
            }
        }
    };
    let mut driver = replay(cases, vec![started("child"), child("C", "sub::2", "old")]);
    driver.turn([], r#"
        3 OrchestrationFailed configuration: nondeterministic: schedule mismatch: event 2 of instance 'i' execution 1 is a child orchestration 'C', and the code now asks for a child orchestration 'C' with another payload at mismatch.rs; if the code has not changed, it makes another payload at each replay: take time and random values from ctx, and iterate in a fixed order; if it has changed, run the code that wrote this history, keep its way for running instances with ctx.patched(..), or register the changed code as a new version
        = Failed
    "#);
    let mut driver = replay(cases, vec![started("wait"), subscribed("old")]);
    driver.turn([], r#"
        3 OrchestrationFailed configuration: nondeterministic: schedule mismatch: event 2 of instance 'i' execution 1 is a wait for event 'old', and the code now asks for a wait for event 'new' at mismatch.rs; run the code that wrote this history, keep its way for running instances with ctx.patched(..), or register the changed code as a new version
        = Failed
    "#);
    let mut driver = replay(cases, vec![started("queue"), dequeued("old")]);
    driver.turn([], r#"
        3 OrchestrationFailed configuration: nondeterministic: schedule mismatch: event 2 of instance 'i' execution 1 is a wait for a message of queue 'old', and the code now asks for a wait for a message of queue 'new' at mismatch.rs; run the code that wrote this history, keep its way for running instances with ctx.patched(..), or register the changed code as a new version
        = Failed
    "#);
    let mut driver = replay(cases, vec![started("detached"), chained("D", "d-old", "")]);
    driver.turn([], r#"
        3 OrchestrationFailed configuration: nondeterministic: schedule mismatch: event 2 of instance 'i' execution 1 is a detached orchestration 'D' with id 'd-old', and the code now asks for a detached orchestration 'D' with id 'd-new' at mismatch.rs; run the code that wrote this history, keep its way for running instances with ctx.patched(..), or register the changed code as a new version
        = Failed
    "#);
}

#[test]
fn missing_decision_fails_the_instance() {
    let pending = |_, _| async move { std::future::pending().await };
    let mut driver = replay(pending, vec![started("in"), activity("A", "x")]);
    driver.turn([], r#"
        3 OrchestrationFailed configuration: nondeterministic: history schedule but no emitted action: event 2 of instance 'i' execution 1 is activity 'A', and the code does not ask for it; it made no durable call yet; run the code that wrote this history, keep its way for running instances with ctx.patched(..), or register the changed code as a new version
        4 ActivityCancelRequested <-2 "orchestration_terminal_failed"
        - activity 2
        = Failed
    "#);
    let mut driver = replay(
        a_then_b,
        vec![started("in"), activity("A", "x"), completed(2, ""), activity("B", "y"), activity("C", "z")],
    );
    driver.turn([], r#"
        6 OrchestrationFailed configuration: nondeterministic: history schedule but no emitted action: event 5 of instance 'i' execution 1 is activity 'C', and the code does not ask for it; its last durable call was schedule_activity at mismatch.rs; run the code that wrote this history, keep its way for running instances with ctx.patched(..), or register the changed code as a new version
        7 ActivityCancelRequested <-4 "orchestration_terminal_failed"
        8 ActivityCancelRequested <-5 "orchestration_terminal_failed"
        - activity 4
        - activity 5
        = Failed
    "#);
    let mut driver = replay(pending, vec![started("in"), chained("D", "d", "")]);
    driver.turn([], r#"
        3 OrchestrationFailed configuration: nondeterministic: history OrchestrationChained but no emitted action: event 2 of instance 'i' execution 1 is a detached orchestration 'D' with id 'd', and the code does not ask for it; it made no durable call yet; run the code that wrote this history, keep its way for running instances with ctx.patched(..), or register the changed code as a new version
        = Failed
    "#);
}

#[test]
fn missing_status_and_key_writes_before_another_decision_fail() {
    let code = |ctx: OrchestrationContext, _| async move { ctx.schedule_activity("A", "x").await };
    let mut driver = replay(code, vec![started("in"), status("s")]);
    driver.turn([], r#"
        3 OrchestrationFailed configuration: nondeterministic: custom status mismatch: event 2 of instance 'i' execution 1 is a custom status update, and the code now asks for activity 'A' at mismatch.rs; run the code that wrote this history, keep its way for running instances with ctx.patched(..), or register the changed code as a new version
        = Failed
    "#);
    let mut driver = replay(code, vec![started("in"), key_set("k", "v", 1)]);
    driver.turn([], r#"
        3 OrchestrationFailed configuration: nondeterministic: kv set mismatch: event 2 of instance 'i' execution 1 is a write of key 'k', and the code now asks for activity 'A' at mismatch.rs; run the code that wrote this history, keep its way for running instances with ctx.patched(..), or register the changed code as a new version
        = Failed
    "#);
    let mut driver = replay(code, vec![started("in"), key_cleared("k")]);
    driver.turn([], r#"
        3 OrchestrationFailed configuration: nondeterministic: kv clear mismatch: event 2 of instance 'i' execution 1 is a removal of key 'k', and the code now asks for activity 'A' at mismatch.rs; run the code that wrote this history, keep its way for running instances with ctx.patched(..), or register the changed code as a new version
        = Failed
    "#);
    let mut driver = replay(code, vec![started("in"), plain(EventKind::KeyValuesCleared)]);
    driver.turn([], r#"
        3 OrchestrationFailed configuration: nondeterministic: kv clear_all mismatch: event 2 of instance 'i' execution 1 is a removal of all keys, and the code now asks for activity 'A' at mismatch.rs; run the code that wrote this history, keep its way for running instances with ctx.patched(..), or register the changed code as a new version
        = Failed
    "#);
    let sets = |ctx: OrchestrationContext, _| async move {
        ctx.set_kv_value("k", "new");
        ctx.schedule_activity("A", "x").await
    };
    let mut driver = replay(sets, vec![started("in"), key_set("k", "old", 1)]);
    driver.turn([], r#"
        3 OrchestrationFailed configuration: nondeterministic: kv set mismatch: event 2 of instance 'i' execution 1 is a write of key 'k', and the code now asks for a write of key 'k' with another payload at mismatch.rs; if the code has not changed, it makes another payload at each replay: take time and random values from ctx, and iterate in a fixed order; if it has changed, run the code that wrote this history, keep its way for running instances with ctx.patched(..), or register the changed code as a new version
        = Failed
    "#);
}

#[test]
fn notes_that_the_code_no_longer_leaves_are_tolerated() {
    // The store keeps the writes, so the code reads them too.
    let code = |ctx: OrchestrationContext, _| async move {
        ctx.schedule_activity("A", "x").await?;
        Ok(format!("{:?} {:?}", ctx.get_kv_all_values(), ctx.get_custom_status()))
    };
    let stored = vec![
        started("in"),
        activity("A", "x"),
        key_set("k", "v", 1),
        key_set("gone", "v", 1),
        key_cleared("gone"),
        status("s"),
    ];
    let mut driver = replay(code, stored);
    driver.turn(
        [done(2, "")],
        r#"
        7 ActivityCompleted <-2 ""
        8 OrchestrationCompleted "{\"k\": \"v\"} Some(\"s\")"
        = Completed
    "#,
    );
    let stored = vec![
        started("in"),
        activity("A", "x"),
        key_set("gone", "v", 1),
        plain(EventKind::KeyValuesCleared),
        key_set("k", "w", 1),
    ];
    let mut driver = replay(code, stored);
    driver.turn(
        [done(2, "")],
        r#"
        6 ActivityCompleted <-2 ""
        7 OrchestrationCompleted "{\"k\": \"w\"} None"
        = Completed
    "#,
    );
}

#[test]
fn changed_durations_ids_versions_and_texts_replay() {
    // Timer durations, child ids, child versions, status texts, decisions after the last stored one.
    let code = |ctx: OrchestrationContext, _| async move {
        let timer = ctx.schedule_timer(Duration::from_secs(9));
        let child = ctx.schedule_sub_orchestration_versioned("C", Some("2.0.0".to_string()), "");
        ctx.set_custom_status("new");
        let more = ctx.schedule_activity("More", "");
        timer.await;
        let child = child.await?;
        more.await.map(|more| format!("{child}{more}"))
    };
    let stored = vec![started("in"), timer(700), child("C", "an id of old", ""), status("old")];
    let mut driver = replay(code, stored);
    driver.turn(
        [fired(2), child_done(3, "c")],
        r#"
        5 TimerFired <-2
        6 SubOrchestrationCompleted <-3 "c"
        7 ActivityScheduled More ""
        > activity 7 More ""
    "#,
    );
    driver.turn(
        [done(7, "m")],
        r#"
        8 ActivityCompleted <-7 "m"
        9 OrchestrationCompleted "cm"
        = Completed
    "#,
    );
}

#[test]
fn stored_outcomes_without_an_open_decision_fail_the_instance() {
    let mut driver = replay(a_then_b, vec![started("in"), activity("A", "x"), completed(9, "")]);
    driver.turn([], r#"
        4 OrchestrationFailed configuration: nondeterministic: completion without open schedule: event 3 of instance 'i' execution 1 is ActivityCompleted for event 9, which is no scheduled operation; the store is damaged or was changed by hand: restore history and queues from the same backup, or start the instance anew under another id
        5 ActivityCancelRequested <-2 "orchestration_terminal_failed"
        - activity 2
        = Failed
    "#);
    let mut driver =
        replay(a_then_b, vec![started("in"), activity("A", "x"), completed(2, ""), completed(2, "")]);
    driver.turn([], r#"
        5 OrchestrationFailed configuration: nondeterministic: completion without open schedule: event 4 of instance 'i' execution 1 is ActivityCompleted for event 2, which was asked for at mismatch.rs and has its outcome already; the store is damaged or was changed by hand: restore history and queues from the same backup, or start the instance anew under another id
        = Failed
    "#);
    let timer_first = |ctx: OrchestrationContext, _| async move {
        ctx.schedule_timer(Duration::ZERO).await;
        Ok(String::new())
    };
    let mut driver = replay(timer_first, vec![started("in"), timer(1), completed(2, "")]);
    driver.turn([], r#"
        4 OrchestrationFailed configuration: nondeterministic: completion kind mismatch: expected activity: event 3 of instance 'i' execution 1 completes event 2, which is none; the store is damaged or was changed by hand: restore history and queues from the same backup, or start the instance anew under another id
        = Failed
    "#);
}

#[test]
fn outcome_messages_without_a_matching_decision_fail_the_instance() {
    let mut driver = InstanceDriver::new(a_then_b);
    driver.give([]);
    driver.turn([fired(2)], r#"
        3 OrchestrationFailed configuration: nondeterministic: completion kind mismatch for id=2, expected 'activity', got 'timer': instance 'i' execution 1 got an outcome of another kind than it asked for; the store is damaged or was changed by hand: restore history and queues from the same backup, or start the instance anew under another id
        4 ActivityCancelRequested <-2 "orchestration_terminal_failed"
        - activity 2
        = Failed
    "#);
    for (message, fragment) in [
        (done(1, ""), "no matching schedule for completion id=1:"),
        (fails(8, ""), "no matching schedule for completion id=8:"),
        (fired(8), "no matching schedule for timer id=8:"),
        (child_done(8, ""), "no matching schedule for sub-orchestration id=8:"),
        (child_fails(8, ""), "no matching schedule for sub-orchestration id=8:"),
        (child_done(2, ""), "completion kind mismatch for id=2, expected 'activity', got 'suborchestration'"),
        (fired(2), "completion kind mismatch for id=2, expected 'activity', got 'timer'"),
    ] {
        let mut driver = InstanceDriver::new(a_then_b);
        driver.give([]);
        driver.give([message]);
        assert!(driver.error().contains(fragment), "{}", driver.error());
        assert!(driver.error().contains("instance 'i' execution 1"));
    }
    for waits in [true, false] {
        let mut driver = InstanceDriver::new(move |ctx, _| async move {
            Ok(if waits { ctx.schedule_wait("s").await } else { ctx.dequeue_event("q").await })
        });
        driver.give([]);
        driver.give([done(2, "")]);
        let fragment = "completion kind mismatch for id=2, expected 'wait', got 'activity'";
        assert!(driver.error().contains(fragment), "{}", driver.error());
    }
}

#[test]
fn stored_drop_that_the_code_does_not_repeat_fails() {
    let holds = |ctx: OrchestrationContext, _| async move {
        let held = (
            ctx.schedule_activity("A", ""),
            ctx.schedule_sub_orchestration("C", ""),
            ctx.schedule_wait("s"),
            ctx.dequeue_event("q"),
        );
        ctx.schedule_timer(Duration::ZERO).await;
        drop(held);
        Ok(String::new())
    };
    let with = |note: Stored| {
        vec![
            started("in"),
            activity("A", ""),
            child("C", "sub::3", ""),
            subscribed("s"),
            dequeued("q"),
            timer(0),
            note,
        ]
    };
    let mut driver = replay(holds, with(activity_dropped(2)));
    driver.turn([], r#"
        8 ExternalSubscribedCancelled <-4 "orchestration_terminal"
        9 ExternalSubscribedPersistentCancelled <-5 "orchestration_terminal"
        10 OrchestrationFailed configuration: nondeterministic: cancellation mismatch (activities): the history of instance 'i' execution 1 says that the code dropped the futures of events [2], and it did not drop them (the first is asked for at mismatch.rs); run the code that wrote this history, keep its way for running instances with ctx.patched(..), or register the changed code as a new version
        = Failed
    "#);
    let mut driver = replay(holds, with(child_dropped(3)));
    driver.turn([], r#"
        8 ExternalSubscribedCancelled <-4 "orchestration_terminal"
        9 ExternalSubscribedPersistentCancelled <-5 "orchestration_terminal"
        10 OrchestrationFailed configuration: nondeterministic: cancellation mismatch (sub-orchestrations): the history of instance 'i' execution 1 says that the code dropped the futures of events [3], and it did not drop them (the first is asked for at mismatch.rs); run the code that wrote this history, keep its way for running instances with ctx.patched(..), or register the changed code as a new version
        11 ActivityCancelRequested <-2 "orchestration_terminal_failed"
        - activity 2
        = Failed
    "#);
    let mut driver = replay(holds, with(wait_dropped(4)));
    driver.turn([], r#"
        8 ExternalSubscribedCancelled <-4 "orchestration_terminal"
        9 ExternalSubscribedPersistentCancelled <-5 "orchestration_terminal"
        10 OrchestrationFailed configuration: nondeterministic: cancellation mismatch (external waits): the history of instance 'i' execution 1 says that the code dropped the futures of events [4], and it did not drop them (the first is asked for at mismatch.rs); run the code that wrote this history, keep its way for running instances with ctx.patched(..), or register the changed code as a new version
        11 ActivityCancelRequested <-2 "orchestration_terminal_failed"
        - activity 2
        = Failed
    "#);
    let mut driver = replay(holds, with(dequeue_dropped(5)));
    driver.turn([], r#"
        8 ExternalSubscribedCancelled <-4 "orchestration_terminal"
        9 ExternalSubscribedPersistentCancelled <-5 "orchestration_terminal"
        10 OrchestrationFailed configuration: nondeterministic: cancellation mismatch (persistent waits): the history of instance 'i' execution 1 says that the code dropped the futures of events [5], and it did not drop them (the first is asked for at mismatch.rs); run the code that wrote this history, keep its way for running instances with ctx.patched(..), or register the changed code as a new version
        11 ActivityCancelRequested <-2 "orchestration_terminal_failed"
        - activity 2
        = Failed
    "#);
}

#[test]
fn cancellation_note_with_another_reason_needs_no_drop() {
    let holds = |ctx: OrchestrationContext, _| async move { ctx.schedule_activity("A", "").await };
    let mut driver = replay(holds, vec![started("in"), activity("A", ""), activity_ended(2)]);
    assert!(driver.give([]).commit.metadata.status.is_none());
}

#[test]
fn damaged_history_fails_the_instance_as_corrupted() {
    let mut driver = replay(a_then_b, vec![activity("A", "x")]);
    driver.turn([], r#"
        2 OrchestrationFailed configuration: nondeterministic: corrupted history: first event must be OrchestrationStarted (instance 'i' execution 1); the store is damaged or was changed by hand: restore history and queues from the same backup, or start the instance anew under another id
        3 ActivityCancelRequested <-1 "orchestration_terminal_failed"
        - activity 1
        = Failed
    "#);
    let mut events = history(NOW, vec![started("in"), activity("A", "x"), completed(2, "")]);
    events.swap(1, 2);
    let mut driver = InstanceDriver::new(a_then_b).stored(events);
    driver.turn([], r#"
        4 OrchestrationFailed configuration: nondeterministic: corrupted history: event 2 comes after event 3 (instance 'i' execution 1); the store is damaged or was changed by hand: restore history and queues from the same backup, or start the instance anew under another id
        5 ActivityCancelRequested <-2 "orchestration_terminal_failed"
        - activity 2
        = Failed
    "#);
}

#[test]
fn r4_code_that_returns_before_the_end_of_its_history_fails() {
    let mut driver = replay(|_, _| async move { Ok(String::new()) }, vec![started("in"), activity("A", "x")]);
    driver.turn([], r#"
        3 OrchestrationFailed configuration: nondeterministic: code ended before its history: replaying event 1 of instance 'i' execution 1, the code returned, where it went on before; it made no durable call yet; run the code that wrote this history, keep its way for running instances with ctx.patched(..), or register the changed code as a new version
        4 ActivityCancelRequested <-2 "orchestration_terminal_failed"
        - activity 2
        = Failed
    "#);
    // Work is under way, and the new code does not wait for it.
    let skips_b = |ctx: OrchestrationContext, _| async move { ctx.schedule_activity("A", "x").await };
    let stored = vec![started("in"), activity("A", "x"), completed(2, ""), activity("B", "y")];
    let mut driver = replay(skips_b, stored);
    driver.turn([], r#"
        5 OrchestrationFailed configuration: nondeterministic: code ended before its history: replaying event 3 of instance 'i' execution 1, the code returned, where it went on before; its last durable call was schedule_activity at mismatch.rs; run the code that wrote this history, keep its way for running instances with ctx.patched(..), or register the changed code as a new version
        6 ActivityCancelRequested <-4 "orchestration_terminal_failed"
        - activity 4
        = Failed
    "#);
}

/// Schedules two activities; the changed code awaits one of them.
async fn one_is_enough(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.race([ctx.schedule_activity("A", ""), ctx.schedule_activity("B", "")]).await
}

#[test]
fn code_that_returns_at_the_end_of_its_history_completes() {
    let mut driver = replay(|_, _| async move { Ok("new".to_string()) }, vec![started("in")]);
    driver.turn(
        [raise("s", "x")],
        r#"
        2 ExternalEvent s "x"
        3 OrchestrationCompleted "new"
        = Completed
    "#,
    );
    let mut driver = replay(|_, _| async move { Err("new".to_string()) }, vec![started("in")]);
    driver.turn(
        [enqueue("q", "x")],
        r#"
        2 ExternalEventPersistent q "x"
        3 OrchestrationFailed application: new
        = Failed
    "#,
    );
    let next = |ctx: OrchestrationContext, _| async move { ctx.continue_as_new("2").await };
    let mut driver = replay(next, vec![started("in")]);
    driver.turn(
        [enqueue("q", "x")],
        r#"
        2 ExternalEventPersistent q "x"
        3 OrchestrationContinuedAsNew "2"
        > next "2" carried=[("q", "x")]
        = ContinuedAsNew
    "#,
    );
    // The last stored event makes the code return.
    let stored = vec![started("in"), activity("A", ""), activity("B", ""), completed(2, "a")];
    let mut driver = replay(one_is_enough, stored);
    driver.turn(
        [raise("s", "x")],
        r#"
        5 ExternalEvent s "x"
        6 ActivityCancelRequested <-3 "dropped_future"
        7 OrchestrationCompleted "a"
        - activity 3
        = Completed
    "#,
    );
    // A cancellation in the batch still wins.
    let mut driver = replay(|_, _| async move { Ok("new".to_string()) }, vec![started("in")]);
    driver.turn(
        [cancel("no")],
        r#"
        2 OrchestrationCancelRequested "no"
        3 OrchestrationFailed cancelled: canceled: no
        = Failed
    "#,
    );
}

#[test]
fn decisions_before_a_return_at_the_end_of_the_history_are_matched_or_made() {
    let decides = |ctx: OrchestrationContext, _| async move {
        ctx.set_custom_status("packed");
        ctx.schedule_orchestration("D", "d", "");
        Ok(String::new())
    };
    let expected = r#"
        3 OrchestrationChained D d ""
        4 OrchestrationCompleted ""
        > detached D d ""
        = Completed
    "#;
    replay(decides, vec![started("in"), status("packed")]).turn([], expected);
    let stored = vec![started("in"), status("packed"), chained("D", "d", "")];
    replay(decides, stored).turn(
        [],
        r#"
        4 OrchestrationCompleted ""
        = Completed
    "#,
    );
    // The code returned, and makes another decision than the stored one.
    let mut driver = replay(decides, vec![started("in"), activity("A", "x")]);
    driver.give([]);
    assert!(driver.error().contains("schedule mismatch: event 2"), "{}", driver.error());
}

#[test]
fn notes_and_outcomes_of_futures_that_the_code_dropped_are_consumed() {
    // Event 5 is a decision that the code makes before it returns.
    let stored =
        || vec![started("in"), activity("A", ""), activity("B", ""), completed(2, "a"), activity_dropped(3)];
    let expected = |first: u64| format!("{first} OrchestrationCompleted \"a\"\n= Completed");
    replay(one_is_enough, stored()).turn([], &expected(6));
    // A message that the code never asked for belongs to no decision.
    let mut unread = stored();
    unread.push(raised("s", "x"));
    replay(one_is_enough, unread).turn([], &expected(7));
    // The outcome of a future that the code dropped before it ended.
    let drops_first = |ctx: OrchestrationContext, _| async move {
        drop(ctx.schedule_activity("A", ""));
        ctx.schedule_activity("B", "").await
    };
    let stored = vec![
        started("in"),
        activity("A", ""),
        activity("B", ""),
        activity_dropped(2),
        completed(3, "a"),
        completed(2, "late"),
    ];
    replay(drops_first, stored).turn([], &expected(7));
}

#[test]
fn r4_code_that_ends_before_it_reads_a_stored_outcome_or_message_fails() {
    let skips = |ctx: OrchestrationContext, _| async move {
        let _never_awaited = ctx.schedule_activity("A", "");
        Ok(String::new())
    };
    let waits = |ctx: OrchestrationContext, _| async move {
        let _never_awaited = ctx.schedule_wait("s");
        Ok(String::new())
    };
    let dequeues = |ctx: OrchestrationContext, _| async move {
        let _never_awaited = ctx.dequeue_event("q");
        ctx.continue_as_new("").await
    };
    let queued = EventKind::QueueEventDelivered { name: "q".to_string(), data: String::new() };
    for mut driver in [
        replay(skips, vec![started("in"), activity("A", ""), completed(2, "")]),
        replay(waits, vec![started("in"), subscribed("s"), raised("s", "")]),
        replay(dequeues, vec![started("in"), dequeued("q"), plain(queued)]),
    ] {
        driver.give([]);
        assert!(
            driver.error().contains("code ended before its history: replaying event 2"),
            "{}",
            driver.error()
        );
    }
    // A stored status write is an event that the code must reach too.
    let mut driver = replay(|_, _| async move { Ok(String::new()) }, vec![started("in"), status("packed")]);
    driver.give([]);
    assert!(driver.error().contains("code ended before its history"), "{}", driver.error());
}

#[test]
fn r4_code_that_continues_as_new_before_the_end_of_its_history_fails() {
    let early = |ctx: OrchestrationContext, _| async move {
        ctx.schedule_activity("A", "x").await?;
        ctx.continue_as_new("next").await
    };
    let stored = vec![started("in"), activity("A", "x"), completed(2, ""), activity("B", "y")];
    let mut driver = replay(early, stored);
    driver.turn([], r#"
        5 OrchestrationFailed configuration: nondeterministic: code ended before its history: replaying event 3 of instance 'i' execution 1, the code continued as new, where it went on before; its last durable call was continue_as_new at mismatch.rs; run the code that wrote this history, keep its way for running instances with ctx.patched(..), or register the changed code as a new version
        6 ActivityCancelRequested <-4 "orchestration_terminal_failed"
        - activity 4
        = Failed
    "#);
}

#[test]
fn mismatch_names_the_place_of_the_call() {
    let line = line!() + 1;
    let code = |ctx: OrchestrationContext, _| async move { ctx.schedule_activity("A", "x").await };
    let mut driver = replay(code, vec![started("in"), activity("Z", "x")]);
    driver.give([]);
    let here = format!("{}:{line}:", file!());
    assert!(driver.error().contains(&here), "{} lacks {here}", driver.error());

    // Through retry helpers and typed calls too (ruling 25).
    let line = line!() + 3;
    let code = |ctx: OrchestrationContext, _| async move {
        let policy = outlast_model::RetryPolicy::new(2);
        ctx.schedule_activity_with_retry("A", "x", policy).await
    };
    let mut driver = replay(code, vec![started("in"), activity("Z", "x")]);
    driver.give([]);
    let here = format!("{}:{line}:", file!());
    assert!(driver.error().contains(&here), "{} lacks {here}", driver.error());

    let line = line!() + 2;
    let code =
        |ctx: OrchestrationContext, _| async move { ctx.schedule_activity_typed::<_, String>("A", &1).await };
    let mut driver = replay(code, vec![started("in"), activity("Z", "x")]);
    driver.give([]);
    let here = format!("{}:{line}:", file!());
    assert!(driver.error().contains(&here), "{} lacks {here}", driver.error());
}

#[test]
fn replay_error_is_sent_to_the_parent_and_children_run_on() {
    let mut events = history(NOW, vec![started("in"), child("C", "sub::2", ""), activity("Z", "")]);
    if let EventKind::OrchestrationStarted { parent_instance, parent_id, .. } = &mut events[0].kind {
        (*parent_instance, *parent_id) = (Some("boss".to_string()), Some(7));
    }
    let code = |ctx: OrchestrationContext, _| async move {
        let child = ctx.schedule_sub_orchestration("C", "");
        ctx.schedule_activity("A", "").await?;
        child.await
    };
    let mut driver = InstanceDriver::new(code).stored(events);
    driver.turn([], r#"
        4 OrchestrationFailed configuration: nondeterministic: schedule mismatch: event 3 of instance 'i' execution 1 is activity 'Z', and the code now asks for activity 'A' at mismatch.rs; run the code that wrote this history, keep its way for running instances with ctx.patched(..), or register the changed code as a new version
        5 ActivityCancelRequested <-3 "orchestration_terminal_failed"
        > tell boss/0#7 configuration: nondeterministic: schedule mismatch: event 3 of instance 'i' execution 1 is activity 'Z', and the code now asks for activity 'A' at mismatch.rs; run the code that wrote this history, keep its way for running instances with ctx.patched(..), or register the changed code as a new version
        - activity 3
        = Failed
    "#);
}

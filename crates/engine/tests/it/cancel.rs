//! Cancellation, dropped futures, parents and children (spec runtime 3).

use crate::kit::*;
use outlast_engine::{Either2, OrchestrationContext, ParentClosePolicy};
use std::time::Duration;

async fn waits(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.schedule_activity("A", "").await
}

#[test]
fn cancel_in_the_batch_of_the_start_fails_the_instance_and_sends_no_activity() {
    // The first segment runs, and nothing that it asks for is sent.
    let mut driver = InstanceDriver::new(waits).with_parent();
    driver.turn(
        [cancel("no"), cancel("never mind")],
        r#"
        1 OrchestrationStarted Main "in" parent=boss#7
        2 OrchestrationCancelRequested "no"
        3 ActivityScheduled A ""
        4 OrchestrationFailed cancelled: canceled: no
        5 ActivityCancelRequested <-3 "orchestration_terminal_failed"
        > tell boss/2#7 cancelled: canceled: no
        = Failed
    "#,
    );
}

#[test]
fn cancel_counts_over_the_outcome_that_would_finish_the_instance() {
    for batch in [[cancel("no"), done(2, "a")], [done(2, "a"), cancel("no")]] {
        let mut driver = InstanceDriver::new(waits);
        driver.give([]);
        driver.give(batch);
        assert_eq!(driver.error(), "canceled: no");
    }
}

#[test]
fn cancel_counts_over_continue_as_new() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        ctx.schedule_activity("A", "").await?;
        ctx.continue_as_new("next").await
    });
    driver.give([]);
    driver.turn(
        [done(2, "a"), cancel("no")],
        r#"
        3 ActivityCompleted <-2 "a"
        4 OrchestrationCancelRequested "no"
        5 OrchestrationFailed cancelled: canceled: no
        = Failed
    "#,
    );
}

#[test]
fn first_cancellation_reason_counts() {
    let mut driver = InstanceDriver::new(waits);
    driver.give([]);
    driver.turn(
        [cancel("first"), cancel("second")],
        r#"
        3 OrchestrationCancelRequested "first"
        4 OrchestrationFailed cancelled: canceled: first
        5 ActivityCancelRequested <-2 "orchestration_terminal_failed"
        - activity 2
        = Failed
    "#,
    );
}

#[test]
fn failure_in_the_turn_of_a_cancellation_counts() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        ctx.schedule_activity("A", "").await?;
        panic!("ouch")
    });
    driver.give([]);
    driver.give([cancel("no"), done(2, "a")]);
    assert_eq!(driver.error(), "orchestration panicked: ouch");

    let stored = history("0.1.32", vec![started("in"), activity("Z", "")]);
    let mut driver = InstanceDriver::new(waits).stored(stored);
    driver.give([cancel("no")]);
    assert!(driver.error().contains("schedule mismatch"), "{}", driver.error());
}

#[test]
fn cancel_closes_all_open_decisions() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let _held = (
            ctx.schedule_activity("A", ""),
            ctx.schedule_sub_orchestration("C", ""),
            ctx.schedule_sub_orchestration_with_id("C", "mine", ""),
            ctx.schedule_wait("s"),
            ctx.dequeue_event("q"),
        );
        ctx.schedule_timer(Duration::from_secs(1)).await;
        let _new = ctx.schedule_sub_orchestration("cancelled at once", "");
        ctx.schedule_activity("never sent", "").await
    })
    .with_parent();
    driver.give([]);
    driver.turn(
        [child_done(4, "c"), fired(7), cancel("no")],
        r#"
        8 SubOrchestrationCompleted <-4 "c"
        9 TimerFired <-7
        10 OrchestrationCancelRequested "no"
        11 SubOrchestrationScheduled cancelled at once sub::11 ""
        12 ActivityScheduled never sent ""
        13 ExternalSubscribedCancelled <-5 "orchestration_terminal"
        14 ExternalSubscribedPersistentCancelled <-6 "orchestration_terminal"
        15 OrchestrationFailed cancelled: canceled: no
        16 ActivityCancelRequested <-2 "orchestration_terminal_failed"
        17 ActivityCancelRequested <-12 "orchestration_terminal_failed"
        > child 11 of 1: cancelled at once i::sub::11 ""
        > cancel i::sub::3 "parent canceled"
        > cancel i::sub::11 "parent canceled"
        > tell boss/2#7 cancelled: canceled: no
        - activity 2
        = Failed
    "#,
    );
}

#[test]
fn c2_children_of_this_turn_are_started_before_they_are_cancelled() {
    // The code returns: with a generated id and with an explicit one.
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        drop(ctx.schedule_sub_orchestration("C", ""));
        let _held =
            ctx.schedule_sub_orchestration_versioned_with_id("C", Some("2.0.0".to_string()), "mine", "x");
        Ok("done".to_string())
    });
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "in"
        2 SubOrchestrationScheduled C sub::2 ""
        3 SubOrchestrationScheduled C mine "x"
        4 SubOrchestrationCancelRequested <-2 "dropped_future"
        5 SubOrchestrationCancelRequested <-3 "dropped_future"
        6 OrchestrationCompleted "done"
        > child 2 of 1: C i::sub::2 ""
        > child 3 of 1: C v2.0.0 mine "x"
        > cancel i::sub::2 "parent dropped sub-orchestration future"
        > cancel mine "parent dropped sub-orchestration future"
        = Completed
    "#,
    );
    // The parent is cancelled in the turn that schedules the child.
    let mut driver =
        InstanceDriver::new(|ctx, _| async move { ctx.schedule_sub_orchestration("C", "").await });
    driver.turn(
        [cancel("no")],
        r#"
        1 OrchestrationStarted Main "in"
        2 OrchestrationCancelRequested "no"
        3 SubOrchestrationScheduled C sub::3 ""
        4 OrchestrationFailed cancelled: canceled: no
        > child 3 of 1: C i::sub::3 ""
        > cancel i::sub::3 "parent canceled"
        = Failed
    "#,
    );
    // The parent continues.
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let child = ctx.schedule_sub_orchestration("C", "");
        drop(child);
        ctx.schedule_wait("s").await;
        Ok(String::new())
    });
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "in"
        2 SubOrchestrationScheduled C sub::2 ""
        3 ExternalSubscribed s
        4 SubOrchestrationCancelRequested <-2 "dropped_future"
        > child 2 of 1: C i::sub::2 ""
        > cancel i::sub::2 "parent dropped sub-orchestration future"
    "#,
    );
    // The child reports its end, and is not cancelled again.
    driver.turn(
        [child_fails(2, "canceled: parent dropped sub-orchestration future"), cancel("no")],
        r#"
        5 SubOrchestrationFailed <-2 application: canceled: parent dropped sub-orchestration future
        6 OrchestrationCancelRequested "no"
        7 ExternalSubscribedCancelled <-3 "orchestration_terminal"
        8 OrchestrationFailed cancelled: canceled: no
        = Failed
    "#,
    );
}

#[test]
fn child_dropped_in_the_turn_that_cancels_its_parent_is_cancelled_with_both_reasons() {
    let code = |ctx: OrchestrationContext, _| async move {
        let old = ctx.schedule_sub_orchestration_with_id("C", "old", "");
        let _held = ctx.schedule_sub_orchestration_with_id("C", "held", "");
        ctx.schedule_wait("s").await;
        drop((old, ctx.schedule_sub_orchestration_with_id("C", "new", "")));
        ctx.schedule_wait("t").await;
        Ok(String::new())
    };
    let mut driver = InstanceDriver::new(code);
    driver.give([]);
    driver.turn(
        [raise("s", ""), cancel("no")],
        r#"
        5 ExternalEvent s ""
        6 OrchestrationCancelRequested "no"
        7 SubOrchestrationScheduled C new ""
        8 ExternalSubscribed t
        9 ExternalSubscribedCancelled <-8 "orchestration_terminal"
        10 OrchestrationFailed cancelled: canceled: no
        > child 7 of 1: C new ""
        > cancel old "parent canceled"
        > cancel held "parent canceled"
        > cancel new "parent canceled"
        > cancel old "parent dropped sub-orchestration future"
        > cancel new "parent dropped sub-orchestration future"
        = Failed
    "#,
    );
}

#[test]
fn children_of_a_turn_that_continues_as_new_panics_or_abandons_are_not_started() {
    let code = |ctx: OrchestrationContext, input: String| async move {
        drop(ctx.schedule_sub_orchestration("C", ""));
        match input.as_str() {
            "next" => ctx.continue_as_new("").await,
            "panic" => panic!("no"),
            _ => Ok(String::new()),
        }
    };
    for (input, policy) in [
        ("next", ParentClosePolicy::Contract),
        ("panic", ParentClosePolicy::Contract),
        ("next", ParentClosePolicy::Cancel),
        ("panic", ParentClosePolicy::Cancel),
        ("return", ParentClosePolicy::Abandon),
    ] {
        let mut driver = InstanceDriver::new(code).closing(policy);
        driver.opening.input = input.to_string();
        let text = output_text(&driver.give([]));
        assert!(!text.contains("> child") && !text.contains("> cancel"), "{input} {policy:?}: {text}");
    }
}

#[test]
fn c3_detached_starts_survive_every_ending() {
    let ending = |ctx: OrchestrationContext, input: String| async move {
        ctx.schedule_orchestration_versioned("D", Some("1.2.3".to_string()), "d", "x");
        match input.as_str() {
            "return" => Ok(String::new()),
            "fail" => Err("no".to_string()),
            "next" => ctx.continue_as_new("").await,
            _ => std::future::pending().await,
        }
    };
    for (input, batch) in [
        ("return", vec![]),
        ("fail", vec![]),
        ("next", vec![]),
        ("wait", vec![]),
        ("wait", vec![cancel("no")]),
        ("next", vec![cancel("no")]),
    ] {
        let mut driver = InstanceDriver::new(ending);
        driver.opening.input = input.to_string();
        let output = driver.give(batch);
        let text = output_text(&output);
        assert!(text.contains("\n> detached D v1.2.3 d \"x\""), "{text}");
    }
}

#[test]
fn c3_detached_start_survives_continue_as_new() {
    let mut driver = InstanceDriver::new(|ctx, input| async move {
        ctx.schedule_timer(Duration::from_secs(60)).await;
        ctx.schedule_orchestration("Job", format!("job-{input}"), "");
        ctx.continue_as_new("2").await
    });
    driver.give([]);
    driver.turn(
        [fired(2)],
        r#"
        3 TimerFired <-2
        4 OrchestrationChained Job job-in ""
        5 OrchestrationContinuedAsNew "2"
        > detached Job job-in ""
        > next "2"
        = ContinuedAsNew
    "#,
    );
}

#[test]
fn dropped_futures_are_noted_and_cancelled() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let held = (
            ctx.dequeue_event("q"),
            ctx.schedule_wait("s"),
            ctx.schedule_sub_orchestration("C", ""),
            ctx.schedule_activity("A", ""),
            ctx.schedule_timer(Duration::from_secs(1)),
        );
        let more = ctx.schedule_activity("A2", "");
        ctx.schedule_activity("B", "").await?;
        drop((more, held));
        ctx.schedule_activity("C", "").await
    });
    driver.give([]);
    driver.turn(
        [done(8, "b")],
        r#"
        9 ActivityCompleted <-8 "b"
        10 ActivityScheduled C ""
        11 ActivityCancelRequested <-5 "dropped_future"
        12 ActivityCancelRequested <-7 "dropped_future"
        13 SubOrchestrationCancelRequested <-4 "dropped_future"
        14 ExternalSubscribedCancelled <-3 "dropped_future"
        15 ExternalSubscribedPersistentCancelled <-2 "dropped_future"
        > activity 10 C ""
        > cancel i::sub::4 "parent dropped sub-orchestration future"
        - activity 5
        - activity 7
    "#,
    );
    // An outcome after that is legal and goes nowhere.
    driver.turn(
        [done(5, "a"), child_done(4, "c"), fired(6)],
        r#"
        16 ActivityCompleted <-5 "a"
        17 SubOrchestrationCompleted <-4 "c"
    "#,
    );
    driver.turn(
        [done(10, "c")],
        r#"
        18 ActivityCompleted <-10 "c"
        19 OrchestrationCompleted "c"
        = Completed
    "#,
    );
}

#[test]
fn futures_that_have_their_outcome_are_noted_without_effect() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let held =
            (ctx.schedule_activity("A", ""), ctx.schedule_sub_orchestration("C", ""), ctx.schedule_wait("s"));
        ctx.schedule_activity("B", "").await?;
        drop(held);
        ctx.schedule_wait("s").await;
        Ok(String::new())
    });
    driver.give([]);
    driver.turn(
        [done(2, "a"), child_done(3, "c"), raise("s", "gone with its wait")],
        r#"
        6 ActivityCompleted <-2 "a"
        7 SubOrchestrationCompleted <-3 "c"
        8 ExternalEvent s "gone with its wait"
    "#,
    );
    driver.turn(
        [done(5, "b")],
        r#"
        9 ActivityCompleted <-5 "b"
        10 ExternalSubscribed s
        11 ActivityCancelRequested <-2 "dropped_future"
        12 SubOrchestrationCancelRequested <-3 "dropped_future"
        13 ExternalSubscribedCancelled <-4 "dropped_future"
    "#,
    );
    driver.turn(
        [raise("s", "x")],
        r#"
        14 ExternalEvent s "x"
        15 OrchestrationCompleted ""
        = Completed
    "#,
    );
}

#[test]
fn select_cancels_the_operations_of_dropped_blocks() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let slow = async {
            ctx.schedule_activity("A", "").await?;
            ctx.schedule_activity("never", "").await
        };
        let child =
            async { ctx.join2(ctx.schedule_sub_orchestration("C", ""), ctx.schedule_wait("s")).await };
        match ctx.select3(slow, child, ctx.schedule_timer(Duration::from_secs(1))).await {
            outlast_engine::Either3::Third(()) => Ok("late".to_string()),
            _ => Ok("in time".to_string()),
        }
    });
    driver.give([]);
    driver.turn(
        [fired(2)],
        r#"
        6 TimerFired <-2
        7 ActivityCancelRequested <-3 "dropped_future"
        8 SubOrchestrationCancelRequested <-4 "dropped_future"
        9 ExternalSubscribedCancelled <-5 "dropped_future"
        10 OrchestrationCompleted "late"
        > cancel i::sub::4 "parent dropped sub-orchestration future"
        - activity 3
        = Completed
    "#,
    );
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let mut kept = ctx.schedule_activity("A", "");
        let timer = ctx.schedule_timer(Duration::from_secs(1));
        match ctx.select2(&mut kept, timer).await {
            Either2::First(result) => result,
            Either2::Second(()) => kept.await,
        }
    });
    driver.give([]);
    driver.turn(
        [fired(3)],
        r#"
        4 TimerFired <-3
    "#,
    );
    driver.turn(
        [done(2, "kept")],
        r#"
        5 ActivityCompleted <-2 "kept"
        6 OrchestrationCompleted "kept"
        = Completed
    "#,
    );
}

#[test]
fn cancelled_child_returns_an_error_to_its_parent() {
    let mut driver =
        InstanceDriver::new(|ctx, _| async move { ctx.schedule_sub_orchestration("C", "").await });
    driver.give([]);
    let kind = outlast_model::AppErrorKind::Cancelled { reason: "why".to_string() };
    driver.turn(
        [Message::ChildFailed(2, application(kind, ""))],
        r#"
        3 SubOrchestrationFailed <-2 cancelled: canceled: why
        4 OrchestrationFailed application: canceled: why
        = Failed
    "#,
    );
}

/// A parent that ends with children in every state: dropped now, held, forgotten, new.
async fn leaves_children(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let dropped = ctx.schedule_sub_orchestration_with_id("C", "dropped", "");
    let _held = ctx.schedule_sub_orchestration_with_id("C", "held", "");
    std::mem::forget(ctx.schedule_sub_orchestration_with_id("C", "forgotten", ""));
    ctx.schedule_activity("A", "").await?;
    drop(dropped);
    let _new = ctx.schedule_sub_orchestration_with_id("C", "new", "");
    match input.as_str() {
        "return" => Ok(String::new()),
        "fail" => Err("no".to_string()),
        "next" => ctx.continue_as_new("").await,
        "panic" => panic!("ouch"),
        "limit" => {
            ctx.set_kv_value("k", "x".repeat(70_000));
            Ok(String::new())
        }
        _ => std::future::pending().await,
    }
}

/// The cancelled instances, and the reasons.
fn cancelled(policy: ParentClosePolicy, input: &str) -> Vec<(String, String)> {
    let mut driver = InstanceDriver::new(leaves_children).closing(policy);
    driver.opening.input = input.to_string();
    driver.give([]);
    let batch = match input {
        "cancel" => vec![done(5, ""), cancel("no")],
        "break" => vec![breaks(5)],
        _ => vec![done(5, "")],
    };
    let output = driver.give(batch);
    assert_eq!(output.commit.metadata.status.is_some(), input != "wait");
    let cancels = output.commit.orchestrator_items.into_iter().filter_map(|item| match item {
        outlast_model::WorkItem::CancelInstance { instance, reason } => Some((instance, reason)),
        _ => None,
    });
    cancels.collect()
}

#[test]
fn c20_parent_close_policy_decides_which_children_are_cancelled() {
    let dropped = |name: &str| (name.to_string(), "parent dropped sub-orchestration future".to_string());
    let of_cancelled = |name: &str| (name.to_string(), "parent canceled".to_string());
    let of_closed = |name: &str| (name.to_string(), "parent closed".to_string());
    use ParentClosePolicy::{Abandon, Cancel, Contract};
    // Contract: the children that the code dropped, and all children when the parent is cancelled.
    for input in ["return", "fail"] {
        let expected = ["dropped", "held", "new"].map(dropped);
        assert_eq!(cancelled(Contract, input), expected, "{input}");
    }
    assert_eq!(cancelled(Contract, "wait"), [dropped("dropped")]);
    let of_cancelled_parent =
        [["dropped", "held", "forgotten", "new"].map(of_cancelled).as_slice(), &[dropped("dropped")]]
            .concat();
    assert_eq!(cancelled(Contract, "cancel"), of_cancelled_parent);
    // Their starts were committed before.
    let all = ["dropped", "held", "forgotten"];
    for input in ["next", "panic", "limit", "break"] {
        assert_eq!(cancelled(Contract, input), [], "{input}");
    }
    // Cancel: all children are cancelled.
    for input in ["return", "fail"] {
        let expected = [dropped("dropped"), dropped("held"), dropped("new"), of_closed("forgotten")];
        assert_eq!(cancelled(Cancel, input), expected, "{input}");
    }
    assert_eq!(cancelled(Cancel, "cancel"), of_cancelled_parent);
    for input in ["next", "panic", "limit", "break"] {
        assert_eq!(cancelled(Cancel, input), all.map(of_closed), "{input}");
    }
    // Abandon: no child is cancelled.
    for input in ["return", "fail", "cancel", "next", "panic", "limit", "break"] {
        assert_eq!(cancelled(Abandon, input), [], "{input}");
    }
    assert_eq!(cancelled(Abandon, "wait"), [dropped("dropped")]);
}

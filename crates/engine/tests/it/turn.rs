//! A turn: batches, delivery, commits (spec runtime 1.4-1.10, 1.14).

use crate::kit::*;
use outlast_engine::Either2;
use outlast_model::WorkItem;
use std::time::Duration;

#[test]
fn sequence_runs_one_turn_per_outcome() {
    let mut driver = InstanceDriver::new(|ctx, input| async move {
        let a = ctx.schedule_activity("A", input).await?;
        let b = ctx.schedule_activity("B", a).await?;
        Ok(format!("{b}!"))
    });
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "in"
        2 ActivityScheduled A "in"
        > activity 2 A "in"
    "#,
    );
    driver.turn(
        [done(2, "a")],
        r#"
        3 ActivityCompleted <-2 "a"
        4 ActivityScheduled B "a"
        > activity 4 B "a"
    "#,
    );
    driver.turn(
        [done(4, "b")],
        r#"
        5 ActivityCompleted <-4 "b"
        6 OrchestrationCompleted "b!"
        = Completed
    "#,
    );
}

fn race() -> InstanceDriver {
    InstanceDriver::new(|ctx, _| async move {
        let activity = ctx.schedule_activity("A", "");
        let timer = ctx.schedule_timer(Duration::from_millis(500));
        match ctx.select2(activity, timer).await {
            Either2::First(result) => result,
            Either2::Second(()) => Ok("late".to_string()),
        }
    })
}

#[test]
fn select_takes_the_first_outcome_of_the_batch() {
    let mut driver = race();
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "in"
        2 ActivityScheduled A ""
        3 TimerCreated @1510
        > activity 2 A ""
        > timer 3 @1510
    "#,
    );
    driver.turn(
        [fired(3), done(2, "a")],
        r#"
        4 TimerFired <-3
        5 ActivityCompleted <-2 "a"
        6 ActivityCancelRequested <-2 "dropped_future"
        7 OrchestrationCompleted "late"
        = Completed
    "#,
    );
    let mut driver = race();
    driver.give([]);
    driver.turn(
        [done(2, "a"), fired(3)],
        r#"
        4 ActivityCompleted <-2 "a"
        5 TimerFired <-3
        6 OrchestrationCompleted "a"
        = Completed
    "#,
    );
}

#[test]
fn outcome_of_a_dropped_activity_is_recorded_and_not_delivered() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let activity = ctx.schedule_activity("A", "");
        let _ = ctx.select2(activity, ctx.schedule_timer(Duration::from_millis(500))).await;
        ctx.schedule_activity("B", "").await
    });
    driver.give([]);
    driver.turn(
        [fired(3), done(2, "a")],
        r#"
        4 TimerFired <-3
        5 ActivityCompleted <-2 "a"
        6 ActivityScheduled B ""
        7 ActivityCancelRequested <-2 "dropped_future"
        > activity 6 B ""
    "#,
    );
    driver.turn(
        [done(6, "b")],
        r#"
        8 ActivityCompleted <-6 "b"
        9 OrchestrationCompleted "b"
        = Completed
    "#,
    );
}

#[test]
fn outcome_is_kept_until_its_future_is_polled() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let (first, second) = (ctx.schedule_activity("A", ""), ctx.schedule_activity("B", ""));
        let b = second.await?;
        Ok(format!("{}{b}", first.await?))
    });
    driver.give([]);
    driver.turn(
        [done(2, "a")],
        r#"
        4 ActivityCompleted <-2 "a"
    "#,
    );
    driver.turn(
        [done(3, "b")],
        r#"
        5 ActivityCompleted <-3 "b"
        6 OrchestrationCompleted "ab"
        = Completed
    "#,
    );
}

#[test]
fn failures_reach_the_code_as_text() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let activity = ctx.schedule_activity("A", "").await;
        let child = ctx.schedule_sub_orchestration("C", "").await;
        Err(format!("{activity:?} {child:?}"))
    });
    driver.give([]);
    driver.turn(
        [fails(2, "boom")],
        r#"
        3 ActivityFailed <-2 application: boom
        4 SubOrchestrationScheduled C sub::4 ""
        > child 4 of 1: C i::sub::4 ""
    "#,
    );
    driver.turn(
        [child_fails(4, "bang")],
        r#"
        5 SubOrchestrationFailed <-4 application: bang
        6 OrchestrationFailed application: Err("boom") Err("bang")
        = Failed
    "#,
    );
}

#[test]
fn system_failure_ends_the_instance_before_its_code_runs() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let _ = ctx.schedule_activity("A", "").await;
        Ok("unreachable".to_string())
    })
    .with_parent();
    driver.give([]);
    driver.turn(
        [breaks(2), raise("late", "x")],
        r#"
        3 ActivityFailed <-2 infrastructure: infrastructure:disk: on fire
        4 ExternalEvent late "x"
        5 OrchestrationFailed infrastructure: infrastructure:disk: on fire
        > tell boss/2#7 infrastructure: infrastructure:disk: on fire
        = Failed
    "#,
    );

    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let _ = ctx.schedule_sub_orchestration("C", "").await;
        Ok("unreachable".to_string())
    });
    driver.give([]);
    driver.turn(
        [child_breaks(2)],
        r#"
        3 SubOrchestrationFailed <-2 infrastructure: infrastructure:disk: on fire
        4 OrchestrationFailed infrastructure: infrastructure:disk: on fire
        = Failed
    "#,
    );
}

#[test]
fn replay_error_in_a_batch_with_a_system_failure_counts() {
    let mut driver = InstanceDriver::new(|ctx, _| async move { ctx.schedule_activity("A", "").await });
    driver.give([]);
    driver.turn([breaks(2), done(9, "x"), breaks(2)], r#"
        3 ActivityFailed <-2 infrastructure: infrastructure:disk: on fire
        4 OrchestrationFailed configuration: nondeterministic: no matching schedule for completion id=9: instance 'i' execution 1 got an outcome for something that its history never asked for; the store is damaged or was changed by hand: restore history and queues from the same backup, or start the instance anew under another id
        = Failed
    "#);
}

fn pair() -> InstanceDriver {
    InstanceDriver::new(|ctx, _| async move {
        let (a, c, ()) = ctx
            .join3(
                ctx.schedule_activity("A", ""),
                ctx.schedule_sub_orchestration("C", ""),
                ctx.schedule_timer(Duration::from_millis(5)),
            )
            .await;
        Ok(format!("{a:?} {c:?}"))
    })
}

#[test]
fn c10_first_outcome_of_a_decision_counts() {
    let outcomes = [
        (done(2, "a"), fails(2, "no")),
        (fails(2, "no"), done(2, "a")),
        (fails(2, "no"), fails(2, "other")),
        (done(2, "a"), done(2, "other")),
        (done(2, "a"), breaks(2)),
        (child_done(3, "c"), child_fails(3, "no")),
        (child_fails(3, "no"), child_done(3, "c")),
        (child_fails(3, "no"), child_fails(3, "no")),
        (child_done(3, "c"), child_breaks(3)),
        (fired(4), fired(4)),
    ];
    for (first, second) in outcomes {
        let rest = [done(2, "a"), child_done(3, "c"), fired(4)];
        let mut alone = pair();
        alone.give([]);
        alone.give([first.clone()]);
        alone.give(rest.clone());

        let mut in_one_batch = pair();
        in_one_batch.give([]);
        in_one_batch.give([first.clone(), second.clone()]);
        in_one_batch.give(rest.clone());
        assert_eq!(in_one_batch.history, alone.history, "{first:?} {second:?}");

        let mut later = pair();
        later.give([]);
        later.give([first.clone()]);
        assert!(later.give([second.clone()]).commit.history_delta.is_empty());
        later.now_ms = alone.now_ms - 10;
        later.give(rest);
        assert_eq!(later.history, alone.history, "{first:?} {second:?}");
        assert!(later.has_ended());
    }
}

#[test]
fn outcomes_of_other_executions_are_dropped() {
    let mut driver = pair();
    driver.give([]);
    let instance = || "i".to_string();
    let strangers = vec![
        WorkItem::ActivityCompleted { instance: instance(), execution_id: 0, id: 2, result: String::new() },
        WorkItem::ActivityCompleted { instance: instance(), execution_id: 2, id: 2, result: String::new() },
        WorkItem::ActivityFailed { instance: instance(), execution_id: 2, id: 2, details: infrastructure() },
        WorkItem::TimerFired { instance: instance(), execution_id: 2, id: 77, fire_at_ms: 0 },
        WorkItem::SubOrchCompleted {
            parent_instance: instance(),
            parent_execution_id: 2,
            parent_id: 3,
            result: String::new(),
        },
        WorkItem::SubOrchFailed {
            parent_instance: instance(),
            parent_execution_id: 7,
            parent_id: 3,
            details: infrastructure(),
        },
    ];
    assert!(driver.give_items(strangers).commit.history_delta.is_empty());
}

#[test]
fn p14_dropped_timer_that_fires_is_not_recorded() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let activity = ctx.schedule_activity("A", "");
        let _ = ctx.select2(activity, ctx.schedule_timer(Duration::from_millis(500))).await;
        ctx.schedule_activity("B", "").await
    });
    driver.give([]);
    driver.give([done(2, "a")]);
    driver.turn([fired(3)], r#""#);
}

#[test]
fn replayed_timer_keeps_its_stored_time() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        ctx.schedule_timer(Duration::from_micros(1_999)).await;
        ctx.schedule_timer(Duration::ZERO).await;
        ctx.schedule_timer(Duration::MAX).await;
        Ok(String::new())
    });
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "in"
        2 TimerCreated @1011
        > timer 2 @1011
    "#,
    );
    driver.turn(
        [fired(2)],
        r#"
        3 TimerFired <-2
        4 TimerCreated @1020
        > timer 4 @1020
    "#,
    );
    driver.turn(
        [fired(4)],
        r#"
        5 TimerFired <-4
        6 TimerCreated @18446744073709551615
        > timer 6 @18446744073709551615
    "#,
    );
}

#[test]
fn commit_of_an_ending_has_its_items_in_order() {
    // Starts, outcomes, decisions, dropped futures by kind, waits that are open, the end, activities cut off.
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let dropped = (
            ctx.dequeue_event("q"),
            ctx.schedule_wait("s"),
            ctx.schedule_sub_orchestration("C", ""),
            ctx.schedule_activity("A", ""),
            ctx.schedule_timer(Duration::ZERO),
        );
        std::mem::forget(ctx.dequeue_event("kept q"));
        std::mem::forget(ctx.schedule_wait("kept s"));
        std::mem::forget(ctx.schedule_activity("kept A", ""));
        ctx.schedule_activity("B", "").await?;
        ctx.schedule_orchestration("D", "d", "");
        ctx.set_custom_status("almost");
        std::mem::forget(ctx.schedule_activity("never sent", ""));
        drop(dropped);
        Ok("done".to_string())
    })
    .with_parent();
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "in" parent=boss#7
        2 ExternalSubscribedPersistent q
        3 ExternalSubscribed s
        4 SubOrchestrationScheduled C sub::4 ""
        5 ActivityScheduled A ""
        6 TimerCreated @1010
        7 ExternalSubscribedPersistent kept q
        8 ExternalSubscribed kept s
        9 ActivityScheduled kept A ""
        10 ActivityScheduled B ""
        > activity 5 A ""
        > activity 9 kept A ""
        > activity 10 B ""
        > child 4 of 1: C i::sub::4 ""
        > timer 6 @1010
    "#,
    );
    driver.turn(
        [done(10, "b")],
        r#"
        11 ActivityCompleted <-10 "b"
        12 OrchestrationChained D d ""
        13 CustomStatusUpdated Some("almost")
        14 ActivityScheduled never sent ""
        15 ActivityCancelRequested <-5 "dropped_future"
        16 SubOrchestrationCancelRequested <-4 "dropped_future"
        17 ExternalSubscribedCancelled <-3 "dropped_future"
        18 ExternalSubscribedPersistentCancelled <-2 "dropped_future"
        19 ExternalSubscribedCancelled <-8 "orchestration_terminal"
        20 ExternalSubscribedPersistentCancelled <-7 "orchestration_terminal"
        21 OrchestrationCompleted "done"
        22 ActivityCancelRequested <-9 "orchestration_terminal_completed"
        23 ActivityCancelRequested <-14 "orchestration_terminal_completed"
        > detached D d ""
        > cancel i::sub::4 "parent dropped sub-orchestration future"
        > tell boss/2#7 "done"
        - activity 5
        - activity 9
        = Completed
    "#,
    );
}

#[test]
fn operation_dropped_in_its_own_turn_is_not_sent_and_a_child_is_cancelled() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        drop(ctx.schedule_activity("A", ""));
        drop(ctx.schedule_sub_orchestration("C", ""));
        drop(ctx.schedule_timer(Duration::ZERO));
        drop(ctx.schedule_wait("s"));
        drop(ctx.dequeue_event("q"));
        ctx.schedule_activity("B", "").await
    });
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "in"
        2 ActivityScheduled A ""
        3 SubOrchestrationScheduled C sub::3 ""
        4 TimerCreated @1010
        5 ExternalSubscribed s
        6 ExternalSubscribedPersistent q
        7 ActivityScheduled B ""
        8 ActivityCancelRequested <-2 "dropped_future"
        9 SubOrchestrationCancelRequested <-3 "dropped_future"
        10 ExternalSubscribedCancelled <-5 "dropped_future"
        11 ExternalSubscribedPersistentCancelled <-6 "dropped_future"
        > activity 7 B ""
        > child 3 of 1: C i::sub::3 ""
        > cancel i::sub::3 "parent dropped sub-orchestration future"
    "#,
    );
    // The drops are repeated without effect.
    driver.forget();
    driver.turn(
        [done(7, "b")],
        r#"
        12 ActivityCompleted <-7 "b"
        13 OrchestrationCompleted "b"
        = Completed
    "#,
    );
}

#[test]
fn turn_with_only_dropped_messages_commits_no_event() {
    let mut driver = InstanceDriver::new(|ctx, _| async move { ctx.schedule_activity("A", "").await });
    driver.give([]);
    driver.turn([], r#""#);
    driver.turn([Message::Item(start("i", None))], r#""#);
}

#[test]
fn turn_after_the_end_commits_no_event() {
    let mut driver = InstanceDriver::new(|_, _| async move { Ok("done".to_string()) });
    driver.give([]);
    driver.turn([raise("x", ""), cancel("late")], r#""#);
}

#[test]
fn first_turn_writes_name_version_parent_and_pin() {
    let mut driver = InstanceDriver::new(|_, input| async move { Ok(input) }).with_parent();
    let output = driver.give([]);
    let metadata = output.commit.metadata;
    assert_eq!(metadata.orchestration_name.as_deref(), Some("Main"));
    assert_eq!(metadata.orchestration_version.as_deref(), Some("1.0.0"));
    assert_eq!(metadata.parent_instance_id.as_deref(), Some("boss"));
    assert_eq!(metadata.pinned_duroxide_version, Some(outlast_model::current_build_version()));
    assert_eq!(output.report.started, Some("client"));
    assert_eq!(driver.history[0].duroxide_version, "0.1.32");
}

#[test]
fn context_returns_instance_execution_name_and_version() {
    let mut driver = InstanceDriver::new(|ctx, input| async move {
        Ok(format!(
            "{} {} {} {} {input} {}",
            ctx.instance_id(),
            ctx.execution_id(),
            ctx.orchestration_name(),
            ctx.orchestration_version(),
            ctx.is_logging_enabled()
        ))
    });
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "in"
        2 OrchestrationCompleted "i 1 Main 1.0.0 in false"
        = Completed
    "#,
    );
}

#[test]
fn tags_and_sessions_travel_with_the_activity() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let tagged = ctx.schedule_activity("A", "").with_tag("first").with_tag("gpu");
        let mapped =
            ctx.schedule_activity("B", "").map(|result| result.map(|text| text.len())).with_tag("cpu");
        let pinned = ctx.schedule_activity_on_session("S", "x", "s1").with_tag("gpu");
        let typed = ctx.schedule_activity_on_session_typed::<_, u32>("T", &vec![1, 2], "s2");
        let (a, b) = ctx.join2(tagged, mapped).await;
        Ok(format!("{a:?} {b:?} {:?} {:?}", pinned.await, typed.await))
    });
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "in"
        2 ActivityScheduled A "" tag=gpu
        3 ActivityScheduled B "" tag=cpu
        4 ActivityScheduled S "x" session=s1 tag=gpu
        5 ActivityScheduled T "[1,2]" session=s2
        > activity 2 A "" tag=gpu
        > activity 3 B "" tag=cpu
        > activity 4 S "x" session=s1 tag=gpu
        > activity 5 T "[1,2]" session=s2
    "#,
    );
    driver.turn([done(2, "a"), done(3, "four"), done(4, "s"), done(5, "x")], r#"
        6 ActivityCompleted <-2 "a"
        7 ActivityCompleted <-3 "four"
        8 ActivityCompleted <-4 "s"
        9 ActivityCompleted <-5 "x"
        10 OrchestrationCompleted "Ok(\"a\") Ok(4) Ok(\"s\") Err(\"invalid type: string \\\"x\\\", expected u32\")"
        = Completed
    "#);
}

#[test]
fn with_tag_is_for_new_activities_only() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        drop(ctx.schedule_timer(Duration::ZERO).with_tag("x"));
        Ok(String::new())
    });
    driver.turn([], r#"
        1 OrchestrationStarted Main "in"
        2 OrchestrationFailed panicked: orchestration panicked: with_tag() can only be called on activity futures, got Timer
        = Failed
    "#);
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let late = ctx.schedule_activity("A", "");
        ctx.schedule_activity("B", "").await?;
        late.with_tag("x").await
    });
    driver.give([]);
    driver.turn([done(3, "b")], r#"
        4 ActivityCompleted <-3 "b"
        5 OrchestrationFailed panicked: orchestration panicked: with_tag() came too late: Activity { name: "A" } was scheduled already; call it right after scheduling
        6 ActivityCancelRequested <-2 "orchestration_terminal_failed"
        - activity 2
        = Failed
    "#);
}

#[test]
fn typed_calls_decode_or_return_the_decoder_error() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let good = ctx.schedule_activity_typed::<_, Vec<u8>>("A", &"text");
        let bad = ctx.schedule_activity_typed::<_, Vec<u8>>("A", &1);
        let child = ctx.schedule_sub_orchestration_typed::<_, String>("C", &());
        let (good, bad, child) = ctx.join3(good, bad, child).await;
        Ok(format!("{good:?} {} {child:?}", bad.is_err()))
    });
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "in"
        2 ActivityScheduled A "text"
        3 ActivityScheduled A "1"
        4 SubOrchestrationScheduled C sub::4 "null"
        > activity 2 A "text"
        > activity 3 A "1"
        > child 4 of 1: C i::sub::4 "null"
    "#,
    );
    driver.turn(
        [done(2, "[1]"), done(3, "{}"), child_done(4, "x")],
        r#"
        5 ActivityCompleted <-2 "[1]"
        6 ActivityCompleted <-3 "{}"
        7 SubOrchestrationCompleted <-4 "x"
        8 OrchestrationCompleted "Ok([1]) true Ok(\"x\")"
        = Completed
    "#,
    );
}

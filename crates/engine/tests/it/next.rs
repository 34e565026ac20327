//! Continue-as-new (spec runtime 5).

use crate::kit::*;
use outlast_engine::{Ended, OrchestrationContext, Past};
use outlast_model::{EventKind, ExecutionStatus};
use std::time::Duration;

#[test]
fn the_execution_ends_and_the_next_begins() {
    let mut driver = InstanceDriver::new(|ctx, input| async move {
        ctx.set_custom_status(format!("status of {input}"));
        ctx.set_kv_value(&input, ctx.execution_id().to_string());
        if input == "in" {
            let _wait = ctx.schedule_wait("s");
            let _queue = ctx.dequeue_event("q");
            let _child = ctx.schedule_sub_orchestration("C", "");
            let _timer = ctx.schedule_timer(Duration::from_secs(9));
            let _running = ctx.schedule_activity("slow", "");
            ctx.schedule_activity("A", "").await?;
            let _new = ctx.schedule_activity("never sent", "");
            return ctx.continue_as_new("two").await;
        }
        let child = ctx.schedule_sub_orchestration("C", "");
        child.await?;
        Ok(format!("{:?} {:?}", ctx.get_kv_all_keys(), ctx.get_custom_status()))
    })
    .with_parent();
    driver.give([]);
    driver.turn(
        [done(9, "a"), raise("s", "read by nobody")],
        r#"
        10 ActivityCompleted <-9 "a"
        11 ExternalEvent s "read by nobody"
        12 ActivityScheduled never sent ""
        13 ExternalSubscribedPersistentCancelled <-5 "orchestration_terminal"
        14 OrchestrationContinuedAsNew "two"
        15 ActivityCancelRequested <-8 "orchestration_terminal_continued_as_new"
        16 ActivityCancelRequested <-12 "orchestration_terminal_continued_as_new"
        > next "two" parent=boss status="status of in"
        - activity 8
        = ContinuedAsNew
    "#,
    );
    driver.next_execution();
    assert_eq!(driver.execution_id, 2);
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "two" parent=boss#7 status="status of in"
        2 CustomStatusUpdated Some("status of two")
        3 KeyValueSet two="2" @1030
        4 SubOrchestrationScheduled C sub::2_4 ""
        > child 4 of 2: C i::sub::2_4 ""
    "#,
    );
    // Outcomes of the old execution are dropped.
    let late = |message: Message| Message::Item(message.address("i", 1));
    driver.turn([late(done(8, "slow")), late(fired(7)), late(child_done(6, "c"))], r#""#);
    driver.turn(
        [child_done(4, "c")],
        r#"
        5 SubOrchestrationCompleted <-4 "c"
        6 OrchestrationCompleted "[\"in\", \"two\"] Some(\"status of two\")"
        > tell boss/2#7 "[\"in\", \"two\"] Some(\"status of two\")"
        = Completed
    "#,
    );
}

#[test]
fn continue_as_new_without_await_counts_and_the_first_call_decides() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        drop(ctx.continue_as_new_versioned("2.0.0", "first"));
        drop(ctx.continue_as_new_typed(&vec![1]));
        Ok("beaten".to_string())
    });
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "in"
        2 OrchestrationContinuedAsNew "first"
        > next "first" v2.0.0
        = ContinuedAsNew
    "#,
    );
}

#[test]
fn continue_as_new_counts_over_an_error_and_not_over_a_panic() {
    let mut driver = InstanceDriver::new(|ctx, input| async move {
        drop(ctx.continue_as_new("next"));
        if input == "in" { Err("beaten".to_string()) } else { panic!("ouch") }
    });
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "in"
        2 OrchestrationContinuedAsNew "next"
        > next "next"
        = ContinuedAsNew
    "#,
    );
    driver.next_execution();
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "next"
        2 OrchestrationFailed panicked: orchestration panicked: ouch
        = Failed
    "#,
    );
}

#[test]
fn status_is_readable_before_the_first_wait() {
    let mut driver = InstanceDriver::new(|ctx, input| async move {
        if input == "in" {
            ctx.set_custom_status("left");
            return ctx.continue_as_new("two").await;
        }
        Ok(format!("{:?}", ctx.get_custom_status()))
    });
    driver.give([]);
    driver.next_execution();
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "two" status="left"
        2 OrchestrationCompleted "Some(\"left\")"
        = Completed
    "#,
    );
}

#[test]
fn children_run_on_and_waits_are_closed() {
    // Dropped in the turn that continues: nothing is undone, and the waits are closed all the same.
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let dropped =
            (ctx.schedule_sub_orchestration("C", ""), ctx.schedule_wait("s"), ctx.schedule_activity("B", ""));
        ctx.schedule_activity("A", "").await?;
        drop(dropped);
        ctx.continue_as_new("two").await
    });
    driver.give([]);
    driver.turn(
        [done(5, "a")],
        r#"
        6 ActivityCompleted <-5 "a"
        7 ExternalSubscribedCancelled <-3 "orchestration_terminal"
        8 OrchestrationContinuedAsNew "two"
        9 ActivityCancelRequested <-4 "orchestration_terminal_continued_as_new"
        > next "two"
        - activity 4
        = ContinuedAsNew
    "#,
    );
}

#[test]
fn c9_successor_reads_all_carried_messages() {
    let code = |ctx: OrchestrationContext, input: String| async move {
        if input == "in" {
            return ctx.continue_as_new("two").await;
        }
        let mut read = 0;
        while read < 100 {
            ctx.dequeue_event("q").await;
            read += 1;
        }
        Ok(read.to_string())
    };
    let mut driver = InstanceDriver::new(code);
    driver.give((0..100).map(|n| enqueue("q", &n.to_string())));
    driver.next_execution();
    let metadata = driver.give([]).commit.metadata;
    assert_eq!(metadata.execution_status(), Some(ExecutionStatus::Completed));
    assert_eq!(metadata.output.as_deref(), Some("100"));
}

#[test]
fn report_names_the_kind_of_start() {
    let code = |ctx: OrchestrationContext, input: String| async move {
        if input == "in" { ctx.continue_as_new("two").await } else { Ok(input) }
    };
    let mut driver = InstanceDriver::new(code);
    assert_eq!(driver.give([]).report.started, Some("client"));
    driver.next_execution();
    let report = driver.give([]).report;
    assert_eq!((report.started, report.execution_id), (Some("continueAsNew"), 2));
}

#[test]
fn first_continue_as_new_counts() {
    let continued = |input: &str| plain(EventKind::OrchestrationContinuedAsNew { input: input.to_string() });
    let past = Past::of_history(&history("0.1.32", vec![started("in"), continued("a"), continued("b")]));
    assert_eq!(past.ended, Some(Ended::Continued { input: "a".to_string() }));
}

//! Retries (spec runtime 9.4, api 5).

use crate::kit::*;
use outlast_engine::OrchestrationContext;
use outlast_model::{BackoffStrategy, RetryPolicy};
use std::time::Duration;

const STEP: Duration = Duration::from_millis(100);

#[test]
fn failed_attempt_is_followed_by_a_timer_and_another_attempt() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let policy =
            RetryPolicy::new(2).with_backoff(BackoffStrategy::Fixed { delay: STEP }).with_timeout(STEP * 10);
        ctx.schedule_activity_with_retry("A", "x", policy).await
    });
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "in"
        2 ActivityScheduled A "x"
        3 TimerCreated @2010
        > activity 2 A "x"
        > timer 3 @2010
    "#,
    );
    driver.turn(
        [fails(2, "first")],
        r#"
        4 ActivityFailed <-2 application: first
        5 TimerCreated @1120
        > timer 5 @1120
        ~ WARN Activity 'A' attempt 1/2 failed: first. Retrying...
    "#,
    );
    driver.turn(
        [fired(5)],
        r#"
        6 TimerFired <-5
        7 ActivityScheduled A "x"
        8 TimerCreated @2030
        > activity 7 A "x"
        > timer 8 @2030
    "#,
    );
    driver.turn(
        [done(7, "ok")],
        r#"
        9 ActivityCompleted <-7 "ok"
        10 OrchestrationCompleted "ok"
        = Completed
    "#,
    );
}

#[test]
fn the_last_error_is_returned_as_it_is() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let policy = RetryPolicy::new(2).with_backoff(BackoffStrategy::None);
        ctx.schedule_activity_with_retry("A", "x", policy).await
    });
    driver.give([]);
    // No timer for no wait.
    driver.turn(
        [fails(2, "first")],
        r#"
        3 ActivityFailed <-2 application: first
        4 ActivityScheduled A "x"
        > activity 4 A "x"
        ~ WARN Activity 'A' attempt 1/2 failed: first. Retrying...
    "#,
    );
    driver.turn(
        [fails(4, "second")],
        r#"
        5 ActivityFailed <-4 application: second
        6 OrchestrationFailed application: second
        = Failed
    "#,
    );
}

#[test]
fn attempt_over_its_timeout_is_not_retried() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let policy = RetryPolicy::new(3).with_timeout(STEP);
        let result = ctx.schedule_activity_with_retry("A", "x", policy).await;
        ctx.schedule_activity("B", format!("{result:?}")).await
    });
    driver.give([]);
    driver.turn(
        [fired(3)],
        r#"
        4 TimerFired <-3
        5 ActivityScheduled B "Err(\"timeout: activity timed out\")"
        6 ActivityCancelRequested <-2 "dropped_future"
        > activity 5 B "Err(\"timeout: activity timed out\")"
        - activity 2
    "#,
    );
}

#[test]
fn delays_grow_by_the_policy() {
    let delays = |backoff: BackoffStrategy| {
        let code = move |ctx: OrchestrationContext, _| {
            let policy = RetryPolicy::new(4).with_backoff(backoff.clone());
            async move { ctx.schedule_activity_with_retry("A", "x", policy).await }
        };
        let mut driver = InstanceDriver::new(code);
        driver.give([]);
        let mut delays = Vec::new();
        while !driver.has_ended() {
            let last = driver.history.len() as u64;
            let output = driver.give([fails(last, "no")]);
            if let Some(outlast_model::WorkItem::TimerFired { id, fire_at_ms, .. }) =
                output.commit.orchestrator_items.first()
            {
                delays.push(fire_at_ms - driver.now_ms);
                driver.give([fired(*id)]);
            }
        }
        delays
    };
    assert_eq!(delays(BackoffStrategy::Linear { base: STEP, max: STEP * 2 }), [100, 200, 200]);
    let exponential = BackoffStrategy::Exponential { base: STEP, multiplier: 3.0, max: STEP * 10 };
    assert_eq!(delays(exponential), [100, 300, 900]);
    assert!(delays(BackoffStrategy::None).is_empty());
}

#[test]
fn retry_schedules_its_first_attempt_when_polled() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        drop(ctx.schedule_activity_with_retry("A", "x", RetryPolicy::default()));
        ctx.schedule_activity("B", "").await
    });
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "in"
        2 ActivityScheduled B ""
        > activity 2 B ""
    "#,
    );
}

#[test]
fn retry_keeps_session_and_types() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let policy = || RetryPolicy::new(2).with_backoff(BackoffStrategy::None);
        let typed = ctx.schedule_activity_with_retry_typed::<_, u32>("A", &1, policy());
        let pinned = ctx.schedule_activity_with_retry_on_session("B", "x", policy(), "s");
        let both = ctx.schedule_activity_with_retry_on_session_typed::<_, u32>("C", &2, policy(), "s");
        let (typed, pinned, both) = ctx.join3(typed, pinned, both).await;
        Ok(format!("{typed:?} {pinned:?} {both:?}"))
    });
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "in"
        2 ActivityScheduled A "1"
        3 ActivityScheduled B "x" session=s
        4 ActivityScheduled C "2" session=s
        > activity 2 A "1"
        > activity 3 B "x" session=s
        > activity 4 C "2" session=s
    "#,
    );
    driver.turn(
        [fails(3, "again"), done(2, "7")],
        r#"
        5 ActivityFailed <-3 application: again
        6 ActivityCompleted <-2 "7"
        7 ActivityScheduled B "x" session=s
        > activity 7 B "x" session=s
        ~ WARN Activity 'B' (session=s) attempt 1/2 failed: again. Retrying...
    "#,
    );
    driver.turn([done(4, "not a number"), done(7, "b")], r#"
        8 ActivityCompleted <-4 "not a number"
        9 ActivityCompleted <-7 "b"
        10 OrchestrationCompleted "Ok(7) Ok(\"b\") Err(\"invalid type: string \\\"not a number\\\", expected u32\")"
        = Completed
    "#);
}

#[test]
fn system_failures_are_not_tried_again() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        ctx.schedule_activity_with_retry("A", "x", RetryPolicy::default()).await
    });
    driver.give([]);
    driver.give([breaks(2)]);
    assert_eq!(driver.error(), "infrastructure:disk: on fire");
}

#[test]
fn report_lists_retried_activities_with_their_attempt() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let policy = RetryPolicy::new(4).with_backoff(BackoffStrategy::None);
        ctx.schedule_activity_with_retry("A", "x", policy).await?;
        ctx.schedule_activity("B", "").await
    });
    let reported = |output: outlast_engine::TurnOutput| {
        let retries = output.report.retries.into_iter();
        retries.map(|retry| (retry.activity_id, retry.name, retry.attempt)).collect::<Vec<_>>()
    };
    // Every turn is also replayed, with the same result.
    assert_eq!(reported(driver.give([])), []);
    assert_eq!(reported(driver.give([fails(2, "first")])), [(4, "A".to_string(), 2)]);
    assert_eq!(reported(driver.give([fails(4, "second")])), [(6, "A".to_string(), 3)]);
    assert_eq!(reported(driver.give([done(6, "ok")])), [], "B is no retry");
}

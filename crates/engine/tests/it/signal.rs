//! Positional events (spec runtime 4.1-4.3).

use crate::kit::*;
use outlast_engine::{Either2, OrchestrationContext};
use std::time::Duration;

#[test]
fn nth_wait_gets_the_nth_event() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let (a, b) = (ctx.schedule_wait("s"), ctx.schedule_wait("s"));
        let other = ctx.schedule_wait("t");
        let (b, a) = ctx.join2(b, a).await;
        Ok(format!("{a} {b} {}", other.await))
    });
    driver.give([]);
    driver.turn(
        [raise("s", "1"), raise("t", "t"), raise("s", "2"), raise("s", "3")],
        r#"
        5 ExternalEvent s "1"
        6 ExternalEvent t "t"
        7 ExternalEvent s "2"
        8 ExternalEvent s "3"
        9 OrchestrationCompleted "1 2 t"
        = Completed
    "#,
    );
}

#[test]
fn event_without_open_wait_is_recorded_and_not_delivered() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        ctx.schedule_activity("A", "").await?;
        Ok(ctx.schedule_wait("s").await)
    });
    driver.give([]);
    driver.turn(
        [raise("s", "early")],
        r#"
        3 ExternalEvent s "early"
        ! event 's' was raised while no wait for it was open, and is not delivered
    "#,
    );
    // In the same batch as the outcome that leads to the wait, behind it: early all the same.
    driver.turn(
        [done(2, "a"), raise("s", "early too")],
        r#"
        4 ActivityCompleted <-2 "a"
        5 ExternalEvent s "early too"
        6 ExternalSubscribed s
        ! event 's' was raised while no wait for it was open, and is not delivered
    "#,
    );
    driver.turn(
        [raise("s", "at last")],
        r#"
        7 ExternalEvent s "at last"
        8 OrchestrationCompleted "at last"
        = Completed
    "#,
    );
}

#[test]
fn r3_early_events_are_kept_for_executions_that_buffer() {
    let code = |ctx: OrchestrationContext, _| async move {
        ctx.schedule_activity("A", "").await?;
        let (a, b) = ctx.join2(ctx.schedule_wait("s"), ctx.schedule_wait("s")).await;
        Ok(format!("{a} {b} {}", ctx.schedule_wait("s").await))
    };
    let mut driver = InstanceDriver::new(code).buffered();
    driver.turn(
        [raise("s", "1")],
        r#"
        1 OrchestrationStarted Main "in"
        2 ExternalEvent s "1"
        3 ActivityScheduled A ""
        > activity 3 A ""
    "#,
    );
    driver.turn(
        [done(3, "a"), raise("s", "2")],
        r#"
        4 ActivityCompleted <-3 "a"
        5 ExternalEvent s "2"
        6 ExternalSubscribed s
        7 ExternalSubscribed s
        8 ExternalSubscribed s
    "#,
    );
    driver.turn(
        [raise("s", "3")],
        r#"
        9 ExternalEvent s "3"
        10 OrchestrationCompleted "1 2 3"
        = Completed
    "#,
    );
    assert_eq!(driver.history[0].duroxide_version, "0.1.32+buffered");
}

#[test]
fn r3_a_kept_event_is_not_taken_by_a_wait_that_is_dropped_at_once() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        ctx.schedule_activity("A", "").await?;
        drop(ctx.schedule_wait("s"));
        Ok(ctx.schedule_wait("s").await)
    })
    .buffered();
    driver.give([raise("s", "1")]);
    driver.turn(
        [done(3, "a")],
        r#"
        4 ActivityCompleted <-3 "a"
        5 ExternalSubscribed s
        6 ExternalSubscribed s
        7 ExternalSubscribedCancelled <-5 "dropped_future"
        8 OrchestrationCompleted "1"
        = Completed
    "#,
    );
}

#[test]
fn r3_event_after_a_timeout_is_kept_for_the_next_wait() {
    let code = |ctx: OrchestrationContext, _| async move {
        loop {
            let timeout = ctx.schedule_timer(Duration::from_secs(1));
            if let Either2::First(data) = ctx.select2(ctx.schedule_wait("s"), timeout).await {
                return Ok(data);
            }
        }
    };
    let mut driver = InstanceDriver::new(code).buffered();
    driver.give([]);
    driver.turn(
        [fired(2), raise("s", "x")],
        r#"
        4 TimerFired <-2
        5 ExternalEvent s "x"
        6 TimerCreated @2020
        7 ExternalSubscribed s
        8 ExternalSubscribedCancelled <-3 "dropped_future"
        9 OrchestrationCompleted "x"
        = Completed
    "#,
    );
    // Without buffering it is lost.
    let mut driver = InstanceDriver::new(code);
    driver.give([]);
    driver.turn(
        [fired(2), raise("s", "x")],
        r#"
        4 TimerFired <-2
        5 ExternalEvent s "x"
        6 TimerCreated @2020
        7 ExternalSubscribed s
        8 ExternalSubscribedCancelled <-3 "dropped_future"
        > timer 6 @2020
        ! event 's' was raised while no wait for it was open, and is not delivered
    "#,
    );
}

#[test]
fn dropped_wait_loses_its_place_at_once() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let (a, b) = (ctx.schedule_wait("s"), ctx.schedule_wait("s"));
        ctx.schedule_activity("A", "").await?;
        drop(a);
        Ok(b.await)
    });
    driver.give([]);
    driver.turn(
        [done(4, ""), raise("s", "x")],
        r#"
        5 ActivityCompleted <-4 ""
        6 ExternalEvent s "x"
        7 ExternalSubscribedCancelled <-2 "dropped_future"
        8 OrchestrationCompleted "x"
        = Completed
    "#,
    );
}

#[test]
fn assigned_event_stays_with_its_dropped_wait() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let a = ctx.schedule_wait("s");
        ctx.schedule_activity("A", "").await?;
        drop(a);
        Ok(ctx.schedule_wait("s").await)
    });
    driver.give([]);
    driver.turn(
        [raise("s", "for a"), done(3, "")],
        r#"
        4 ExternalEvent s "for a"
        5 ActivityCompleted <-3 ""
        6 ExternalSubscribed s
        7 ExternalSubscribedCancelled <-2 "dropped_future"
    "#,
    );
    driver.turn(
        [raise("s", "for b")],
        r#"
        8 ExternalEvent s "for b"
        9 OrchestrationCompleted "for b"
        = Completed
    "#,
    );
}

#[test]
fn equal_events_are_distinct() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        Ok(format!("{}{}", ctx.schedule_wait("s").await, ctx.schedule_wait("s").await))
    });
    driver.give([]);
    driver.give([raise("s", "x")]);
    driver.turn(
        [raise("s", "x")],
        r#"
        5 ExternalEvent s "x"
        6 OrchestrationCompleted "xx"
        = Completed
    "#,
    );
}

#[test]
fn queue_and_event_of_one_name_are_separate() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let (event, message) = ctx.join2(ctx.schedule_wait("n"), ctx.dequeue_event("n")).await;
        Ok(format!("{event} {message}"))
    });
    driver.give([]);
    driver.turn(
        [enqueue("n", "message"), enqueue("n", "more")],
        r#"
        4 ExternalEventPersistent n "message"
        5 ExternalEventPersistent n "more"
    "#,
    );
    driver.turn(
        [raise("n", "event")],
        r#"
        6 ExternalEvent n "event"
        7 OrchestrationCompleted "event message"
        = Completed
    "#,
    );
}

#[test]
fn l5_typed_wait_error_names_the_event_and_the_decoder_error() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let wait = ctx.try_schedule_wait_typed::<u32>("s").await;
        let message = ctx.try_dequeue_event_typed::<u32>("q").await;
        Ok(format!("{wait:?} {message:?}"))
    });
    driver.give([]);
    driver.give([raise("s", "{")]);
    driver.turn([enqueue("q", "5")], r#"
        5 ExternalEventPersistent q "5"
        6 OrchestrationCompleted "Err(\"event 's' could not be decoded: invalid type: string \\\"{\\\", expected u32\") Ok(5)"
        = Completed
    "#);
    let mut driver =
        InstanceDriver::new(
            |ctx, _| async move { Ok(ctx.schedule_wait_typed::<u32>("s").await.to_string()) },
        );
    driver.give([]);
    driver.turn([raise("s", "{")], r#"
        3 ExternalEvent s "{"
        4 OrchestrationFailed panicked: orchestration panicked: event 's' could not be decoded: invalid type: string "{", expected u32
        = Failed
    "#);
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        Ok(ctx.dequeue_event_typed::<Vec<u32>>("q").await.len().to_string())
    });
    driver.give([]);
    driver.turn(
        [enqueue("q", "[1,2]")],
        r#"
        3 ExternalEventPersistent q "[1,2]"
        4 OrchestrationCompleted "2"
        = Completed
    "#,
    );
}

//! Executions that began before 0.1.31: a dropped wait counts until its note is written, and values move (spec runtime
//! 4.5).

use crate::kit::*;
use outlast_engine::{Either2, OrchestrationContext};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

const LEGACY: &str = "0.1.30";

/// One of a crowd.
type Part<'a> = Pin<Box<dyn Future<Output = String> + Send + 'a>>;

async fn counted<F: Future>(future: F, polls: &AtomicUsize) -> F::Output {
    let mut future = pin!(future);
    std::future::poll_fn(|cx| {
        polls.fetch_add(1, Relaxed);
        future.as_mut().poll(cx)
    })
    .await
}

/// Waits again and again, with a timeout that gives a wait up.
async fn waits_again(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let timeout = ctx.schedule_timer(Duration::from_secs(1));
    if let Either2::First(data) = ctx.select2(ctx.schedule_wait("s"), timeout).await {
        return Ok(format!("first {data}"));
    }
    let other = ctx.schedule_activity("A", "");
    let (data, _) = ctx.join2(ctx.schedule_wait("s"), other).await;
    Ok(format!("second {data}"))
}

#[test]
fn legacy_event_after_the_timeout_goes_to_the_next_wait() {
    let mut driver = InstanceDriver::new(waits_again).stamped(LEGACY);
    driver.give([]);
    driver.turn(
        [fired(2), raise("s", "x")],
        r#"
        4 TimerFired <-2
        5 ExternalEvent s "x"
        6 ActivityScheduled A ""
        7 ExternalSubscribed s
        8 ExternalSubscribedCancelled <-3 "dropped_future"
        > activity 6 A ""
    "#,
    );
    // The wait reads the moved event at the next poll.
    driver.turn(
        [done(6, "a")],
        r#"
        9 ActivityCompleted <-6 "a"
        10 OrchestrationCompleted "second x"
        = Completed
    "#,
    );
    // By the rules of today it is lost.
    let mut driver = InstanceDriver::new(waits_again);
    driver.give([]);
    driver.give([fired(2), raise("s", "x")]);
    driver.give([done(6, "a")]);
    assert!(!driver.has_ended());
}

#[test]
fn moved_event_is_read_by_a_wait_in_a_future_set() {
    // Nothing wakes the wait by name when a place moves.
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let timeout = ctx.schedule_timer(Duration::from_secs(1));
        let _ = ctx.select2(ctx.schedule_wait("s"), timeout).await;
        let other = ctx.schedule_activity("A", "");
        let wait = ctx.schedule_wait("s");
        let parts: Vec<Part<'_>> = vec![Box::pin(wait), Box::pin(async { other.await.unwrap() })];
        Ok(ctx.join_all(parts).await.join(" "))
    })
    .stamped(LEGACY);
    driver.give([]);
    driver.give([fired(2), raise("s", "x")]);
    driver.turn(
        [done(6, "a")],
        r#"
        9 ActivityCompleted <-6 "a"
        10 OrchestrationCompleted "x a"
        = Completed
    "#,
    );
}

#[test]
fn only_legacy_waits_are_polled_without_a_wake_up() {
    // The number of polls of a wait and of an activity that another event causes.
    let polls = |stamp: &str| {
        let polls: Arc<[AtomicUsize; 2]> = Arc::default();
        let counters = Arc::clone(&polls);
        let mut driver = InstanceDriver::new(move |ctx, _| {
            let counters = Arc::clone(&counters);
            async move {
                let wait = counted(ctx.schedule_wait("s"), &counters[0]);
                let activity = counted(ctx.schedule_activity("A", ""), &counters[1]);
                let timer = ctx.schedule_timer(Duration::from_secs(1));
                let parts: Vec<Part<'_>> = vec![
                    Box::pin(wait),
                    Box::pin(async { activity.await.unwrap() }),
                    Box::pin(async {
                        timer.await;
                        String::new()
                    }),
                ];
                Ok(ctx.join_all(parts).await.concat())
            }
        })
        .stamped(stamp)
        .unchecked();
        driver.give([]);
        let now = || [polls[0].load(Relaxed), polls[1].load(Relaxed)];
        let before = now();
        driver.give([fired(4)]);
        let after = now();
        [after[0] - before[0], after[1] - before[1]]
    };
    assert_eq!(polls("0.1.32"), [0, 0]);
    assert_eq!(polls(LEGACY), [1, 0]);
}

#[test]
fn legacy_assigned_event_moves_when_its_wait_is_dropped() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let first = ctx.schedule_wait("s");
        ctx.schedule_activity("A", "").await?;
        drop(first);
        let (data, _) = ctx.join2(ctx.schedule_wait("s"), ctx.schedule_activity("B", "")).await;
        Ok(data)
    })
    .stamped(LEGACY);
    driver.give([]);
    driver.turn(
        [raise("s", "for the first"), done(3, "")],
        r#"
        4 ExternalEvent s "for the first"
        5 ActivityCompleted <-3 ""
        6 ExternalSubscribed s
        7 ActivityScheduled B ""
        8 ExternalSubscribedCancelled <-2 "dropped_future"
        > activity 7 B ""
    "#,
    );
    driver.turn(
        [done(7, "")],
        r#"
        9 ActivityCompleted <-7 ""
        10 OrchestrationCompleted "for the first"
        = Completed
    "#,
    );
}

#[test]
fn legacy_dropped_dequeue_keeps_its_place_until_the_turn_ends() {
    let code = |ctx: OrchestrationContext, _| async move {
        let older = ctx.dequeue_event("q");
        ctx.schedule_activity("A", "").await?;
        drop(older);
        let newer = async {
            let message = ctx.dequeue_event("q").await;
            format!("newer {message}")
        };
        Ok(ctx.join2(newer, ctx.schedule_activity("B", "")).await.0)
    };
    let mut driver = InstanceDriver::new(code).stamped(LEGACY);
    driver.give([]);
    driver.turn(
        [enqueue("q", "1"), done(3, "")],
        r#"
        4 ExternalEventPersistent q "1"
        5 ActivityCompleted <-3 ""
        6 ActivityScheduled B ""
        7 ExternalSubscribedPersistent q
        8 ExternalSubscribedPersistentCancelled <-2 "dropped_future"
        > activity 6 B ""
    "#,
    );
    driver.turn(
        [done(6, "")],
        r#"
        9 ActivityCompleted <-6 ""
        10 OrchestrationCompleted "newer 1"
        = Completed
    "#,
    );
    // Today the place is free at once.
    let mut driver = InstanceDriver::new(code);
    driver.give([]);
    driver.give([enqueue("q", "1"), done(3, "")]);
    driver.give([done(6, "")]);
    assert!(format!("{:?}", driver.history).contains("newer 1"));
}

#[test]
fn r2_legacy_cancelled_older_dequeue_moves_later_dequeues() {
    // Cancelling an older dequeue moves the places of those behind it: message 2 is read twice, message 1 never.
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let (older, newer) = (ctx.dequeue_event("q"), ctx.dequeue_event("q"));
        let newer = newer.await;
        drop(older);
        ctx.schedule_activity("A", "").await?;
        let third = ctx.dequeue_event("q").await;
        Ok(format!("{newer} {third}"))
    })
    .stamped(LEGACY);
    driver.give([]);
    driver.give([enqueue("q", "1"), enqueue("q", "2")]);
    driver.turn(
        [done(6, "")],
        r#"
        8 ActivityCompleted <-6 ""
        9 ExternalSubscribedPersistent q
        10 OrchestrationCompleted "2 2"
        = Completed
    "#,
    );
}

#[test]
fn legacy_carry_over_skips_one_message_per_dequeue() {
    // Two dequeues count for two messages, though one of them has read nothing.
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let _held = ctx.dequeue_event("q");
        let _other = ctx.dequeue_event("r");
        ctx.schedule_activity("A", "").await?;
        ctx.continue_as_new("").await
    })
    .stamped(LEGACY);
    driver.give([]);
    driver.turn(
        [enqueue("q", "1"), enqueue("s", "2"), enqueue("q", "3"), done(4, "")],
        r#"
        5 ExternalEventPersistent q "1"
        6 ExternalEventPersistent s "2"
        7 ExternalEventPersistent q "3"
        8 ActivityCompleted <-4 ""
        9 ExternalSubscribedPersistentCancelled <-2 "orchestration_terminal"
        10 ExternalSubscribedPersistentCancelled <-3 "orchestration_terminal"
        11 OrchestrationContinuedAsNew ""
        > next "" carried=[("s", "2"), ("q", "3")]
        = ContinuedAsNew
    "#,
    );
}

#[test]
fn stamp_of_the_first_event_selects_the_rules_of_the_whole_execution() {
    for (stamp, reads) in [
        ("0.1.30", true),
        ("0.1.31-rc.1", true),
        ("not a version", true),
        ("0.1.31", false),
        ("0.1.32", false),
        ("2.0.0", false),
    ] {
        let mut driver = InstanceDriver::new(waits_again).stamped(stamp);
        driver.give([]);
        driver.give([fired(2), raise("s", "x")]);
        driver.give([done(6, "a")]);
        assert_eq!(driver.has_ended(), reads, "{stamp}");
    }
}

#[test]
fn unreadable_stamp_warns_once() {
    let mut driver = InstanceDriver::new(waits_again).stamped("yesterday");
    let warnings = driver.give([]).report.warnings;
    assert_eq!(warnings, ["Invalid pinned version 'yesterday': replaying by the oldest rules"]);
    let mut warm = InstanceDriver::new(waits_again).stamped("yesterday").unchecked();
    warm.give([]);
    assert_eq!(warm.give([raise("other", "")]).report.warnings.len(), 1, "only about the event");
}

#[test]
fn legacy_drop_notes_apply_at_their_place_in_history() {
    let stored = vec![
        started("in"),
        timer(1),
        subscribed("s"),
        timer_fired(2),
        raised("s", "moved"),
        activity("A", ""),
        subscribed("s"),
        wait_dropped(3),
    ];
    let mut driver = InstanceDriver::new(waits_again).stored(history(LEGACY, stored));
    driver.turn(
        [done(6, "a")],
        r#"
        9 ActivityCompleted <-6 "a"
        10 OrchestrationCompleted "second moved"
        = Completed
    "#,
    );
}

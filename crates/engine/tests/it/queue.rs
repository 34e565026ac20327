//! Persistent queues (spec runtime 4.4, 4.6).

use crate::kit::*;
use outlast_engine::{Either2, OrchestrationContext};
use outlast_model::{ExecutionStatus, WorkItem};
use std::time::Duration;

#[test]
fn message_before_its_dequeue_is_kept() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        ctx.schedule_activity("A", "").await?;
        let first = ctx.dequeue_event("q").await;
        let second = ctx.dequeue_event("q").await;
        Ok(format!("{first}{second}{}", ctx.dequeue_event("q").await))
    });
    driver.turn(
        [enqueue("q", "1"), enqueue("other", "x")],
        r#"
        1 OrchestrationStarted Main "in"
        2 ExternalEventPersistent q "1"
        3 ExternalEventPersistent other "x"
        4 ActivityScheduled A ""
        > activity 4 A ""
    "#,
    );
    driver.turn(
        [enqueue("q", "2"), done(4, "")],
        r#"
        5 ExternalEventPersistent q "2"
        6 ActivityCompleted <-4 ""
        7 ExternalSubscribedPersistent q
        8 ExternalSubscribedPersistent q
        9 ExternalSubscribedPersistent q
    "#,
    );
    driver.turn(
        [enqueue("q", "3")],
        r#"
        10 ExternalEventPersistent q "3"
        11 OrchestrationCompleted "123"
        = Completed
    "#,
    );
}

#[test]
fn message_is_read_by_the_oldest_dequeue() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let (older, newer) = (ctx.dequeue_event("q"), ctx.dequeue_event("q"));
        let newer = newer.await;
        Ok(format!("{} {newer}", older.await))
    });
    driver.give([]);
    driver.turn(
        [enqueue("q", "1")],
        r#"
        4 ExternalEventPersistent q "1"
    "#,
    );
    driver.turn(
        [enqueue("q", "2")],
        r#"
        5 ExternalEventPersistent q "2"
        6 OrchestrationCompleted "1 2"
        = Completed
    "#,
    );
}

#[test]
fn message_of_a_dropped_dequeue_goes_to_the_next_dequeue() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let (older, newer) = (ctx.dequeue_event("q"), ctx.dequeue_event("q"));
        let timer = ctx.schedule_timer(Duration::from_secs(1));
        let newer = async {
            let message = newer.await;
            format!("newer {message}")
        };
        let drops = async {
            timer.await;
            drop(older);
        };
        let (newer, ()) = ctx.join2(newer, drops).await;
        Ok(newer)
    });
    driver.give([]);
    driver.turn(
        [enqueue("q", "1")],
        r#"
        5 ExternalEventPersistent q "1"
    "#,
    );
    driver.turn(
        [fired(4)],
        r#"
        6 TimerFired <-4
        7 ExternalSubscribedPersistentCancelled <-2 "dropped_future"
        8 OrchestrationCompleted "newer 1"
        = Completed
    "#,
    );
}

#[test]
fn r2_cancelled_older_dequeue_does_not_shift() {
    // The newer dequeue has read message 2; message 1 must go to the third dequeue, and message 2 to no other.
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let (older, newer) = (ctx.dequeue_event("q"), ctx.dequeue_event("q"));
        let newer = newer.await;
        drop(older);
        let third = ctx.dequeue_event("q").await;
        let fourth = ctx.dequeue_event("q").await;
        Ok(format!("{newer} {third} {fourth}"))
    });
    driver.give([]);
    driver.give([enqueue("q", "1")]);
    driver.turn(
        [enqueue("q", "2")],
        r#"
        5 ExternalEventPersistent q "2"
        6 ExternalSubscribedPersistent q
        7 ExternalSubscribedPersistent q
        8 ExternalSubscribedPersistentCancelled <-2 "dropped_future"
    "#,
    );
    driver.turn(
        [enqueue("q", "3")],
        r#"
        9 ExternalEventPersistent q "3"
        10 OrchestrationCompleted "2 1 3"
        = Completed
    "#,
    );
}

/// Several dequeues in one turn with messages waiting: a select must pick the same winner on replay.
fn picks(poll_second_first: bool) -> InstanceDriver {
    InstanceDriver::new(move |ctx, _| async move {
        ctx.schedule_activity("A", "").await?;
        let (first, second) = (ctx.dequeue_event("a"), ctx.dequeue_event("b"));
        let winner = if poll_second_first {
            match ctx.select2(second, first).await {
                Either2::First(message) => format!("second {message}"),
                Either2::Second(message) => format!("first {message}"),
            }
        } else {
            match ctx.select2(first, second).await {
                Either2::First(message) => format!("first {message}"),
                Either2::Second(message) => format!("second {message}"),
            }
        };
        ctx.schedule_activity(winner, "").await
    })
}

#[test]
fn r1_several_queue_waits_in_one_turn_have_one_winner() {
    for poll_second_first in [false, true] {
        let mut driver = picks(poll_second_first);
        driver.give([enqueue("b", "b"), enqueue("a", "a")]);
        // The dequeue that is bound first reads first, in any order of arguments.
        let output = output_text(&driver.give([done(4, "")]));
        assert!(output.contains("ActivityScheduled first a"), "{output}");
        driver.forget();
        driver.give([raise("nothing", "")]);
        assert!(!driver.has_ended());
    }
}

#[test]
fn r1_live_turn_polls_after_each_bound_dequeue() {
    let mut driver = picks(false);
    driver.give([enqueue("b", "b"), enqueue("a", "a")]);
    driver.turn(
        [done(4, "")],
        r#"
        5 ActivityCompleted <-4 ""
        6 ExternalSubscribedPersistent a
        7 ExternalSubscribedPersistent b
        8 ActivityScheduled first a ""
        9 ExternalSubscribedPersistentCancelled <-7 "dropped_future"
        > activity 8 first a ""
    "#,
    );
}

#[test]
fn c9_thousands_of_messages_are_read_in_one_turn() {
    let code = |ctx: OrchestrationContext, input: String| async move {
        let mut sum = 0;
        for _ in 0..input.parse::<u64>().unwrap() {
            sum += ctx.dequeue_event("q").await.parse::<u64>().unwrap();
        }
        Ok(sum.to_string())
    };
    let mut driver = InstanceDriver::new(code);
    driver.opening.input = "5000".to_string();
    driver.give([]);
    let batch: Vec<Message> = (1..=5_000).map(|n| enqueue("q", &n.to_string())).collect();
    let output = driver.give(batch);
    let metadata = output.commit.metadata;
    assert_eq!(metadata.execution_status(), Some(ExecutionStatus::Completed));
    assert_eq!(metadata.output, Some((5_000 * 5_001 / 2).to_string()));
}

#[test]
fn c9_reading_messages_does_not_count_as_decisions() {
    // More messages, and more decisions for each, than one fan-out may have.
    let code = |ctx: OrchestrationContext, _| async move {
        loop {
            let message = ctx.dequeue_event("q").await;
            ctx.set_custom_status(&message);
            ctx.set_kv_value("last", &message);
            if message == "30" {
                return ctx.schedule_activity("A", message).await;
            }
        }
    };
    let mut driver = InstanceDriver::new(code).limited(|limits| limits.decisions_per_turn = 10);
    let batch: Vec<Message> = (1..=30).map(|n| enqueue("q", &n.to_string())).collect();
    assert_eq!(driver.give(batch).commit.worker_items.len(), 1);
}

#[test]
fn unread_messages_go_to_the_next_execution_in_order() {
    let mut driver = InstanceDriver::new(|ctx, input| async move {
        if input == "in" {
            let _held = ctx.dequeue_event("held");
            let message = ctx.dequeue_event("a").await;
            return ctx.continue_as_new(message).await;
        }
        let (b, a) = (ctx.dequeue_event("b").await, ctx.dequeue_event("a").await);
        Ok(format!("{input} {a} {b} {}", ctx.dequeue_event("held").await))
    });
    driver.turn(
        [enqueue("b", "b1"), enqueue("a", "a1"), enqueue("held", "h1"), enqueue("a", "a2")],
        r#"
        1 OrchestrationStarted Main "in"
        2 ExternalEventPersistent b "b1"
        3 ExternalEventPersistent a "a1"
        4 ExternalEventPersistent held "h1"
        5 ExternalEventPersistent a "a2"
        6 ExternalSubscribedPersistent held
        7 ExternalSubscribedPersistent a
        8 ExternalSubscribedPersistentCancelled <-6 "orchestration_terminal"
        9 OrchestrationContinuedAsNew "a1"
        > next "a1" carried=[("b", "b1"), ("held", "h1"), ("a", "a2")]
        = ContinuedAsNew
    "#,
    );
    driver.next_execution();
    driver.turn(
        [enqueue("a", "a3")],
        r#"
        1 OrchestrationStarted Main "a1" carried=[("b", "b1"), ("held", "h1"), ("a", "a2")]
        2 ExternalEventPersistent b "b1"
        3 ExternalEventPersistent held "h1"
        4 ExternalEventPersistent a "a2"
        5 ExternalEventPersistent a "a3"
        6 ExternalSubscribedPersistent b
        7 ExternalSubscribedPersistent a
        8 ExternalSubscribedPersistent held
        9 OrchestrationCompleted "a1 a2 b1 h1"
        = Completed
    "#,
    );
}

#[test]
fn messages_over_the_carry_limit_are_lost_with_a_warning() {
    let code = |ctx: OrchestrationContext, _| async move { ctx.continue_as_new("").await };
    let mut driver = InstanceDriver::new(code).limited(|limits| limits.carry_forward_events = 2);
    driver.turn([enqueue("q", "1"), enqueue("r", "2"), enqueue("q", "3")], r#"
        1 OrchestrationStarted Main "in"
        2 ExternalEventPersistent q "1"
        3 ExternalEventPersistent r "2"
        4 ExternalEventPersistent q "3"
        5 OrchestrationContinuedAsNew ""
        > next "" carried=[("q", "1"), ("r", "2")]
        = ContinuedAsNew
        ! a message of queue 'q' is lost: continue-as-new carries over 2 unread messages; read more before it, or raise limits.carry_forward_events
    "#);
    let mut driver = InstanceDriver::new(code);
    let output = driver.give((0..101).map(|n| enqueue("q", &n.to_string())));
    assert_eq!(output.report.warnings.len(), 1);
    driver.next_execution();
    assert_eq!(driver.opening.carried.len(), 100);
    assert_eq!(driver.opening.carried[99].1, "99");
}

#[test]
fn messages_over_the_carry_bytes_are_sent_again() {
    let code = |ctx: OrchestrationContext, _| async move { ctx.continue_as_new("").await };
    const DATA: [&str; 4] = ["11111", "22222", "33333", "44444"];
    // Six bytes each: name and data.
    for (bytes, carried) in [(24, 4), (23, 3), (12, 2), (0, 1)] {
        let mut driver = InstanceDriver::new(code).limited(|limits| limits.carry_forward_bytes = bytes);
        let output = driver.give(DATA.map(|data| enqueue("q", data)));
        let again = output.commit.orchestrator_items[1..].iter().map(|item| match item {
            WorkItem::QueueMessage { name, data, .. } if name == "q" => data.as_str(),
            other => panic!("{other:?}"),
        });
        assert!(again.eq(DATA[carried..].iter().copied()), "{bytes}: {:?}", output.commit.orchestrator_items);
        assert_eq!(output.report.warnings.len(), usize::from(carried < 4), "{:?}", output.report.warnings);
        driver.next_execution();
        assert_eq!(driver.opening.carried.len(), carried, "{bytes}");
    }
}

#[test]
#[allow(deprecated, reason = "the old names stay")]
fn deprecated_names_dequeue() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let text = ctx.schedule_wait_persistent("q").await;
        let number = ctx.schedule_wait_persistent_typed::<u32>("q").await;
        Ok(format!("{text} {number}"))
    });
    driver.turn(
        [enqueue("q", "x"), enqueue("q", "7")],
        r#"
        1 OrchestrationStarted Main "in"
        2 ExternalEventPersistent q "x"
        3 ExternalEventPersistent q "7"
        4 ExternalSubscribedPersistent q
        5 ExternalSubscribedPersistent q
        6 OrchestrationCompleted "x 7"
        = Completed
    "#,
    );
}

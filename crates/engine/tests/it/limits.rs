//! Limits (C6, L1-L4, rulings 33 and 34): through the ordinary ending, and nothing over the limit is stored.

use crate::kit::*;
use outlast_engine::OrchestrationContext;
use outlast_model::{ExecutionStatus, limits::Limits};
use std::time::Duration;

type Answer = Result<String, String>;

/// The error of code over a limit. The same code passes at the limit.
#[track_caller]
fn at_the_limit<F, Fut>(limit: usize, change: impl Fn(&mut Limits) + Copy, code: F) -> String
where
    F: Fn(OrchestrationContext, usize) -> Fut + Send + Sync + Copy + 'static,
    Fut: Future<Output = Answer> + Send + 'static,
{
    for size in [limit, limit + 1, limit * 1_000] {
        let function = move |ctx, _| code(ctx, size);
        let mut driver = InstanceDriver::new(function).with_parent().limited(change);
        let output = driver.give([]);
        if size == limit {
            let passed = output
                .commit
                .metadata
                .execution_status()
                .is_none_or(|status| status == ExecutionStatus::Completed);
            assert!(passed, "{}", output_text(&output));
            continue;
        }
        // C6: the parent gets the failure, there is one ending, the value is not kept, and no other item is sent.
        let text = output_text(&output);
        assert_eq!(text.matches("OrchestrationFailed").count(), 1, "{text}");
        assert_eq!(text.matches("> tell boss/2#7 application:").count(), 1, "{text}");
        assert_eq!(text.matches("\n> ").count(), 1, "{text}");
        assert!(!format!("{:?}", driver.history).contains(&"x".repeat(size)), "{text}");
        assert_eq!(output.commit.metadata.execution_status(), Some(ExecutionStatus::Failed));
        if size == limit + 1 {
            let error = driver.error();
            return error;
        }
    }
    unreachable!()
}

#[test]
fn c6_status_keys_and_values_above_the_limit_fail_the_instance() {
    let none = |_: &mut Limits| {};
    let text = at_the_limit(262_144, none, |ctx, size| async move {
        ctx.set_custom_status("x".repeat(size));
        Ok(String::new())
    });
    assert_eq!(
        text,
        "Custom status size (262145 bytes) exceeds limit (262144 bytes): shorten it, or raise limits.custom_status_bytes (refused in instance 'i')"
    );
    let text = at_the_limit(256, none, |ctx, size| async move {
        ctx.schedule_activity("A", "").with_tag("x".repeat(size)).await
    });
    assert_eq!(
        text,
        "Activity 'A' tag size (257 bytes) exceeds limit (256 bytes): shorten it, or raise limits.tag_bytes (refused in instance 'i')"
    );
    let text = at_the_limit(65_536, none, |ctx, size| async move {
        ctx.set_kv_value("k", "x".repeat(size));
        Ok(String::new())
    });
    assert_eq!(
        text,
        "KV value for key 'k' (65537 bytes) exceeds limit (65536 bytes): store it elsewhere and keep a reference, or raise limits.kv_value_bytes (refused in instance 'i')"
    );
    let text = at_the_limit(150, none, |ctx, keys| async move {
        for key in 0..keys.min(5_000) {
            ctx.set_kv_value(key.to_string(), "");
        }
        Ok(String::new())
    });
    assert_eq!(
        text,
        "KV key count (151) exceeds limit (150): clear keys that are not needed, or raise limits.kv_keys (refused in instance 'i')"
    );
}

#[test]
fn l1_payloads_above_the_limit_fail_the_instance() {
    let small = |limits: &mut Limits| limits.payload_bytes = 100;
    let text =
        at_the_limit(
            100,
            small,
            |ctx, size| async move { ctx.schedule_activity("A", "x".repeat(size)).await },
        );
    let advice = "store it elsewhere and pass a reference, or raise limits.payload_bytes";
    assert_eq!(
        text,
        format!("input of activity 'A' has 101 bytes, the limit is 100: {advice} (refused in instance 'i')")
    );
    let text = at_the_limit(100, small, |ctx, size| async move {
        ctx.schedule_sub_orchestration("C", "x".repeat(size)).await
    });
    assert_eq!(
        text,
        format!("input of child 'C' has 101 bytes, the limit is 100: {advice} (refused in instance 'i')")
    );
    let text = at_the_limit(100, small, |_, size| async move { Ok("x".repeat(size)) });
    assert_eq!(
        text,
        format!("output of instance 'i' has 101 bytes, the limit is 100: {advice} (refused in instance 'i')")
    );
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        ctx.schedule_orchestration("D", "d", "x".repeat(101));
        Ok(String::new())
    })
    .limited(small);
    driver.give([]);
    assert!(driver.error().starts_with("input of detached orchestration 'D' has 101 bytes"));
    let mut driver = InstanceDriver::new(|ctx, _| async move { ctx.continue_as_new("x".repeat(101)).await })
        .limited(small);
    driver.give([]);
    assert!(driver.error().starts_with("input of the next execution of 'Main' has 101 bytes"));
}

#[test]
fn l1_error_above_the_limit_is_refused_and_panic_text_is_truncated() {
    let small = |limits: &mut Limits| limits.payload_bytes = 100;
    let mut driver = InstanceDriver::new(|_, _| async move { Err("x".repeat(101)) }).limited(small);
    driver.give([]);
    assert!(driver.error().starts_with("error of instance 'i' has 101 bytes"), "{}", driver.error());
    let mut driver = InstanceDriver::new(|_, _| async move { Err("x".repeat(100)) }).limited(small);
    driver.give([]);
    assert_eq!(driver.error(), "x".repeat(100));
    let mut driver = InstanceDriver::new(|_, _| async move { panic!("{}", "ä".repeat(101)) }).limited(small);
    driver.give([]);
    assert_eq!(driver.error(), format!("orchestration panicked: {}... (202 bytes)", "ä".repeat(50)));
    let mut driver = InstanceDriver::new(|_, _| async move { panic!("{}", "x".repeat(100)) }).limited(small);
    driver.give([]);
    assert_eq!(driver.error(), format!("orchestration panicked: {}", "x".repeat(100)));
}

#[test]
fn l1_names_above_the_limit_fail_the_instance() {
    for what in ["activity", "session", "orchestration", "detached", "event", "queue", "key", "cleared key"] {
        let code = move |ctx: OrchestrationContext, size: usize| async move {
            let name = "x".repeat(size);
            match what {
                "activity" => drop(ctx.schedule_activity(name, "")),
                "session" => drop(ctx.schedule_activity_on_session("A", "", name)),
                "orchestration" => drop(ctx.schedule_sub_orchestration(name, "")),
                "detached" => ctx.schedule_orchestration(name, "d", ""),
                "event" => drop(ctx.schedule_wait(name)),
                "queue" => drop(ctx.dequeue_event(name)),
                "key" => ctx.set_kv_value(name, ""),
                _ => ctx.clear_kv_value(name),
            }
            ctx.schedule_wait("s").await;
            Ok(String::new())
        };
        let text = at_the_limit(256, |_| {}, code);
        assert!(
            text.contains("has 257 bytes, the limit is 256: shorten it, or raise limits.name_bytes"),
            "{text}"
        );
    }
}

#[test]
fn l2_a_loop_that_never_waits_is_stopped() {
    let text = at_the_limit(
        10,
        |limits| limits.decisions_per_turn = 10,
        |ctx, size| async move {
            let futures: Vec<_> = (0..size).map(|n| ctx.schedule_activity("A", n.to_string())).collect();
            ctx.join(futures).await;
            Ok(String::new())
        },
    );
    let advice =
        "wait between them, split the work over child orchestrations, or raise limits.decisions_per_turn";
    let text = normalise(&text);
    assert_eq!(
        text,
        format!(
            "more than 10 decisions in one turn, the last at limits.rs: {advice} (refused in instance 'i')"
        )
    );

    let mut driver = InstanceDriver::new(|ctx, _| async move {
        loop {
            drop(ctx.schedule_activity("A", ""));
        }
    });
    driver.give([]);
    assert!(driver.error().starts_with("more than 10000 decisions in one turn"));
}

#[test]
fn l2_every_kind_of_decision_counts() {
    for what in 0..9 {
        let code = move |ctx: OrchestrationContext, _| async move {
            loop {
                match what {
                    0 => drop(ctx.schedule_timer(Duration::ZERO)),
                    1 => drop(ctx.schedule_wait("s")),
                    2 => drop(ctx.dequeue_event("q")),
                    3 => drop(ctx.schedule_sub_orchestration("C", "")),
                    4 => ctx.schedule_orchestration("D", "d", ""),
                    5 => ctx.set_custom_status("s"),
                    6 => ctx.set_kv_value("k", "v"),
                    7 => ctx.clear_all_kv_values(),
                    // Answered in the turn, and still the code's own doing.
                    _ => drop(ctx.new_guid().await),
                }
            }
        };
        let mut driver = InstanceDriver::new(code).limited(|limits| limits.decisions_per_turn = 20);
        driver.give([]);
        assert!(driver.error().starts_with("more than 20 decisions"), "{what}: {}", driver.error());
    }
}

#[test]
fn l2_a_loop_after_another_violation_is_stopped_too() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        loop {
            ctx.set_kv_value("k", "x".repeat(70_000));
        }
    })
    .limited(|limits| limits.decisions_per_turn = 100);
    driver.give([]);
    assert!(
        driver.error().starts_with("KV value for key 'k' (70000 bytes) exceeds limit (65536 bytes)"),
        "{}",
        driver.error()
    );
}

#[test]
fn l2_destructors_that_decide_are_stopped_too() {
    struct Decides(OrchestrationContext);
    impl Drop for Decides {
        fn drop(&mut self) {
            for _ in 0..100 {
                self.0.set_custom_status("x");
            }
        }
    }
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let _decides = Decides(ctx.clone());
        loop {
            ctx.set_custom_status("x");
        }
    })
    .limited(|limits| limits.decisions_per_turn = 10);
    driver.give([]);
    assert!(driver.error().starts_with("more than 10 decisions"), "{}", driver.error());
}

#[test]
fn l2_decision_limit_counts_per_message() {
    // Ten outcomes in one batch. Each leads to three decisions.
    let code = |ctx: OrchestrationContext, _| async move {
        let branches = (0..10).map(|n| {
            let ctx = ctx.clone();
            async move {
                ctx.schedule_activity("A", n.to_string()).await?;
                ctx.set_kv_value(n.to_string(), "");
                ctx.join2(ctx.schedule_activity("B", ""), ctx.schedule_activity("C", "")).await.0
            }
        });
        ctx.join_all(branches).await.into_iter().collect::<Result<String, String>>()
    };
    let mut driver = InstanceDriver::new(code).limited(|limits| limits.decisions_per_turn = 10);
    driver.give([]);
    assert_eq!(driver.give((2..12).map(|id| done(id, ""))).commit.worker_items.len(), 20);
}

#[test]
fn l2_history_above_the_limit_fails_the_instance() {
    let code = |ctx: OrchestrationContext, _| async move {
        loop {
            ctx.schedule_activity("A", "x".repeat(50)).await?;
        }
    };
    let mut driver = InstanceDriver::new(code).with_parent().limited(|limits| {
        (limits.history_events, limits.history_events_warning) = (6, 3);
    });
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "in" parent=boss#7
        2 ActivityScheduled A "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        > activity 2 A "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
    "#,
    );
    driver.turn(
        [done(2, "")],
        r#"
        3 ActivityCompleted <-2 ""
        4 ActivityScheduled A "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        > activity 4 A "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        ! history has 4 events, and at 6 the instance fails: continue as new from time to time
    "#,
    );
    driver.turn(
        [done(4, "")],
        r#"
        5 ActivityCompleted <-4 ""
        6 ActivityScheduled A "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        > activity 6 A "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
    "#,
    );
    driver.turn([done(6, "")], r#"
        7 ActivityCompleted <-6 ""
        8 ActivityScheduled A "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        9 OrchestrationFailed application: history of instance 'i' has 8 events and 219 bytes, the limits are 6 and 52428800: continue as new from time to time, or raise limits.history_events and limits.history_bytes (refused in instance 'i')
        10 ActivityCancelRequested <-8 "orchestration_terminal_failed"
        > tell boss/2#7 application: history of instance 'i' has 8 events and 219 bytes, the limits are 6 and 52428800: continue as new from time to time, or raise limits.history_events and limits.history_bytes (refused in instance 'i')
        = Failed
    "#);
    let mut driver = InstanceDriver::new(code).limited(|limits| limits.history_bytes = 120);
    driver.give([]);
    driver.give([done(2, "")]);
    assert!(!driver.has_ended());
    driver.give([done(4, "")]);
    assert!(driver.error().contains("bytes, the limits are 50000 and 120"), "{}", driver.error());
    // The bytes that the first one had at its end.
    let mut driver = InstanceDriver::new(code).with_parent().limited(|limits| limits.history_bytes = 219);
    driver.give([]);
    for id in [2, 4, 6] {
        driver.give([done(id, "")]);
    }
    assert!(!driver.has_ended());
}

#[test]
fn l2_a_history_that_grows_long_warns_once() {
    const LIMIT: usize = 5;
    for (events, warnings) in [(LIMIT, 0), (LIMIT + 1, 1), (LIMIT * 1_000, 1)] {
        // The start and the wait are two.
        let code = move |ctx: OrchestrationContext, _| async move {
            (2..events).for_each(|_| ctx.reset_custom_status());
            Ok(ctx.schedule_wait("s").await)
        };
        let mut driver = InstanceDriver::new(code).limited(|limits| limits.history_events_warning = LIMIT);
        let warned = driver.give([]).report.warnings;
        assert_eq!((driver.history.len(), warned.len()), (events, warnings), "{warned:?}");
        let words = format!("history has {events} events, and at 50000 the instance fails");
        assert!(warned.iter().all(|warning| warning.starts_with(&words)), "{warned:?}");
        // In the turn that crosses it, and never again.
        let later = driver.give([enqueue("other", "")]).report.warnings;
        assert_eq!(later.len(), usize::from(warnings == 0), "{later:?}");
    }
}

#[test]
fn limits_are_for_new_decisions_only() {
    // A stored decision replays under any limit.
    let code = |ctx: OrchestrationContext, _| async move {
        ctx.set_kv_value("a long key", "a long value");
        ctx.set_kv_value("another", "x");
        ctx.set_custom_status("a long status");
        let child = ctx.schedule_sub_orchestration("Child", "a long input");
        let tagged = ctx.schedule_activity("Activity", "a long input").with_tag("a long tag").await?;
        child.await.map(|_| tagged)
    };
    let mut driver = InstanceDriver::new(code);
    driver.give([]);
    driver.forget();
    driver = driver.limited(|limits| {
        limits.kv_value_bytes = 3;
        limits.kv_keys = 1;
        limits.custom_status_bytes = 3;
        limits.payload_bytes = 3;
        limits.name_bytes = 3;
        limits.tag_bytes = 3;
        limits.decisions_per_turn = 1;
    });
    driver.give([done(6, "ok")]);
    assert!(!driver.has_ended(), "{}", driver.error());
    driver.give([child_done(5, "ok")]);
    assert!(driver.has_ended());
}

#[test]
fn c14_keys_of_earlier_turns_count_towards_the_limit() {
    let code = |ctx: OrchestrationContext, _| async move {
        ctx.set_kv_value("a", "");
        ctx.set_kv_value("b", "");
        ctx.schedule_activity("A", "").await?;
        ctx.set_kv_value("a", "again");
        ctx.clear_kv_value("b");
        ctx.set_kv_value("c", "");
        ctx.schedule_activity("A", "").await?;
        ctx.set_kv_value("d", "");
        Ok(String::new())
    };
    let mut driver = InstanceDriver::new(code).limited(|limits| limits.kv_keys = 2);
    driver.give([]);
    driver.give([done(4, "")]);
    assert!(!driver.has_ended());
    driver.give([done(9, "")]);
    assert!(driver.error().starts_with("KV key count (3) exceeds limit (2)"), "{}", driver.error());
}

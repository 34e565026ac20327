//! A panic fails its instance and has no effect on other instances.

use crate::kit::*;
use outlast_engine::{Code, Execution, OrchestrationContext, Past, Setup, new_stamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Panics when it is dropped, unless the thread panics already.
struct Grenade;

impl Drop for Grenade {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("in a destructor");
        }
    }
}

#[test]
fn panic_in_the_code_fails_the_instance() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let _held = ctx.schedule_activity("A", "");
        let _wait = ctx.schedule_wait("s");
        ctx.schedule_timer(std::time::Duration::ZERO).await;
        panic!("said {}", "this")
    })
    .with_parent();
    driver.give([]);
    driver.turn(
        [fired(4)],
        r#"
        5 TimerFired <-4
        6 ExternalSubscribedCancelled <-3 "orchestration_terminal"
        7 OrchestrationFailed panicked: orchestration panicked: said this
        8 ActivityCancelRequested <-2 "orchestration_terminal_failed"
        > tell boss/2#7 panicked: orchestration panicked: said this
        - activity 2
        = Failed
    "#,
    );
}

#[test]
fn panic_payload_that_is_no_text_has_a_fixed_message() {
    for (payload, text) in [(0, "plain"), (1, "orchestration panicked"), (2, "orchestration panicked")] {
        let mut driver = InstanceDriver::new(move |_, _| async move {
            match payload {
                0 => panic!("plain"),
                1 => std::panic::panic_any(42),
                // Whose own destructor panics.
                _ => std::panic::panic_any(Grenade),
            }
        });
        driver.give([]);
        assert_eq!(driver.error(), format!("orchestration panicked: {text}"));
    }
}

#[test]
fn panic_in_a_destructor_of_a_local_fails_the_instance() {
    // When the code returns.
    let mut driver = InstanceDriver::new(|_, _| async move {
        let _grenade = Grenade;
        Ok("beaten".to_string())
    });
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "in"
        2 OrchestrationFailed panicked: orchestration panicked: in a destructor
        = Failed
    "#,
    );
    // When a select drops its loser.
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let loser = async {
            let _grenade = Grenade;
            std::future::pending::<()>().await;
        };
        ctx.select2(ctx.schedule_activity("A", ""), loser).await;
        Ok(String::new())
    });
    driver.give([]);
    driver.turn(
        [done(2, "a")],
        r#"
        3 ActivityCompleted <-2 "a"
        4 OrchestrationFailed panicked: orchestration panicked: in a destructor
        = Failed
    "#,
    );
}

#[test]
fn panic_while_an_evicted_execution_is_dropped_is_caught() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let _grenade = Grenade;
        ctx.schedule_activity("A", "").await?;
        std::mem::forget(_grenade);
        ctx.continue_as_new("").await
    });
    driver.give([]);
    // The instance does not fail.
    driver.forget();
    driver.turn(
        [done(2, "a")],
        r#"
        3 ActivityCompleted <-2 "a"
        4 OrchestrationContinuedAsNew ""
        > next ""
        = ContinuedAsNew
    "#,
    );
}

#[test]
fn decisions_of_destructors_of_an_evicted_execution_are_ignored() {
    struct Decides(OrchestrationContext);
    impl Drop for Decides {
        fn drop(&mut self) {
            drop(self.0.schedule_activity("Z", ""));
        }
    }
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let _decides = Decides(ctx.clone());
        ctx.schedule_activity("A", "").await?;
        Ok(String::new())
    });
    driver.give([]);
    driver.forget();
    // Alive, it decides.
    driver.turn(
        [done(2, "a")],
        r#"
        3 ActivityCompleted <-2 "a"
        4 ActivityScheduled Z ""
        5 ActivityCancelRequested <-4 "dropped_future"
        6 OrchestrationCompleted ""
        = Completed
    "#,
    );
}

#[test]
fn panic_of_the_code_is_reported_when_destructors_run_after_it() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let _future = ctx.schedule_activity("A", "");
        let _grenade = Grenade;
        ctx.schedule_wait("s").await;
        panic!("ouch")
    });
    driver.give([]);
    driver.turn(
        [raise("s", "")],
        r#"
        4 ExternalEvent s ""
        5 OrchestrationFailed panicked: orchestration panicked: ouch
        6 ActivityCancelRequested <-2 "orchestration_terminal_failed"
        - activity 2
        = Failed
    "#,
    );
}

#[test]
fn panic_before_the_first_poll_is_returned() {
    let past = Past::of_history(&history("0.1.32", vec![started("in")]));
    let setup = Setup {
        instance: "i".to_string(),
        execution_id: 1,
        opening: past.opening.unwrap_or_else(|| unreachable!()),
        stamp: new_stamp(false),
        kv: BTreeMap::new(),
        limits: Arc::default(),
    };
    let call = |_: OrchestrationContext, _: String| -> Code { panic!("before the first line") };
    let details = Execution::new(setup, call).err().unwrap();
    assert_eq!(details.display_message(), "orchestration panicked: before the first line");
}

#[test]
fn caught_panic_does_not_fail_the_instance() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            ctx.schedule_orchestration("D", "sub::reserved", "");
        }));
        ctx.schedule_activity("A", caught.is_err().to_string()).await
    });
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "in"
        2 ActivityScheduled A "true"
        > activity 2 A "true"
    "#,
    );
}

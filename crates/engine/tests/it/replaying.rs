//! `is_replaying`, and trace lines that are logged once (R5).

use crate::kit::*;
use outlast_engine::OrchestrationContext;

async fn traces(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.trace_info("begins");
    let (a, b) = ctx
        .join2(
            async {
                let a = ctx.schedule_activity("A", "").await;
                ctx.trace("custom", "a is there");
                a
            },
            async {
                let b = ctx.schedule_activity("B", "").await;
                ctx.trace_warn("b is there");
                b
            },
        )
        .await;
    ctx.trace_error("both are there");
    ctx.trace_debug(format!("{a:?} {b:?}"));
    ctx.schedule_activity("C", "").await
}

#[test]
fn r5_each_line_is_logged_once() {
    // A restart before every turn.
    let mut driver = InstanceDriver::new(traces);
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "in"
        2 ActivityScheduled A ""
        3 ActivityScheduled B ""
        > activity 2 A ""
        > activity 3 B ""
        ~ INFO begins
    "#,
    );
    driver.forget();
    // A join that is half done: nothing is decided because of it.
    driver.turn(
        [done(2, "a")],
        r#"
        4 ActivityCompleted <-2 "a"
        ~ custom a is there
    "#,
    );
    driver.forget();
    driver.turn(
        [raise("s", "")],
        r#"
        5 ExternalEvent s ""
        ! event 's' was raised while no wait for it was open, and is not delivered
    "#,
    );
    driver.forget();
    driver.turn(
        [done(3, "b")],
        r#"
        6 ActivityCompleted <-3 "b"
        7 ActivityScheduled C ""
        > activity 7 C ""
        ~ WARN b is there
        ~ ERROR both are there
        ~ DEBUG Ok("a") Ok("b")
    "#,
    );
    driver.forget();
    driver.turn(
        [done(7, "c")],
        r#"
        8 ActivityCompleted <-7 "c"
        9 OrchestrationCompleted "c"
        = Completed
    "#,
    );
}

#[test]
fn r5_is_replaying_is_about_the_event_that_unblocked_the_code() {
    let code = |ctx: OrchestrationContext, _| async move {
        let begins = ctx.is_replaying();
        ctx.schedule_activity("A", "").await?;
        let after_a = ctx.is_replaying();
        ctx.schedule_activity("B", "").await?;
        Ok(format!("{begins} {after_a} {}", ctx.is_replaying()))
    };
    // Not deterministic by design: only the execution in memory runs.
    let mut warm = InstanceDriver::new(code).unchecked();
    warm.give([]);
    warm.give([done(2, "")]);
    warm.give([done(4, "")]);
    assert!(format!("{:?}", warm.history).contains("false false false"));
    let mut cold = InstanceDriver::new(code).unchecked();
    cold.give([]);
    cold.give([done(2, "")]);
    cold.forget();
    cold.give([done(4, "")]);
    assert!(format!("{:?}", cold.history).contains("true true false"));
}

#[test]
fn lines_of_a_turn_that_fails_are_reported() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        ctx.trace_info("last words");
        panic!("ouch")
    });
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "in"
        2 OrchestrationFailed panicked: orchestration panicked: ouch
        = Failed
        ~ INFO last words
    "#,
    );
}

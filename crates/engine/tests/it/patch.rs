//! Patches: `ctx.patched` in instances that are older and newer than a change.

use crate::kit::*;
use outlast_engine::OrchestrationContext;
use std::time::Duration;

const NOW: &str = "0.1.32";

type Answer = Result<String, String>;

/// The code before the change.
async fn before(ctx: OrchestrationContext, _: String) -> Answer {
    ctx.schedule_activity("Reserve", "").await?;
    ctx.schedule_activity("Charge", "").await
}

/// The code with the change and the code before it.
async fn both(ctx: OrchestrationContext, _: String) -> Answer {
    ctx.schedule_activity("Reserve", "").await?;
    if ctx.patched("fraud") {
        ctx.schedule_activity("CheckFraud", "").await?;
    }
    ctx.schedule_activity("Charge", "").await
}

/// The code with the change only.
async fn after(ctx: OrchestrationContext, _: String) -> Answer {
    ctx.schedule_activity("Reserve", "").await?;
    ctx.schedule_activity("CheckFraud", "").await?;
    ctx.schedule_activity("Charge", "").await
}

/// Waits for its charge, without the change.
fn older() -> Vec<Stored> {
    vec![started("in"), activity("Reserve", ""), completed(2, "r"), activity("Charge", "")]
}

/// Waits for its charge, with the change.
fn newer() -> Vec<Stored> {
    vec![
        started("in"),
        activity("Reserve", ""),
        completed(2, "r"),
        key_set("__outlast:patch:fraud", "true", 500),
        activity("CheckFraud", ""),
        completed(5, "f"),
        activity("Charge", ""),
    ]
}

#[test]
fn a_new_instance_takes_the_patch_and_records_it() {
    let mut driver = InstanceDriver::new(both);
    driver.turn(
        [],
        "1 OrchestrationStarted Main \"in\"\n2 ActivityScheduled Reserve \"\"\n> activity 2 Reserve \"\"",
    );
    driver.turn(
        [done(2, "r")],
        r#"
        3 ActivityCompleted <-2 "r"
        4 KeyValueSet __outlast:patch:fraud="true" @1020
        5 ActivityScheduled CheckFraud ""
        > activity 5 CheckFraud ""
    "#,
    );
    driver.give([done(5, "f")]);
    driver.turn(
        [done(7, "paid")],
        r#"
        8 ActivityCompleted <-7 "paid"
        9 OrchestrationCompleted "paid"
        = Completed
    "#,
    );
}

#[test]
fn an_instance_past_the_change_keeps_the_old_code() {
    let mut driver = InstanceDriver::new(both).stored(history(NOW, older()));
    driver.turn([], "");
    assert!(!driver.memory().unwrap().patches()["fraud"]);
    driver.turn(
        [done(4, "paid")],
        r#"
        5 ActivityCompleted <-4 "paid"
        6 OrchestrationCompleted "paid"
        = Completed
    "#,
    );
}

#[test]
fn a_running_instance_before_the_change_takes_it() {
    let mut driver =
        InstanceDriver::new(both).stored(history(NOW, vec![started("in"), activity("Reserve", "")]));
    driver.turn(
        [done(2, "r")],
        r#"
        3 ActivityCompleted <-2 "r"
        4 KeyValueSet __outlast:patch:fraud="true" @1010
        5 ActivityScheduled CheckFraud ""
        > activity 5 CheckFraud ""
    "#,
    );
    assert!(driver.memory().unwrap().patches()["fraud"]);
}

#[test]
fn an_old_answer_holds_for_all_later_calls() {
    let code = |ctx: OrchestrationContext, _| async move {
        let mut answers = Vec::new();
        for _ in 0..3 {
            answers.push(ctx.patched("loop"));
            ctx.schedule_timer(Duration::from_millis(5)).await;
        }
        Ok(format!("{answers:?}"))
    };
    let mut driver = InstanceDriver::new(code).stored(history(NOW, vec![started("in"), timer(700)]));
    driver.give([fired(2)]);
    driver.forget();
    driver.give([fired(4)]);
    driver.turn(
        [fired(6)],
        r#"
        7 TimerFired <-6
        8 OrchestrationCompleted "[false, false, false]"
        = Completed
    "#,
    );
}

#[test]
fn a_removed_call_is_skipped_and_a_moved_call_repeats() {
    let moved = |ctx: OrchestrationContext, input: String| async move {
        assert!(ctx.patched("fraud"), "the history takes the patch");
        after(ctx, input).await
    };
    for mut driver in [InstanceDriver::new(after), InstanceDriver::new(moved)] {
        driver = driver.stored(history(NOW, newer()));
        driver.turn(
            [done(7, "paid")],
            r#"
            8 ActivityCompleted <-7 "paid"
            9 OrchestrationCompleted "paid"
            = Completed
        "#,
        );
    }
}

#[test]
fn a_patch_that_is_removed_too_early_is_a_mismatch_that_names_the_remedy() {
    let mut driver = InstanceDriver::new(after).stored(history(NOW, older()));
    driver.turn([], r#"
        5 OrchestrationFailed configuration: nondeterministic: schedule mismatch: event 4 of instance 'i' execution 1 is activity 'Charge', and the code now asks for activity 'CheckFraud' at patch.rs; run the code that wrote this history, keep its way for running instances with ctx.patched(..), or register the changed code as a new version
        6 ActivityCancelRequested <-4 "orchestration_terminal_failed"
        - activity 4
        = Failed
    "#);
}

#[test]
fn code_older_than_a_taken_patch_is_a_mismatch_that_names_the_patch() {
    let mut driver = InstanceDriver::new(before).stored(history(NOW, newer()));
    let missing = driver.give([]).report.missing_patch;
    assert_eq!(missing.as_deref(), Some("fraud"));
    let error = driver.error();
    assert!(error.contains("event 5 of instance 'i' execution 1 is activity 'CheckFraud'"), "{error}");
    assert!(error.ends_with("; run the code that wrote this history; the history takes patch 'fraud', and the code does not ask for it: is the code older than the patch?"), "{error}");
}

#[test]
fn only_a_mismatch_of_code_behind_a_patch_that_is_not_asked_for_has_a_missing_patch() {
    let missing = |driver: InstanceDriver, messages: Vec<Message>| {
        let mut driver = driver;
        let report = driver.give(messages).report;
        (report.ended.is_some(), report.missing_patch)
    };
    let removed_too_early = InstanceDriver::new(after).stored(history(NOW, older()));
    assert_eq!(missing(removed_too_early, vec![]), (true, None), "the history takes no patch");
    let mut twice = newer();
    twice.push(completed(2, "again"));
    let damaged = InstanceDriver::new(after).stored(history(NOW, twice));
    assert_eq!(missing(damaged, vec![]), (true, None), "no code fits a damaged history");
    let edited = |ctx: OrchestrationContext, _| async move {
        ctx.schedule_activity("Reserve", "").await?;
        let _ = ctx.patched("fraud");
        ctx.schedule_activity("Edited", "").await
    };
    let asked_for = InstanceDriver::new(edited).stored(history(NOW, newer()));
    assert_eq!(missing(asked_for, vec![]), (true, None), "the code asks for the patch");
    let before_the_marker =
        |ctx: OrchestrationContext, _| async move { ctx.schedule_activity("Edited", "").await };
    let not_reached = InstanceDriver::new(before_the_marker).stored(history(NOW, newer()));
    assert_eq!(missing(not_reached, vec![]), (true, None), "the mismatch is before the marker");
}

#[test]
fn a_mismatch_in_the_old_code_of_a_patch_names_the_patch() {
    let code = |ctx: OrchestrationContext, _| async move {
        ctx.schedule_activity("Reserve", "").await?;
        let name = if ctx.patched("fraud") { "CheckFraud" } else { "Edited" };
        ctx.schedule_activity(name, "").await
    };
    let mut driver = InstanceDriver::new(code).stored(history(NOW, older()));
    let place = driver.give([]).report.mismatch.unwrap();
    assert_eq!(place.event_id, Some(4));
    assert!(place.site.unwrap().file().ends_with("patch.rs"));
    assert!(
        driver.error().ends_with(
            "register the changed code as a new version; the history has no record of patch 'fraud', so its old way runs, which is \
             not the way of the code that wrote the history"
        ),
        "{}",
        driver.error()
    );
}

#[test]
fn a_mismatch_far_behind_a_patch_that_is_not_taken_does_not_name_the_patch() {
    let code = |ctx: OrchestrationContext, _| async move {
        ctx.schedule_activity("Reserve", "").await?;
        if ctx.patched("fraud") {
            ctx.schedule_activity("CheckFraud", "").await?;
        }
        ctx.schedule_activity("Charge", "").await?;
        ctx.schedule_activity("Edited", "").await
    };
    let mut stored = older();
    stored.extend([completed(4, "paid"), activity("Ship", "")]);
    let mut driver = InstanceDriver::new(code).stored(history(NOW, stored));
    driver.give([]);
    let error = driver.error();
    assert!(error.contains("event 6 of instance 'i' execution 1 is activity 'Ship'"), "{error}");
    assert!(error.ends_with("or register the changed code as a new version"), "{error}");
}

#[test]
fn a_patch_that_is_asked_for_after_a_wrong_decision_is_not_named() {
    let code = |ctx: OrchestrationContext, _| async move {
        let wrong = ctx.schedule_activity("Edited", "");
        assert!(!ctx.patched("fraud"));
        wrong.await
    };
    let mut driver = InstanceDriver::new(code).stored(history(NOW, older()));
    driver.give([]);
    assert!(driver.error().ends_with("or register the changed code as a new version"), "{}", driver.error());
}

#[test]
fn a_damaged_history_has_no_advice_about_patches() {
    let mut twice = older();
    twice.push(completed(2, "again"));
    let asks = |ctx: OrchestrationContext, _| async move {
        ctx.schedule_activity("Reserve", "").await?;
        ctx.patched("fraud");
        ctx.schedule_activity("Charge", "").await
    };
    let mut driver = InstanceDriver::new(asks).stored(history(NOW, twice));
    driver.give([]);
    let error = driver.error();
    assert!(error.contains("the store is damaged") && !error.contains("'fraud'"), "{error}");
}

#[test]
fn every_execution_decides_for_itself() {
    let code = |ctx: OrchestrationContext, input: String| async move {
        if ctx.patched("rounds") {
            ctx.schedule_timer(Duration::from_millis(5)).await;
        }
        ctx.schedule_activity("A", "").await?;
        if input == "in" { ctx.continue_as_new("two").await } else { Ok("end".to_string()) }
    };
    let mut driver = InstanceDriver::new(code);
    driver.give([]);
    driver.give([fired(3)]);
    driver.give([done(5, "")]);
    driver.next_execution();
    assert!(driver.kv.contains_key("__outlast:patch:rounds"), "the store keeps the key");
    // The successor began in a process without the change.
    driver = driver.stored(history(NOW, vec![started("two"), activity("A", "")]));
    driver.turn([], "");
    driver.turn(
        [done(2, "")],
        r#"
        3 ActivityCompleted <-2 ""
        4 OrchestrationCompleted "end"
        = Completed
    "#,
    );
}

#[test]
fn markers_survive_the_removal_of_all_keys() {
    let mut driver = InstanceDriver::new(|ctx: OrchestrationContext, _| async move {
        let first = ctx.patched("p");
        ctx.set_kv_value("k", "v");
        ctx.clear_all_kv_values();
        ctx.schedule_timer(Duration::from_millis(5)).await;
        Ok(format!("{first} {} {:?}", ctx.patched("p"), ctx.get_kv_all_keys()))
    });
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "in"
        2 KeyValueSet __outlast:patch:p="true" @1010
        3 KeyValueSet k="v" @1010
        4 KeyValuesCleared
        5 TimerCreated @1015
        > timer 5 @1015
    "#,
    );
    driver.forget();
    driver.turn(
        [fired(5)],
        r#"
        6 TimerFired <-5
        7 OrchestrationCompleted "true true []"
        = Completed
    "#,
    );
}

#[test]
fn a_patch_between_waits_that_began_earlier_is_taken() {
    let code = |ctx: OrchestrationContext, _| async move {
        let (a, b) = (ctx.schedule_activity("A", ""), ctx.schedule_activity("B", ""));
        a.await?;
        if ctx.patched("p") {
            ctx.schedule_activity("C", "").await?;
        }
        b.await
    };
    let stored = vec![started("in"), activity("A", ""), activity("B", ""), completed(2, "a")];
    let mut driver = InstanceDriver::new(code).stored(history(NOW, stored));
    driver.turn(
        [done(3, "b")],
        r#"
        5 ActivityCompleted <-3 "b"
        6 KeyValueSet __outlast:patch:p="true" @1010
        7 ActivityScheduled C ""
        > activity 7 C ""
    "#,
    );
    driver.forget();
    driver.turn(
        [done(7, "c")],
        r#"
        8 ActivityCompleted <-7 "c"
        9 OrchestrationCompleted "b"
        = Completed
    "#,
    );
}

#[test]
fn keys_of_patches_cannot_be_written_or_removed_by_code() {
    for call in [
        |ctx: &OrchestrationContext| ctx.set_kv_value("__outlast:patch:p", "true"),
        |ctx: &OrchestrationContext| ctx.clear_kv_value("__outlast:patch:p"),
    ] {
        let mut driver = InstanceDriver::new(move |ctx: OrchestrationContext, _| async move {
            ctx.patched("p");
            call(&ctx);
            ctx.schedule_activity("A", "").await
        });
        driver.give([]);
        assert!(driver.error().contains("is reserved for ctx.patched"), "{}", driver.error());
    }
}

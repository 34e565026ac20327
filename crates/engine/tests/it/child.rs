//! Child and detached orchestrations (spec runtime 6).

use crate::kit::*;
use outlast_engine::OrchestrationContext;

#[test]
fn child_ids_are_generated_or_taken_from_the_call() {
    let mut driver = InstanceDriver::new(|ctx, input| async move {
        if input == "in" {
            return ctx.continue_as_new("two").await;
        }
        let version = || Some("2.0.0".to_string());
        let children = vec![
            ctx.schedule_sub_orchestration("C", "1"),
            ctx.schedule_sub_orchestration_with_id("C", "mine", "2"),
            ctx.schedule_sub_orchestration_versioned("C", version(), "3"),
            ctx.schedule_sub_orchestration_versioned_with_id("C", version(), "x::sub::y", "4"),
        ];
        Ok(format!("{:?}", ctx.join(children).await))
    });
    driver.give([]);
    driver.next_execution();
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "two"
        2 SubOrchestrationScheduled C sub::2_2 "1"
        3 SubOrchestrationScheduled C mine "2"
        4 SubOrchestrationScheduled C sub::2_4 "3"
        5 SubOrchestrationScheduled C x::sub::y "4"
        > child 2 of 2: C i::sub::2_2 "1"
        > child 3 of 2: C mine "2"
        > child 4 of 2: C v2.0.0 i::sub::2_4 "3"
        > child 5 of 2: C v2.0.0 x::sub::y "4"
    "#,
    );
    let outcomes = [child_done(2, "a"), child_done(3, "b"), child_fails(4, "c"), child_done(5, "d")];
    driver.turn(
        outcomes,
        r#"
        6 SubOrchestrationCompleted <-2 "a"
        7 SubOrchestrationCompleted <-3 "b"
        8 SubOrchestrationFailed <-4 application: c
        9 SubOrchestrationCompleted <-5 "d"
        10 OrchestrationCompleted "[Ok(\"a\"), Ok(\"b\"), Err(\"c\"), Ok(\"d\")]"
        = Completed
    "#,
    );
}

#[test]
fn reserved_and_invalid_child_ids_are_refused_without_an_event() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let mut refusals = Vec::new();
        for id in ["sub::mine", "", "a\nb", &"x".repeat(600)] {
            let refusal = ctx.schedule_sub_orchestration_with_id("C", id, "").await.unwrap_err();
            refusals.push(refusal);
        }
        // A refused child that the code does not await has no effect.
        drop(ctx.schedule_sub_orchestration_with_id("C", "sub::mine", ""));
        ctx.schedule_activity("A", refusals.join("\n")).await
    });
    driver.turn([], r#"
        1 OrchestrationStarted Main "in"
        2 ActivityScheduled A "sub-orchestration instance id 'sub::mine' starts with the reserved marker 'sub::', which the runtime uses to mark auto-generated child ids; use an id that does not begin with it\nsub-orchestration instance id is empty: give it at least one character\nsub-orchestration instance id 'a\\nb' has a control character at byte 1: remove it\nsub-orchestration instance id 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...' has 600 bytes, the limit is 512: use a shorter id"
        > activity 2 A "sub-orchestration instance id 'sub::mine' starts with the reserved marker 'sub::', which the runtime uses to mark auto-generated child ids; use an id that does not begin with it\nsub-orchestration instance id is empty: give it at least one character\nsub-orchestration instance id 'a\\nb' has a control character at byte 1: remove it\nsub-orchestration instance id 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...' has 600 bytes, the limit is 512: use a shorter id"
    "#);
}

#[test]
fn endless_loop_over_a_refused_child_fails_the_instance() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        while ctx.schedule_sub_orchestration_with_id("C", "sub::mine", "").await.is_err() {}
        Ok(String::new())
    });
    driver.give([]);
    assert!(driver.error().contains("more than 10000 decisions"), "{}", driver.error());
}

#[test]
fn invalid_detached_ids_are_refused() {
    for id in ["sub::x", "a::sub::2", "", "tab\there"] {
        let code = move |ctx: OrchestrationContext, _| async move {
            let refusal = ctx.try_schedule_orchestration("D", None, id, "").unwrap_err();
            ctx.trace_info(refusal.clone());
            ctx.schedule_orchestration("D", id, "");
            Ok(String::new())
        };
        let mut driver = InstanceDriver::new(code);
        let output = driver.give([]);
        let refusal = &output.report.traces[0].message;
        assert_eq!(driver.error(), format!("orchestration panicked: {refusal}"));
        assert!(refusal.contains(if id.contains("sub::") {
            "reserved sub-orchestration marker"
        } else {
            "id"
        }));
    }
}

#[test]
fn every_form_of_a_detached_start_sends_a_start() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        ctx.schedule_orchestration("D", "a", "x");
        ctx.schedule_orchestration_typed("D", "b", &[1, 2]);
        ctx.schedule_orchestration_versioned_typed("D", Some("3.0.0".to_string()), "c", &"text");
        ctx.try_schedule_orchestration("D", None, "d", "")?;
        ctx.schedule_wait("never").await;
        Ok(String::new())
    });
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "in"
        2 OrchestrationChained D a "x"
        3 OrchestrationChained D b "[1,2]"
        4 OrchestrationChained D c "text"
        5 OrchestrationChained D d ""
        6 ExternalSubscribed never
        > detached D a "x"
        > detached D b "[1,2]"
        > detached D v3.0.0 c "text"
        > detached D d ""
    "#,
    );
}

#[test]
fn generated_child_id_over_the_limit_fails_the_instance() {
    let code = |ctx: OrchestrationContext, _| async move { ctx.schedule_sub_orchestration("C", "").await };
    let mut driver = InstanceDriver::new(code).with_parent();
    driver.instance = format!("{}::sub::2", "x".repeat(4_075));
    driver.give([]);
    assert!(!driver.has_ended(), "{}", driver.error());
    let mut driver = InstanceDriver::new(code).with_parent();
    driver.instance = format!("{}::sub::2", "x".repeat(4_085));
    let output = driver.give([]);
    assert!(driver.error().contains("give it an id of its own"), "{}", driver.error());
    assert!(output_text(&output).contains("> tell boss/2#7"));
}

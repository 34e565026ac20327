//! The accessors of an execution in memory.

use crate::kit::*;
use outlast_engine::OrchestrationContext;
use std::mem::forget;

#[test]
fn execution_bytes_grow_with_history_keys_and_status() {
    let code = |ctx: OrchestrationContext, _| async move {
        ctx.schedule_wait("begin").await;
        ctx.set_kv_value("key", "value");
        ctx.set_custom_status("status");
        Ok(ctx.schedule_wait("end").await)
    };
    let mut driver = InstanceDriver::new(code);
    driver.give([]);
    let before = driver.memory().unwrap().bytes();
    driver.give([raise("begin", "data")]);
    let grown = driver.memory().unwrap().bytes() - before;
    // Four events, their text, the key and the status.
    let payloads = "begindata".len() + "keyvalue".len() + "status".len() + "end".len();
    assert_eq!(grown, 4 * 160 + payloads + "keyvalue".len() + "status".len());
}

#[test]
fn a_probe_names_the_last_durable_call() {
    let code = |ctx: OrchestrationContext, _| async move { ctx.schedule_activity("A", "").await };
    let mut driver = InstanceDriver::new(code);
    driver.give([]);
    let probe = driver.memory().unwrap().probe();
    let call = probe.last_call().unwrap();
    assert!(call.starts_with("schedule_activity at ") && call.contains("memory.rs"), "{call}");
}

#[test]
fn input_is_freed_after_the_first_turn() {
    let mut driver =
        InstanceDriver::new(|ctx: OrchestrationContext, _| async move { Ok(ctx.schedule_wait("s").await) });
    driver.give([]);
    let opening = driver.memory().unwrap().past().opening.unwrap();
    assert_eq!((opening.name.as_str(), opening.input.as_str()), ("Main", ""));
}

/// The activity that is all that the code waits for, if there is one.
fn waits_only_for(code: fn(OrchestrationContext)) -> Option<u64> {
    let mut driver = InstanceDriver::new(move |ctx: OrchestrationContext, _| async move {
        code(ctx.clone());
        std::future::pending().await
    });
    driver.give([]);
    let execution = driver.memory().unwrap();
    assert_eq!(execution.orchestration_name(), "Main");
    let open = execution.waits_for_activities().filter(|open| open.len() == 1)?;
    open.first().copied()
}

#[test]
fn waits_only_for_is_true_for_a_single_open_activity() {
    assert_eq!(waits_only_for(|_| {}), None);
    assert_eq!(waits_only_for(|ctx| forget(ctx.schedule_activity("A", ""))), Some(2));
    let with_timer = |ctx: OrchestrationContext| {
        forget(ctx.schedule_timer(std::time::Duration::from_secs(1)));
        forget(ctx.schedule_activity("A", ""));
    };
    assert_eq!(waits_only_for(with_timer), Some(3));
    let with_another = |ctx: OrchestrationContext| {
        forget(ctx.schedule_activity("A", ""));
        forget(ctx.schedule_activity("B", ""));
    };
    assert_eq!(waits_only_for(with_another), None);
    let with_child = |ctx: OrchestrationContext| {
        forget(ctx.schedule_activity("A", ""));
        forget(ctx.schedule_sub_orchestration("C", ""));
    };
    assert_eq!(waits_only_for(with_child), None);
    let child = |ctx: OrchestrationContext| forget(ctx.schedule_sub_orchestration("C", ""));
    assert_eq!(waits_only_for(child), None);
}

//! Keys, status, ids and time (spec runtime 10).

use crate::kit::*;
use outlast_engine::OrchestrationContext;
use outlast_model::EventKind;
use std::time::SystemTime;

#[test]
fn key_writes_become_events_and_reads_do_not() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let before = ctx.get_kv_value("old");
        ctx.set_kv_value("a", "1");
        ctx.set_kv_value_typed("b", &"text");
        let typed = ctx.get_kv_value_typed::<String>("b")?;
        let broken = ctx.get_kv_value_typed::<u32>("b").unwrap_err();
        let missing = ctx.get_kv_value_typed::<u32>("missing")?;
        ctx.clear_kv_value("a");
        ctx.clear_kv_value("never there");
        let keys = ctx.get_kv_all_keys();
        assert_eq!(ctx.get_kv_length(), keys.len());
        ctx.clear_all_kv_values();
        let left = ctx.get_kv_length();
        ctx.set_kv_value("", "an empty key is one");
        Ok(format!("{before:?} {typed:?} {broken} {missing:?} {keys:?} {left} {:?}", ctx.get_kv_all_values()))
    })
    .with_key("old", "value", 5);
    driver.turn([], r#"
        1 OrchestrationStarted Main "in"
        2 KeyValueSet a="1" @1010
        3 KeyValueSet b="\"text\"" @1010
        4 KeyValueCleared a
        5 KeyValueCleared never there
        6 KeyValuesCleared
        7 KeyValueSet ="an empty key is one" @1010
        8 OrchestrationCompleted "Some(\"value\") Some(\"text\") KV deserialization error for key 'b': invalid type: string \"text\", expected u32 at line 1 column 6 None [\"b\", \"old\"] 0 {\"\": \"an empty key is one\"}"
        = Completed
    "#);
}

#[test]
fn execution_in_memory_returns_its_keys() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        ctx.set_kv_value("a", "1");
        ctx.schedule_activity("A", "").await
    })
    .with_key("old", "value", 5);
    driver.give([]);
    let keys: Vec<String> = driver.memory().unwrap().keys().into_keys().collect();
    assert_eq!(keys, ["a", "old"]);
}

#[test]
fn pruning_goes_by_age_in_the_order_of_keys() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        ctx.set_kv_value("z", "new");
        ctx.set_kv_value("b", "new");
        let none = ctx.prune_kv_values_updated_before(0);
        let some = ctx.prune_kv_values_updated_before(200);
        let all = ctx.prune_kv_values_updated_before(u64::MAX);
        Ok(format!("{none} {some} {all}"))
    })
    .with_key("d", "", 100)
    .with_key("c", "", 199)
    .with_key("e", "", 200);
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "in"
        2 KeyValueSet z="new" @1010
        3 KeyValueSet b="new" @1010
        4 KeyValueCleared c
        5 KeyValueCleared d
        6 KeyValueCleared b
        7 KeyValueCleared e
        8 KeyValueCleared z
        9 OrchestrationCompleted "0 2 3"
        = Completed
    "#,
    );
}

#[test]
fn c14_replay_uses_the_stored_time_of_key_writes() {
    let code = |ctx: OrchestrationContext, _| async move {
        ctx.set_kv_value("first", "1");
        ctx.schedule_activity("A", "").await?;
        ctx.set_kv_value("second", "2");
        ctx.schedule_activity("B", "").await?;
        // Between the two.
        let pruned = ctx.prune_kv_values_updated_before(1_015);
        Ok(format!("{pruned} {:?}", ctx.get_kv_all_keys()))
    };
    let mut driver = InstanceDriver::new(code);
    driver.give([]);
    driver.give([done(3, "")]);
    driver.now_ms = 1_000_000;
    driver.forget();
    driver.turn(
        [done(6, "")],
        r#"
        7 ActivityCompleted <-6 ""
        8 KeyValueCleared first
        9 OrchestrationCompleted "1 [\"second\"]"
        = Completed
    "#,
    );
}

#[test]
fn removals_of_old_prunes_come_in_any_order() {
    let code = |ctx: OrchestrationContext, _| async move {
        let pruned = ctx.prune_kv_values_updated_before(9);
        ctx.clear_kv_value("d");
        ctx.schedule_activity("A", pruned.to_string()).await
    };
    let stored = vec![
        started("in"),
        key_cleared("c"),
        key_cleared("a"),
        key_cleared("b"),
        key_cleared("d"),
        activity("A", "3"),
    ];
    let keys = |driver: InstanceDriver| driver.with_key("a", "", 1).with_key("b", "", 2).with_key("c", "", 3);
    let mut driver = keys(InstanceDriver::new(code).stored(history("0.1.30", stored)));
    driver.turn(
        [done(6, "ok")],
        r#"
        7 ActivityCompleted <-6 "ok"
        8 OrchestrationCompleted "ok"
        = Completed
    "#,
    );
    // But each of them once.
    let stored = vec![started("in"), key_cleared("c"), key_cleared("c")];
    let mut driver = keys(InstanceDriver::new(code).stored(history("0.1.30", stored)));
    driver.give([]);
    assert!(driver.error().contains("kv clear mismatch"), "{}", driver.error());
}

#[test]
fn custom_status_is_set_read_and_cleared() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let inherited = ctx.get_custom_status();
        ctx.set_custom_status("one");
        ctx.set_custom_status("two");
        let set = ctx.get_custom_status();
        ctx.reset_custom_status();
        Ok(format!("{inherited:?} {set:?} {:?}", ctx.get_custom_status()))
    });
    driver.opening.custom_status = Some("before".to_string());
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "in" status="before"
        2 CustomStatusUpdated Some("one")
        3 CustomStatusUpdated Some("two")
        4 CustomStatusUpdated None
        5 OrchestrationCompleted "Some(\"before\") Some(\"two\") None"
        = Completed
    "#,
    );
}

#[test]
fn p13_ids_and_time_are_answered_in_the_turn() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let (id, other) = (ctx.new_guid().await?, ctx.new_guid().await?);
        let now = ctx.utc_now().await?.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
        ctx.schedule_activity("A", format!("{} {now}", id != other)).await
    });
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "in"
        2 ActivityScheduled __duroxide_syscall:new_guid ""
        3 ActivityCompleted <-2 "00000000-0000-4000-8000-000100000001"
        4 ActivityScheduled __duroxide_syscall:new_guid ""
        5 ActivityCompleted <-4 "00000000-0000-4000-8000-000100000002"
        6 ActivityScheduled __duroxide_syscall:utc_now_ms ""
        7 ActivityCompleted <-6 "1010"
        8 ActivityScheduled A "true 1010"
        > activity 8 A "true 1010"
    "#,
    );
    driver.turn(
        [done(8, "ok")],
        r#"
        9 ActivityCompleted <-8 "ok"
        10 OrchestrationCompleted "ok"
        = Completed
    "#,
    );
}

#[test]
fn p13_parallel_and_dropped_system_calls_are_answered_in_the_turn() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        drop(ctx.new_guid());
        let (id, activity) = ctx.join2(ctx.new_guid(), ctx.schedule_activity("A", "")).await;
        Ok(format!("{} {activity:?}", id?.len()))
    });
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "in"
        2 ActivityScheduled __duroxide_syscall:new_guid ""
        3 ActivityScheduled __duroxide_syscall:new_guid ""
        4 ActivityCompleted <-3 "00000000-0000-4000-8000-000100000001"
        5 ActivityScheduled A ""
        6 ActivityCancelRequested <-2 "dropped_future"
        > activity 5 A ""
    "#,
    );
    driver.turn(
        [done(5, "ok")],
        r#"
        7 ActivityCompleted <-5 "ok"
        8 OrchestrationCompleted "36 Ok(\"ok\")"
        = Completed
    "#,
    );
}

#[test]
fn system_call_answered_by_a_worker_replays() {
    let code = |ctx: OrchestrationContext, _| async move {
        let id = ctx.new_guid().await?;
        let now = ctx.utc_now().await?.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
        Ok(format!("{id} {now}"))
    };
    let stored = vec![started("in"), activity("__duroxide_syscall:new_guid", "")];
    let mut driver = InstanceDriver::new(code).stored(history("0.1.30", stored));
    driver.turn([], r#""#);
    driver.turn(
        [done(2, "from a worker")],
        r#"
        3 ActivityCompleted <-2 "from a worker"
        4 ActivityScheduled __duroxide_syscall:utc_now_ms ""
        5 ActivityCompleted <-4 "1020"
        6 OrchestrationCompleted "from a worker 1020"
        = Completed
    "#,
    );
    let stored = vec![
        started("in"),
        activity("__duroxide_syscall:new_guid", ""),
        completed(2, "from a worker"),
        activity("__duroxide_syscall:utc_now_ms", ""),
    ];
    let mut driver = InstanceDriver::new(code).stored(history("0.1.32", stored));
    driver.turn(
        [done(4, "not a time")],
        r#"
        5 ActivityCompleted <-4 "not a time"
        6 OrchestrationFailed application: utc_now recorded 'not a time': invalid digit found in string
        = Failed
    "#,
    );
}

#[test]
fn key_of_another_instance_is_read_by_a_system_call() {
    let mut driver = InstanceDriver::new(|ctx, _| async move {
        let text = ctx.get_kv_value_from_instance("other", "k").await?;
        let typed = ctx.get_kv_value_from_instance_typed::<u32>("other", "k").await;
        let nothing = ctx.get_kv_value_from_instance_typed::<u32>("other", "k").await?;
        let broken = ctx.get_kv_value_from_instance("other", "k").await;
        Ok(format!("{text:?} {typed:?} {nothing:?} {broken:?} {:?}", ctx.get_system_stats()))
    });
    driver.turn(
        [],
        r#"
        1 OrchestrationStarted Main "in"
        2 ActivityScheduled __duroxide_syscall:get_kv_value "{\"instance_id\":\"other\",\"key\":\"k\"}"
        > activity 2 __duroxide_syscall:get_kv_value "{\"instance_id\":\"other\",\"key\":\"k\"}"
    "#,
    );
    driver.give([done(2, "\"v\"")]);
    driver.give([done(4, "\"v\"")]);
    driver.give([done(6, "null")]);
    driver.turn([done(8, "oops")], r#"
        9 ActivityCompleted <-8 "oops"
        10 OrchestrationCompleted "Some(\"v\") Err(\"get_kv_value_from_instance_typed deserialization error: expected value at line 1 column 1\") None Err(\"get_kv_value_from_instance deserialization error: expected value at line 1 column 1\") None"
        = Completed
    "#);
}

#[test]
fn unknown_system_call_is_sent_to_a_worker() {
    let mut driver =
        InstanceDriver::new(
            |ctx, _| async move { ctx.schedule_activity("__duroxide_syscall:new", "").await },
        );
    let output = driver.give([]);
    assert_eq!(output.commit.worker_items.len(), 1);
    assert!(matches!(driver.history[1].kind, EventKind::ActivityScheduled { .. }));
}

//! Management reads: instances, executions, totals, queue depths and sizes.

use crate::ProviderFactory;
use crate::support::*;
use outlast_provider::model::{Event, EventKind, SystemStats};
use outlast_provider::{ExecutionInfo, ExecutionMetadata, InstanceInfo, Provider, QueueBacklog};

async fn info(provider: &dyn Provider, instance: &str) -> InstanceInfo {
    admin(provider).get_instance_info(instance).await.expect("the instance is known")
}

async fn execution(provider: &dyn Provider, instance: &str, execution_id: u64) -> ExecutionInfo {
    admin(provider).get_execution_info(instance, execution_id).await.expect("the execution is known")
}

async fn stats(provider: &dyn Provider, instance: &str) -> SystemStats {
    provider.get_instance_stats(instance).await.unwrap().expect("the instance is known")
}

/// Commits a turn of a created instance with these events.
async fn record<const N: usize>(
    provider: &dyn Provider,
    instance: &str,
    execution_id: u64,
    events: [Event; N],
) {
    let token = next_turn(provider, instance).await;
    Turn::new(&token).execution(execution_id).events(events).commit(provider).await;
}

fn set(event_id: u64, key: &str, value: &str) -> Event {
    event("sized", event_id, value_kind(key, value, 1))
}

fn cleared(event_id: u64, key: &str) -> Event {
    event("sized", event_id, EventKind::KeyValueCleared { key: key.to_string() })
}

/// Whether this time is the current time of the store. Two clocks may differ by a second; more means another unit.
fn is_recent(time_ms: u64, factory: &impl ProviderFactory) -> bool {
    time_ms.abs_diff(factory.now_ms()) < 1_000
}

/// All created instances are listed, newest first; a queued start is not.
pub async fn test_list_instances<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    for instance in ["first", "second", "third"] {
        create_instance(provider, instance).await;
        tokio::time::sleep(APART).await;
    }
    record(provider, "first", 1, []).await; // which makes it no newer
    enqueue(provider, start_item("queued")).await;
    assert_eq!(admin(provider).list_instances().await.unwrap(), ["third", "second", "first"]);
}

/// An instance is found by the status of its current execution, and by no other; newest first.
pub async fn test_list_instances_by_status<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    for (instance, state) in
        [("done", "Completed"), ("failed", "Failed"), ("done-too", "Completed"), ("busy", "Running")]
    {
        create_with(provider, instance, ended(state, "out", None)).await;
        tokio::time::sleep(APART).await;
    }
    create_instance(provider, "moved-on").await;
    continue_as_new(provider, "moved-on", 1).await;

    let cases: [(&str, &[&str]); 4] = [
        ("Completed", &["done-too", "done"]),
        ("Failed", &["failed"]),
        ("Running", &["moved-on", "busy"]),
        ("ContinuedAsNew", &[]),
    ];
    for (state, expected) in cases {
        assert_eq!(admin(provider).list_instances_by_status(state).await.unwrap(), expected, "{state}");
    }
}

/// Executions are listed in ascending order even without an instance row; an unknown instance has none.
pub async fn test_list_executions<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_rowless(provider, "rowless").await;
    assert_eq!(admin(provider).list_executions("rowless").await.unwrap(), [1]);
    for execution_id in [2, 10] {
        begin_execution(provider, "rowless", execution_id).await;
    }
    assert_eq!(admin(provider).list_executions("rowless").await.unwrap(), [1, 2, 10]);
    assert_eq!(admin(provider).latest_execution_id("rowless").await.unwrap(), 10);
    assert_eq!(instances(provider).await, [""; 0], "turns without a name create no instance");

    assert_eq!(admin(provider).list_executions("unknown").await.unwrap(), [0; 0]);
    assert_eq!(admin(provider).latest_execution_id("unknown").await.unwrap(), 1);
}

/// Name and version come from the commit, not from the start; execution, status and output are the current ones.
pub async fn test_get_instance_info<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    enqueue(provider, start_of("told", "StartName", Some("9.9.9"))).await;
    let (_, token, _) = must_fetch(provider, LONG).await;
    Turn::new(&token).event(started("told")).metadata(named()).commit(provider).await;
    let created = info(provider, "told").await;
    assert_eq!(created.instance_id, "told");
    assert_eq!(created.parent_instance_id, None);
    assert!(is_recent(created.created_at, factory), "created at {}", created.created_at);
    assert!(created.updated_at >= created.created_at);

    let assert_state = async |execution_id, state: &str, output: Option<&str>| {
        let info = info(provider, "told").await;
        assert_eq!((info.current_execution_id, info.status.as_str()), (execution_id, state));
        assert_eq!(info.output.as_deref(), output);
        assert_eq!(
            (info.orchestration_name.as_str(), info.orchestration_version.as_str()),
            ("TestOrch", "1.0.0")
        );
        assert_eq!(info.created_at, created.created_at);
    };
    assert_state(1, "Running", None).await;
    tokio::time::sleep(APART).await;
    continue_as_new(provider, "told", 1).await;
    assert_state(2, "Running", None).await;
    set_status(provider, "told", 2, "Completed", "42").await;
    assert_state(2, "Completed", Some("42")).await;

    create_instance_with_parent(provider, "child", "told").await;
    assert_eq!(info(provider, "child").await.parent_instance_id.as_deref(), Some("told"));
    permanent(admin(provider).get_instance_info("unknown").await, "info about an unknown instance");
}

/// Status, output, times and event count of an execution need no instance row, ignore the instance that the events name,
/// and stay when a later turn does not set them.
pub async fn test_get_execution_info<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let cases = [
        ("silent", None, false),
        ("running", Some("Running"), false),
        ("completed", Some("Completed"), true),
        ("failed", Some("Failed"), true),
        ("continued", Some("ContinuedAsNew"), true),
    ];
    for (instance, state, has_ended) in cases {
        let metadata = state.map_or_else(ExecutionMetadata::default, |state| status(state, "out"));
        let events = [started("stranger"), event("stranger", 2, scheduled_kind("Activity2"))];
        let token = first_turn(provider, instance).await;
        Turn::new(&token).events(events.clone()).metadata(metadata).commit(provider).await;

        let told = execution(provider, instance, 1).await;
        assert_eq!((told.execution_id, told.event_count), (1, 2), "{instance}");
        assert_eq!(told.status, state.unwrap_or("Running"), "{instance}");
        assert_eq!(told.output.as_deref(), state.map(|_| "out"), "{instance}");
        assert!(is_recent(told.started_at, factory), "{instance} started at {}", told.started_at);
        assert_eq!(told.completed_at.is_some(), has_ended, "{instance} has ended: {has_ended}");
        assert!(told.completed_at.is_none_or(|end| end >= told.started_at && is_recent(end, factory)));
        assert_eq!(provider.read(instance).await.unwrap(), events, "events are stored as given");

        tokio::time::sleep(APART).await;
        record(provider, instance, 1, []).await;
        assert_eq!(format!("{:?}", execution(provider, instance, 1).await), format!("{told:?}"));
    }
    permanent(admin(provider).get_execution_info("silent", 2).await, "info about an unknown execution");
    permanent(admin(provider).get_execution_info("stranger", 1).await, "info about an unknown instance");
}

/// Totals count instances by the status of their current execution, and all executions and events.
pub async fn test_get_system_metrics<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let totals = async || {
        let metrics = admin(provider).get_system_metrics().await.unwrap();
        let gauges = admin(provider).get_gauges().await.unwrap();
        assert_eq!(gauges.running_instances, metrics.running_instances, "the gauge is the total");
        let by_status = [metrics.running_instances, metrics.completed_instances, metrics.failed_instances];
        (metrics.total_instances, by_status, metrics.total_executions, metrics.total_events)
    };
    assert_eq!(totals().await, (0, [0, 0, 0], 0, 0));
    create_instance(provider, "busy").await;
    assert_eq!(totals().await, (1, [1, 0, 0], 1, 1));
    create_completed(provider, "done", "out").await;
    create_completed(provider, "done-too", "out").await;
    create_with(provider, "failed", ended("Failed", "out", None)).await;
    assert_eq!(totals().await, (4, [1, 2, 1], 4, 4));
    continue_as_new(provider, "busy", 1).await;
    enqueue(provider, start_item("queued")).await;
    assert_eq!(totals().await, (4, [1, 2, 1], 5, 6), "two events and an execution more");
}

/// Depths count waiting items, including delayed ones, and exclude items under a live lease.
pub async fn test_get_queue_depths<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let depths = async |delayed: u64| {
        let depths = admin(provider).get_queue_depths().await.unwrap();
        let gauges = admin(provider).get_gauges().await.unwrap();
        let (messages, work) = (depths.orchestrator_queue as u64, depths.worker_queue as u64);
        assert_eq!(
            (gauges.orchestrator_queue, gauges.worker_queue),
            (messages, work),
            "gauges are the depths"
        );
        // A store need not count them separately.
        if let Some(backlog) = gauges.orchestrator_backlog {
            assert_eq!(backlog, QueueBacklog::of(messages, delayed), "due and delayed messages");
        }
        if let Some(backlog) = gauges.worker_backlog {
            assert_eq!(backlog, QueueBacklog { due: work, delayed: 0 }, "due and delayed activities");
        }
        (depths.orchestrator_queue, depths.worker_queue, depths.timer_queue)
    };
    assert_eq!(depths(0).await, (0, 0, 0));
    enqueue(provider, start_item("a")).await;
    poke(provider, "a").await;
    enqueue(provider, start_item("b")).await;
    assert_eq!(depths(0).await, (3, 0, 0));
    provider.enqueue_for_orchestrator(start_item("delayed"), Some(LONG)).await.unwrap();
    for id in [2, 3] {
        enqueue_activity(provider, activity("a", id)).await;
    }
    assert_eq!(depths(1).await, (4, 2, 0), "a delayed message waits too");

    let (item, _, _) = must_fetch(provider, factory.lock_timeout()).await;
    assert_eq!(item.messages.len(), 2, "both messages of the oldest instance are leased");
    must_fetch_activity(provider, factory.lock_timeout()).await;
    assert_eq!(depths(1).await, (2, 1, 0), "leased messages do not wait");
    outlive(factory.lock_timeout()).await;
    assert_eq!(depths(1).await, (4, 2, 0), "what an expired lease held waits again");
}

/// An instance that does not exist has no sizes, also while its start is queued.
pub async fn test_get_instance_stats_nonexistent<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "known").await;
    enqueue(provider, start_item("queued")).await;
    assert_eq!(stats(provider, "known").await.history_event_count, 1);
    for instance in ["unknown", "queued"] {
        assert_eq!(provider.get_instance_stats(instance).await.unwrap(), None, "{instance}");
    }
}

/// Events are counted and measured in bytes, for the current execution only.
pub async fn test_get_instance_stats_history<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "sized").await;
    let expect = async |history_event_count, at_least, at_most| {
        let stats = stats(provider, "sized").await;
        let bytes = stats.history_size_bytes;
        assert!(bytes >= at_least && bytes <= at_most, "{bytes} is not within {at_least}..={at_most}");
        let expected = SystemStats {
            history_event_count,
            history_size_bytes: bytes,
            queue_pending_count: 0,
            kv_user_key_count: 0,
            kv_total_value_bytes: 0,
        };
        assert_eq!(stats, expected);
        bytes
    };
    let small = expect(1, 1, u64::MAX).await;
    let thousand_characters = scheduled_kind(&"é".repeat(1_000));
    let events = [event("sized", 2, thousand_characters), event("sized", 3, scheduled_kind("Activity3"))];
    record(provider, "sized", 1, events).await;
    let large = expect(3, small + 2_000, u64::MAX).await;
    continue_as_new(provider, "sized", 1).await;
    expect(1, 1, large - 2_000).await;
}

/// (keys, value bytes) of the key-value view.
async fn kv_stats(provider: &dyn Provider) -> (u64, u64) {
    let stats = stats(provider, "sized").await;
    (stats.kv_user_key_count, stats.kv_total_value_bytes)
}

/// Keys and value bytes are counted once the execution has ended.
pub async fn test_get_instance_stats_kv<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "sized").await;
    assert_eq!(kv_stats(provider).await, (0, 0));
    let token = next_turn(provider, "sized").await;
    Turn::new(&token)
        .events([set(2, "first-key", "abcd"), set(3, "second-key", "né!")])
        .metadata(status("Completed", "done"))
        .commit(provider)
        .await;
    assert_eq!(kv_stats(provider).await, (2, 8), "four bytes each");
}

/// The pending count is the number of messages that the current execution's first event carries; an event that cannot
/// be decoded is an error, not a zero.
pub async fn test_get_instance_stats_carry_forward<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "sized").await;
    assert_eq!(stats(provider, "sized").await.queue_pending_count, 0);

    set_status(provider, "sized", 1, "ContinuedAsNew", "next").await;
    let mut carrying = started_in("sized", 2);
    if let EventKind::OrchestrationStarted { carry_forward_events, .. } = &mut carrying.kind {
        let carried = ["1", "2", "3"].map(|data| ("queue".to_string(), data.to_string()));
        *carry_forward_events = Some(carried.to_vec());
    }
    record(provider, "sized", 2, [carrying]).await;
    assert_eq!(stats(provider, "sized").await.queue_pending_count, 3);

    continue_as_new(provider, "sized", 2).await;
    assert_eq!(stats(provider, "sized").await.queue_pending_count, 0, "execution 3 carries nothing");

    // Every factory that can damage queues can damage a history; others need not have that hook for this rule.
    if factory.corrupts_queues() {
        factory.corrupt_instance_history("sized").await;
        permanent(provider.get_instance_stats("sized").await, "counting in an undecodable event");
    }
}

/// Keys that only the running execution has written are counted, those that it cleared again are not.
pub async fn test_get_instance_stats_kv_delta_only<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "sized").await;
    record(provider, "sized", 1, [set(2, "a", "1"), set(3, "b", "22"), set(4, "a", "333")]).await;
    assert_eq!(kv_stats(provider).await, (2, 5));
    record(provider, "sized", 1, [cleared(5, "b")]).await;
    assert_eq!(kv_stats(provider).await, (1, 3));
}

/// A key that an earlier execution wrote and this one overwrote is counted once, with its new value.
pub async fn test_get_instance_stats_kv_merged<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "sized").await;
    record(provider, "sized", 1, [set(2, "a", "old"), set(3, "b", "stays")]).await;
    continue_as_new(provider, "sized", 1).await;
    assert_eq!(kv_stats(provider).await, (2, 8));
    record(provider, "sized", 2, [set(2, "a", "newer"), set(3, "c", "!")]).await;
    assert_eq!(kv_stats(provider).await, (3, 11), "newer, stays, !");
    record(provider, "sized", 2, [cleared(4, "b")]).await;
    assert_eq!(kv_stats(provider).await, (2, 6), "newer, !");
}

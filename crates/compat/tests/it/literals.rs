//! Every closed struct as outside code builds it: field by field, without `..`. An added field is a compile error here.

use duroxide::providers::{
    DeleteInstanceResult, DispatcherCapabilityFilter, ExecutionInfo, ExecutionMetadata, InstanceFilter,
    InstanceInfo, InstanceTree, KvEntry, OrchestrationItem, ProviderError, PruneOptions, PruneResult,
    QueueDepths, ScheduledActivityIdentifier, SemverRange, SessionFetchConfig, SystemMetrics, WorkItem,
};
use duroxide::{BackoffStrategy, Event, EventKind, RetryPolicy, SystemStats};
use semver::Version;
use std::collections::HashMap;
use std::time::Duration;

#[test]
fn data_structs_are_built_field_by_field() {
    let event = Event {
        event_id: 1_u64,
        source_event_id: None::<u64>,
        instance_id: String::from("i"),
        execution_id: 1_u64,
        timestamp_ms: 5_u64,
        duroxide_version: String::from("0.1.32"),
        kind: EventKind::KeyValuesCleared,
    };
    let mut older = event.clone();
    older.duroxide_version = "0.1.30".to_string();
    assert_ne!(event, older);
    let stats = SystemStats {
        history_event_count: 1_u64,
        history_size_bytes: 2_u64,
        queue_pending_count: 3_u64,
        kv_user_key_count: 4_u64,
        kv_total_value_bytes: 5_u64,
    };
    assert_eq!(stats, stats.clone());
    let policy = RetryPolicy {
        max_attempts: 2_u32,
        backoff: BackoffStrategy::Exponential {
            base: Duration::from_secs(1),
            multiplier: 2.0_f64,
            max: Duration::from_secs(9),
        },
        timeout: None::<Duration>,
    };
    assert_eq!(policy.delay_for_attempt(2), Duration::from_secs(2));
}

#[test]
fn contract_structs_are_built_field_by_field() {
    let entry = KvEntry { value: String::from("v"), last_updated_at_ms: 1_u64 };
    let item = OrchestrationItem {
        instance: String::from("i"),
        orchestration_name: String::from("Order"),
        execution_id: 1_u64,
        version: String::from("1.0.0"),
        history: Vec::<Event>::new(),
        messages: Vec::<WorkItem>::new(),
        history_error: None::<String>,
        kv_snapshot: HashMap::from([(String::from("k"), entry.clone())]),
    };
    assert_eq!(item.kv_snapshot["k"], entry);
    let metadata = ExecutionMetadata {
        status: None::<String>,
        output: None::<String>,
        orchestration_name: None::<String>,
        orchestration_version: None::<String>,
        parent_instance_id: None::<String>,
        pinned_duroxide_version: None::<Version>,
    };
    assert_eq!(format!("{metadata:?}"), format!("{:?}", ExecutionMetadata::default()));
    let identity =
        ScheduledActivityIdentifier { instance: String::from("i"), execution_id: 1_u64, activity_id: 2_u64 };
    assert_eq!(identity, identity.clone());
    let session =
        SessionFetchConfig { owner_id: String::from("node"), lock_timeout: Duration::from_secs(30) };
    assert_eq!(session.clone().owner_id, "node");
    let range = SemverRange { min: Version::new(0, 0, 0), max: Version::new(0, 1, 32) };
    let filter = DispatcherCapabilityFilter { supported_duroxide_versions: vec![range] };
    assert!(filter.is_compatible(&Version::new(0, 1, 32)));
    let error =
        ProviderError { operation: String::from("ack"), message: String::from("gone"), retryable: false };
    assert_eq!(error.to_string(), "ack: gone");
}

#[test]
fn management_structs_are_built_field_by_field() {
    let instance = InstanceInfo {
        instance_id: String::from("i"),
        orchestration_name: String::from("Order"),
        orchestration_version: String::from("1.0.0"),
        current_execution_id: 1_u64,
        status: String::from("Running"),
        output: None::<String>,
        created_at: 1_u64,
        updated_at: 2_u64,
        parent_instance_id: None::<String>,
    };
    let execution = ExecutionInfo {
        execution_id: 1_u64,
        status: String::from("Running"),
        output: None::<String>,
        started_at: 1_u64,
        completed_at: None::<u64>,
        event_count: 3_usize,
    };
    assert_eq!(instance.status, execution.status);
    let metrics = SystemMetrics {
        total_instances: 0_u64,
        total_executions: 0_u64,
        running_instances: 0_u64,
        completed_instances: 0_u64,
        failed_instances: 0_u64,
        total_events: 0_u64,
    };
    assert_eq!(format!("{metrics:?}"), format!("{:?}", SystemMetrics::default()));
    let depths = QueueDepths { orchestrator_queue: 0_usize, worker_queue: 0_usize, timer_queue: 0_usize };
    assert_eq!(format!("{depths:?}"), format!("{:?}", QueueDepths::default()));
    let filter = InstanceFilter {
        instance_ids: None::<Vec<String>>,
        completed_before: None::<u64>,
        limit: None::<u32>,
    };
    assert_eq!(format!("{filter:?}"), format!("{:?}", InstanceFilter::default()));
    let prune = PruneOptions { keep_last: None::<u32>, completed_before: None::<u64> };
    assert_eq!(format!("{prune:?}"), format!("{:?}", PruneOptions::default()));
    let deleted = DeleteInstanceResult {
        instances_deleted: 0_u64,
        executions_deleted: 0_u64,
        events_deleted: 0_u64,
        queue_messages_deleted: 0_u64,
    };
    assert_eq!(format!("{deleted:?}"), format!("{:?}", DeleteInstanceResult::default()));
    let pruned = PruneResult { instances_processed: 0_u64, executions_deleted: 0_u64, events_deleted: 0_u64 };
    assert_eq!(format!("{pruned:?}"), format!("{:?}", PruneResult::default()));
    let tree = InstanceTree { root_id: String::from("r"), all_ids: vec![String::from("r")] };
    assert!(tree.is_root_only() && tree.size() == 1);
}

#[test]
fn stress_configurations_are_built_field_by_field() {
    use duroxide::provider_stress_tests::StressTestConfig;
    use duroxide::provider_stress_tests::large_payload::LargePayloadConfig;
    let base = StressTestConfig {
        max_concurrent: 20_usize,
        duration_secs: 10_u64,
        tasks_per_instance: 5_usize,
        activity_delay_ms: 10_u64,
        orch_concurrency: 2_usize,
        worker_concurrency: 2_usize,
        wait_timeout_secs: 60_u64,
    };
    assert_eq!(format!("{base:?}"), format!("{:?}", StressTestConfig::default()));
    let large = LargePayloadConfig {
        base: StressTestConfig { wait_timeout_secs: 120, ..base },
        small_payload_kb: 10_usize,
        medium_payload_kb: 50_usize,
        large_payload_kb: 100_usize,
        activity_count: 20_usize,
        sub_orch_count: 5_usize,
    };
    let usual = LargePayloadConfig::default();
    assert_eq!(
        (large.base.wait_timeout_secs, large.large_payload_kb),
        (usual.base.wait_timeout_secs, usual.large_payload_kb)
    );
    assert_eq!(
        (usual.base.max_concurrent, usual.base.tasks_per_instance, usual.base.activity_delay_ms),
        (5, 1, 5)
    );
}

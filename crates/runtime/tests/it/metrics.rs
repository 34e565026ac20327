//! Each metrics call counts once in the snapshot and once through the facade, and in no other metric (api 9.2).

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use outlast_memory::MemoryProvider;
use outlast_provider::{HeldCounts, QueueBacklog, StoreGauges};
use outlast_runtime::Runtime;
use outlast_runtime::observability::{MetricsProvider, MetricsSnapshot, ObservabilityConfig};
use outlast_runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use std::sync::Arc;

/// A line per metric that `record` touches, by name: `name{label=value, ..} = value`.
pub(crate) fn recorded(record: impl FnOnce()) -> Vec<String> {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, record);
    let mut lines: Vec<String> = snapshotter
        .snapshot()
        .into_vec()
        .into_iter()
        .map(|(key, _, _, value)| {
            let labels: Vec<String> =
                key.key().labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
            let value = match value {
                DebugValue::Counter(count) => count.to_string(),
                DebugValue::Gauge(value) => value.to_string(),
                DebugValue::Histogram(values) => {
                    format!("{:?}", values.iter().map(|v| v.0).collect::<Vec<f64>>())
                }
            };
            format!("{}{{{}}} = {value}", key.key().name(), labels.join(", "))
        })
        .collect();
    lines.sort();
    lines
}

/// The fields of a snapshot that are not zero.
fn non_zero(snapshot: &impl std::fmt::Debug) -> String {
    let shown = format!("{snapshot:?}");
    let fields = shown.split_once('{').unwrap().1.trim_end_matches('}');
    let counted: Vec<&str> =
        fields.split(',').map(str::trim).filter(|field| !field.ends_with(": 0")).collect();
    counted.join(", ")
}

fn provider() -> MetricsProvider {
    MetricsProvider::new(&ObservabilityConfig::default()).unwrap()
}

#[track_caller]
fn check(record: impl FnOnce(&MetricsProvider), counted: &str, facade: &[&str]) {
    let provider = provider();
    let lines = recorded(|| record(&provider));
    let prefixed: Vec<String> = facade.iter().map(|line| format!("duroxide_{line}")).collect();
    assert_eq!(lines, prefixed);
    assert_eq!(non_zero(&provider.snapshot()), counted);
    assert_eq!(non_zero(&provider.outlast_snapshot()), "");
}

#[test]
fn orchestrations_start_and_end() {
    check(
        |m| m.record_orchestration_start("O", "1.0.0", "client"),
        "orch_starts: 1",
        &["orchestration_starts_total{orchestration_name=O, version=1.0.0, initiated_by=client} = 1"],
    );
    check(
        |m| m.record_orchestration_completion("O", "1.0.0", "failed", 1.5, 7, 30),
        "orch_completions: 1",
        &[
            "orchestration_completions_total{orchestration_name=O, version=1.0.0, status=failed, final_turn_count=6-10} = 1",
            "orchestration_duration_seconds{orchestration_name=O, version=1.0.0, status=failed} = [1.5]",
            "orchestration_history_size{orchestration_name=O} = [30.0]",
            "orchestration_turns{orchestration_name=O} = [7.0]",
        ],
    );
    check(
        |m| m.record_continue_as_new("O", 3),
        "orch_continue_as_new: 1",
        &["orchestration_continue_as_new_total{orchestration_name=O, execution_id=3} = 1"],
    );
    check(|m| m.record_orchestration_poison(), "orch_poison: 1", &["orchestration_poison_total{} = 1"]);
}

#[test]
fn turn_counts_and_redeliveries_are_grouped_into_few_labels() {
    let turns = |count| {
        let lines =
            recorded(|| provider().record_orchestration_completion("O", "1", "success", 0.0, count, 0));
        lines[0].split_once("final_turn_count=").unwrap().1.trim_end_matches("} = 1").to_string()
    };
    let labels = [0, 1, 5, 6, 10, 11, 50, 51, u64::MAX].map(turns);
    assert_eq!(labels, ["1-5", "1-5", "1-5", "6-10", "6-10", "11-50", "11-50", "50+", "50+"]);
    let redeliveries =
        |n| recorded(|| provider().record_activity_execution("A", "success", 0.0, n, None))[1].clone();
    for (n, label) in [(0, "0"), (1, "1"), (2, "2"), (3, "3+"), (u32::MAX, "3+")] {
        assert!(redeliveries(n).contains(&format!("retry_attempt={label},")), "{n}: {}", redeliveries(n));
    }
}

#[test]
fn failures_count_by_type() {
    let failure = |error_type: &'static str| {
        move |m: &MetricsProvider| m.record_orchestration_failure("O", "1.0.0", error_type, "why")
    };
    check(
        failure("app_error"),
        "orch_failures: 1, orch_application_errors: 1",
        &[
            "orchestration_failures_total{orchestration_name=O, version=1.0.0, error_type=app_error, error_category=why} = 1",
        ],
    );
    check(
        failure("infrastructure_error"),
        "orch_failures: 1, orch_infrastructure_errors: 1",
        &[
            "orchestration_failures_total{orchestration_name=O, version=1.0.0, error_type=infrastructure_error, error_category=why} = 1",
            "orchestration_infrastructure_errors_total{orchestration_name=O, error_category=why} = 1",
        ],
    );
    check(
        failure("config_error"),
        "orch_failures: 1, orch_configuration_errors: 1",
        &[
            "orchestration_configuration_errors_total{orchestration_name=O, error_category=why} = 1",
            "orchestration_failures_total{orchestration_name=O, version=1.0.0, error_type=config_error, error_category=why} = 1",
        ],
    );
    check(
        failure("unknown"),
        "orch_failures: 1",
        &[
            "orchestration_failures_total{orchestration_name=O, version=1.0.0, error_type=unknown, error_category=why} = 1",
        ],
    );
}

#[test]
fn failure_methods_without_a_name_count_in_snapshot_and_facade() {
    check(
        |m| m.record_orchestration_application_error(),
        "orch_failures: 1, orch_application_errors: 1",
        &["orchestration_failures_total{error_type=app_error} = 1"],
    );
    check(
        |m| m.record_orchestration_infrastructure_error(),
        "orch_failures: 1, orch_infrastructure_errors: 1",
        &[
            "orchestration_failures_total{error_type=infrastructure_error} = 1",
            "orchestration_infrastructure_errors_total{} = 1",
        ],
    );
    check(
        |m| m.record_orchestration_configuration_error(),
        "orch_failures: 1, orch_configuration_errors: 1",
        &[
            "orchestration_configuration_errors_total{} = 1",
            "orchestration_failures_total{error_type=config_error} = 1",
        ],
    );
}

#[test]
fn activities_count_by_outcome() {
    let cases = [
        ("success", "activity_success: 1", None),
        ("app_error", "activity_app_errors: 1", None),
        (
            "infra_error",
            "activity_infra_errors: 1",
            Some("activity_infrastructure_errors_total{activity_name=A} = 1"),
        ),
        (
            "config_error",
            "activity_config_errors: 1",
            Some("activity_configuration_errors_total{activity_name=A} = 1"),
        ),
        ("cancelled", "", None),
    ];
    for (outcome, counted, extra) in cases {
        let duration =
            format!("activity_duration_seconds{{activity_name=A, outcome={outcome}, tag=gpu}} = [0.5]");
        let executions = format!(
            "activity_executions_total{{activity_name=A, outcome={outcome}, retry_attempt=1, tag=gpu}} = 1"
        );
        let mut facade = vec![duration.as_str(), executions.as_str()];
        facade.extend(extra);
        facade.sort();
        check(|m| m.record_activity_execution("A", outcome, 0.5, 1, Some("gpu")), counted, &facade);
    }
    let untagged = recorded(|| provider().record_activity_execution("A", "success", 0.5, 0, None));
    assert!(untagged.iter().all(|line| line.contains("tag=default")), "{untagged:?}");
}

#[test]
fn activity_methods_without_a_name_have_only_the_outcome_label() {
    check(
        |m| m.record_activity_success(),
        "activity_success: 1",
        &["activity_executions_total{outcome=success} = 1"],
    );
    check(
        |m| m.record_activity_app_error(),
        "activity_app_errors: 1",
        &["activity_executions_total{outcome=app_error} = 1"],
    );
    check(
        |m| m.record_activity_infra_error(),
        "activity_infra_errors: 1",
        &["activity_executions_total{outcome=infra_error} = 1", "activity_infrastructure_errors_total{} = 1"],
    );
    check(
        |m| m.record_activity_config_error(),
        "activity_config_errors: 1",
        &["activity_configuration_errors_total{} = 1", "activity_executions_total{outcome=config_error} = 1"],
    );
    check(|m| m.record_activity_poison(), "activity_poison: 1", &["activity_poison_total{} = 1"]);
}

#[test]
fn metrics_of_children_store_and_dispatchers_are_counted() {
    check(
        |m| m.record_suborchestration_call("P", "C", "success"),
        "suborchestration_calls: 1",
        &["suborchestration_calls_total{parent_orchestration=P, child_orchestration=C, outcome=success} = 1"],
    );
    check(
        |m| m.record_suborchestration_duration("P", "C", 2.0, "success"),
        "",
        &[
            "suborchestration_duration_seconds{parent_orchestration=P, child_orchestration=C, outcome=success} = [2.0]",
        ],
    );
    check(
        |m| m.record_provider_operation("read", 0.25, "success"),
        "",
        &["provider_operation_duration_seconds{operation=read, status=success} = [0.25]"],
    );
    check(
        |m| m.record_provider_error("read", "timeout"),
        "provider_errors: 1",
        &["provider_errors_total{operation=read, error_type=timeout} = 1"],
    );
    check(
        |m| m.record_orch_dispatcher_items_fetched(3),
        "orch_dispatcher_items_fetched: 3",
        &["orchestration_dispatcher_items_fetched{} = 3"],
    );
    check(
        |m| m.record_worker_dispatcher_items_fetched(4),
        "worker_dispatcher_items_fetched: 4",
        &["worker_dispatcher_items_fetched{} = 4"],
    );
    check(
        |m| m.record_orch_dispatcher_processing_duration(5),
        "",
        &["orchestration_dispatcher_processing_duration_ms{} = [5.0]"],
    );
    check(
        |m| m.record_worker_dispatcher_execution_duration(6),
        "",
        &["worker_dispatcher_execution_duration_ms{} = [6.0]"],
    );
}

#[test]
fn gauges_have_the_values_that_were_set() {
    let metrics = provider();
    let lines = recorded(|| {
        metrics.set_active_orchestrations(5);
        metrics.increment_active_orchestrations();
        metrics.increment_active_orchestrations();
        metrics.decrement_active_orchestrations();
        metrics.update_queue_depths(1, 1);
        metrics.update_queue_depths(7, 8);
        metrics.update_warm_cache(3, 4_096);
        assert_eq!((metrics.get_active_orchestrations(), metrics.get_queue_depths()), (6, (7, 8)));
        let backlog = QueueBacklog { due: 2, delayed: 9 };
        let gauges = StoreGauges {
            running_instances: 4,
            orchestrator_queue: 11,
            worker_queue: 12,
            orchestrator_backlog: Some(backlog),
            worker_backlog: None,
        };
        metrics.update_store_gauges(&gauges);
        metrics.update_held_gauges(HeldCounts { instances: 5, messages: 6 });
        assert_eq!(metrics.get_store_gauges(), gauges);
    });
    let expected = [
        "duroxide_active_orchestrations{} = 4",
        "duroxide_orchestrator_queue_depth{} = 11",
        "duroxide_worker_queue_depth{} = 12",
        "outlast_held_instances{} = 5",
        "outlast_queue_messages{queue=orchestrator, state=delayed} = 9",
        "outlast_queue_messages{queue=orchestrator, state=due} = 2",
        "outlast_queue_messages{queue=orchestrator, state=held} = 6",
        "outlast_warm_bytes{} = 4096",
        "outlast_warm_executions{} = 3",
    ];
    assert_eq!(lines, expected);
    assert_eq!((metrics.get_active_orchestrations(), metrics.get_queue_depths()), (4, (11, 12)));
    assert_eq!(metrics.snapshot(), MetricsSnapshot::default(), "gauges are not counts");
}

#[test]
fn metrics_beyond_the_contract_have_the_prefix_outlast() {
    let metrics = provider();
    let lines = recorded(|| {
        metrics.record_warm_hit();
        metrics.record_warm_miss();
        metrics.record_turn_ahead("queued");
        metrics.record_warm_evictions(3);
        metrics.record_lease_lost("turn");
        metrics.record_commit_retry("activity");
        metrics.record_dropped_messages("terminal", 5);
        metrics.record_activity_retry("A", 2, None);
        metrics.record_retention(7, 0, 2);
    });
    let expected = [
        "outlast_activity_retries_total{activity_name=A, retry_attempt=1, tag=default} = 1",
        "outlast_commit_retries_total{kind=activity} = 1",
        "outlast_dropped_messages_total{reason=terminal} = 5",
        "outlast_leases_lost_total{kind=turn} = 1",
        "outlast_retention_deleted_total{kind=dead_letter} = 2",
        "outlast_retention_deleted_total{kind=instance} = 7",
        "outlast_turns_ahead_total{result=queued} = 1",
        "outlast_warm_evictions_total{} = 3",
        "outlast_warm_hits_total{} = 1",
        "outlast_warm_misses_total{} = 1",
    ];
    assert_eq!(lines, expected);
    let counted = "warm_hits: 1, warm_misses: 1, turns_ahead: 1, warm_evictions: 3, leases_lost: 1, commit_retries: 1, \
                   dropped_messages: 5, activity_retries: 1";
    assert_eq!(non_zero(&metrics.outlast_snapshot()), counted);
    assert_eq!(metrics.snapshot(), MetricsSnapshot::default());
}

#[test]
fn snapshots_are_counted_without_a_recorder() {
    let metrics = provider();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..1_000).for_each(|_| metrics.record_activity_success()));
        }
    });
    assert_eq!(metrics.snapshot().activity_success, 4_000);
}

#[test]
fn poison_is_exported_as_zero_when_a_runtime_starts() {
    let lines = recorded(|| {
        let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tokio.block_on(async {
            let activities = ActivityRegistry::builder().build();
            let orchestrations = OrchestrationRegistry::builder().build();
            let store = Arc::new(MemoryProvider::new());
            Runtime::start_with_store(store, activities, orchestrations).await.shutdown(Some(0)).await;
        });
    });
    for name in ["duroxide_orchestration_poison_total", "duroxide_activity_poison_total"] {
        assert!(lines.contains(&format!("{name}{{}} = 0")), "{name} in {lines:#?}");
    }
}

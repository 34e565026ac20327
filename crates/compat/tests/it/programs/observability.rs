//! `runtime::observability::{ObservabilityConfig, MetricsProvider, ObservabilityHandle}`,
//! `providers::instrumented::InstrumentedProvider`: metrics as units.

use duroxide::providers::instrumented::InstrumentedProvider;
use duroxide::providers::sqlite::SqliteProvider;
use duroxide::providers::{Provider, WorkItem};
use duroxide::runtime::observability::{
    MetricsProvider, MetricsSnapshot, ObservabilityConfig, ObservabilityHandle,
};
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{ActivityContext, OrchestrationContext, OrchestrationRegistry};
use std::sync::Arc;
use std::time::Duration;

fn provider() -> MetricsProvider {
    MetricsProvider::new(&ObservabilityConfig::default()).unwrap()
}

#[test]
fn each_call_counts_once() {
    let metrics = provider();
    metrics.record_orchestration_start("Flow", "1.0.0", "client");
    metrics.record_orchestration_completion("Flow", "1.0.0", "success", 0.5, 3, 10);
    metrics.record_orchestration_failure("Flow", "1.0.0", "app_error", "application");
    metrics.record_orchestration_failure("Flow", "1.0.0", "infrastructure_error", "infrastructure");
    metrics.record_orchestration_failure("Flow", "1.0.0", "config_error", "configuration");
    metrics.record_orchestration_application_error();
    metrics.record_orchestration_infrastructure_error();
    metrics.record_orchestration_configuration_error();
    metrics.record_continue_as_new("Flow", 2);
    metrics.record_activity_execution("Act", "success", 0.1, 0, None);
    metrics.record_activity_execution("Act", "app_error", 0.1, 1, Some("gpu"));
    metrics.record_activity_execution("Act", "cancelled", 0.1, 1, None);
    metrics.record_activity_success();
    metrics.record_activity_app_error();
    metrics.record_activity_infra_error();
    metrics.record_activity_config_error();
    metrics.record_orchestration_poison();
    metrics.record_activity_poison();
    metrics.record_suborchestration_call("Flow", "Child", "success");
    metrics.record_suborchestration_duration("Flow", "Child", 0.1, "success");
    metrics.record_provider_operation("read", 0.01, "success");
    metrics.record_provider_error("read", "timeout");
    metrics.record_orch_dispatcher_items_fetched(3);
    metrics.record_orch_dispatcher_processing_duration(5);
    metrics.record_worker_dispatcher_items_fetched(4);
    metrics.record_worker_dispatcher_execution_duration(5);
    let expected = MetricsSnapshot {
        orch_starts: 1,
        orch_completions: 1,
        orch_failures: 6,
        orch_application_errors: 2,
        orch_infrastructure_errors: 2,
        orch_configuration_errors: 2,
        orch_poison: 1,
        activity_success: 2,
        activity_app_errors: 2,
        activity_infra_errors: 1,
        activity_config_errors: 1,
        activity_poison: 1,
        orch_dispatcher_items_fetched: 3,
        worker_dispatcher_items_fetched: 4,
        orch_continue_as_new: 1,
        suborchestration_calls: 1,
        provider_errors: 1,
    };
    assert_eq!(metrics.snapshot(), expected);
}

#[test]
fn gauges_return_the_set_values() {
    let metrics = provider();
    metrics.update_queue_depths(3, 4);
    assert_eq!(metrics.get_queue_depths(), (3, 4));
    metrics.set_active_orchestrations(5);
    metrics.increment_active_orchestrations();
    metrics.decrement_active_orchestrations();
    metrics.decrement_active_orchestrations();
    assert_eq!(metrics.get_active_orchestrations(), 4);
}

#[tokio::test]
async fn handle_counts_until_its_shutdown() {
    let handle = ObservabilityHandle::init(&ObservabilityConfig::default()).unwrap();
    handle.metrics_provider().record_activity_success();
    assert_eq!(handle.metrics_snapshot().activity_success, 1);
    handle.shutdown().await.unwrap();
    provider().shutdown().await.unwrap();
}

#[tokio::test]
async fn an_instrumented_store_is_a_store() {
    let inner = Arc::new(SqliteProvider::new_in_memory().await.unwrap());
    let metrics = Arc::new(provider());
    for metrics in [Some(metrics.clone()), None] {
        let store = InstrumentedProvider::new(inner.clone(), metrics);
        assert!(store.read("nobody").await.unwrap().is_empty());
        assert!(store.as_management_capability().is_some());
        let refused = store.ack_work_item("no such lease", None).await;
        assert!(refused.is_err());
        let message = WorkItem::QueueMessage { instance: "i".into(), name: "n".into(), data: "d".into() };
        store.enqueue_for_orchestrator(message, None).await.unwrap();
    }
    assert_eq!(metrics.snapshot().provider_errors, 1);
}

#[tokio::test]
async fn runtime_counts_its_turns_and_activities() {
    let activities = ActivityRegistry::builder()
        .register("Ok", |_: ActivityContext, _: String| async move { Ok(String::new()) })
        .register("Err", |_: ActivityContext, _: String| async move { Err("no".to_string()) })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("Flow", |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_activity("Ok", "").await?;
            ctx.schedule_activity("Err", "").await
        })
        .build();
    let (_store, rt, client) = super::started(activities, orchestrations).await;
    client.start_orchestration("flow", "Flow", "").await.unwrap();
    client.wait_for_orchestration("flow", Duration::from_secs(30)).await.unwrap();
    // A client may see a commit before the runtime has its answer; after the shutdown the runtime has counted it.
    rt.clone().shutdown(None).await;
    let snapshot: MetricsSnapshot = rt.metrics_snapshot().unwrap();
    assert!(snapshot.orch_starts >= 1 && snapshot.orch_failures >= 1, "{snapshot:?}");
    assert!(snapshot.activity_success >= 1 && snapshot.activity_app_errors >= 1, "{snapshot:?}");
    let handle: &ObservabilityHandle = rt.observability_handle().unwrap();
    assert_eq!(handle.metrics_snapshot(), snapshot);
}

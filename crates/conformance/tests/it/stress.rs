//! Short stress runs on the memory store; the other stores have their own.

use async_trait::async_trait;
use outlast_conformance::stress::large_payload::{LargePayloadConfig, run_large_payload_test_with_config};
use outlast_conformance::stress::parallel_orchestrations::{
    ProviderStressFactory, run_parallel_orchestrations_test,
};
use outlast_conformance::stress::{
    StressTestConfig, create_default_activities, create_default_orchestrations, run_stress_test,
};
use outlast_memory::MemoryProvider;
use outlast_provider::Provider;
use outlast_runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

struct InMemory;

#[async_trait]
impl ProviderStressFactory for InMemory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        Arc::new(MemoryProvider::new())
    }
    fn stress_test_config(&self) -> StressTestConfig {
        StressTestConfig { duration_secs: 1, ..StressTestConfig::default() }
    }
}

#[tokio::test]
async fn many_small_instances_all_complete() {
    let result = run_parallel_orchestrations_test(&InMemory).await.unwrap();
    assert!(result.launched > 0 && result.success_rate() == 100.0, "{result:?}");
    assert!(result.total_time >= Duration::from_secs(1), "{result:?}");
    let ratio = result.activity_throughput / result.orch_throughput;
    assert!((ratio - 5.0).abs() < 1e-6, "five activities each: {result:?}");
}

#[tokio::test]
async fn few_large_instances_all_complete() {
    let defaults = LargePayloadConfig::default();
    let base = StressTestConfig { max_concurrent: 2, duration_secs: 1, ..defaults.base.clone() };
    let config = LargePayloadConfig { base, ..defaults };
    let result = run_large_payload_test_with_config(&InMemory, config).await.unwrap();
    assert!(result.launched > 0 && result.success_rate() == 100.0, "{result:?}");
}

/// Each failure is counted by its kind, and every started instance is counted.
#[tokio::test]
async fn failures_are_counted_by_kind() {
    let config = StressTestConfig { max_concurrent: 2, duration_secs: 1, ..StressTestConfig::default() };
    let failing = OrchestrationRegistry::builder()
        .register("FanoutOrchestration", |_, _| async { Err("as it is written".to_string()) })
        .build();
    let store = Arc::new(MemoryProvider::new());
    let result = run_stress_test(config, store, ActivityRegistry::default(), failing).await.unwrap();
    assert!(result.launched > 2 && result.completed == 0, "{result:?}");
    assert_eq!((result.failed, result.failed_application), (result.launched, result.launched), "{result:?}");
    assert_eq!((result.failed_infrastructure, result.failed_configuration), (0, 0));
    assert_eq!((result.orch_throughput, result.avg_latency_ms, result.success_rate()), (0.0, 0.0, 0.0));
}

/// Instances of an earlier run on the store are not counted in this one.
#[tokio::test]
async fn a_second_run_on_a_store_counts_only_its_own_instances() {
    let performed = Arc::new(AtomicUsize::new(0));
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let mut completed = 0;
    for run in 1..=2 {
        let counted = Arc::clone(&performed);
        let count = move |_, task: String| {
            counted.fetch_add(1, Ordering::Relaxed);
            async move { Ok(task) }
        };
        let activities = ActivityRegistry::builder().register("ProcessTask", count).build();
        let config = StressTestConfig { max_concurrent: 3, duration_secs: 1, ..StressTestConfig::default() };
        let result = run_stress_test(config, Arc::clone(&store), activities, create_default_orchestrations());
        let result = result.await.unwrap();
        assert!(result.completed > 0 && result.success_rate() == 100.0, "run {run}: {result:?}");
        completed += result.completed;
        assert_eq!(performed.load(Ordering::Relaxed), completed * 5, "run {run}");
    }
    let listed = store.as_management_capability().unwrap().list_instances().await.unwrap();
    assert_eq!(listed.len(), completed, "numbers without gaps, each used once");
    let last = format!("stress-test-{}", completed - 1);
    assert!(listed.contains(&last), "{last}");
}

/// Without workers instances do not end: they count as failed after the timeout.
#[tokio::test(start_paused = true)]
async fn instances_that_do_not_end_in_time_count_as_failed() {
    let config = StressTestConfig {
        max_concurrent: 3,
        duration_secs: 2,
        worker_concurrency: 0,
        wait_timeout_secs: 5,
        ..StressTestConfig::default()
    };
    let (activities, orchestrations) = (create_default_activities(1), create_default_orchestrations());
    let store = Arc::new(MemoryProvider::new());
    let result = run_stress_test(config, store, activities, orchestrations).await.unwrap();
    assert_eq!((result.launched, result.completed, result.failed), (3, 0, 3), "{result:?}");
}

#[tokio::test]
async fn a_run_that_cannot_be_made_is_an_error() {
    let store = || Arc::new(MemoryProvider::new());
    let nothing = OrchestrationRegistry::default();
    let error =
        run_stress_test(StressTestConfig::default(), store(), ActivityRegistry::default(), nothing).await;
    assert_eq!(error.unwrap_err().to_string(), "the orchestration registry has no 'FanoutOrchestration'");
    let config = StressTestConfig { max_concurrent: 0, ..StressTestConfig::default() };
    let orchestrations = create_default_orchestrations();
    let error = run_stress_test(config, store(), ActivityRegistry::default(), orchestrations).await;
    assert!(error.unwrap_err().to_string().starts_with("max_concurrent is 0"));
}

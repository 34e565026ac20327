//! The stress runs and the validations that need a runtime, as the author of a provider calls them.

use async_trait::async_trait;
use duroxide::provider_stress_tests::large_payload::{
    LargePayloadConfig, run_large_payload_test, run_large_payload_test_with_config,
};
use duroxide::provider_stress_tests::parallel_orchestrations::{
    ProviderStressFactory, run_parallel_orchestrations_test, run_parallel_orchestrations_test_with_config,
};
use duroxide::provider_stress_tests::{
    StressTestConfig, StressTestResult, create_default_activities, create_default_orchestrations,
    print_comparison_table, run_stress_test,
};
use duroxide::provider_validations::{ProviderFactory, race_replay};
use duroxide::providers::Provider;
use duroxide::providers::sqlite::SqliteProvider;
use duroxide::runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use std::sync::Arc;
use std::time::Duration;

struct SqliteStressFactory;

#[async_trait]
impl ProviderStressFactory for SqliteStressFactory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        Arc::new(SqliteProvider::new_in_memory().await.unwrap())
    }
    fn stress_test_config(&self) -> StressTestConfig {
        StressTestConfig { duration_secs: 1, ..Default::default() }
    }
}

#[tokio::test]
async fn parallel_run_completes_all_instances() {
    let quick = StressTestConfig {
        max_concurrent: 5,
        duration_secs: 1,
        tasks_per_instance: 2,
        activity_delay_ms: 5,
        orch_concurrency: 1,
        worker_concurrency: 1,
        wait_timeout_secs: 60,
    };
    let result = run_parallel_orchestrations_test_with_config(&SqliteStressFactory, quick).await.unwrap();
    assert_eq!(result.success_rate(), 100.0, "{result:?}");
    assert!(result.launched > 0 && result.total_time > Duration::ZERO);
    let own =
        run_parallel_orchestrations_test(&SqliteStressFactory).await.expect("the factory's configuration");
    assert_eq!((own.failed, own.success_rate()), (0, 100.0), "{own:?}");
    print_comparison_table(&[("SQLite".to_string(), "quick".to_string(), result)]);
}

#[tokio::test]
async fn large_payload_run_completes_all_instances() {
    let config = LargePayloadConfig {
        base: StressTestConfig { max_concurrent: 2, duration_secs: 1, ..Default::default() },
        small_payload_kb: 10,
        medium_payload_kb: 50,
        large_payload_kb: 100,
        activity_count: 6,
        sub_orch_count: 2,
    };
    let result = run_large_payload_test_with_config(&SqliteStressFactory, config).await.unwrap();
    assert!(result.completed > 0 && result.success_rate() == 100.0, "{result:?}");
}

/// A program with its own registries, whose orchestration has the name that stress runs start.
#[tokio::test]
async fn stress_run_with_own_registries_completes() {
    let activities = ActivityRegistry::builder_from(&create_default_activities(1)).build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("FanoutOrchestration", |ctx, input: String| async move {
            let input: serde_json::Value = serde_json::from_str(&input).map_err(|e| e.to_string())?;
            let count = input["task_count"].as_u64().ok_or("no task_count")?;
            for n in 0..count {
                ctx.schedule_activity("ProcessTask", n.to_string()).await?;
            }
            Ok(count.to_string())
        })
        .build();
    let config = StressTestConfig { duration_secs: 1, max_concurrent: 4, ..Default::default() };
    let provider = SqliteStressFactory.create_provider().await;
    let result: StressTestResult =
        run_stress_test(config, provider, activities, orchestrations).await.expect("the run was made");
    assert!(result.completed > 0 && result.success_rate() == 100.0, "{result:?}");
}

/// The signatures as outside code writes them.
#[allow(dead_code, reason = "compiling it is the test")]
async fn signatures(factory: &dyn ProviderStressFactory) -> Result<(), Box<dyn std::error::Error>> {
    let result: StressTestResult = run_large_payload_test(factory).await?;
    let _: OrchestrationRegistry = create_default_orchestrations();
    let _: (usize, usize, usize) = (result.launched, result.completed, result.failed);
    let _: usize = result.failed_infrastructure + result.failed_configuration + result.failed_application;
    let _: f64 = result.orch_throughput + result.activity_throughput + result.avg_latency_ms;
    Ok(())
}

struct SqliteFactory;

#[async_trait]
impl ProviderFactory for SqliteFactory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        Arc::new(SqliteProvider::new_in_memory().await.unwrap())
    }
    fn lock_timeout(&self) -> Duration {
        Duration::from_secs(1)
    }
}

#[tokio::test]
async fn continue_as_new_transition_is_delivered_with_both_stamps() {
    race_replay::test_continue_as_new_transition_delivery(&SqliteFactory, "0.1.30").await;
    race_replay::test_continue_as_new_transition_delivery(&SqliteFactory, "0.1.31").await;
}

macro_rules! race_replay {
    ($($name:ident),+ $(,)?) => {
        $(#[tokio::test]
        async fn $name() {
            race_replay::$name(&SqliteFactory).await;
        })+
    };
}

race_replay! {
    test_duplicate_start_preserves_pinned_handler, test_continue_as_new_unregistered_backoff,
    test_continue_as_new_poisoned_successor_is_own_execution, test_continue_as_new_duplicate_start,
    test_queue_race_cancellation_replay, test_continue_as_new_queue_race_replay,
    test_queue_replay_version_stamp_roundtrip, test_positional_wait_race_replay,
    test_legacy_queue_race_decision_preserved,
}

//! Short stress runs in memory and on a file: every orchestration completes.

use async_trait::async_trait;
use outlast_conformance::stress::large_payload::{LargePayloadConfig, run_large_payload_test_with_config};
use outlast_conformance::stress::parallel_orchestrations::{
    ProviderStressFactory, run_parallel_orchestrations_test,
};
use outlast_conformance::stress::{StressTestConfig, StressTestResult};
use outlast_provider::Provider;
use outlast_sqlite::SqliteProvider;
use std::sync::Arc;
use tempfile::TempDir;

/// Stores in memory, or in files of a folder.
enum Stores {
    Memory,
    Files(TempDir),
}

#[async_trait]
impl ProviderStressFactory for Stores {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        let store = match self {
            Self::Memory => SqliteProvider::new_in_memory().await,
            Self::Files(folder) => {
                SqliteProvider::new(&format!("sqlite:{}/stress.db", folder.path().display()), None).await
            }
        };
        Arc::new(store.unwrap())
    }
    fn stress_test_config(&self) -> StressTestConfig {
        StressTestConfig { duration_secs: 1, ..StressTestConfig::default() }
    }
}

impl Stores {
    fn files() -> Self {
        Self::Files(tempfile::tempdir().unwrap())
    }
}

fn assert_all_completed(result: &StressTestResult) {
    assert!(result.launched > 0 && result.success_rate() == 100.0, "{result:?}");
}

#[tokio::test]
async fn many_small_instances_complete_in_memory() {
    assert_all_completed(&run_parallel_orchestrations_test(&Stores::Memory).await.unwrap());
}

#[tokio::test]
async fn many_small_instances_complete_on_a_file() {
    assert_all_completed(&run_parallel_orchestrations_test(&Stores::files()).await.unwrap());
}

async fn large(stores: Stores) -> StressTestResult {
    let defaults = LargePayloadConfig::default();
    let base = StressTestConfig { max_concurrent: 2, duration_secs: 1, ..defaults.base.clone() };
    run_large_payload_test_with_config(&stores, LargePayloadConfig { base, ..defaults }).await.unwrap()
}

#[tokio::test]
async fn few_large_instances_complete_in_memory() {
    assert_all_completed(&large(Stores::Memory).await);
}

#[tokio::test]
async fn few_large_instances_complete_on_a_file() {
    assert_all_completed(&large(Stores::files()).await);
}

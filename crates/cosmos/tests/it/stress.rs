//! Short runs of the runtime: every instance completes.

use crate::factory::{fresh_config, quiet_target};
use async_trait::async_trait;
use outlast_conformance::stress::StressTestConfig;
use outlast_conformance::stress::parallel_orchestrations::{
    ProviderStressFactory, run_parallel_orchestrations_test,
};
use outlast_cosmos::CosmosDBProvider;
use outlast_cosmos_rig::Target;
use outlast_provider::Provider;
use std::sync::Arc;

struct Stores(Target);

#[async_trait]
impl ProviderStressFactory for Stores {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        Arc::new(CosmosDBProvider::new_with_config(fresh_config(&self.0)).await.unwrap())
    }
    fn stress_test_config(&self) -> StressTestConfig {
        StressTestConfig { duration_secs: 1, max_concurrent: 4, ..StressTestConfig::default() }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn orchestrations_with_parallel_activities_complete() {
    let result = run_parallel_orchestrations_test(&Stores(quiet_target().await)).await.unwrap();
    assert!(result.launched > 0 && result.success_rate() == 100.0, "{result:?}");
}

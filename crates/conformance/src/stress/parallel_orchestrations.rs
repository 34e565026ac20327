//! Many instances at once, each a fan-out of short activities.

use super::StressTestConfig;
#[cfg(feature = "runtime")]
use super::{StressTestResult, create_default_activities, create_default_orchestrations, run_stress_test};
use async_trait::async_trait;
use outlast_provider::Provider;
use std::sync::Arc;

/// Creates the stores that stress runs are made on.
#[async_trait]
pub trait ProviderStressFactory: Send + Sync {
    /// A clean store.
    async fn create_provider(&self) -> Arc<dyn Provider>;

    /// The configuration of the runs.
    fn stress_test_config(&self) -> StressTestConfig {
        StressTestConfig::default()
    }
}

/// Runs the factory's own configuration.
///
/// Cancellation safety: as [`run_stress_test`].
#[cfg(feature = "runtime")]
pub async fn run_parallel_orchestrations_test(
    factory: &dyn ProviderStressFactory,
) -> Result<StressTestResult, Box<dyn std::error::Error>> {
    run_parallel_orchestrations_test_with_config(factory, factory.stress_test_config()).await
}

/// Runs a configuration on one of the factory's stores.
///
/// Cancellation safety: as [`run_stress_test`].
#[cfg(feature = "runtime")]
pub async fn run_parallel_orchestrations_test_with_config(
    factory: &dyn ProviderStressFactory,
    config: StressTestConfig,
) -> Result<StressTestResult, Box<dyn std::error::Error>> {
    let activities = create_default_activities(config.activity_delay_ms);
    let provider = factory.create_provider().await;
    run_stress_test(config, provider, activities, create_default_orchestrations()).await
}

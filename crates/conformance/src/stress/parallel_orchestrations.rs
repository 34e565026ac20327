//! Many instances at once, each a fan-out of short activities.

use super::StressTestConfig;
use async_trait::async_trait;
use outlast_provider::Provider;
use std::sync::Arc;

/// Creates the stores that stress runs are made on.
#[async_trait]
pub trait ProviderStressFactory: Send + Sync {
    /// A clean store.
    async fn create_provider(&self) -> Arc<dyn Provider>;

    /// How hard to push it.
    fn stress_test_config(&self) -> StressTestConfig {
        StressTestConfig::default()
    }
}

//! What a runtime holds for its logs and metrics.

use super::logging::{self, LoggingError};
use super::{MetricsProvider, MetricsSnapshot, ObservabilityConfig};
use std::sync::Arc;

/// Gives access to a runtime's metrics.
#[derive(Debug, Default)]
pub struct ObservabilityHandle {
    metrics: Arc<MetricsProvider>,
}

impl ObservabilityHandle {
    /// Sets up logging for the process, unless somebody has, and metrics that count from zero.
    ///
    /// # Errors
    /// If [`ObservabilityConfig::log_level`] is none.
    pub fn init(config: &ObservabilityConfig) -> Result<Self, String> {
        match logging::install(config) {
            Ok(()) | Err(LoggingError::Installed(_)) => Ok(Self::without_logging()),
            Err(error @ LoggingError::Level(_)) => Err(error.into()),
        }
    }

    /// Metrics only: a runtime does not touch the subscriber of its process (ruling 30).
    pub(crate) fn without_logging() -> Self {
        Self::default()
    }

    /// The metrics.
    pub fn metrics_provider(&self) -> &Arc<MetricsProvider> {
        &self.metrics
    }

    /// Ends observation. There is nothing to flush; exporters belong to the caller.
    ///
    /// # Errors
    /// None.
    pub async fn shutdown(self) -> Result<(), String> {
        Ok(())
    }

    /// The counts so far.
    pub fn metrics_snapshot(&self) -> MetricsSnapshot {
        self.metrics.snapshot()
    }
}

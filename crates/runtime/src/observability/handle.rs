//! The handle to a runtime's metrics.

use super::logging::{self, LoggingError};
use super::{MetricsProvider, MetricsSnapshot, ObservabilityConfig};
use std::sync::Arc;

/// Gives access to a runtime's metrics.
#[derive(Debug, Default)]
pub struct ObservabilityHandle {
    metrics: Arc<MetricsProvider>,
}

impl ObservabilityHandle {
    /// Installs a log subscriber for the process, unless one is installed, and creates metrics that count from zero.
    ///
    /// # Errors
    /// If [`ObservabilityConfig::log_level`] is not a level.
    pub fn init(config: &ObservabilityConfig) -> Result<Self, String> {
        match logging::install(config) {
            Ok(()) | Err(LoggingError::Installed(_)) => Ok(Self::without_logging()),
            Err(error @ LoggingError::Level(_)) => Err(error.into()),
        }
    }

    /// A handle without a log subscriber: a runtime does not change the subscriber of its process (ruling 30).
    pub(crate) fn without_logging() -> Self {
        Self::default()
    }

    /// The metrics.
    pub fn metrics_provider(&self) -> &Arc<MetricsProvider> {
        &self.metrics
    }

    /// Does nothing: there is nothing to flush, and exporters belong to the caller.
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

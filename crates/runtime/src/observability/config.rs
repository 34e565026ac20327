//! The configuration of logs and metrics.

use std::time::Duration;

/// The format of log records.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// One JSON object per line.
    Json,
    /// Several lines per record, for human readers.
    Pretty,
    /// One line per record.
    #[default]
    Compact,
}

/// Logs and metrics of a runtime. A runtime installs no subscriber by itself: call
/// [`init_logging`](super::init_logging), or install one of your own.
#[derive(Debug, Clone)]
pub struct ObservabilityConfig {
    /// The format of log records.
    pub log_format: LogFormat,
    /// The level for log records of orchestrations and activities: `error`, `warn`, `info`, `debug` or `trace`.
    pub log_level: String,
    /// Name of the service; kept for exporters.
    pub service_name: String,
    /// Version of the service; kept for exporters.
    pub service_version: Option<String>,
    /// The interval at which the gauges are read from the store.
    pub gauge_poll_interval: Duration,
}

impl Default for ObservabilityConfig {
    fn default() -> Self {
        Self {
            log_format: LogFormat::Pretty,
            log_level: "info".to_string(),
            service_name: "duroxide".to_string(),
            service_version: None,
            gauge_poll_interval: Duration::from_secs(60),
        }
    }
}

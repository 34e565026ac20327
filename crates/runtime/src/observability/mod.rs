//! Logs and metrics.

mod config;
mod handle;
mod logging;
mod metrics;
mod snapshot;
mod stopwatch;

pub use config::{LogFormat, ObservabilityConfig};
pub use handle::ObservabilityHandle;
pub use logging::init_logging;
pub use metrics::MetricsProvider;
pub(crate) use metrics::Operation;
pub use snapshot::{MetricsSnapshot, OutlastMetricsSnapshot};
pub(crate) use stopwatch::Stopwatch;

//! Few instances with large inputs, outputs and histories.

#[cfg(feature = "runtime")]
mod run;

#[cfg(feature = "runtime")]
pub use run::{run_large_payload_test, run_large_payload_test_observed, run_large_payload_test_with_config};

use super::StressTestConfig;

/// A run with large payloads.
#[derive(Debug, Clone)]
pub struct LargePayloadConfig {
    /// Width and length of the run.
    pub base: StressTestConfig,
    /// Size of small payloads.
    pub small_payload_kb: usize,
    /// Size of medium payloads.
    pub medium_payload_kb: usize,
    /// Size of large payloads.
    pub large_payload_kb: usize,
    /// Activities per instance.
    pub activity_count: usize,
    /// Children per instance.
    pub sub_orch_count: usize,
}

impl Default for LargePayloadConfig {
    fn default() -> Self {
        Self {
            base: StressTestConfig {
                max_concurrent: 5,
                duration_secs: 10,
                tasks_per_instance: 1,
                activity_delay_ms: 5,
                orch_concurrency: 1,
                worker_concurrency: 1,
                wait_timeout_secs: 120,
            },
            small_payload_kb: 10,
            medium_payload_kb: 50,
            large_payload_kb: 100,
            activity_count: 20,
            sub_orch_count: 5,
        }
    }
}

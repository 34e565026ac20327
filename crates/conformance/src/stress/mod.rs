//! Stress runs: a runtime under load on a store. Configuration, results, and comparison of runs.
//!
//! The runs need the feature `runtime`; configurations and results do not.

#[cfg(feature = "runtime")]
mod defaults;
pub mod large_payload;
pub mod parallel_orchestrations;
mod progress;
#[cfg(feature = "runtime")]
mod run;

use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::time::Duration;

pub use progress::StressProgress;

#[cfg(feature = "runtime")]
pub use defaults::{create_default_activities, create_default_orchestrations};
#[cfg(feature = "runtime")]
pub use run::{run_stress_test, run_stress_test_observed};

/// The load, duration and concurrency of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StressTestConfig {
    /// The most instances that run at the same time.
    pub max_concurrent: usize,
    /// The time during which instances are started.
    pub duration_secs: u64,
    /// Activities per instance.
    pub tasks_per_instance: usize,
    /// The duration of each activity.
    pub activity_delay_ms: u64,
    /// The most turns at the same time.
    pub orch_concurrency: usize,
    /// The most activities at the same time.
    pub worker_concurrency: usize,
    /// The longest time of an instance.
    #[serde(default = "default_wait_timeout_secs")]
    pub wait_timeout_secs: u64,
}

fn default_wait_timeout_secs() -> u64 {
    60
}

impl Default for StressTestConfig {
    fn default() -> Self {
        Self {
            max_concurrent: 20,
            duration_secs: 10,
            tasks_per_instance: 5,
            activity_delay_ms: 10,
            orch_concurrency: 2,
            worker_concurrency: 2,
            wait_timeout_secs: default_wait_timeout_secs(),
        }
    }
}

/// The results of a run.
#[derive(Debug, Clone)]
pub struct StressTestResult {
    /// Instances started.
    pub launched: usize,
    /// Instances that completed.
    pub completed: usize,
    /// Instances that failed, could not be started or did not end in time.
    pub failed: usize,
    /// Failures of store or runtime, poison included.
    pub failed_infrastructure: usize,
    /// Failures of configuration.
    pub failed_configuration: usize,
    /// Failures of the orchestration's own code.
    pub failed_application: usize,
    /// Time of the whole run.
    pub total_time: Duration,
    /// Completed instances per second.
    pub orch_throughput: f64,
    /// Activities per second.
    pub activity_throughput: f64,
    /// Time of the run by completed instances; not the latency of one.
    pub avg_latency_ms: f64,
}

impl StressTestResult {
    /// Completed among launched, in percent; 0 if none was launched.
    pub fn success_rate(&self) -> f64 {
        match self.launched {
            0 => 0.0,
            launched => self.completed as f64 / launched as f64 * 100.0,
        }
    }
}

/// Prints runs side by side: store, configuration, result.
#[allow(clippy::print_stdout, reason = "its name says so")]
pub fn print_comparison_table(results: &[(String, String, StressTestResult)]) {
    print!("{}", comparison_table(results));
}

fn comparison_table(results: &[(String, String, StressTestResult)]) -> String {
    let mut table = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        table,
        "{:<24} {:<20} {:>10} {:>8} {:>9} {:>12} {:>12} {:>12}",
        "store", "configuration", "completed", "failed", "success", "orch/s", "activities/s", "ms per orch"
    );
    for (store, configuration, result) in results {
        let _ = writeln!(
            table,
            "{store:<24} {configuration:<20} {:>10} {:>8} {:>7.2} % {:>12.2} {:>12.2} {:>12.2}",
            result.completed,
            result.failed,
            result.success_rate(),
            result.orch_throughput,
            result.activity_throughput,
            result.avg_latency_ms
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(launched: usize, completed: usize) -> StressTestResult {
        StressTestResult {
            launched,
            completed,
            failed: launched - completed,
            failed_infrastructure: 0,
            failed_configuration: 0,
            failed_application: launched - completed,
            total_time: Duration::from_secs(2),
            orch_throughput: 12.5,
            activity_throughput: 62.5,
            avg_latency_ms: 80.0,
        }
    }

    #[test]
    fn the_success_rate_is_a_percentage_and_zero_without_instances() {
        assert_eq!([result(0, 0), result(8, 6), result(4, 4)].map(|r| r.success_rate()), [0.0, 75.0, 100.0]);
    }

    #[test]
    fn a_configuration_without_a_wait_timeout_waits_a_minute() {
        let mut json =
            serde_json::to_value(StressTestConfig { wait_timeout_secs: 5, ..Default::default() }).unwrap();
        json.as_object_mut().unwrap().remove("wait_timeout_secs");
        let config: StressTestConfig = serde_json::from_value(json).unwrap();
        assert_eq!((config.wait_timeout_secs, config.max_concurrent, config.tasks_per_instance), (60, 20, 5));
    }

    #[test]
    fn the_table_has_a_line_per_run() {
        let table = comparison_table(&[("sqlite".into(), "2/2".into(), result(8, 6))]);
        let line = table.lines().nth(1).unwrap();
        for part in ["sqlite", "2/2", "6", "75.00 %", "12.50", "62.50", "80.00"] {
            assert!(line.contains(part), "{part} in {line}");
        }
    }
}

//! The results of all runs, as text, as JSON and for the scoreboard.

use super::check::Check;
use super::preset::Plan;
use super::target::Opened;
use crate::output::table;
use outlast::provider_stress_tests::{StressProgress, StressTestResult};
use serde::Serialize;
use serde_json::{Map, Value, json};

#[derive(Default, Serialize)]
pub(super) struct Report {
    pub(super) runs: Vec<Run>,
    /// Empty unless requested.
    pub(super) checks: Vec<Check>,
}

#[derive(Serialize)]
pub(super) struct Run {
    pub(super) store: String,
    pub(super) pool_size: Option<u32>,
    pub(super) preset: &'static str,
    pub(super) dispatchers: usize,
    pub(super) workers: usize,
    in_flight: usize,
    activities: usize,
    activity_ms: u64,
    seconds: f64,
    launched: usize,
    completed: usize,
    failed: usize,
    pub(super) success_percent: f64,
    pub(super) orchestrations_per_second: f64,
    /// The most orchestrations per second that the activities allow.
    bound_per_second: Option<f64>,
    activities_per_second: f64,
    /// The duration of the run divided by the completed instances, which the suite calls average latency.
    pub(super) ms_per_orchestration: f64,
    /// From the start of an instance to the notification of its end.
    latency_p50_ms: f64,
    latency_p99_ms: f64,
}

impl Run {
    pub(super) fn new(
        opened: &Opened,
        preset: &'static str,
        plan: &Plan,
        result: &StressTestResult,
        progress: &StressProgress,
    ) -> Self {
        let base = plan.base();
        Self {
            store: opened.label.clone(),
            pool_size: opened.pool_size,
            preset,
            dispatchers: base.orch_concurrency,
            workers: base.worker_concurrency,
            in_flight: base.max_concurrent,
            activities: plan.activities(),
            activity_ms: base.activity_delay_ms,
            seconds: result.total_time.as_secs_f64(),
            launched: result.launched,
            completed: result.completed,
            failed: result.failed,
            success_percent: result.success_rate(),
            orchestrations_per_second: result.orch_throughput,
            bound_per_second: plan.bound_per_second(),
            activities_per_second: result.activity_throughput,
            ms_per_orchestration: result.avg_latency_ms,
            latency_p50_ms: progress.latency(0.5).as_secs_f64() * 1_000.0,
            latency_p99_ms: progress.latency(0.99).as_secs_f64() * 1_000.0,
        }
    }

    /// Preset and width, as in `default 2/2`.
    fn title(&self) -> String {
        format!("{} {}/{}", self.preset, self.dispatchers, self.workers)
    }

    fn row(&self) -> Vec<String> {
        let number = |value: f64| format!("{value:.1}");
        vec![
            self.store.clone(),
            self.title(),
            self.completed.to_string(),
            self.failed.to_string(),
            number(self.orchestrations_per_second),
            self.bound_per_second.map_or("-".to_string(), number),
            number(self.activities_per_second),
            number(self.ms_per_orchestration),
            number(self.latency_p50_ms),
            number(self.latency_p99_ms),
        ]
    }
}

impl Report {
    /// Whether every instance completed and every check holds.
    pub(super) fn is_fine(&self) -> bool {
        self.runs.iter().all(|run| run.failed == 0) && self.checks.iter().all(|check| check.met)
    }

    pub(super) fn text(&self) -> String {
        let header = [
            "STORE",
            "PRESET",
            "COMPLETED",
            "FAILED",
            "ORCH/S",
            "BOUND/S",
            "ACTIVITIES/S",
            "MS/ORCH",
            "P50 MS",
            "P99 MS",
        ];
        let rows: Vec<Vec<String>> = self.runs.iter().map(Run::row).collect();
        let mut text = table(&header, &rows);
        for check in &self.checks {
            text.push_str(&check.text());
        }
        text
    }

    /// Results by store and preset, in the format of `cargo xtask scoreboard add stress`.
    pub(super) fn figures(&self) -> Value {
        let mut stores = Map::new();
        for run in &self.runs {
            let figures = json!({
                "completed": run.completed,
                "failed": run.failed,
                "orchestrations_per_second": run.orchestrations_per_second,
                "ms_per_orchestration": run.ms_per_orchestration,
                "latency_p50_ms": run.latency_p50_ms,
                "latency_p99_ms": run.latency_p99_ms,
            });
            let store = stores.entry(run.store.clone()).or_insert_with(|| json!({}));
            if let Some(presets) = store.as_object_mut() {
                presets.insert(run.title(), figures);
            }
        }
        let missed: Vec<&str> =
            self.checks.iter().filter(|check| !check.met).map(|check| check.target.as_str()).collect();
        if !self.checks.is_empty() {
            stores.insert("checks".to_string(), json!(self.checks.len()));
            stores.insert("checks_missed".to_string(), json!(missed));
        }
        Value::Object(stores)
    }
}

#[cfg(test)]
impl Run {
    /// A run with these results, for tests.
    pub(super) fn with_figures(store: &str, preset: &'static str, success_percent: f64, rate: f64) -> Self {
        Self {
            store: store.to_string(),
            pool_size: None,
            preset,
            dispatchers: 1,
            workers: 1,
            in_flight: 20,
            activities: 5,
            activity_ms: 10,
            seconds: 10.0,
            launched: 100,
            completed: 100,
            failed: 0,
            success_percent,
            orchestrations_per_second: rate,
            bound_per_second: None,
            activities_per_second: rate * 5.0,
            ms_per_orchestration: 1_000.0 / rate,
            latency_p50_ms: 1.0,
            latency_p99_ms: 2.0,
        }
    }
}

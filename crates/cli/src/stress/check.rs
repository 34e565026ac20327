//! The targets of `--check`: those of the published stress configuration that its activities allow.

use super::report::Run;
use serde::Serialize;

/// Orchestrations per second of `baseline`, at least.
const BASELINE_PER_SECOND: f64 = 10.0;
/// Milliseconds per orchestration of `baseline`, below.
const BASELINE_MS: f64 = 200.0;
/// Milliseconds per orchestration of `default`, below.
const DEFAULT_MS: f64 = 100.0;
/// The least factor between the orchestrations per second of `default` and of `baseline`.
const SCALING: f64 = 1.3;

#[derive(Serialize)]
pub(super) struct Check {
    pub(super) target: String,
    found: f64,
    pub(super) met: bool,
}

impl Check {
    fn new(run: &Run, target: &str, found: f64, met: bool) -> Self {
        Self { target: format!("{}: {target}", run.store), found, met }
    }

    pub(super) fn text(&self) -> String {
        format!("{} {}: {:.1}\n", if self.met { "met   " } else { "MISSED" }, self.target, self.found)
    }
}

/// All targets that apply to these runs.
pub(super) fn targets(runs: &[Run]) -> Vec<Check> {
    let mut checks = Vec::new();
    for run in runs {
        let success = run.success_percent;
        checks.push(Check::new(run, &format!("{} completes 100 %", run.preset), success, success >= 100.0));
        let (rate, each) = (run.orchestrations_per_second, run.ms_per_orchestration);
        match run.preset {
            "baseline" => {
                let target = format!("baseline does at least {BASELINE_PER_SECOND} orchestrations/s");
                checks.push(Check::new(run, &target, rate, rate >= BASELINE_PER_SECOND));
                let target = format!("baseline takes below {BASELINE_MS} ms per orchestration");
                checks.push(Check::new(run, &target, each, each < BASELINE_MS));
            }
            "default" => {
                let target = format!("default takes below {DEFAULT_MS} ms per orchestration");
                checks.push(Check::new(run, &target, each, each < DEFAULT_MS));
                let is_baseline = |other: &&Run| other.store == run.store && other.preset == "baseline";
                if let Some(baseline) = runs.iter().find(is_baseline) {
                    let times = rate / baseline.orchestrations_per_second;
                    let target = format!("default does at least {SCALING} times as much as baseline");
                    checks.push(Check::new(run, &target, times, times >= SCALING));
                }
            }
            _ => {}
        }
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The targets that are missed, without the name of the store.
    fn missed(runs: &[Run]) -> Vec<String> {
        let missed = targets(runs).into_iter().filter(|check| !check.met);
        missed.map(|check| check.target.trim_start_matches("s: ").to_string()).collect()
    }

    #[test]
    fn results_below_a_target_are_reported() {
        let baseline = |rate| Run::with_figures("s", "baseline", 100.0, rate);
        let default = |rate| Run::with_figures("s", "default", 100.0, rate);
        assert_eq!(missed(&[baseline(16.0), default(33.0)]), [""; 0]);
        assert_eq!(targets(&[baseline(16.0), default(33.0)]).len(), 6);
        assert_eq!(
            missed(&[baseline(4.0)]),
            ["baseline does at least 10 orchestrations/s", "baseline takes below 200 ms per orchestration"]
        );
        assert_eq!(
            missed(&[baseline(16.0), default(18.0)]),
            ["default does at least 1.3 times as much as baseline"]
        );
        assert_eq!(missed(&[default(9.0)]), ["default takes below 100 ms per orchestration"]);
        assert_eq!(missed(&[Run::with_figures("s", "wide", 99.9, 300.0)]), ["wide completes 100 %"]);
        let elsewhere = Run::with_figures("other", "baseline", 100.0, 30.0);
        assert_eq!(missed(&[elsewhere, default(33.0)]), [""; 0], "stores are compared with themselves");
    }
}

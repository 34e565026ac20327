//! Worlds of the simulator: each seed is a check.

use super::{Outcome, Tally};
use crate::{process, sim};

/// Enough to meet every kind of trouble often, few enough for every run of the tests.
const SEEDS: &str = "0..500";

pub(super) fn run() -> Result<Outcome, String> {
    let command = process::cargo(&sim::call(&["--seeds", SEEDS].map(str::to_string)));
    let call = process::display(&command);
    let mut output = Output::default();
    let status = process::stream(command, |line| output.line(line))?;
    Ok(Outcome::Ran(output.finish(&call, status.success())))
}

/// Reads what the simulator prints.
#[derive(Default)]
struct Output {
    tally: Tally,
    has_ended: bool,
}

impl Output {
    fn line(&mut self, line: &str) {
        if let Some(failed) = line.strip_prefix("seed ").and_then(|rest| rest.split_once(" failed")) {
            self.tally.fail(format!("cargo xtask sim --seed {}", failed.0));
        } else if let Some(counts) =
            line.strip_prefix("sim: ").and_then(|rest| rest.split_once(" seeds passed"))
        {
            self.tally.passed += counts.0.parse().unwrap_or(0);
            self.has_ended = true;
        }
    }

    fn finish(mut self, call: &str, success: bool) -> Tally {
        if !self.has_ended || (!success && self.tally.failed == 0) {
            self.tally.fail(call);
        }
        self.tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, success: bool) -> (u64, u64, Vec<String>) {
        let mut output = Output::default();
        text.lines().for_each(|line| output.line(line));
        let tally = output.finish("call", success);
        (tally.passed, tally.failed, tally.failures)
    }

    #[test]
    fn seeds_are_counted_and_failures_named() {
        assert_eq!(read("table\nsim: 500 seeds passed, 0 failed\n", true), (500, 0, vec![]));
        let text =
            "seed 7 failed; faults: x\n  FAILED: I1\nseed 9 failed: I3\nsim: 498 seeds passed, 2 failed\n";
        let named = ["cargo xtask sim --seed 7", "cargo xtask sim --seed 9"].map(str::to_string);
        assert_eq!(read(text, false), (498, 2, named.to_vec()));
    }

    #[test]
    fn a_simulator_that_does_not_run_is_a_failure() {
        assert_eq!(read("error: could not compile", false), (0, 1, vec!["call".to_string()]));
        assert_eq!(read("", true), (0, 1, vec!["call".to_string()]));
    }
}

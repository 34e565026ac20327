//! Runs the simulator. Each call is one check. The seeds, known defects and sweeps of a call are counted as simulated runs.

use outlast_toolkit::process;

use super::{Outcome, Tally};
use crate::sim;

/// Enough seeds to inject every kind of fault often.
const SEEDS: &[&str] = &["--seeds", "0..2000"];
/// The seeds in which each known defect must be found.
const SCORE: &[&str] = &["--score", "0..200"];
/// A fault at every call, and at one in ten statements and polls.
const SWEEPS: [&[&str]; 3] = [
    &["--sweep", "calls"],
    &["--sweep", "statements", "--one-in", "10"],
    &["--sweep", "polls", "--one-in", "10"],
];

pub(super) fn run() -> Result<Outcome, String> {
    let mut tally = Tally::default();
    for args in [SEEDS, SCORE].into_iter().chain(SWEEPS) {
        let args: Vec<String> = args.iter().map(|arg| arg.to_string()).collect();
        let command = sim::command(&args);
        let call = process::display(&command);
        let mut output = Output::default();
        let status = process::stream(command, |line| output.line(line))?;
        tally.add(output.finish(&call, status.success()));
    }
    Ok(Outcome::Ran(tally))
}

/// Reads the output of the simulator.
#[derive(Default)]
struct Output {
    tally: Tally,
    has_ended: bool,
}

impl Output {
    fn line(&mut self, line: &str) {
        if let Some(failed) = line.strip_prefix("seed ").and_then(|rest| rest.split_once(" failed")) {
            self.tally.fail(format!("cargo xtask sim --seed {}", failed.0));
        } else if let Some((bug, _)) = line.split_once(" NOT FOUND") {
            self.tally.fail(format!("cargo xtask sim {} --bug {}", SCORE.join(" "), bug.trim()));
        } else if let Some((command, _)) = line.strip_prefix("FAILED ").and_then(|rest| rest.split_once(": "))
        {
            self.tally.fail(command);
        } else if let Some(passed) = line.strip_prefix("sim: ").and_then(passed) {
            self.tally.runs += passed;
            self.has_ended = true;
        }
    }

    fn finish(mut self, call: &str, success: bool) -> Tally {
        if !self.has_ended || (!success && self.tally.failed == 0) {
            self.tally.fail(call);
        }
        if self.tally.failed == 0 {
            self.tally.pass();
        }
        self.tally
    }
}

/// The number of passed seeds or runs, or of found defects.
fn passed(summary: &str) -> Option<u64> {
    let (count, rest) = summary.split_once(' ')?;
    let is_summary =
        ["seeds passed", "runs passed"].iter().any(|end| rest.starts_with(end)) || rest.starts_with("of ");
    is_summary.then_some(count)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, success: bool) -> (u64, u64, Vec<String>) {
        let mut output = Output::default();
        text.lines().for_each(|line| output.line(line));
        let tally = output.finish("call", success);
        assert_eq!(tally.passed, u64::from(tally.failed == 0), "a call is one check");
        (tally.runs, tally.failed, tally.failures)
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
    fn defects_are_counted_too() {
        let text = "LeaseNeverEnds    seed    0  I7\nKvReadEmpty  NOT FOUND in 200 seeds\nsim: 1 of 2 defects found, 9\n";
        let named = "cargo xtask sim --score 0..200 --bug KvReadEmpty".to_string();
        assert_eq!(read(text, false), (1, 1, vec![named]));
    }

    #[test]
    fn runs_of_a_sweep_are_counted_too() {
        let text = "hello polls 9 9 1\nFAILED cargo xtask sim --sweep polls --at 3: I1: gone\nsim: 8 runs passed, 1 failed\n";
        assert_eq!(read(text, false), (8, 1, vec!["cargo xtask sim --sweep polls --at 3".to_string()]));
    }

    #[test]
    fn a_simulator_that_does_not_run_is_a_failure() {
        assert_eq!(read("error: could not compile", false), (0, 1, vec!["call".to_string()]));
        assert_eq!(read("", true), (0, 1, vec!["call".to_string()]));
    }
}

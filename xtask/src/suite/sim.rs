//! Runs the simulator. Each call is one check. The seeds, known defects and sweeps of a call are counted as simulated runs.

use outlast_toolkit::process;

use super::Tally;
use super::tally::Said;
use crate::sim;

/// The seeds in which each known defect must be found.
const SCORE: &str = "--score 0..400";

const CALLS: [&str; 5] = [
    // Enough seeds to inject every kind of fault often.
    "--seeds 0..2000",
    SCORE,
    // A fault at every call, and at one in ten statements and polls.
    "--sweep calls",
    "--sweep statements --one-in 10",
    "--sweep polls --one-in 10",
];

pub(super) fn run() -> Result<Tally, String> {
    let mut total = Tally::default();
    for args in CALLS {
        let args: Vec<String> = args.split(' ').map(str::to_string).collect();
        let command = sim::command(&args);
        let call = process::display(&command);
        let mut tally = Tally::of(command, &call, read)?;
        tally.passed = u64::from(tally.failures.is_empty());
        total.add(tally);
    }
    Ok(total)
}

/// Reads a line of the simulator.
fn read(line: &str) -> Option<Said> {
    let failed = |call: String| Some(Said::Failed(call));
    if let Some((seed, _)) = line.strip_prefix("seed ").and_then(|rest| rest.split_once(" failed")) {
        return failed(format!("cargo xtask sim --seed {seed}"));
    }
    if let Some((bug, _)) = line.split_once(" NOT FOUND") {
        return failed(format!("cargo xtask sim {SCORE} --bug {}", bug.trim()));
    }
    if let Some((command, _)) = line.strip_prefix("FAILED ").and_then(|rest| rest.split_once(": ")) {
        return failed(command.to_string());
    }
    // The number of passed seeds or runs, or of found defects.
    let (count, rest) = line.strip_prefix("sim: ")?.split_once(' ')?;
    let is_summary = ["seeds passed", "runs passed", "of "].iter().any(|start| rest.starts_with(start));
    Some(Said::Ended { passed: 0, runs: is_summary.then_some(count)?.parse().ok()?, ignored: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::tally::counted;

    #[test]
    fn seeds_runs_and_defects_are_counted_and_failures_named() {
        for (text, runs, failures) in [
            ("table\nsim: 500 seeds passed, 0 failed\n", 500, &[][..]),
            (
                "seed 7 failed; faults: x\n  FAILED: I1\nseed 9 failed: I3\nsim: 498 seeds passed, 2 failed\n",
                498,
                &["cargo xtask sim --seed 7", "cargo xtask sim --seed 9"],
            ),
            (
                "LeaseNeverEnds    seed    0  I7\nKvReadEmpty  NOT FOUND in 200 seeds\nsim: 1 of 2 defects found, 9\n",
                1,
                &["cargo xtask sim --score 0..400 --bug KvReadEmpty"],
            ),
            (
                "hello polls 9 9 1\nFAILED cargo xtask sim --sweep polls --at 3: I1: gone\nsim: 8 runs passed, 1 failed\n",
                8,
                &["cargo xtask sim --sweep polls --at 3"],
            ),
        ] {
            let tally = counted(text, failures.is_empty(), read);
            assert_eq!(
                (tally.runs, tally.failures),
                (runs, failures.iter().map(ToString::to_string).collect())
            );
        }
        assert_eq!(counted("error: could not compile", false, read).counts(), (0, 1, 0));
    }
}

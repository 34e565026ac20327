//! Counted checks of a suite, and of the programs that it runs.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use outlast_toolkit::process;
use serde::{Deserialize, Serialize};

/// Counted checks of a test program or of a suite.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    /// The names of the failed checks.
    pub(crate) failures: Vec<String>,
    /// Simulated runs without a failure. They are not counted as tests: a thousand seeds repeat one test.
    pub(crate) runs: u64,
    /// Checks that were not run, by reason.
    pub(crate) skipped: BTreeMap<String, u64>,
    /// Checks that were not run because a tool is missing. The text contains the command that installs the tool.
    pub(crate) lacking: Vec<String>,
}

/// A line of the output of a program.
pub(super) enum Said {
    Failed(String),
    /// A part of the program did not run, for this reason.
    Skipped(String),
    /// The last line, with the counts.
    Ended {
        passed: u64,
        runs: u64,
        ignored: u64,
    },
}

impl Tally {
    pub(crate) fn failure(name: impl Into<String>) -> Self {
        Self { failures: vec![name.into()], ..Self::default() }
    }

    /// One check.
    pub(crate) fn single(name: impl Into<String>, passed: bool) -> Self {
        let mut tally = Self::default();
        tally.check(name, passed);
        tally
    }

    /// The suite cannot run on this machine.
    pub(crate) fn skipped(reason: &str) -> Self {
        Self { skipped: BTreeMap::from([(format!("whole suite: {reason}"), 1)]), ..Self::default() }
    }

    /// The suite did not run because a tool is missing.
    pub(crate) fn lacking(reason: impl Into<String>) -> Self {
        Self { lacking: vec![reason.into()], ..Self::default() }
    }

    /// Runs a program and counts its checks. `read` understands the lines of its output.
    pub(super) fn of(command: Command, call: &str, read: fn(&str) -> Option<Said>) -> Result<Self, String> {
        let mut output = Output::default();
        let status = process::stream(command, |line| output.add(read(line)))?;
        Ok(output.finish(call, status.success()))
    }

    /// Runs a program as [`Self::of`] does, with its output in `text`. A program that is silent for too long is killed.
    pub(super) fn collected(
        command: Command,
        silence: Duration,
        text: &mut String,
        read: fn(&str) -> Option<Said>,
    ) -> Result<Self, String> {
        let mut output = Output::default();
        let status = process::collect(command, silence, text, |line| output.add(read(line)))?;
        Ok(output.finish("the program", status.success()))
    }

    /// Passed, failed and skipped checks.
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        let skipped = self.skipped.values().sum::<u64>() + self.lacking.len() as u64;
        (self.passed, self.failures.len() as u64, skipped)
    }

    /// The result in CI, where a missing tool is a failure. On the machine of a contributor it stays a skip, because the
    /// contributor may not be allowed to install tools.
    pub(crate) fn in_ci(mut self) -> Self {
        self.failures.append(&mut self.lacking);
        self
    }

    pub(crate) fn fail(&mut self, name: impl Into<String>) {
        self.failures.push(name.into());
    }

    pub(crate) fn skip(&mut self, count: u64, reason: &str) {
        if count > 0 {
            *self.skipped.entry(reason.to_string()).or_default() += count;
        }
    }

    /// Counts a check that was not run because a tool is missing.
    pub(crate) fn lack(&mut self, reason: impl Into<String>) {
        self.lacking.push(reason.into());
    }

    /// Adds the counts of another tally.
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.runs += other.runs;
        self.lacking.extend(other.lacking);
        self.failures.extend(other.failures);
        other.skipped.iter().for_each(|(reason, count)| self.skip(*count, reason));
    }

    /// Counts one check.
    pub(crate) fn check(&mut self, name: impl Into<String>, passed: bool) {
        match passed {
            true => self.passed += 1,
            false => self.fail(name),
        }
    }
}

/// The output of a program.
#[derive(Default)]
struct Output {
    tally: Tally,
    has_ended: bool,
}

impl Output {
    /// Counts a line of the output.
    fn add(&mut self, said: Option<Said>) {
        match said {
            Some(Said::Failed(name)) => self.tally.fail(name),
            Some(Said::Skipped(reason)) => self.tally.skip(1, &reason),
            Some(Said::Ended { passed, runs, ignored }) => {
                self.has_ended = true;
                self.tally.passed += passed;
                self.tally.runs += runs;
                self.tally.skip(ignored, "ignored in source");
            }
            None => {}
        }
    }

    /// The counts of the whole output. An output without a result is a failure.
    fn finish(mut self, call: &str, success: bool) -> Tally {
        if !self.has_ended || (!success && self.tally.failures.is_empty()) {
            self.tally.fail(format!("{call}: ended without a result, see its output"));
        }
        self.tally
    }
}

/// Counts the checks of an output.
#[cfg(test)]
pub(super) fn counted(text: &str, success: bool, read: fn(&str) -> Option<Said>) -> Tally {
    let mut output = Output::default();
    text.lines().for_each(|line| output.add(read(line)));
    output.finish("call", success)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_is_a_skip_on_a_desk_and_a_failure_in_ci() {
        let mut here = Tally { passed: 2, ..Tally::default() };
        here.skip(1, "needs root");
        here.lack("PostgreSQL");
        assert_eq!(here.counts(), (2, 0, 2));
        let ci = here.in_ci();
        assert_eq!((ci.counts(), &ci.failures), ((2, 1, 1), &vec!["PostgreSQL".to_string()]));
        assert_eq!(ci.skipped["needs root"], 1, "a skip for another reason stays a skip");
        assert_eq!(Tally::lacking("strace").counts(), (0, 0, 1));
        assert_eq!(Tally::lacking("strace").in_ci().counts(), (0, 1, 0));
        assert_eq!(Tally::skipped("needs root").in_ci().counts(), (0, 0, 1));
    }

    #[test]
    fn a_program_that_ends_without_a_result_is_a_failure() {
        let read = |line: &str| match line {
            "end" => Some(Said::Ended { passed: 1, runs: 0, ignored: 0 }),
            _ => line.strip_prefix("failed ").map(|name| Said::Failed(name.to_string())),
        };
        let ended = |text: &str, success: bool| counted(text, success, read).counts();
        assert_eq!(ended("end", true), (1, 0, 0));
        assert_eq!(ended("failed a\nend", false), (1, 1, 0));
        assert_eq!(ended("failed a", false), (0, 2, 0));
        assert_eq!(ended("", true), (0, 1, 0), "no output is no success");
        assert_eq!(ended("end", false), (1, 1, 0));
    }
}

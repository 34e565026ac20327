//! The result of a suite.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How a suite ended.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Outcome {
    Ran(Tally),
    /// The suite cannot run on this machine, for this reason.
    Skipped(String),
    /// The suite did not run because a tool is missing. The text contains the command that installs the tool.
    Lacking(String),
}

/// Counted checks of a test program or of a suite.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    /// Simulated runs without a failure. They are not counted as tests: a thousand seeds repeat one test.
    pub(crate) runs: u64,
    /// Checks that were not run, by reason.
    pub(crate) skipped: BTreeMap<String, u64>,
    /// Checks that were not run because a tool is missing.
    pub(crate) lacking: Vec<String>,
    /// The names of the failed checks.
    pub(crate) failures: Vec<String>,
}

impl Outcome {
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        match self {
            Self::Ran(tally) => {
                let lacking = tally.lacking.len() as u64;
                (tally.passed, tally.failed, tally.skipped.values().sum::<u64>() + lacking)
            }
            Self::Skipped(_) | Self::Lacking(_) => (0, 0, 1),
        }
    }

    pub(crate) fn runs(&self) -> u64 {
        if let Self::Ran(tally) = self { tally.runs } else { 0 }
    }

    /// The outcome in CI, where a missing tool is a failure. On the machine of a contributor it stays a skip, because the
    /// contributor may not be allowed to install tools.
    pub(crate) fn in_ci(self) -> Self {
        match self {
            Self::Ran(mut tally) => {
                for reason in std::mem::take(&mut tally.lacking) {
                    tally.fail(reason);
                }
                Self::Ran(tally)
            }
            Self::Lacking(reason) => Self::Ran(Tally::failure(reason)),
            Self::Skipped(_) => self,
        }
    }
}

impl Tally {
    pub(crate) fn failure(name: impl Into<String>) -> Self {
        let mut tally = Self::default();
        tally.fail(name);
        tally
    }

    pub(crate) fn pass(&mut self) {
        self.passed += 1;
    }

    pub(crate) fn fail(&mut self, name: impl Into<String>) {
        self.failed += 1;
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
        self.failed += other.failed;
        self.failures.extend(other.failures);
        other.skipped.iter().for_each(|(reason, count)| self.skip(*count, reason));
    }

    /// Counts one check.
    pub(crate) fn check(&mut self, name: impl Into<String>, passed: bool) {
        if passed { self.pass() } else { self.fail(name) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_is_a_skip_on_a_desk_and_a_failure_in_ci() {
        let mut tally = Tally { passed: 2, ..Tally::default() };
        tally.skip(1, "needs root");
        tally.lack("PostgreSQL");
        let here = Outcome::Ran(tally);
        assert_eq!(here.counts(), (2, 0, 2));
        let Outcome::Ran(ci) = here.in_ci() else { panic!("it ran") };
        assert_eq!((ci.passed, ci.failed, ci.failures), (2, 1, vec!["PostgreSQL".to_string()]));
        assert_eq!(ci.skipped["needs root"], 1, "a skip for another reason stays a skip");
        assert_eq!(Outcome::Lacking("strace".to_string()).counts(), (0, 0, 1));
        assert_eq!(Outcome::Lacking("strace".to_string()).in_ci().counts(), (0, 1, 0));
        assert_eq!(Outcome::Skipped("needs root".to_string()).in_ci().counts(), (0, 0, 1));
    }
}

//! What a suite found out.

use std::collections::BTreeMap;

/// How a suite ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    Ran(Tally),
    /// It could not run on this machine, and why.
    Skipped(String),
}

/// Counted checks. They add up: over test binaries, over suites.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    /// How many were not run, by reason.
    pub(crate) skipped: BTreeMap<String, u64>,
    /// What failed, by name.
    pub(crate) failures: Vec<String>,
}

impl Outcome {
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        match self {
            Self::Ran(tally) => (tally.passed, tally.failed, tally.skipped.values().sum()),
            Self::Skipped(_) => (0, 0, 1),
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

    /// Both together.
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.failures.extend(other.failures);
        other.skipped.iter().for_each(|(reason, count)| self.skip(*count, reason));
    }

    /// One check that is a command: it passes when the command does.
    pub(crate) fn check(&mut self, name: impl Into<String>, passed: bool) {
        if passed { self.pass() } else { self.fail(name) }
    }
}

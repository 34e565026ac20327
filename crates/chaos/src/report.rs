//! The report of a run: named checks, figures, and skipped phases.

use outlast_testkit::figures;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// Number of findings that are printed for one check.
const SHOWN_FINDINGS: usize = 12;

#[derive(Default)]
pub(crate) struct Report {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    figures: Map<String, Value>,
}

impl Report {
    /// Prints a check. It passes if it has no findings.
    pub(crate) fn check(&mut self, name: &str, findings: &[String]) {
        if findings.is_empty() {
            self.passed += 1;
            return println!("  ok      {name}");
        }
        self.failed += 1;
        println!("  FAILED  {name}: {}", findings.len());
        findings.iter().take(SHOWN_FINDINGS).for_each(|finding| println!("            {finding}"));
        if findings.len() > SHOWN_FINDINGS {
            println!("            and {} more", findings.len() - SHOWN_FINDINGS);
        }
    }

    /// Prints a check with at most one finding.
    pub(crate) fn require(&mut self, name: &str, holds: bool, finding: impl FnOnce() -> String) {
        let findings = if holds { Vec::new() } else { vec![finding()] };
        self.check(name, &findings);
    }

    pub(crate) fn figure(&mut self, key: &str, value: impl Into<Value>) {
        self.figures.insert(key.to_string(), value.into());
    }

    /// A figure that is a count; 0 if it is missing.
    pub(crate) fn count(&self, key: &str) -> u64 {
        self.figures.get(key).and_then(Value::as_u64).unwrap_or(0)
    }

    /// Adds the checks of a part of the run, and its counts to those of earlier parts.
    pub(crate) fn add(&mut self, part: Self) {
        self.passed += part.passed;
        self.failed += part.failed;
        for (key, value) in part.figures {
            let sum = value.as_u64().map(|count| (self.count(&key) + count).into());
            self.figures.insert(key, sum.unwrap_or(value));
        }
    }

    /// Adds a figure for each count.
    pub(crate) fn histogram(&mut self, prefix: &str, counts: &BTreeMap<u64, u64>) {
        for (key, count) in counts {
            self.figure(&format!("{prefix}_{key}"), *count);
        }
    }

    pub(crate) fn skipped(&mut self, phase: &str, reason: &str) {
        println!("  skipped {phase}: {reason}");
        self.figure(&format!("skipped_{}", phase.replace('-', "_")), reason);
    }

    pub(crate) fn all_passed(&self) -> bool {
        self.failed == 0
    }

    pub(crate) fn write(&mut self, path: &Path) -> Result<(), String> {
        self.figure("checks_passed", self.passed);
        self.figure("checks_failed", self.failed);
        figures::write(path, &Value::Object(self.figures.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_parts_add_up() {
        let part = |kills: u64, name: &str| {
            let mut part = Report::default();
            part.require("holds", true, String::new);
            part.require("holds in the first part", kills == 1, String::new);
            part.figure("kills", kills);
            part.figure(name, name);
            part
        };
        let mut report = Report::default();
        report.add(part(1, "first"));
        report.add(part(20, "second"));
        assert_eq!((report.passed, report.failed, report.count("kills")), (3, 1, 21));
        assert_eq!(
            (&report.figures["first"], &report.figures["second"]),
            (&"first".into(), &"second".into())
        );
        assert_eq!(report.count("first"), 0);
    }
}

//! What a run found: named checks, figures, and parts that could not run here.

use outlast_testkit::figures;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// Findings of one check that are printed.
const SHOWN: usize = 12;

#[derive(Default)]
pub(crate) struct Report {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    figures: Map<String, Value>,
}

impl Report {
    /// A check; it passes if nothing was found. Both are printed at once.
    pub(crate) fn check(&mut self, name: &str, findings: &[String]) {
        if findings.is_empty() {
            self.passed += 1;
            return println!("  ok      {name}");
        }
        self.failed += 1;
        println!("  FAILED  {name}: {}", findings.len());
        findings.iter().take(SHOWN).for_each(|finding| println!("            {finding}"));
        if findings.len() > SHOWN {
            println!("            and {} more", findings.len() - SHOWN);
        }
    }

    /// A check with one possible finding.
    pub(crate) fn require(&mut self, name: &str, holds: bool, otherwise: impl FnOnce() -> String) {
        let findings = if holds { Vec::new() } else { vec![otherwise()] };
        self.check(name, &findings);
    }

    pub(crate) fn figure(&mut self, key: &str, value: impl Into<Value>) {
        self.figures.insert(key.to_string(), value.into());
    }

    /// Counts under one name.
    pub(crate) fn histogram(&mut self, prefix: &str, counts: &BTreeMap<u64, u64>) {
        for (key, count) in counts {
            self.figure(&format!("{prefix}_{key}"), *count);
        }
    }

    pub(crate) fn skipped(&mut self, phase: &str, reason: &str) {
        println!("  skipped {phase}: {reason}");
        self.figure(&format!("skipped_{}", phase.replace('-', "_")), reason);
    }

    pub(crate) fn is_good(&self) -> bool {
        self.failed == 0
    }

    pub(crate) fn write(&mut self, path: &Path) -> Result<(), String> {
        self.figure("checks_passed", self.passed);
        self.figure("checks_failed", self.failed);
        figures::write(path, &Value::Object(self.figures.clone()))
    }
}

//! The report: checks, and their findings.

use crate::output::plain;
use serde::Serialize;

/// The most findings of a check that the table shows.
const SHOWN: usize = 20;

#[derive(Serialize)]
pub(super) struct Report {
    store: String,
    pub(super) checks: Vec<Check>,
}

/// One check. Without a finding its summary says what was seen.
#[derive(Debug, Serialize)]
pub(super) struct Check {
    check: &'static str,
    says: String,
    findings: Vec<Finding>,
    /// The number of rows that `--fix` removed.
    pub(super) fixed: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct Finding {
    instance: Option<String>,
    sentence: String,
    /// The command that helps.
    command: Option<String>,
}

impl Check {
    pub(super) fn fine(check: &'static str, says: impl Into<String>) -> Self {
        Self { check, says: says.into(), findings: Vec::new(), fixed: 0 }
    }

    pub(super) fn found(&mut self, sentence: impl Into<String>) {
        self.findings.push(Finding { instance: None, sentence: sentence.into(), command: None });
    }

    pub(super) fn found_in(&mut self, instance: &str, sentence: impl Into<String>) {
        let instance = Some(instance.to_string());
        self.findings.push(Finding { instance, sentence: sentence.into(), command: None });
    }

    #[cfg(test)]
    pub(super) fn sentences(&self) -> Vec<String> {
        self.findings.iter().map(|finding| finding.sentence.clone()).collect()
    }

    /// The newest finding can be mended with a command.
    pub(super) fn mended_by(&mut self, command: Option<&str>) {
        if let Some(last) = self.findings.last_mut() {
            last.command = command.map(str::to_string);
        }
    }
}

impl Report {
    pub(super) fn new(store: String) -> Self {
        Self { store, checks: Vec::new() }
    }

    pub(super) fn has_findings(&self) -> bool {
        self.checks.iter().any(|check| !check.findings.is_empty())
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for check in &self.checks {
            match check.findings.len() {
                0 => text.push_str(&format!("ok       {:<13} {}\n", check.check, plain(&check.says))),
                _ => text.push_str(&format!("FINDING  {}\n", check.check)),
            }
            for finding in check.findings.iter().take(SHOWN) {
                text.push_str(&format!("         {}\n", plain(&finding.sentence)));
            }
            if check.findings.len() > SHOWN {
                text.push_str(&format!("         and {} more\n", check.findings.len() - SHOWN));
            }
        }
        let findings: usize = self.checks.iter().map(|check| check.findings.len()).sum();
        let store = plain(&self.store);
        text.push_str(&match findings {
            0 => format!("No findings in {store}.\n"),
            1 => format!("1 finding in {store}.\n"),
            findings => format!("{findings} findings in {store}.\n"),
        });
        text
    }
}

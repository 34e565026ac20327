//! Prints the result of a sweep and writes its figures.

use crate::report::{exit_code, write};
use outlast_sim::{Level, SweepResult};
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;

/// Number of failures that are printed in full.
const SHOWN: usize = 3;
/// Number of trace lines that are printed for each of them.
const TAIL: usize = 40;

pub(crate) fn swept(swept: &SweepResult, json: Option<&Path>, whole_trace: bool) -> ExitCode {
    println!("{:<28}{:<14}{:>9}{:>9}{:>9}", "script", "level", "moments", "runs", "failed");
    for row in &swept.rows {
        println!(
            "{:<28}{:<14}{:>9}{:>9}{:>9}",
            row.script,
            row.level.name(),
            row.moments,
            row.runs,
            row.failed
        );
    }
    for failure in swept.failures.iter().take(SHOWN) {
        let skipped = if whole_trace { 0 } else { failure.lines.len().saturating_sub(TAIL) };
        failure.lines.iter().skip(skipped).for_each(|line| println!("  {line}"));
        failure.failures.iter().for_each(|text| println!("  FAILED: {text}"));
    }
    // `cargo xtask test` parses these lines and the last one.
    for failure in &swept.failures {
        let text: String = failure.failures.join("; ").chars().take(300).collect();
        println!("FAILED cargo xtask sim {}: {text}", failure.command);
    }
    let calls = swept.runs(Level::Calls) + swept.runs(Level::SqliteCalls);
    let (statements, polls) = (swept.runs(Level::Statements), swept.runs(Level::Polls));
    let failed = swept.failures.len();
    let runs = calls + statements + polls;
    println!("sim: {} runs passed, {failed} failed", (runs + swept.rows.len()).saturating_sub(failed));
    let written = write(json, || {
        json!({
            "scripts": swept.scripts(),
            "call_runs": calls,
            "statement_runs": statements,
            "poll_runs": polls,
            "failed": failed,
        })
    });
    exit_code(failed == 0 && written)
}

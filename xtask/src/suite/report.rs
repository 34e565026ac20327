//! The summary at the end of `cargo xtask test`.

use std::fmt;
use std::time::Duration;

use outlast_toolkit::{Stopwatch, processor_time};
use serde::{Deserialize, Serialize};

use super::{Outcome, Tally};
use crate::test::is_ci;

/// The contents of the summary.
pub(crate) struct Report {
    pub(crate) lines: Vec<Line>,
    pub(crate) wall: Duration,
}

/// The result of one suite.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) suite: String,
    pub(crate) outcome: Outcome,
    pub(crate) time: Duration,
    /// The time that the processes of the suite used the processors, where the system tells it.
    pub(crate) processor: Option<Duration>,
}

impl Line {
    /// Runs a suite. An error is a failure of the suite.
    pub(crate) fn of(suite: &str, check: impl FnOnce() -> Result<Outcome, String>) -> Self {
        let watch = Stopwatch::start();
        let before = processor_time();
        let outcome = check().unwrap_or_else(|message| {
            println!("{message}");
            Outcome::Ran(Tally::failure(message.lines().next().unwrap_or_default()))
        });
        let outcome = if is_ci() { outcome.in_ci() } else { outcome };
        let processor = processor_time().zip(before).map(|(after, before)| after.saturating_sub(before));
        Self { suite: suite.to_string(), outcome, time: watch.elapsed(), processor }
    }
}

impl Report {
    pub(crate) fn is_success(&self) -> bool {
        self.totals().1 == 0
    }

    fn totals(&self) -> (u64, u64, u64) {
        let counts = self.lines.iter().map(|line| line.outcome.counts());
        counts.fold((0, 0, 0), |(p, f, s), (passed, failed, skipped)| (p + passed, f + failed, s + skipped))
    }

    /// The sum of the suites.
    fn processor(&self) -> Option<Duration> {
        self.lines.iter().map(|line| line.processor).sum()
    }

    fn runs(&self) -> u64 {
        self.lines.iter().map(|line| line.outcome.runs()).sum()
    }

    fn failures(&self) -> Vec<String> {
        let mut list = Vec::new();
        for line in &self.lines {
            if let Outcome::Ran(tally) = &line.outcome {
                list.extend(tally.failures.iter().map(|name| format!("{}: {name}", line.suite)));
            }
        }
        list
    }

    fn skips(&self) -> Vec<String> {
        let mut list = Vec::new();
        for Line { suite, outcome, .. } in &self.lines {
            match outcome {
                Outcome::Ran(tally) => {
                    list.extend(
                        tally.skipped.iter().map(|(reason, count)| format!("{suite}: {count} {reason}")),
                    );
                    list.extend(tally.lacking.iter().map(|reason| format!("{suite}: {reason}")));
                }
                Outcome::Skipped(reason) | Outcome::Lacking(reason) => {
                    list.push(format!("{suite}: the whole suite: {reason}"))
                }
            }
        }
        list
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (passed, failed, skipped) = self.totals();
        writeln!(f, "\n=== summary ===")?;
        let runs = self.runs();
        writeln!(
            f,
            "{:<12} {:>7} {:>7} {:>7} {:>9} {:>9} {:>9}",
            "suite", "passed", "failed", "skipped", "simulated", "seconds", "processor"
        )?;
        for line in &self.lines {
            row(f, &line.suite, line.outcome.counts(), line.outcome.runs(), line.time, line.processor)?;
        }
        row(f, "total", (passed, failed, skipped), runs, self.wall, self.processor())?;
        section(f, "failed", &self.failures())?;
        section(f, "skipped", &self.skips())?;
        let suites = self.lines.iter().filter(|line| !matches!(line.outcome, Outcome::Ran(_))).count();
        writeln!(f, "\n{suites} suite(s) skipped; wall time {:.1} s", self.wall.as_secs_f64())?;
        writeln!(f, "{runs} simulated runs passed; the tests:")?;
        writeln!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

fn row(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    counts: (u64, u64, u64),
    runs: u64,
    time: Duration,
    processor: Option<Duration>,
) -> fmt::Result {
    let (passed, failed, skipped) = counts;
    write!(f, "{name:<12} {passed:>7} {failed:>7} {skipped:>7} {runs:>9} {:>9.1}", time.as_secs_f64())?;
    match processor {
        Some(processor) => writeln!(f, " {:>9.1}", processor.as_secs_f64()),
        None => writeln!(f, " {:>9}", "-"),
    }
}

fn section(f: &mut fmt::Formatter<'_>, title: &str, items: &[String]) -> fmt::Result {
    if items.is_empty() {
        return Ok(());
    }
    writeln!(f, "\n{title}:")?;
    items.iter().try_for_each(|item| writeln!(f, "  {item}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(outcomes: Vec<(&'static str, Outcome)>) -> Report {
        let time = Duration::from_millis(1500);
        let lines = outcomes
            .into_iter()
            .map(|(suite, outcome)| Line { suite: suite.to_string(), outcome, time, processor: Some(time) })
            .collect();
        Report { lines, wall: time * 2 }
    }

    #[test]
    fn the_last_line_has_the_sums() {
        let mut tests = Tally { passed: 41, ..Tally::default() };
        tests.fail("-p outlast --lib: a");
        tests.skip(2, "ignored in source");
        let skipped = Outcome::Skipped("no PostgreSQL here".to_string());
        let sim = Tally { passed: 1, runs: 2000, ..Tally::default() };
        let report =
            report(vec![("tests", Outcome::Ran(tests)), ("sim", Outcome::Ran(sim)), ("postgres", skipped)]);
        let text = report.to_string();
        assert!(text.contains("\n2000 simulated runs passed; the tests:\n42 passed"), "{text}");
        assert!(text.ends_with("\n42 passed, 1 failed, 3 skipped\n"), "{text}");
        assert!(text.contains("\n  tests: -p outlast --lib: a\n"), "{text}");
        assert!(text.contains("\n  tests: 2 ignored in source\n"), "{text}");
        assert!(text.contains("\n  postgres: the whole suite: no PostgreSQL here\n"), "{text}");
        assert!(text.contains("\n1 suite(s) skipped; wall time 3.0 s\n"), "{text}");
        assert!(text.contains("      3.0       4.5\n"), "{text}");
        assert!(!report.is_success());
    }

    #[test]
    fn a_skip_is_not_a_failure() {
        let report = report(vec![("postgres", Outcome::Skipped("no PostgreSQL here".to_string()))]);
        assert!(report.is_success());
    }
}

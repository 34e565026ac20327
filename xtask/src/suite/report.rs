//! The summary at the end of `cargo xtask test`.

use std::fmt;
use std::time::Duration;

use outlast_toolkit::{Stopwatch, processor_time};
use serde::{Deserialize, Serialize};

use super::Tally;
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
    pub(crate) tally: Tally,
    pub(crate) time: Duration,
    /// The time that the processes of the suite used the processors, where the system tells it.
    pub(crate) processor: Option<Duration>,
}

impl Line {
    /// Runs a suite. An error is a failure of the suite.
    pub(crate) fn of(suite: &str, check: impl FnOnce() -> Result<Tally, String>) -> Self {
        let watch = Stopwatch::start();
        let before = processor_time();
        let tally = check().unwrap_or_else(|message| {
            println!("{message}");
            Tally::failure(message.lines().next().unwrap_or_default())
        });
        let tally = if is_ci() { tally.in_ci() } else { tally };
        let processor = processor_time().zip(before).map(|(after, before)| after.saturating_sub(before));
        Self { suite: suite.to_string(), tally, time: watch.elapsed(), processor }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (passed, failed, skipped) = self.tally.counts();
        let (suite, runs, time) = (&self.suite, self.tally.runs, self.time.as_secs_f64());
        let processor =
            self.processor.map_or_else(|| "-".to_string(), |time| format!("{:.1}", time.as_secs_f64()));
        write!(f, "{suite:<12} {passed:>7} {failed:>7} {skipped:>7} {runs:>9} {time:>9.1} {processor:>9}")
    }
}

impl Report {
    pub(crate) fn is_success(&self) -> bool {
        self.lines.iter().all(|line| line.tally.failures.is_empty())
    }

    /// One text for each item of each suite.
    fn list<'a>(&'a self, items: impl Fn(&'a Tally) -> Vec<String>) -> Vec<String> {
        let of =
            |line: &'a Line| items(&line.tally).into_iter().map(|item| format!("{}: {item}", line.suite));
        self.lines.iter().flat_map(of).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads = ["suite", "passed", "failed", "skipped", "simulated", "seconds", "processor"];
        let [suite, passed, failed, skipped, runs, time, processor] = heads;
        writeln!(f, "\n=== summary ===")?;
        writeln!(f, "{suite:<12} {passed:>7} {failed:>7} {skipped:>7} {runs:>9} {time:>9} {processor:>9}")?;
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        let mut tally = Tally::default();
        self.lines.iter().for_each(|line| tally.add(line.tally.clone()));
        let processor = self.lines.iter().map(|line| line.processor).sum();
        let total = Line { suite: "total".to_string(), tally, time: self.wall, processor };
        writeln!(f, "{total}")?;
        section(f, "failed", &self.list(|tally| tally.failures.clone()))?;
        let skips = |tally: &Tally| {
            let skips = tally.skipped.iter().map(|(reason, count)| format!("{count} {reason}"));
            skips.chain(tally.lacking.iter().cloned()).collect()
        };
        section(f, "skipped", &self.list(skips))?;
        let (passed, failed, skipped) = total.tally.counts();
        let is_skipped = |line: &&Line| matches!(line.tally.counts(), (0, 0, 1..));
        let suites = self.lines.iter().filter(is_skipped).count();
        writeln!(f, "\n{suites} suite(s) skipped; wall time {:.1} s", self.wall.as_secs_f64())?;
        writeln!(f, "{} simulated runs passed; the tests:", total.tally.runs)?;
        writeln!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

/// A titled list of the report; nothing for an empty list.
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

    fn report(tallies: Vec<(&str, Tally)>) -> Report {
        let time = Duration::from_millis(1500);
        let line = |(suite, tally): (&str, Tally)| Line {
            suite: suite.to_string(),
            tally,
            time,
            processor: Some(time),
        };
        Report { lines: tallies.into_iter().map(line).collect(), wall: time * 2 }
    }

    #[test]
    fn the_last_line_has_the_sums() {
        let mut tests = Tally { passed: 41, ..Tally::default() };
        tests.fail("-p outlast --lib: a");
        tests.skip(2, "ignored in source");
        let sim = Tally { passed: 1, runs: 2000, ..Tally::default() };
        let report =
            report(vec![("tests", tests), ("sim", sim), ("postgres", Tally::skipped("no PostgreSQL here"))]);
        let text = report.to_string();
        for part in [
            "\n2000 simulated runs passed; the tests:\n42 passed, 1 failed, 3 skipped\n",
            "\n  tests: -p outlast --lib: a\n",
            "\n  tests: 2 ignored in source\n",
            "\n  postgres: 1 whole suite: no PostgreSQL here\n",
            "\n1 suite(s) skipped; wall time 3.0 s\n",
            "\ntotal             42       1       3      2000       3.0       4.5\n",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(text.ends_with(" skipped\n") && !report.is_success());
    }

    #[test]
    fn a_skip_is_not_a_failure() {
        assert!(report(vec![("postgres", Tally::skipped("no PostgreSQL here"))]).is_success());
    }
}

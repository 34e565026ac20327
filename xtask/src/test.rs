//! `cargo xtask test`: every suite, one after the other, and one summary at the end.

use std::process::ExitCode;

use crate::command::listing;
use crate::stopwatch::Stopwatch;
use crate::suite::report::{Line, Report};
use crate::suite::{ON_REQUEST, Outcome, SUITES, Suite, Tally};

pub(crate) fn details() -> String {
    let suites = listing(SUITES.iter().map(|suite| (suite.name, suite.about)));
    let options = listing([("--only SUITE,..", "run these suites only"), ("--list", "print the suites")]);
    let requested = listing(ON_REQUEST.iter().map(|suite| (suite.name, suite.about)));
    format!("{options}\nsuites, in the order they run:\n{suites}\nonly when they are named:\n{requested}")
}

pub(crate) fn run(args: &[String]) -> Result<ExitCode, String> {
    let plan = Plan::parse(args)?;
    if plan.list {
        print!("{}", listing(plan.suites.iter().map(|suite| (suite.name, suite.about))));
        return Ok(ExitCode::SUCCESS);
    }
    let total = Stopwatch::start();
    let lines = plan.suites.into_iter().map(run_suite).collect();
    let report = Report { lines, wall: total.elapsed() };
    // Nothing may be printed after this: its last line is read by machines.
    print!("{report}");
    Ok(if report.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run_suite(suite: &'static Suite) -> Line {
    println!("\n=== {}: {} ===", suite.name, suite.about);
    let watch = Stopwatch::start();
    let outcome = (suite.run)().unwrap_or_else(|message| {
        println!("{message}");
        Outcome::Ran(Tally::failure(message.lines().next().unwrap_or_default()))
    });
    let outcome = if is_ci() { outcome.in_ci() } else { outcome };
    Line { suite: suite.name, outcome, time: watch.elapsed() }
}

/// Every hosted CI sets this variable.
pub(crate) fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
}

struct Plan {
    suites: Vec<&'static Suite>,
    list: bool,
}

impl Plan {
    fn parse(args: &[String]) -> Result<Self, String> {
        let mut only = Vec::new();
        let mut list = false;
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match (arg.as_str(), arg.strip_prefix("--only=")) {
                ("--list", _) => list = true,
                ("--only", _) => only.extend(names(args.next().map_or("", String::as_str))?),
                (_, Some(value)) => only.extend(names(value)?),
                _ => return Err(format!("test: unknown argument `{arg}`\n\n{}", details())),
            }
        }
        // The table decides the order: a later suite is worth nothing when an earlier one fails.
        let is_named = |suite: &&Suite| only.iter().any(|name| name == suite.name);
        let suites = SUITES.iter().filter(|suite| only.is_empty() || is_named(suite));
        Ok(Self { suites: suites.chain(ON_REQUEST.iter().filter(is_named)).collect(), list })
    }
}

fn names(value: &str) -> Result<Vec<String>, String> {
    let names: Vec<String> = value.split(',').map(str::trim).map(str::to_string).collect();
    let is_known = |name: &str| SUITES.iter().chain(ON_REQUEST).any(|suite| suite.name == name);
    match names.iter().find(|name| !is_known(name)) {
        Some(unknown) => Err(format!("test: there is no suite `{unknown}`\n\n{}", details())),
        None => Ok(names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(line: &str) -> Result<Vec<&'static str>, String> {
        let args: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        Plan::parse(&args).map(|plan| plan.suites.iter().map(|suite| suite.name).collect())
    }

    #[test]
    fn everything_runs_in_the_order_of_the_table() {
        let all = [
            "fmt",
            "tidy",
            "deny",
            "clippy",
            "tests",
            "sim",
            "canary",
            "chaos",
            "small-disks",
            "doc-tests",
            "docs",
            "examples",
            "fsync-errors",
            "features",
        ];
        assert_eq!(plan("").unwrap(), all);
        assert_eq!(plan("--only tidy,fmt").unwrap(), ["fmt", "tidy"]);
        assert_eq!(plan("--only=docs --only fmt").unwrap(), ["fmt", "docs"]);
        assert_eq!(plan("--only portable,fmt").unwrap(), ["fmt", "portable"]);
    }

    #[test]
    fn the_suites_that_workflows_name_exist() {
        let folder = crate::process::root().join(".github/workflows");
        let text = std::fs::read_to_string(folder.join("test.yml")).unwrap();
        let calls: Vec<&str> =
            text.lines().filter_map(|line| Some(line.split_once("cargo xtask test ")?.1)).collect();
        assert!(!calls.is_empty(), "{text}");
        for call in calls {
            assert!(plan(call).is_ok_and(|suites| !suites.is_empty()), "{call}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        assert!(plan("--only tset").unwrap_err().contains("no suite `tset`"));
        assert!(plan("--only").unwrap_err().contains("no suite"));
        assert!(plan("--fast").unwrap_err().contains("unknown argument `--fast`"));
    }
}

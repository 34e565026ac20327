//! Suites that are many tests: `cargo test`, and what its output says.

use std::process::Command;

use super::{Outcome, Tally};
use crate::postgres::{self, Cluster};
use crate::process;

pub(super) fn tests() -> Result<Outcome, String> {
    with_postgres(all_but_special)
}

/// Runs tests with a private server, or those that need none: the arguments follow from whether there is one.
pub(super) fn with_postgres(args: impl FnOnce(bool) -> Vec<&'static str>) -> Result<Outcome, String> {
    let cluster = Cluster::start(&postgres::Options::default());
    let mut command = process::cargo(&test_args(&args(cluster.is_ok())));
    if let Ok(cluster) = &cluster {
        command.envs(cluster.variables());
    }
    let mut tally = count(command)?;
    if let Err(reason) = cluster {
        println!("tests with PostgreSQL were skipped: {reason}");
        let first = reason.lines().next().unwrap_or_default();
        tally.lack(format!("tests that need PostgreSQL: {first}"));
    }
    refuse_none(&mut tally);
    Ok(Outcome::Ran(tally))
}

/// Arguments that select tests, without those that need a server if there is none.
pub(super) fn without_postgres(args: &[&'static str], has_postgres: bool) -> Vec<&'static str> {
    let mut args = args.to_vec();
    if !has_postgres {
        args.extend(["--skip", NEEDS_POSTGRES]);
    }
    args
}

/// All tests that do not need a suite of their own.
fn all_but_special(has_postgres: bool) -> Vec<&'static str> {
    let mut args = ALL_TESTS.to_vec();
    if !has_postgres {
        args.extend(["--exclude", POSTGRES_PACKAGE]);
    }
    // Tests wait for real time more than they compute, so they get more threads than there are cores.
    args.extend(["--", "--test-threads", "8", "--skip", NEEDS_ROOT, "--skip", super::canary::TESTS]);
    without_postgres(&args, has_postgres)
}

/// Tests of what is published, without a server, a small disk or a killed process.
pub(super) fn portable() -> Result<Outcome, String> {
    let mut args = vec!["--all-features", "--lib", "--bins", "--tests"];
    for package in PORTABLE {
        args.extend(["-p", package]);
    }
    args.extend(["--", "--skip", NEEDS_ROOT, "--skip", NEEDS_POSTGRES]);
    let mut tally = cargo_test(&args)?;
    refuse_none(&mut tally);
    Ok(Outcome::Ran(tally))
}

/// Packages whose tests need nothing but Rust and a C compiler.
const PORTABLE: &[&str] = &[
    "outlast-model",
    "outlast-engine",
    "outlast-provider",
    "outlast-provider-kit",
    "outlast-memory",
    "outlast-sqlite",
    "outlast-runtime",
    "outlast-conformance",
    "outlast",
    "outlast-cli",
];

/// Tests that mount a file system of their own.
pub(super) fn root_tests() -> Result<Outcome, String> {
    if !process::is_root() {
        return Ok(Outcome::Skipped(
            "mounting a small disk needs root: run `sudo -E cargo xtask test --only small-disks`".to_string(),
        ));
    }
    let mut tally = cargo_test(&[ALL_TESTS, &["--", NEEDS_ROOT]].concat())?;
    refuse_none(&mut tally);
    Ok(Outcome::Ran(tally))
}

/// The same selection for both, so that nothing is built twice.
pub(super) const ALL_TESTS: &[&str] = &["--workspace", "--all-features", "--lib", "--bins", "--tests"];

/// A module with this name holds tests that only root can run.
const NEEDS_ROOT: &str = "needs_root::";

/// A module with this name holds tests that need a PostgreSQL. All of this package do.
const NEEDS_POSTGRES: &str = "needs_postgres::";
const POSTGRES_PACKAGE: &str = "outlast-postgres";

pub(super) fn doc_tests() -> Result<Outcome, String> {
    cargo_test(&["--workspace", "--all-features", "--doc"]).map(Outcome::Ran)
}

fn cargo_test(args: &[&str]) -> Result<Tally, String> {
    count(process::cargo(&test_args(args)))
}

fn test_args<'a>(args: &[&'a str]) -> Vec<&'a str> {
    // Without --no-fail-fast the first red binary would hide the counts of those behind it.
    [&["test", "--no-fail-fast"], args].concat()
}

fn count(command: Command) -> Result<Tally, String> {
    let mut output = Output::default();
    let status = process::stream(command, |line| output.line(line))?;
    Ok(output.finish(status.success()))
}

/// A suite that silently finds no tests would stay green forever.
fn refuse_none(tally: &mut Tally) {
    if tally.passed + tally.failed == 0 {
        tally.fail("no test was run");
    }
}

/// Reads the output of `cargo test --no-fail-fast`, line by line.
#[derive(Default)]
struct Output {
    tally: Tally,
    /// Failing tests whose package cargo has not named yet: it does so after the test binary has ended.
    unnamed: Vec<String>,
    /// Failures that `test result:` lines have counted since cargo last named a package.
    counted: u64,
}

impl Output {
    fn line(&mut self, line: &str) {
        if let Some(result) = line.strip_prefix("test result: ") {
            self.result(result);
        } else if let Some(name) =
            line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            self.unnamed.push(name.to_string());
        } else if let Some(("error: " | "error: doc", rest)) = line.split_once("test failed, to rerun pass `")
        {
            self.binary_failed(rest.trim_end_matches('`'));
        }
    }

    /// `ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s`
    fn result(&mut self, result: &str) {
        let counts = result.split_once(". ").map_or(result, |(_, counts)| counts);
        for part in counts.split("; ") {
            match part.split_once(' ').map(|(count, what)| (count.parse().unwrap_or(0), what)) {
                Some((count, "passed")) => self.tally.passed += count,
                Some((count, "failed")) => {
                    self.tally.failed += count;
                    self.counted += count;
                }
                Some((count, "ignored")) => self.tally.skip(count, "ignored in source"),
                _ => {}
            }
        }
    }

    fn binary_failed(&mut self, selector: &str) {
        let names = std::mem::take(&mut self.unnamed);
        if std::mem::take(&mut self.counted) == 0 {
            // It died before its `test result:` line: nothing has been counted yet.
            self.tally.failed += names.len() as u64;
            self.tally.fail(format!("{selector}: ended without a result, see its output"));
        }
        self.tally.failures.extend(names.into_iter().map(|name| format!("{selector}: {name}")));
    }

    fn finish(mut self, success: bool) -> Tally {
        self.tally.failures.append(&mut self.unnamed);
        if !success && self.tally.failed == 0 {
            self.tally.fail("cargo test failed before it ran the tests");
        }
        self.tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(output: &str, success: bool) -> Tally {
        let mut parser = Output::default();
        output.lines().for_each(|line| parser.line(line));
        parser.finish(success)
    }

    #[test]
    fn without_postgres_its_tests_are_left_out() {
        let with = all_but_special(true).join(" ");
        assert!(!with.contains("postgres"), "{with}");
        let without = all_but_special(false).join(" ");
        let (cargo, tests) = without.split_once(" -- ").unwrap();
        assert!(cargo.ends_with("--exclude outlast-postgres"), "{cargo}");
        assert!(tests.ends_with("--skip needs_postgres::"), "{tests}");
    }

    #[test]
    fn counts_add_up_over_binaries() {
        let tally = read(
            "running 3 tests
test a ... ok
test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.00s
test result: ok. 40 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 1.50s",
            true,
        );
        assert_eq!((tally.passed, tally.failed), (42, 0));
        assert_eq!(tally.skipped.into_iter().collect::<Vec<_>>(), [("ignored in source".to_string(), 3)]);
    }

    #[test]
    fn failures_are_named_with_the_binary_that_has_them() {
        let tally = read(
            "test codec::reads ... FAILED
test result: FAILED. 5 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
error: test failed, to rerun pass `-p outlast-model --lib`
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
test src/lib.rs - Clock (line 7) ... FAILED
test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
error: doctest failed, to rerun pass `-p outlast --doc`",
            false,
        );
        assert_eq!((tally.passed, tally.failed), (6, 2));
        let named = ["-p outlast-model --lib: codec::reads", "-p outlast --doc: src/lib.rs - Clock (line 7)"];
        assert_eq!(tally.failures, named);
    }

    #[test]
    fn a_binary_that_dies_is_a_failure() {
        let tally = read(
            "test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
running 9 tests
test first ... FAILED
error: test failed, to rerun pass `-p outlast-sqlite --test it`
Caused by:
  process didn't exit successfully: `it` (signal: 6, SIGABRT: process abort signal)",
            false,
        );
        assert_eq!((tally.passed, tally.failed), (4, 2));
        assert!(tally.failures[0].starts_with("-p outlast-sqlite --test it: ended without"), "{tally:?}");
        assert_eq!(tally.failures[1], "-p outlast-sqlite --test it: first");
    }

    #[test]
    fn not_compiling_and_not_finding_tests_are_failures() {
        assert_eq!(read("error: could not compile", false).failed, 1);
        let mut none = read("test result: ok. 0 passed; 0 failed; 0 ignored", true);
        refuse_none(&mut none);
        assert_eq!(none, Tally::failure("no test was run"));
    }
}

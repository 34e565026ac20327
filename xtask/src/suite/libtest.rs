//! Suites that run test programs and count their tests.

use outlast_toolkit::postgres::{Cluster, Options};
use outlast_toolkit::process;

use super::programs::{self, Program};
use super::{Outcome, Tally};

/// A module with this name holds tests that only root can run: they mount a file system.
const NEEDS_ROOT: &str = "needs_root::";
/// A module with this name holds tests that need a PostgreSQL server. So do all tests of [`POSTGRES_PACKAGE`].
const NEEDS_POSTGRES: &str = "needs_postgres::";
const POSTGRES_PACKAGE: &str = "-p outlast-postgres ";
/// A module with this name holds tests that drive a browser.
const NEEDS_BROWSER: &str = "needs_browser::";
/// Tests that read the log of a whole process.
const CANARY: &str = "canary::";

/// Most tests wait for timers, disks and servers: a program has more threads than the machine has cores.
const THREADS: [&str; 2] = ["--test-threads", "8"];

/// All tests except those of the suites `browser`, `canary` and `small-disks`.
pub(super) fn tests() -> Result<Outcome, String> {
    let others = ["--skip", NEEDS_ROOT, "--skip", NEEDS_BROWSER, "--skip", CANARY];
    with_postgres(&[&THREADS[..], &others].concat())
}

/// The tests that drive a browser. The tests of a program share one browser while they wait for it at the same time.
pub(super) fn browser_tests() -> Result<Tally, String> {
    Ok(run_all(&programs::tests()?, &[&THREADS[..], &[NEEDS_BROWSER]].concat(), None))
}

/// Payloads, passwords and URLs stay out of logs: the tests put a marker into each of them, log at TRACE, and search the
/// log for the marker. They run alone because other tests would write to the same log.
pub(super) fn canary() -> Result<Outcome, String> {
    with_postgres(&[CANARY])
}

/// Tests that mount a small file system.
pub(super) fn root_tests() -> Result<Outcome, String> {
    if !process::is_root() {
        return Ok(Outcome::Skipped(
            "mounting a small disk needs root: run `sudo -E cargo xtask test --only small-disks`".to_string(),
        ));
    }
    Ok(Outcome::Ran(run_all(&programs::tests()?, &[NEEDS_ROOT], None)))
}

/// The tests of the published packages that need no server, no small disk and no killed process.
pub(super) fn portable() -> Result<Outcome, String> {
    let mut args = vec!["test", "--no-run", "--all-features", "--lib", "--bins", "--tests"];
    args.extend(PORTABLE.iter().flat_map(|package| ["-p", package]));
    let programs: Vec<Program> = programs::build(&args)?.into_iter().filter(Program::is_test).collect();
    Ok(Outcome::Ran(run_all(
        &programs,
        &["--skip", NEEDS_ROOT, "--skip", NEEDS_POSTGRES, "--skip", NEEDS_BROWSER],
        None,
    )))
}

/// Packages whose tests need Rust and a C compiler only.
const PORTABLE: &[&str] = &[
    "outlast-model",
    "outlast-engine",
    "outlast-lens",
    "outlast-provider",
    "outlast-provider-kit",
    "outlast-memory",
    "outlast-sqlite",
    "outlast-runtime",
    "outlast-conformance",
    "outlast",
    "outlast-server",
    "outlast-cli",
];

pub(super) fn doc_tests() -> Result<Outcome, String> {
    let mut output = Output::default();
    let command = process::cargo(&["test", "--no-fail-fast", "--workspace", "--all-features", "--doc"]);
    let status = process::stream(command, |line| output.line(line))?;
    Ok(Outcome::Ran(output.finish("--doc", status.success())))
}

/// Runs tests with a private server. Without a server, the tests that need one are left out, and the summary says so.
fn with_postgres(args: &[&str]) -> Result<Outcome, String> {
    let programs = programs::tests()?;
    let tally = match Cluster::start(&Options::default()) {
        Ok(cluster) => run_all(&programs, args, Some(&cluster)),
        Err(reason) => {
            println!("PostgreSQL could not be started: {reason}");
            let (programs, args) = without_postgres(programs, args);
            let mut tally = run_all(&programs, &args, None);
            let first = reason.lines().next().unwrap_or_default();
            tally.lack(format!("tests that need PostgreSQL: {first}"));
            tally
        }
    };
    Ok(Outcome::Ran(tally))
}

fn without_postgres<'a>(programs: Vec<Program>, args: &[&'a str]) -> (Vec<Program>, Vec<&'a str>) {
    let other = programs.into_iter().filter(|program| !program.selector.starts_with(POSTGRES_PACKAGE));
    (other.collect(), [args, &["--skip", NEEDS_POSTGRES]].concat())
}

/// Runs the programs. A suite that selects no test by mistake would always pass, so it fails.
fn run_all(programs: &[Program], args: &[&str], server: Option<&Cluster>) -> Tally {
    let mut tally = run_each(programs, args, server);
    if tally.passed + tally.failed == 0 {
        tally.fail("no test was run");
    }
    tally
}

/// Runs the programs one after the other, and adds their counts.
pub(super) fn run_each<'a>(
    programs: impl IntoIterator<Item = &'a Program>,
    args: &[&str],
    server: Option<&Cluster>,
) -> Tally {
    let mut total = Tally::default();
    for program in programs {
        println!("\n--- {}", program.selector);
        let mut command = program.command();
        command.args(args).envs(server.iter().flat_map(|server| server.variables()));
        let mut output = Output::default();
        total.add(match process::stream(command, |line| output.line(line)) {
            Ok(status) => output.finish(&program.selector, status.success()),
            Err(error) => Tally::failure(format!("{}: {error}", program.selector)),
        });
    }
    total
}

/// Reads the output of a test program, line by line.
#[derive(Default)]
struct Output {
    tally: Tally,
    failures: Vec<String>,
    has_result: bool,
}

impl Output {
    fn line(&mut self, line: &str) {
        if let Some(result) = line.strip_prefix("test result: ") {
            self.has_result = true;
            self.result(result);
        } else if let Some(name) =
            line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            self.failures.push(name.to_string());
        }
    }

    /// `ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s`
    fn result(&mut self, result: &str) {
        let counts = result.split_once(". ").map_or(result, |(_, counts)| counts);
        for part in counts.split("; ") {
            match part.split_once(' ').map(|(count, kind)| (count.parse().unwrap_or(0), kind)) {
                Some((count, "passed")) => self.tally.passed += count,
                Some((count, "failed")) => self.tally.failed += count,
                Some((count, "ignored")) => self.tally.skip(count, "ignored in source"),
                _ => {}
            }
        }
    }

    fn finish(mut self, selector: &str, success: bool) -> Tally {
        if !self.has_result {
            // The program ended before it counted its failures.
            self.tally.failed += self.failures.len() as u64;
        }
        self.tally.failures.extend(self.failures.iter().map(|name| format!("{selector}: {name}")));
        if !self.has_result || (!success && self.tally.failed == 0) {
            self.tally.fail(format!("{selector}: ended without a result, see its output"));
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
        parser.finish("-p a --test it", success)
    }

    #[test]
    fn tests_that_need_postgres_are_left_out_without_a_server() {
        let programs = ["-p outlast-postgres --test it", "-p outlast-postgres --lib", "-p outlast --test it"];
        let programs = programs.map(|selector| Program::sample("true", selector)).to_vec();
        let (programs, args) = without_postgres(programs, &["canary::"]);
        let selectors: Vec<&str> = programs.iter().map(|program| program.selector.as_str()).collect();
        assert_eq!(selectors, ["-p outlast --test it"]);
        assert_eq!(args, ["canary::", "--skip", "needs_postgres::"]);
    }

    #[test]
    fn counts_and_names_of_failed_tests_are_read() {
        let tally = read(
            "running 3 tests
test codec::reads ... FAILED
test a ... ok
test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.00s",
            false,
        );
        assert_eq!((tally.passed, tally.failed), (2, 1));
        assert_eq!(tally.failures, ["-p a --test it: codec::reads"]);
        assert_eq!(tally.skipped.into_iter().collect::<Vec<_>>(), [("ignored in source".to_string(), 1)]);
    }

    #[test]
    fn results_of_several_programs_add_up() {
        let doc =
            "test result: ok. 2 passed; 0 failed; 0 ignored\ntest result: ok. 3 passed; 0 failed; 0 ignored";
        assert_eq!(read(doc, true).passed, 5);
    }

    #[test]
    fn a_program_that_ends_without_a_result_is_a_failure() {
        let tally = read("running 9 tests\ntest first ... FAILED", false);
        assert_eq!((tally.passed, tally.failed), (0, 2));
        assert_eq!(tally.failures[0], "-p a --test it: first");
        assert!(tally.failures[1].contains("ended without a result"), "{tally:?}");
        assert_eq!(read("", true).failed, 1, "no output is no success");
        assert_eq!(read("test result: ok. 4 passed; 0 failed; 0 ignored", false).failed, 1);
    }

    #[test]
    fn the_tests_of_a_package_are_built_and_counted() {
        // Together with xtask, the package has the dependencies that `cargo xtask` has built.
        let args = ["test", "--no-run", "-p", "outlast-toolkit", "-p", "xtask", "--lib"];
        let built = programs::build(&args).unwrap();
        let selectors: Vec<&str> = built.iter().map(|program| program.selector.as_str()).collect();
        assert_eq!(selectors, ["-p outlast-toolkit --lib"]);
        let tally = run_all(&built, &["page::"], None);
        assert_eq!((tally.passed, tally.failed), (3, 0));
    }

    #[test]
    fn programs_are_run_and_their_tests_are_added() {
        let script = "echo 'test a ... ok'; echo 'test result: ok. 1 passed; 0 failed; 0 ignored'";
        let programs = [Program::sample("sh", "-p a --lib"), Program::sample("sh", "-p b --lib")];
        let tally = run_all(&programs, &["-c", script], None);
        assert_eq!((tally.passed, tally.failed), (2, 0));
        let none = run_all(&programs, &["-c", "echo 'test result: ok. 0 passed; 0 failed; 0 ignored'"], None);
        assert_eq!(none, Tally::failure("no test was run"));
        let missing = run_all(&[Program::sample("no-such-program", "-p c --lib")], &[], None);
        assert!(
            missing.failures[0].starts_with("-p c --lib: `no-such-program` could not be run"),
            "{missing:?}"
        );
    }
}

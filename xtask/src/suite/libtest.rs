//! Suites that run test programs and count their tests.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outlast_toolkit::postgres::{Cluster, Options};
use outlast_toolkit::process;

use super::Tally;
use super::programs::{self, Program};
use super::tally::Said;

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

/// Programs that run at the same time.
const AT_ONCE: usize = 2;

/// Programs that run alone: they check short leases and waits in real time.
const ALONE: &[&str] = &[
    "-p outlast-conformance --test it",
    "-p outlast-cosmos --test it",
    "-p outlast-postgres --test it",
    "-p outlast-sqlite --test it",
];

/// A program that prints nothing for this time is killed: one of its tests waits for something that never happens.
const SILENCE: Duration = Duration::from_secs(600);

/// All tests except those of the suites `browser`, `canary` and `small-disks`.
pub(super) fn tests() -> Result<Tally, String> {
    let others = ["--skip", NEEDS_ROOT, "--skip", NEEDS_BROWSER, "--skip", CANARY];
    with_postgres(&[&THREADS[..], &others].concat())
}

/// The tests that drive a browser. The tests of a program share one browser while they wait for it at the same time.
pub(super) fn browser_tests() -> Result<Tally, String> {
    Ok(run_all(&programs::tests()?, &[&THREADS[..], &[NEEDS_BROWSER]].concat(), &[]))
}

/// Payloads, passwords and URLs stay out of logs: the tests put a marker into each of them, log at TRACE, and search the
/// log for the marker. They run alone because other tests would write to the same log.
pub(super) fn canary() -> Result<Tally, String> {
    with_postgres(&[CANARY])
}

/// Tests that mount a small file system.
pub(super) fn root_tests() -> Result<Tally, String> {
    if !process::is_root() {
        let reason = "mounting a small disk needs root: run `sudo -E cargo xtask test --only small-disks`";
        return Ok(Tally::skipped(reason));
    }
    Ok(run_all(&programs::tests()?, &[NEEDS_ROOT], &[]))
}

/// The tests of the published packages that need no server, no small disk and no killed process.
pub(super) fn portable() -> Result<Tally, String> {
    let skips = ["--skip", NEEDS_ROOT, "--skip", NEEDS_POSTGRES, "--skip", NEEDS_BROWSER];
    Ok(run_all(&programs::tests_of(PORTABLE)?, &skips, &[]))
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

pub(super) fn doc_tests() -> Result<Tally, String> {
    let command = process::cargo(&["test", "--no-fail-fast", "--workspace", "--all-features", "--doc"]);
    Tally::of(command, "--doc", read)
}

/// Runs tests with private servers, one for each program that runs: some tests restart their server. Without a server, the tests that need one are left out, and the summary says so.
fn with_postgres(args: &[&str]) -> Result<Tally, String> {
    let programs = programs::tests()?;
    let servers: Result<Vec<Cluster>, String> =
        (0..AT_ONCE).map(|_| Cluster::start(&Options::default())).collect();
    let tally = match servers {
        Ok(servers) => run_all(&programs, args, &servers),
        Err(reason) => {
            println!("PostgreSQL could not be started: {reason}");
            let (programs, args) = without_postgres(programs, args);
            let mut tally = run_all(&programs, &args, &[]);
            let first = reason.lines().next().unwrap_or_default();
            tally.lack(format!("tests that need PostgreSQL: {first}"));
            tally
        }
    };
    Ok(tally)
}

fn without_postgres<'a>(programs: Vec<Program>, args: &[&'a str]) -> (Vec<Program>, Vec<&'a str>) {
    let other = programs.into_iter().filter(|program| !program.selector.starts_with(POSTGRES_PACKAGE));
    (other.collect(), [args, &["--skip", NEEDS_POSTGRES]].concat())
}

/// Runs the programs. A suite that selects no test by mistake would always pass, so it fails.
fn run_all(programs: &[Program], args: &[&str], servers: &[Cluster]) -> Tally {
    let mut tally = run_each(programs, args, servers);
    if tally.passed == 0 && tally.failures.is_empty() {
        tally.fail("no test was run");
    }
    tally
}

/// Runs the programs and adds their counts: first those of [`ALONE`], then the others at the same time, each with a server of
/// its own if there are servers.
pub(super) fn run_each<'a>(
    programs: impl IntoIterator<Item = &'a Program>,
    args: &[&str],
    servers: &[Cluster],
) -> Tally {
    let is_alone = |program: &&Program| ALONE.contains(&program.selector.as_str());
    let (alone, others): (Vec<_>, Vec<_>) = programs.into_iter().partition(is_alone);
    let total = Mutex::new(Tally::default());
    let one = [servers.first()];
    let each: Vec<Option<&Cluster>> = servers.iter().map(Some).collect();
    for (programs, threads) in
        [(alone, &one[..]), (others, if each.is_empty() { &[None; AT_ONCE] } else { &each })]
    {
        let programs = Mutex::new(VecDeque::from(programs));
        std::thread::scope(|scope| {
            for server in threads {
                scope.spawn(|| run_queued(&programs, args, *server, &total));
            }
        });
    }
    total.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Runs one program after the other until none is left. The output of a program is printed when the program has ended.
fn run_queued(
    programs: &Mutex<VecDeque<&Program>>,
    args: &[&str],
    server: Option<&Cluster>,
    total: &Mutex<Tally>,
) {
    let next = || locked(programs).pop_front();
    while let Some(program) = next() {
        let (tally, output) = run_one(program, args, server);
        let mut total = locked(total);
        println!("\n--- {}\n{output}", program.selector);
        total.add(tally);
    }
}

/// The counts and the output of a program.
fn run_one(program: &Program, args: &[&str], server: Option<&Cluster>) -> (Tally, String) {
    let mut command = program.command();
    command.args(args).envs(server.iter().flat_map(|server| server.variables()));
    let mut output = format!("$ {}\n", process::display(&command));
    let tally = Tally::collected(command, SILENCE, &mut output, read);
    let mut tally = tally.unwrap_or_else(|reason| {
        output.push_str(&reason);
        Tally::failure(reason)
    });
    tally.failures.iter_mut().for_each(|name| *name = format!("{}: {name}", program.selector));
    (tally, output)
}

fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads a line of a test program. Its last line is
/// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s`.
fn read(line: &str) -> Option<Said> {
    let rest = line.strip_prefix("test ")?;
    let Some((_, counts)) = rest.strip_prefix("result: ").and_then(|result| result.split_once(". ")) else {
        return rest.strip_suffix(" ... FAILED").map(|name| Said::Failed(name.to_string()));
    };
    let count = |kind: &str| {
        let mut parts = counts.split("; ").filter_map(|part| part.split_once(' '));
        parts.find(|(_, found)| *found == kind).and_then(|(count, _)| count.parse().ok()).unwrap_or(0)
    };
    Some(Said::Ended { passed: count("passed"), runs: 0, ignored: count("ignored") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::tally::counted;

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
        let text = "running 3 tests\ntest codec::reads ... FAILED\ntest a ... ok\n\
            test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.00s";
        let tally = counted(text, false, read);
        assert_eq!((tally.counts(), tally.skipped["ignored in source"]), ((2, 1, 1), 1));
        assert_eq!(tally.failures, ["codec::reads"]);
        let two =
            "test result: ok. 2 passed; 0 failed; 0 ignored\ntest result: ok. 3 passed; 0 failed; 0 ignored";
        assert_eq!(counted(two, true, read).passed, 5, "results of several programs add up");
    }

    #[test]
    fn two_programs_run_at_the_same_time() {
        let folder = tempfile::tempdir().unwrap();
        // The first program makes folder a, the other one folder b. Each ends when both are there.
        let script = format!(
            "cd {}; mkdir a || mkdir b; until [ -e a ] && [ -e b ]; do sleep 0.01; done; \
             echo 'test result: ok. 1 passed; 0 failed; 0 ignored'",
            folder.path().display()
        );
        let programs = ["-p a --lib", "-p b --lib"].map(|selector| Program::sample("timeout", selector));
        let tally = run_each(&programs, &["60", "sh", "-c", &script], &[]);
        assert_eq!(tally.counts(), (2, 0, 0));
    }

    #[test]
    fn programs_with_checks_of_real_time_exist() {
        for selector in ALONE {
            let package = selector.split(' ').nth(1).unwrap();
            let main =
                process::root().join(format!("crates/{}/tests/it/main.rs", &package["outlast-".len()..]));
            assert!(main.is_file(), "{selector}");
        }
    }

    #[test]
    fn programs_are_run_and_their_tests_are_added() {
        let script = "echo 'test a ... ok'; echo 'test result: ok. 1 passed; 0 failed; 0 ignored'";
        let programs = [Program::sample("sh", "-p a --lib"), Program::sample("sh", "-p b --lib")];
        let tally = run_all(&programs, &["-c", script], &[]);
        assert_eq!(tally.counts(), (2, 0, 0));
        let none = run_all(&programs, &["-c", "echo 'test result: ok. 0 passed; 0 failed; 0 ignored'"], &[]);
        assert_eq!(none, Tally::failure("no test was run"));
        let missing = run_all(&[Program::sample("no-such-program", "-p c --lib")], &[], &[]);
        assert!(
            missing.failures[0].starts_with("-p c --lib: `no-such-program` could not be run"),
            "{missing:?}"
        );
    }
}

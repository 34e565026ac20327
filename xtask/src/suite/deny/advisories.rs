//! Runs `cargo deny check`, which looks up known vulnerabilities in the database of the RustSec project.
//!
//! Building `cargo deny` takes minutes. CI installs it into the target folder if the database can be reached. Elsewhere a
//! missing `cargo deny` is a skip, and the summary shows the command to run.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::Tally;
use outlast_toolkit::{Stopwatch, installed, process};

const DATABASE: &str = "https://github.com/rustsec/advisory-db";
/// A network that drops packets must not block the suite.
const LIMIT: Duration = Duration::from_secs(20);
const VERSION: &str = "^0.20";

pub(super) fn check(tally: &mut Tally) -> Result<(), String> {
    let is_reachable = is_database_reachable();
    let mut program = find();
    if program.is_none() && is_reachable && crate::test::is_ci() {
        install()?;
        program = find();
        if program.is_none() {
            tally.lack(format!("advisories: cargo-deny could not be installed: {}", command()));
        }
    } else if !is_reachable {
        tally.skip(1, &format!("advisories: {DATABASE} cannot be reached: {}", command()));
    } else if program.is_none() {
        tally.skip(1, &format!("advisories: cargo-deny is not installed: {}", command()));
    }
    program.map_or(Ok(()), |program| run(tally, program, is_reachable))
}

fn run(tally: &mut Tally, program: PathBuf, with_advisories: bool) -> Result<(), String> {
    let mut call = Command::new(program);
    call.args(["check", "licenses", "sources", "bans"]).current_dir(process::root());
    if with_advisories {
        call.arg("advisories");
    }
    tally.check("cargo deny check", process::stream(call, |_| {})?.success());
    Ok(())
}

fn command() -> String {
    format!(
        "run `cargo install cargo-deny --locked --version {VERSION}` and `cargo deny check advisories` on a machine with access"
    )
}

fn folder() -> PathBuf {
    process::target().join("tools")
}

/// The program in PATH, or the program that an earlier run installed.
fn find() -> Option<PathBuf> {
    let works = |program: &PathBuf| installed::succeeds(&program.to_string_lossy(), &["--version"]);
    [PathBuf::from("cargo-deny"), folder().join("bin/cargo-deny")].into_iter().find(works)
}

fn install() -> Result<(), String> {
    let mut call = process::cargo(&["install", "cargo-deny", "--locked", "--version", VERSION, "--root"]);
    call.arg(folder());
    process::stream(call, |_| {}).map(drop)
}

/// Asks the database's server for its newest commit.
fn is_database_reachable() -> bool {
    let mut call = Command::new("git");
    call.args(["ls-remote", "--exit-code", DATABASE, "HEAD"]).env("GIT_TERMINAL_PROMPT", "0");
    succeeds_within(call, LIMIT)
}

/// Whether a command succeeds within the limit. A command that runs longer is killed.
#[allow(clippy::disallowed_methods, reason = "a process that may hang is polled")]
fn succeeds_within(mut call: Command, limit: Duration) -> bool {
    let quiet = call.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = quiet.spawn() else { return false };
    let watch = Stopwatch::start();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if watch.elapsed() < limit => std::thread::sleep(Duration::from_millis(50)),
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(program: &str, args: &[&str]) -> Command {
        let mut call = Command::new(program);
        call.args(args);
        call
    }

    #[test]
    fn a_command_that_hangs_is_killed() {
        let limit = Duration::from_millis(200);
        assert!(!succeeds_within(call("sleep", &["600"]), limit));
        assert!(!succeeds_within(call("no-such-program", &[]), limit));
        assert!(succeeds_within(call("true", &[]), LIMIT));
        assert!(!succeeds_within(call("false", &[]), LIMIT));
    }
}

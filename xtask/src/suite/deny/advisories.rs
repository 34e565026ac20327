//! Known vulnerabilities of what is built in: `cargo deny check`, with the database of the RustSec project.
//!
//! Building `cargo deny` takes minutes. CI installs it into the target folder where the database can be reached; elsewhere
//! the check is skipped by name, with the command to run.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::Tally;
use crate::process;
use crate::stopwatch::Stopwatch;

const DATABASE: &str = "https://github.com/rustsec/advisory-db";
/// A network that swallows packets must not hold up the suite.
const PATIENCE: Duration = Duration::from_secs(20);
const VERSION: &str = "^0.20";

pub(super) fn check(tally: &mut Tally) -> Result<(), String> {
    let Some(program) = find() else {
        if !is_database_reachable() {
            tally.skip(1, &format!("advisories: {DATABASE} cannot be reached: {}", command()));
            return Ok(());
        }
        if !crate::test::is_ci() {
            tally.skip(1, &format!("advisories: cargo-deny is not installed: {}", command()));
            return Ok(());
        }
        install()?;
        return match find() {
            Some(program) => run(tally, program, true),
            None => {
                tally.lack(format!("advisories: cargo-deny could not be installed: {}", command()));
                Ok(())
            }
        };
    };
    let is_reachable = is_database_reachable();
    if !is_reachable {
        tally.skip(1, &format!("advisories: {DATABASE} cannot be reached: {}", command()));
    }
    run(tally, program, is_reachable)
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
        "run `cargo install cargo-deny --locked --version {VERSION}` and `cargo deny check advisories` where it can be"
    )
}

fn folder() -> PathBuf {
    process::target().join("tools")
}

/// The program in the path, or the one that an earlier run installed.
fn find() -> Option<PathBuf> {
    let works = |program: &PathBuf| crate::installed::succeeds(&program.to_string_lossy(), &["--version"]);
    [PathBuf::from("cargo-deny"), folder().join("bin/cargo-deny")].into_iter().find(works)
}

fn install() -> Result<(), String> {
    let mut call = process::cargo(&["install", "cargo-deny", "--locked", "--version", VERSION, "--root"]);
    call.arg(folder());
    process::stream(call, |_| {}).map(drop)
}

/// Asks the server of the database for its newest commit.
fn is_database_reachable() -> bool {
    let mut call = Command::new("git");
    call.args(["ls-remote", "--exit-code", DATABASE, "HEAD"]).env("GIT_TERMINAL_PROMPT", "0");
    is_done_within(call, PATIENCE)
}

/// Whether a command succeeds in time. One that does not end is killed.
#[allow(clippy::disallowed_methods, reason = "a process that may hang is asked whether it has ended")]
fn is_done_within(mut call: Command, patience: Duration) -> bool {
    let quiet = call.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = quiet.spawn() else { return false };
    let watch = Stopwatch::start();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if watch.elapsed() < patience => std::thread::sleep(Duration::from_millis(50)),
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
    fn a_command_that_hangs_is_given_up() {
        let patience = Duration::from_millis(200);
        assert!(!is_done_within(call("sleep", &["600"]), patience));
        assert!(!is_done_within(call("no-such-program", &[]), patience));
        assert!(is_done_within(call("true", &[]), PATIENCE));
        assert!(!is_done_within(call("false", &[]), PATIENCE));
    }
}

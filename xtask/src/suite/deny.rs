//! Checks licences, sources and duplicate versions of the dependencies against deny.toml.
//!
//! [`deny`] checks them with `cargo metadata` alone. [`advisories()`] runs `cargo deny` where it is available.

use std::path::PathBuf;
use std::process::Command;

use outlast_packages::deny;
use outlast_toolkit::{installed, process};

use super::Tally;

const DATABASE: &str = "https://github.com/rustsec/advisory-db";
const VERSION: &str = "^0.20";

pub(super) fn run() -> Result<Tally, String> {
    let (count, checks) = deny::checks()?;
    let mut tally = Tally::default();
    for deny::Check { name, findings } in checks {
        println!("{name} of {count} packages: {} finding(s)", findings.len());
        findings.iter().for_each(|finding| println!("  {finding}"));
        tally.check(format!("{name}: {}", findings.join("; ")), findings.is_empty());
    }
    advisories(&mut tally)?;
    Ok(tally)
}

/// Runs `cargo deny check`, which looks up known vulnerabilities in the database of the RustSec project.
///
/// Building `cargo deny` takes minutes. CI installs it into the target folder if the database can be reached. Elsewhere a
/// missing `cargo deny` is a skip, and the summary shows the command to run.
fn advisories(tally: &mut Tally) -> Result<(), String> {
    let is_reachable = is_database_reachable();
    let mut program = find();
    if program.is_none() && is_reachable && crate::test::is_ci() {
        let mut install =
            process::cargo(&["install", "cargo-deny", "--locked", "--version", VERSION, "--root"]);
        install.arg(folder());
        process::stream(install, |_| {})?;
        program = find();
    }
    let command = format!(
        "run `cargo install cargo-deny --locked --version {VERSION}` and `cargo deny check advisories` on a machine with access"
    );
    match (is_reachable, &program) {
        (true, Some(_)) => {}
        (true, None) if crate::test::is_ci() => {
            tally.lack(format!("advisories: cargo-deny could not be installed: {command}"));
        }
        (true, None) => tally.skip(1, &format!("advisories: cargo-deny is not installed: {command}")),
        (false, _) => tally.skip(1, &format!("advisories: {DATABASE} cannot be reached: {command}")),
    }
    if let Some(program) = program {
        let mut call = Command::new(program);
        call.args(["check", "licenses", "sources", "bans"]).args(is_reachable.then_some("advisories"));
        call.current_dir(process::root());
        tally.check("cargo deny check", process::stream(call, |_| {})?.success());
    }
    Ok(())
}

fn folder() -> PathBuf {
    process::target().join("tools")
}

/// The program in PATH, or the program that an earlier run installed.
fn find() -> Option<PathBuf> {
    let works = |program: &PathBuf| installed::succeeds(&program.to_string_lossy(), &["--version"]);
    [PathBuf::from("cargo-deny"), folder().join("bin/cargo-deny")].into_iter().find(works)
}

/// Asks the database's server for its newest commit. A network that drops packets must not block the suite.
fn is_database_reachable() -> bool {
    let mut call = Command::new("timeout");
    call.args(["20", "git", "ls-remote", "--exit-code", DATABASE, "HEAD"]).env("GIT_TERMINAL_PROMPT", "0");
    process::succeeds(&mut call)
}

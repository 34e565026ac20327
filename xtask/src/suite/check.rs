//! Suites that are a single check: they pass or they fail.

use std::process::{Command, Stdio};

use super::{Outcome, Tally};
use crate::{process, tidy};

pub(super) fn fmt() -> Result<Outcome, String> {
    with_component("fmt", || command(process::cargo(&["fmt", "--all", "--check"])))
}

pub(super) fn clippy() -> Result<Outcome, String> {
    let args = ["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
    with_component("clippy", || command(process::cargo(&args)))
}

pub(super) fn docs() -> Result<Outcome, String> {
    let mut doc = process::cargo(&["doc", "--workspace", "--no-deps", "--all-features"]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    command(doc)
}

pub(super) fn tidy() -> Result<Outcome, String> {
    if !answers(Command::new("git").arg("--version")) {
        return Ok(Outcome::Lacking("git is not installed, and it knows which files are ours".to_string()));
    }
    let findings = tidy::check()?;
    let mut tally = Tally::default();
    tally.check(format!("{findings} finding(s), listed above"), findings == 0);
    Ok(Outcome::Ran(tally))
}

fn command(command: Command) -> Result<Outcome, String> {
    let call = process::display(&command);
    let status = process::stream(command, |_| {})?;
    let mut tally = Tally::default();
    tally.check(call, status.success());
    Ok(Outcome::Ran(tally))
}

/// rust-toolchain.toml makes rustup install the components; a toolchain from elsewhere may lack them.
fn with_component(name: &str, run: impl FnOnce() -> Result<Outcome, String>) -> Result<Outcome, String> {
    if answers(&mut process::cargo(&[name, "--version"])) {
        return run();
    }
    Ok(Outcome::Lacking(format!(
        "`cargo {name}` is not installed and rustup did not install it: run `rustup component add {}`",
        if name == "fmt" { "rustfmt" } else { name }
    )))
}

/// Whether a tool is there and works.
fn answers(probe: &mut Command) -> bool {
    let quiet = probe.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_that_is_missing_skips_its_suite() {
        let outcome = with_component("no-such-component", || Err("must not run".to_string())).unwrap();
        assert!(matches!(outcome, Outcome::Lacking(reason) if reason.contains("no-such-component")));
    }

    #[test]
    fn a_command_that_fails_is_one_named_failure() {
        let outcome = command(process::cargo(&["no-such-command"])).unwrap();
        assert!(matches!(outcome, Outcome::Ran(tally) if tally == Tally::failure("cargo no-such-command")));
    }
}

//! Suites that consist of one check.

use std::process::Command;

use outlast_toolkit::process;

use super::{Outcome, Tally};
use crate::tidy;

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
    if !process::succeeds(Command::new("git").arg("--version")) {
        return Ok(Outcome::Lacking(
            "git is not installed: it lists the files of the repository".to_string(),
        ));
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

/// rustup installs the components of rust-toolchain.toml. A toolchain without rustup may lack them.
fn with_component(name: &str, run: impl FnOnce() -> Result<Outcome, String>) -> Result<Outcome, String> {
    if process::succeeds(&mut process::cargo(&[name, "--version"])) {
        return run();
    }
    Ok(Outcome::Lacking(format!(
        "`cargo {name}` is not installed and rustup did not install it: run `rustup component add {}`",
        if name == "fmt" { "rustfmt" } else { name }
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_component_skips_its_suite() {
        let outcome = with_component("no-such-component", || Err("must not run".to_string())).unwrap();
        assert!(matches!(outcome, Outcome::Lacking(reason) if reason.contains("no-such-component")));
    }

    #[test]
    fn a_command_that_fails_is_one_failure_with_its_name() {
        let outcome = command(process::cargo(&["no-such-command"])).unwrap();
        assert!(matches!(outcome, Outcome::Ran(tally) if tally == Tally::failure("cargo no-such-command")));
    }
}

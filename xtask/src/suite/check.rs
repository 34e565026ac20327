//! Small suites.

use std::process::Command;

use outlast_toolkit::{installed, process};

use super::{Tally, libtest, programs};
use crate::tidy;

/// The system packages: Chromium, its driver, and a font, without which texts have no glyphs.
const PACKAGES: &[&str] = &["chromium", "chromium-driver", "fonts-dejavu-core"];

/// The programs that ChromeDriver looks for. Machines of hosted CI services have Chrome.
const BROWSERS: &[&str] = &["chromium", "chromium-browser", "google-chrome"];

pub(super) fn fmt() -> Result<Tally, String> {
    with_component("fmt", || command(process::cargo(&["fmt", "--all", "--check"])))
}

pub(super) fn clippy() -> Result<Tally, String> {
    let args = ["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
    with_component("clippy", || command(process::cargo(&args)))
}

pub(super) fn docs() -> Result<Tally, String> {
    let mut doc = process::cargo(&["doc", "--workspace", "--no-deps", "--all-features"]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    command(doc)
}

pub(super) fn tidy() -> Result<Tally, String> {
    if !process::succeeds(Command::new("git").arg("--version")) {
        return Ok(Tally::lacking("git is not installed: it lists the files of the repository"));
    }
    let findings = tidy::check()?;
    Ok(Tally::single(format!("{findings} finding(s), listed above"), findings == 0))
}

/// Runs every example of every package: each asserts its own results.
pub(super) fn examples() -> Result<Tally, String> {
    let examples = programs::examples()?;
    let mut tally = Tally::default();
    for example in &examples {
        let mut command = example.command();
        command.current_dir(process::root());
        tally.check(format!("cargo run {}", example.selector), process::stream(command, |_| {})?.success());
    }
    println!("{} example(s)", examples.len());
    tally.check("the workspace has no examples", !examples.is_empty());
    Ok(tally)
}

/// The tests that drive a browser: the dashboard, and the page of the demo. Without a browser the suite is skipped with
/// the command that installs it, and fails in CI.
pub(super) fn browser() -> Result<Tally, String> {
    let is_there = || {
        let has = |program: &str| installed::succeeds(program, &["--version"]);
        (BROWSERS.iter().any(|program| has(program)) && has("chromedriver")).then_some(())
    };
    let then = "run `cargo xtask test --only browser`";
    match installed::find_or_install_all("Chromium with its driver", PACKAGES, then, is_there) {
        Ok(()) => libtest::browser_tests(),
        Err(reason) => Ok(Tally::lacking(reason)),
    }
}

fn command(command: Command) -> Result<Tally, String> {
    let call = process::display(&command);
    Ok(Tally::single(call, process::stream(command, |_| {})?.success()))
}

/// rustup installs the components of rust-toolchain.toml. A toolchain without rustup may lack them.
fn with_component(name: &str, run: impl FnOnce() -> Result<Tally, String>) -> Result<Tally, String> {
    if process::succeeds(&mut process::cargo(&[name, "--version"])) {
        return run();
    }
    Ok(Tally::lacking(format!(
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
        assert!(outcome.lacking[0].contains("no-such-component"), "{outcome:?}");
    }

    #[test]
    fn a_command_that_fails_is_one_failure_with_its_name() {
        let outcome = command(process::cargo(&["no-such-command"])).unwrap();
        assert_eq!(outcome, Tally::failure("cargo no-such-command"));
    }
}

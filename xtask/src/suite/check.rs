//! Small suites.

use std::process::Command;

use outlast_toolkit::{installed, process};

use super::{Tally, libtest, programs};
use crate::{metadata, tidy};

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

/// Builds the API pages of all libraries, and of the programs that share their name with no library. A warning fails the suite.
pub(super) fn docs() -> Result<Tally, String> {
    let mut doc = process::cargo(&["doc", "--workspace", "--no-deps", "--all-features", "--lib"]);
    for package in metadata::load()? {
        let has_library = |name: &str| package.targets.iter().any(|lib| lib.is_lib() && lib.name == name);
        let programs = package.targets.iter().filter(|target| target.is_bin() && target.doc);
        // The pages of a program would replace those of a library with the same name.
        let programs = programs.filter(|program| !has_library(&program.name.replace('-', "_")));
        doc.args(programs.flat_map(|program| ["--bin", &program.name]));
    }
    // With an example, cargo enables the features that dev-dependencies enable, as clippy does: the dependencies of the
    // workspace are not checked once more.
    doc.args(["--example", "saga"]).env("RUSTDOCFLAGS", "-D warnings");
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

/// Runs a command as one check of its exit status.
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
    fn a_missing_component_skips_its_suite_and_a_failed_command_is_named() {
        let outcome = with_component("no-such-component", || Err("must not run".to_string())).unwrap();
        assert!(outcome.lacking[0].contains("no-such-component"), "{outcome:?}");
        let outcome = command(process::cargo(&["no-such-command"])).unwrap();
        assert_eq!(outcome, Tally::failure("cargo no-such-command"));
    }
}

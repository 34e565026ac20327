//! Finds, installs and runs cargo-mutants.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::listed::{self, Mutant};
use super::statements;
use super::target::Target;
use outlast_toolkit::process;

/// The supported releases. The format of names and outcomes can change with the first number of the version.
const MAJOR: &str = "27";
/// The configuration with the code that is not mutated.
const CONFIG: &str = ".cargo/mutants.toml";

pub(super) struct Tool {
    program: PathBuf,
}

/// Finds the program in PATH or in the target folder, or installs it.
pub(super) fn find_or_install() -> Result<Tool, String> {
    let folder = super::home().join("tools");
    let ours = folder.join("bin/cargo-mutants");
    if let Some(program) =
        [PathBuf::from("cargo-mutants"), ours.clone()].into_iter().find(|program| fits(program))
    {
        return Ok(Tool { program });
    }
    let version = format!("^{MAJOR}");
    let args = ["install", "cargo-mutants", "--locked", "--version", &version, "--root"];
    let mut command = process::cargo(&args);
    command.arg(&folder);
    let call = process::display(&command);
    process::stream(command, |_| {})?;
    match fits(&ours) {
        true => Ok(Tool { program: ours }),
        false => Err(format!("cargo-mutants {MAJOR} is needed and could not be installed: run `{call}`")),
    }
}

fn fits(program: &Path) -> bool {
    let output = Command::new(program).args(["mutants", "--version"]).stderr(Stdio::null()).output();
    output.is_ok_and(|output| is_known(&String::from_utf8_lossy(&output.stdout)))
}

/// `cargo-mutants 27.1.0`
fn is_known(version: &str) -> bool {
    version.split_whitespace().nth(1).and_then(|number| number.split('.').next()) == Some(MAJOR)
}

impl Tool {
    /// All mutants of a target, without the mutants that the configuration excludes.
    pub(super) fn list(&self, target: &Target) -> Result<Vec<Mutant>, String> {
        if let Some(dialect) = target.sql {
            return statements::list(dialect);
        }
        let mut command = self.command(target, &process::root().join(CONFIG));
        let output = command.args(["--list", "--json"]).output();
        let output = output.map_err(|error| format!("cargo-mutants could not be run: {error}"))?;
        if !output.status.success() {
            return Err(format!("cargo-mutants cannot list:\n{}", String::from_utf8_lossy(&output.stderr)));
        }
        listed::read(&String::from_utf8_lossy(&output.stdout), &process::root())
    }

    /// Tries these mutants, one after the other, in a copy of the sources.
    pub(super) fn run(&self, target: &Target, home: &Path, mutants: &[&Mutant]) -> Result<(), String> {
        let config = home.join("run.toml");
        let written = fs::read_to_string(process::root().join(CONFIG));
        let written = written.and_then(|text| fs::write(&config, only(&text, mutants)));
        written.map_err(|error| format!("{}: {error}", config.display()))?;
        println!("{}: {} mutants", target.name, mutants.len());
        let mut command = self.command(target, &config);
        command.args(["--caught", "--unviable", "--no-shuffle", "--colors", "never", "--output"]).arg(home);
        for package in target.tested_by {
            command.args(["--test-package", package]);
        }
        command.args(target.built.iter().map(|arg| format!("--cargo-arg={arg}")));
        command.args(["--", "--"]).args(target.tests());
        speed_up(&mut command, target);
        let status = command.status().map_err(|error| format!("cargo-mutants could not be run: {error}"))?;
        match status.code() {
            // 0: tests caught all mutants; 2: tests missed a mutant; 3: the tests of a mutant did not end.
            Some(0 | 2 | 3) => Ok(()),
            _ => Err(format!("cargo-mutants stopped with {status}: its outcomes are kept")),
        }
    }

    fn command(&self, target: &Target, config: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("mutants").current_dir(process::root()).stdin(Stdio::null());
        command.arg("--config").arg(config).args(["--package", target.package]);
        command.args(target.files.iter().flat_map(|file| ["--file", file]));
        command
    }
}

/// Sets the target folder of a target, so that a run builds only the code that a mutant changes. Other targets use other
/// folders. Debug information is not needed. Mutants of SQL change no code: the folder of the workspace has their tests.
pub(super) fn speed_up(command: &mut Command, target: &Target) {
    command.env("RUST_BACKTRACE", "0").envs(target.settings.iter().copied());
    if target.sql.is_some() {
        return;
    }
    let folder = super::home().join("build").join(target.name);
    command.env("CARGO_TARGET_DIR", folder).env("CARGO_INCREMENTAL", "1");
    command.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_PROFILE_TEST_DEBUG", "0");
}

/// The configuration with the names of all that is to be tried.
fn only(config: &str, mutants: &[&Mutant]) -> String {
    let mut out = format!("{config}\nexamine_re = [\n");
    for mutant in mutants {
        let _ = writeln!(out, "    '''^{}$''',", escaped(&mutant.name));
    }
    out + "]\n"
}

/// A regular expression for this text only.
fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut out, char| {
        if !char.is_alphanumeric() && !char.is_whitespace() && !matches!(char, '_' | '<' | '>' | '\'') {
            out.push('\\');
        }
        out.push(char);
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_supported_versions_are_accepted() {
        assert!(is_known("cargo-mutants 27.1.0\n"));
        for other in ["", "cargo-mutants 26.2.0", "error: no such command"] {
            assert!(!is_known(other), "{other}");
        }
    }

    #[test]
    fn names_are_matched_literally() {
        let mutant = Mutant::sample("a.rs", "<impl Drop for A<'_>>::drop", 3);
        let config = only("exclude_re = []", &[&mutant]);
        let line = r"    '''^a\.rs\:3\:1\: replace <impl Drop for A<'_>>\:\:drop \-> bool with true$''',";
        assert_eq!(config.lines().nth(2), Some(line));
        assert!(config.starts_with("exclude_re = []\n"));
    }
}

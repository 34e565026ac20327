//! `cargo xtask sim`: the simulator, which is a package of its own.

use std::process::{ExitCode, Stdio};

use crate::command::listing;
use crate::process;

pub(crate) fn details() -> String {
    let options = listing([
        ("--seeds A..B", "run these worlds, and those that once failed first"),
        ("--seed S", "run one world and print its trace"),
        ("--score A..B", "run each known defect until one of these worlds finds it"),
        ("--bug NAME", "give the store a defect, which must then be found"),
        ("--release", "build with optimisations: slower to begin, ten times faster to run"),
    ]);
    format!("options:\n{options}")
}

pub(crate) fn run(args: &[String]) -> Result<ExitCode, String> {
    let mut command = process::cargo(&call(args));
    let status = command
        .stdin(Stdio::inherit())
        .status()
        .map_err(|error| format!("`{}` could not be run: {error}", process::display(&command)))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// `--release` is for cargo, the rest for the simulator.
pub(crate) fn call(args: &[String]) -> Vec<String> {
    let (release, rest): (Vec<&String>, Vec<&String>) = args.iter().partition(|arg| *arg == "--release");
    let cargo = ["run", "-q", "-p", "outlast-sim"].into_iter().map(str::to_string);
    let release = release.into_iter().take(1).cloned();
    cargo.chain(release).chain(["--".to_string()]).chain(rest.into_iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_passed_on() {
        let args = ["--seeds", "0..9", "--release"].map(str::to_string);
        assert_eq!(call(&args).join(" "), "run -q -p outlast-sim --release -- --seeds 0..9");
        assert_eq!(call(&args[..2]).join(" "), "run -q -p outlast-sim -- --seeds 0..9");
    }
}

//! `cargo xtask sim`: the simulator, which is a package of its own.

use std::process::{ExitCode, Stdio};

use crate::command::listing;
use crate::process;

pub(crate) fn details() -> String {
    let options = listing([
        ("--seeds A..B", "run these worlds, and those that once failed first"),
        ("--minutes N", "run worlds for so long, from the first of --seeds on"),
        ("--seed S", "run one world and print its trace; --without leaves faults out"),
        ("--score A..B", "run each known defect until one of these worlds finds it"),
        ("--sweep LEVEL", "tell stories with a fault at each moment: calls, statements, polls or all"),
        ("--bug NAME", "give the world a defect, which must then be found"),
        ("--json FILE", "write the figures of the run to this file"),
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

/// Built with optimisations: worlds then run ten times faster.
pub(crate) fn call(args: &[String]) -> Vec<String> {
    let cargo = ["run", "-q", "--profile", "sim", "-p", "outlast-sim", "--"].map(str::to_string);
    cargo.into_iter().chain(args.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_passed_on() {
        let args = ["--seeds", "0..9"].map(str::to_string);
        assert_eq!(call(&args).join(" "), "run -q --profile sim -p outlast-sim -- --seeds 0..9");
    }
}

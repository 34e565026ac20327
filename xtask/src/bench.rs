//! `cargo xtask bench`: benchmarks live in their own package and are always built for release.

use std::process::{ExitCode, Stdio};

use crate::command::listing;
use crate::process;

/// The benchmarks of `outlast-bench`, by the name of its subcommand.
const BENCHES: &[(&str, &str)] = &[("provider", "the storage providers, operation by operation")];

pub(crate) fn details() -> String {
    format!("benchmarks (the rest of the line goes to the benchmark):\n{}", listing(BENCHES.iter().copied()))
}

pub(crate) fn run(args: &[String]) -> Result<ExitCode, String> {
    let mut command = process::cargo(&call(args)?);
    let status = command
        .stdin(Stdio::inherit())
        .status()
        .map_err(|error| format!("`{}` could not be run: {error}", process::display(&command)))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn call(args: &[String]) -> Result<Vec<String>, String> {
    let name = args.first().ok_or_else(|| format!("bench: which one?\n\n{}", details()))?;
    if !BENCHES.iter().any(|(bench, _)| bench == name) {
        return Err(format!("bench: there is no benchmark `{name}`\n\n{}", details()));
    }
    let cargo = ["run", "--release", "-p", "outlast-bench", "--"];
    Ok(cargo.into_iter().map(str::to_string).chain(args.iter().cloned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_passed_on() {
        let args = ["provider", "--store", "sqlite"].map(str::to_string);
        assert_eq!(
            call(&args).unwrap().join(" "),
            "run --release -p outlast-bench -- provider --store sqlite"
        );
    }

    #[test]
    fn an_unknown_benchmark_lists_what_exists() {
        for args in [vec![], vec!["peers".to_string()]] {
            assert!(call(&args).unwrap_err().contains("provider"));
        }
    }
}

//! `cargo xtask bench`: benchmarks live in their own packages and are always built for release.

mod compare;
mod engine;

use std::process::{ExitCode, Stdio};

use crate::command::listing;
use crate::process;

/// A benchmark by its name.
struct Bench {
    name: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result<ExitCode, String>,
}

const BENCHES: &[Bench] = &[
    Bench {
        name: "provider",
        about: "the storage providers, operation by operation",
        run: |args| of_the_package("provider", args),
    },
    Bench { name: "engine", about: "instructions of the engine's hot paths", run: engine::run },
    Bench {
        name: "sizes",
        about: "tables and indexes of PostgreSQL, before and after deletions",
        run: sizes,
    },
    Bench {
        name: "lists",
        about: "gauges, totals and lists of instances in stores with many finished ones",
        run: lists,
    },
    Bench { name: "compare", about: "whole orchestrations, next to peers and to floors", run: compare::run },
];

pub(crate) fn details() -> String {
    let rows = listing(BENCHES.iter().map(|bench| (bench.name, bench.about)));
    format!("benchmarks (the rest of the line goes to the benchmark):\n{rows}")
}

pub(crate) fn run(args: &[String]) -> Result<ExitCode, String> {
    let (name, rest) = args.split_first().ok_or_else(|| format!("bench: which one?\n\n{}", details()))?;
    let bench = BENCHES
        .iter()
        .find(|bench| bench.name == name)
        .ok_or_else(|| format!("bench: there is no benchmark `{name}`\n\n{}", details()))?;
    (bench.run)(rest)
}

/// What orchestrations leave in a private PostgreSQL.
fn sizes(args: &[String]) -> Result<ExitCode, String> {
    let server = compare::Server::start().map_err(|reason| format!("there is no PostgreSQL: {reason}"))?;
    let database = server.database()?;
    with_variables("sizes", args, database.variables())
}

/// What it costs to look at many instances, in SQLite and, where there is one, in a private PostgreSQL.
fn lists(args: &[String]) -> Result<ExitCode, String> {
    let Ok(server) = compare::Server::start() else { return of_the_package("lists", args) };
    let database = server.database()?;
    with_variables("lists", args, database.variables())
}

/// Runs a subcommand of `outlast-bench`.
fn of_the_package(name: &str, args: &[String]) -> Result<ExitCode, String> {
    with_variables(name, args, Vec::new())
}

fn with_variables(
    name: &str,
    args: &[String],
    variables: Vec<(&'static str, String)>,
) -> Result<ExitCode, String> {
    let mut command = process::cargo(&call(name, args));
    let status = command
        .stdin(Stdio::inherit())
        .envs(variables)
        .status()
        .map_err(|error| format!("`{}` could not be run: {error}", process::display(&command)))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn call(name: &str, args: &[String]) -> Vec<String> {
    let cargo = ["run", "--release", "-p", "outlast-bench", "--", name];
    cargo.into_iter().map(str::to_string).chain(args.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_passed_on() {
        let args = ["--store", "sqlite"].map(str::to_string);
        let expected = "run --release -p outlast-bench -- provider --store sqlite";
        assert_eq!(call("provider", &args).join(" "), expected);
    }

    #[test]
    fn an_unknown_benchmark_lists_what_exists() {
        for args in [vec![], vec!["peers".to_string()]] {
            let error = run(&args).unwrap_err();
            assert!(BENCHES.iter().all(|bench| error.contains(bench.name)), "{error}");
        }
    }
}

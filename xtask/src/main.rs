//! The project's own commands: `cargo xtask --help` lists them.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool prints to its terminal")]

mod bench;
mod chaos;
mod licenses;
mod macro_share;
mod metadata;
mod new_provider;
mod pages;
mod postgres;
mod scoreboard;
mod sim;
mod suite;
mod test;
mod tidy;

use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser};
use outlast_toolkit::process;

/// The project's own commands.
#[derive(Parser)]
#[command(name = "xtask", bin_name = "cargo xtask")]
enum Cli {
    /// Runs the suites and prints one summary
    Test(test::Args),
    /// Checks the rules of this repository
    #[command(after_help = tidy::rule_list())]
    Tidy,
    /// Writes the parts of pages that are copied from source files; `cargo xtask tidy` reports outdated parts
    Pages,
    /// Writes the licences that `outlast licenses` prints; a test of xtask reports an outdated file
    Licenses,
    /// Writes a new crate for a store
    NewProvider(new_provider::Args),
    /// Runs the simulator
    #[command(after_help = sim::OPTIONS)]
    Sim(PassedOn),
    /// Changes the code in one place at a time: a test must fail
    #[command(disable_help_flag = true)]
    Mutants(PassedOn),
    /// Writes docs/reliability.md from recorded figures
    Scoreboard(scoreboard::Args),
    /// Kills worker processes and checks the stored results
    #[command(after_help = chaos::OPTIONS)]
    Chaos(PassedOn),
    /// Runs the fuzz targets, guided by coverage
    #[command(disable_help_flag = true)]
    Fuzz(PassedOn),
    /// Runs a command with a private PostgreSQL
    #[command(after_help = postgres::variable_list())]
    Postgres(postgres::Args),
    /// Runs a benchmark in release mode
    #[command(subcommand)]
    Bench(bench::Bench),
}

/// Arguments for another program.
#[derive(clap::Args)]
struct PassedOn {
    /// Passed on to the program
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    args: Vec<String>,
}

fn main() -> ExitCode {
    Cli::parse().run().unwrap_or_else(|message| {
        eprintln!("xtask: {message}");
        ExitCode::from(2)
    })
}

impl Cli {
    /// An error is a wrong call, or a problem of the machine.
    fn run(self) -> Result<ExitCode, String> {
        match self {
            Self::Test(args) => test::run(&args),
            Self::Tidy => tidy::run(),
            Self::Pages => pages::run(),
            Self::Licenses => licenses::run(),
            Self::NewProvider(args) => new_provider::run(&args),
            Self::Sim(PassedOn { args }) => process::run(&mut sim::command(&args)),
            Self::Mutants(PassedOn { args }) => run_tool("outlast-mutants", &args),
            Self::Scoreboard(args) => scoreboard::run(&args),
            Self::Chaos(PassedOn { args }) => chaos::run(&args),
            Self::Fuzz(PassedOn { args }) => run_tool("outlast-fuzz-run", &args),
            Self::Postgres(args) => postgres::run(&args),
            Self::Bench(bench) => bench.run(),
        }
    }

    /// Whether `cargo xtask NAME` is a command.
    fn has_command(name: &str) -> bool {
        Self::command().find_subcommand(name).is_some()
    }
}

/// Builds and runs a program of `tools/` in the caller's working directory.
fn run_tool(package: &str, args: &[String]) -> Result<ExitCode, String> {
    let manifest = process::root().join("Cargo.toml");
    let mut command = process::cargo(&["run", "--quiet", "--package", package, "--manifest-path"]);
    command.arg(manifest).arg("--").args(args).current_dir(Path::new("."));
    process::run(&mut command)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The command lines that the workflows contain.
    fn workflow_calls() -> Vec<String> {
        let folder = process::root().join(".github/workflows");
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        let text: String = files.map(|file| std::fs::read_to_string(file).unwrap()).collect();
        let calls = text.lines().filter_map(|line| Some(line.split_once("cargo xtask ")?.1.to_string()));
        calls.collect()
    }

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(["xtask"].into_iter().chain(line.split_whitespace()))
    }

    #[test]
    fn the_command_lines_of_workflows_and_pages_are_valid() {
        let documented = [
            "test",
            "test --list",
            "test --quick",
            "test --only tidy,tests",
            "test --only=portable",
            "tidy",
            "pages",
            "licenses",
            "new-provider my-store --in folder",
            "sim --seeds 0..10000",
            "sim --seed 7 --without FAULT,OTHER --without-roots 3",
            "mutants --target engine --shard 0/8",
            "scoreboard",
            "scoreboard add sim file.json",
            "chaos flood sqlite --messages 10000 --release",
            "chaos postgres --phases partitions",
            "fuzz row_corruption --minimise",
            "fuzz --minutes 10 --json out.json",
            "postgres",
            "postgres --pgbouncer -- cargo test -p outlast-postgres contract",
            "bench provider --quick --only hello64,hello1 --json rows.json",
            "bench compare --store postgres",
            "bench compare --help",
            "bench engine --record",
            "bench sizes",
            "bench macros",
            "bench lists --finished 100000",
            "bench held --held 1000",
            "bench check --instances 1000",
            "bench soak --minutes 2 --store postgres",
        ];
        let calls = workflow_calls();
        assert!(calls.len() > 5, "{calls:?}");
        for line in documented.map(str::to_string).iter().chain(&calls) {
            assert!(parse(line).is_ok(), "{line}: {}", parse(line).err().unwrap());
        }
    }

    #[test]
    fn wrong_commands_and_arguments_are_refused() {
        for line in ["", "tset", "test --fast", "tidy now", "postgres cargo test", "bench peers", "bench"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn help_exists_for_every_command() {
        Cli::command().debug_assert();
        for command in Cli::command().get_subcommands() {
            assert!(command.get_about().is_some(), "{}", command.get_name());
        }
        assert!(Cli::has_command("new-provider") && !Cli::has_command("none"));
    }
}

//! The project's own commands: `cargo xtask --help` lists them.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool prints to its terminal")]

mod bench;
mod chaos;
mod pages;
mod postgres;
mod sim;
mod suite;
mod test;
mod tidy;

use std::fmt::Display;
use std::process::{Command, ExitCode};

use clap::{CommandFactory as _, Parser};
use outlast_packages as metadata;
use outlast_prove::{Scoreboard, stamped};
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
    /// Writes the licences that `outlast licenses` prints; a test reports an outdated file
    #[command(disable_help_flag = true)]
    Licenses(PassedOn),
    /// Lists the packages for the registry in their order; `--dry-run` packs and compiles them
    #[command(disable_help_flag = true)]
    Publish(PassedOn),
    /// Compiles the published packages with the oldest dependencies that their manifests allow
    #[command(disable_help_flag = true)]
    MinimalVersions(PassedOn),
    /// Compares the public API with a release
    #[command(disable_help_flag = true)]
    Semver(PassedOn),
    /// Builds the API documentation as docs.rs does; warnings are errors
    #[command(disable_help_flag = true)]
    DocsRs(PassedOn),
    /// Builds archives of the command with their checksums
    #[command(disable_help_flag = true)]
    Dist(PassedOn),
    /// Builds the pages as a book, and checks its links
    #[command(disable_help_flag = true)]
    Book(PassedOn),
    /// Writes a new crate for a store
    #[command(disable_help_flag = true)]
    NewProvider(PassedOn),
    /// Runs the simulator
    #[command(after_help = sim::OPTIONS)]
    Sim(PassedOn),
    /// Changes the code in one place at a time: a test must fail
    #[command(disable_help_flag = true)]
    Mutants(PassedOn),
    /// Repeats all long attempts to break the promises in chunks, and writes docs/reliability.md; a later call continues
    Prove(outlast_prove::Args),
    /// Records figures, and shows them in docs/reliability.md
    #[command(subcommand)]
    Scoreboard(Scoreboard),
    /// Kills worker processes and checks the stored results
    #[command(disable_help_flag = true)]
    Chaos(PassedOn),
    /// Runs the fuzz targets, guided by coverage
    #[command(disable_help_flag = true)]
    Fuzz(PassedOn),
    /// Runs a command with a private PostgreSQL
    #[command(after_help = postgres::variable_list())]
    Postgres(postgres::Args),
    /// Runs a benchmark in release mode
    Bench(bench::Args),
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
            Self::Licenses(PassedOn { args }) => release("licenses", &args),
            Self::Publish(PassedOn { args }) => release("publish", &args),
            Self::MinimalVersions(PassedOn { args }) => release("minimal-versions", &args),
            Self::Semver(PassedOn { args }) => release("semver", &args),
            Self::DocsRs(PassedOn { args }) => release("docs-rs", &args),
            Self::Dist(PassedOn { args }) => release("dist", &args),
            Self::Book(PassedOn { args }) => release("book", &args),
            Self::NewProvider(PassedOn { args }) => run_tool("outlast-new-provider", &args),
            Self::Sim(PassedOn { args }) => stamped(&args, || process::run(&mut sim::command(&args))),
            Self::Mutants(PassedOn { args }) => stamped(&args, || run_tool("outlast-mutants", &args)),
            Self::Prove(args) => outlast_prove::run(&args, pages::run),
            Self::Scoreboard(scoreboard) => scoreboard.run(pages::run),
            Self::Chaos(PassedOn { args }) => stamped(&args, || chaos::run(&args)),
            Self::Fuzz(PassedOn { args }) => stamped(&args, || run_tool("outlast-fuzz-run", &args)),
            Self::Postgres(args) => postgres::run(&args),
            Self::Bench(args) => args.run(),
        }
    }

    /// Whether `cargo xtask NAME` is a command.
    fn has_command(name: &str) -> bool {
        Self::command().find_subcommand(name).is_some()
    }
}

/// A list for the end of a help text.
fn listed<N: Display, A: Display>(title: &str, rows: impl IntoIterator<Item = (N, A)>) -> String {
    let rows: Vec<(String, A)> = rows.into_iter().map(|(name, about)| (name.to_string(), about)).collect();
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let rows = rows.iter().map(|(name, about)| format!("  {name:<width$} {about}\n"));
    format!("{title}:\n{}", rows.collect::<String>())
}

/// Runs a command of `tools/release`.
fn release(command: &str, args: &[String]) -> Result<ExitCode, String> {
    run_tool("outlast-release", &[&[command.to_string()], args].concat())
}

/// Builds and runs a program of `tools/`.
fn run_tool(package: &str, args: &[String]) -> Result<ExitCode, String> {
    process::run(&mut tool(package, &[], args))
}

/// `cargo run` in the caller's working directory.
fn tool(package: &str, options: &[&str], args: &[String]) -> Command {
    let mut command = process::cargo(&["run", "--quiet", "--package", package, "--manifest-path"]);
    command.arg(process::root().join("Cargo.toml")).args(options).arg("--").args(args).current_dir(".");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The command lines in workflows and pages.
    fn documented() -> Vec<String> {
        let is_read = |path: &String| {
            path.starts_with(".github/workflows/")
                || path == "CONTRIBUTING.md"
                || path == "docs/performance.md"
        };
        let files = process::files().unwrap().into_iter().filter(is_read);
        let text: String =
            files.map(|file| std::fs::read_to_string(process::root().join(file)).unwrap()).collect();
        let calls = text.split("cargo xtask ").skip(1).filter_map(|rest| rest.split(['`', '\n']).next());
        calls.map(str::to_string).collect()
    }

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(["xtask"].into_iter().chain(line.split_whitespace()))
    }

    #[test]
    fn the_command_lines_of_workflows_and_pages_are_valid() {
        let calls = documented();
        assert!(calls.len() > 40, "{calls:?}");
        for line in &calls {
            let bench = line.strip_prefix("bench ").and_then(|rest| rest.split(' ').next());
            assert!(bench.is_none_or(|name| bench::BENCHES.iter().any(|bench| bench.0 == name)), "{line}");
            assert!(parse(line).is_ok(), "{line}: {}", parse(line).err().unwrap());
        }
    }

    #[test]
    fn wrong_commands_and_arguments_are_refused() {
        for line in ["", "tset", "test --fast", "tidy now", "postgres cargo test", "bench", "scoreboard"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn help_exists_for_every_command() {
        Cli::command().debug_assert();
        for command in Cli::command().get_subcommands() {
            assert!(command.get_about().is_some(), "{}", command.get_name());
        }
        assert!(parse("bench peers").unwrap().run().unwrap_err().contains("no benchmark `peers`"));
        assert!(Cli::has_command("new-provider") && !Cli::has_command("none"));
    }
}

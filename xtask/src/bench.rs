//! `cargo xtask bench`: runs benchmarks, which are always built for release.

use std::process::ExitCode;

use outlast_toolkit::bench_server::Server;
use outlast_toolkit::process;

use crate::PassedOn;

#[derive(clap::Subcommand)]
pub(crate) enum Bench {
    /// Measures the storage providers, operation by operation
    #[command(disable_help_flag = true)]
    Provider(PassedOn),
    /// Counts the instructions of the engine's hot paths, and compares them with the recorded counts
    #[command(disable_help_flag = true)]
    Engine(PassedOn),
    /// Measures the share of attributes and derives in the build time of the examples
    Macros,
    /// Measures the tables and indexes of PostgreSQL, before and after deletions
    #[command(disable_help_flag = true)]
    Sizes(PassedOn),
    /// Measures gauges, totals and lists of instances in stores with many finished instances
    #[command(disable_help_flag = true)]
    Lists(PassedOn),
    /// Measures orchestrations per second and idle CPU time beside many held instances
    #[command(disable_help_flag = true)]
    Held(PassedOn),
    /// Measures `outlast check` with many running instances, and fails above a minute
    #[command(disable_help_flag = true)]
    Check(PassedOn),
    /// Runs orchestrations for minutes at full and at half load, and compares the last minute with the first
    #[command(disable_help_flag = true)]
    Soak(PassedOn),
    /// Measures calls in stores with more and more finished instances
    #[command(disable_help_flag = true)]
    Growth(PassedOn),
    /// Measures the start on a store with many unfinished instances, and a turn with a long history
    #[command(disable_help_flag = true)]
    Recovery(PassedOn),
    /// Measures the build of hello world from nothing, its packages and its size, next to peers
    #[command(disable_help_flag = true)]
    Footprint(PassedOn),
    /// Measures whole orchestrations, next to peers and to floors
    #[command(disable_help_flag = true)]
    Compare(PassedOn),
}

impl Bench {
    pub(crate) fn run(&self) -> Result<ExitCode, String> {
        match self {
            Self::Provider(PassedOn { args }) => run("provider", args, None),
            Self::Engine(PassedOn { args }) => run("instructions", args, None),
            Self::Macros => crate::macro_share::run(),
            Self::Sizes(PassedOn { args }) => with_server("sizes", args, true),
            // Without a server, only the lists of SQLite are measured.
            Self::Lists(PassedOn { args }) => run("lists", args, Server::start().ok().as_ref()),
            // Without a server, only SQLite is measured.
            Self::Held(PassedOn { args }) => run("held", args, Server::start().ok().as_ref()),
            Self::Check(PassedOn { args }) => check(args),
            Self::Soak(PassedOn { args }) => {
                with_server("soak", args, args.iter().any(|arg| arg == "postgres"))
            }
            Self::Footprint(PassedOn { args }) => run("footprint", args, None),
            Self::Growth(PassedOn { args }) => {
                with_server("growth", args, args.iter().all(|arg| arg != "sqlite"))
            }
            Self::Recovery(PassedOn { args }) => {
                with_server("recovery", args, args.iter().all(|arg| arg != "sqlite"))
            }
            Self::Compare(PassedOn { args }) => crate::run_tool("outlast-bench-compare", args),
        }
    }
}

/// Runs a subcommand of `outlast-bench`, with a server if it measures PostgreSQL.
fn with_server(name: &str, args: &[String], needs_server: bool) -> Result<ExitCode, String> {
    let server = match needs_server {
        true => Some(Server::start().map_err(|reason| format!("PostgreSQL could not be started: {reason}"))?),
        false => None,
    };
    run(name, args, server.as_ref())
}

/// Runs a subcommand of `outlast-bench`, with a new database of the server.
fn run(name: &str, args: &[String], server: Option<&Server>) -> Result<ExitCode, String> {
    let database = server.map(Server::database).transpose()?;
    let mut command = process::cargo(&["run", "--release", "-p", "outlast-bench", "--", name]);
    command.args(args).envs(database.iter().flat_map(|database| database.variables()));
    process::run(&mut command)
}

/// Builds the command and the program that it checks, and measures them.
fn check(args: &[String]) -> Result<ExitCode, String> {
    let build = ["build", "--release", "-p", "outlast-cli", "--bin", "outlast", "--example", "orders"];
    process::output(&mut process::cargo(&build))?;
    let built = process::target().join("release");
    let programs = [built.join("outlast"), built.join("examples").join("orders")];
    let programs = programs.map(|path| path.display().to_string());
    run("check", &[&programs, args].concat(), None)
}

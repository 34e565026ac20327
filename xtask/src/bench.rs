//! `cargo xtask bench`: runs benchmarks, which are always built for release.

use std::process::ExitCode;

use outlast_toolkit::bench_server::Server;
use outlast_toolkit::process;

#[derive(clap::Args)]
#[command(after_help = list(), override_usage = "cargo xtask bench NAME [OPTIONS]; `NAME --help` shows the options")]
pub(crate) struct Args {
    #[command(subcommand)]
    call: Call,
}

#[derive(clap::Subcommand)]
enum Call {
    #[command(external_subcommand)]
    Named(Vec<String>),
}

/// When a benchmark has a private PostgreSQL server.
pub(crate) enum Needs {
    Nothing,
    Server,
    /// Without a server, only SQLite is measured.
    ServerIfPossible,
    ServerWith(&'static str),
    ServerWithout(&'static str),
}
use Needs::{Nothing, ServerIfPossible, ServerWith, ServerWithout};

pub(crate) const BENCHES: &[(&str, Needs, &str)] = &[
    ("provider", Nothing, "the storage providers, operation by operation"),
    ("engine", Nothing, "instructions of the engine's hot paths, compared with the recorded counts"),
    ("macros", Nothing, "the share of attributes and derives in the build time of the examples"),
    ("testing", Nothing, "the figures of the test kit in the profile of `cargo test`, against limits"),
    ("sizes", Needs::Server, "tables and indexes of PostgreSQL, before and after deletions"),
    (
        "lists",
        ServerIfPossible,
        "gauges, totals and lists of instances in stores with many finished instances",
    ),
    (
        "held",
        ServerIfPossible,
        "orchestrations per second and idle CPU time beside many held instances, against targets",
    ),
    (
        "additions",
        ServerIfPossible,
        "the cost of the index and the reports of nodes for orchestrations, against a target",
    ),
    ("quickstart", Nothing, "clone, build from nothing and start of the demo; fails above five minutes"),
    (
        "api",
        ServerIfPossible,
        "the HTTP API and pages of `outlast serve` with many instances, against targets",
    ),
    ("check", Nothing, "`outlast check` with many running instances; fails above a minute"),
    (
        "soak",
        ServerWith("postgres"),
        "minutes at full and at half load: compares the last minute with the first",
    ),
    ("growth", ServerWithout("sqlite"), "calls in stores with more and more finished instances"),
    (
        "recovery",
        ServerWithout("sqlite"),
        "the start with many unfinished instances, and a turn with a long history",
    ),
    ("footprint", Nothing, "the build of hello world from nothing, its packages and its size, next to peers"),
    ("compare", Nothing, "whole orchestrations, next to peers and to floors"),
];

fn list() -> String {
    crate::listed("Measures", BENCHES.iter().map(|(name, _, about)| (name, about)))
}

impl Args {
    /// Runs the benchmark of the command line, with a server if the benchmark needs one.
    pub(crate) fn run(&self) -> Result<ExitCode, String> {
        let Call::Named(call) = &self.call;
        let (name, args) = call.split_first().ok_or_else(list)?;
        let found = BENCHES.iter().find(|(bench, _, _)| bench == name);
        let (_, needs, _) = found.ok_or_else(|| format!("there is no benchmark `{name}`. {}", list()))?;
        match name.as_str() {
            "compare" => crate::run_tool("outlast-bench-compare", args),
            "api" => run(name, &[&[program()?], args].concat(), needs.server(args)?.as_ref()),
            "check" => run(name, &[&programs_to_check()?, args].concat(), None),
            "engine" => run("instructions", args, None),
            name => run(name, args, needs.server(args)?.as_ref()),
        }
    }
}

impl Needs {
    /// Starts a server if the benchmark needs one for these arguments.
    fn server(&self, args: &[String]) -> Result<Option<Server>, String> {
        let is_needed = match self {
            Self::Nothing => false,
            Self::Server => true,
            Self::ServerIfPossible => return Ok(Server::start().ok()),
            Self::ServerWith(store) => args.iter().any(|arg| arg == store),
            Self::ServerWithout(store) => args.iter().all(|arg| arg != store),
        };
        let server = is_needed.then(Server::start).transpose();
        server.map_err(|reason| format!("PostgreSQL could not be started: {reason}"))
    }
}

/// Runs a subcommand of `outlast-bench`, with a new database of the server.
fn run(name: &str, args: &[String], server: Option<&Server>) -> Result<ExitCode, String> {
    let database = server.map(Server::database).transpose()?;
    let mut command = process::cargo(&["run", "--release", "-p", "outlast-bench", "--", name]);
    command.args(args).envs(database.iter().flat_map(|database| database.variables()));
    process::run(&mut command)
}

/// Builds the command and the program that it checks, and returns their paths.
fn programs_to_check() -> Result<[String; 2], String> {
    Ok([built(&["--bin", "outlast", "--example", "orders"], "outlast")?, release_path("examples/orders")])
}

/// Builds the command for release, and returns its path.
fn program() -> Result<String, String> {
    built(&["--bin", "outlast"], "outlast")
}

/// Builds a program for release, and returns its path.
fn built(targets: &[&str], name: &str) -> Result<String, String> {
    let build = [&["build", "--release", "-p", "outlast-cli"], targets].concat();
    process::output(&mut process::cargo(&build))?;
    Ok(release_path(name))
}

/// The path of a program that was built for release.
fn release_path(name: &str) -> String {
    process::target().join("release").join(name).display().to_string()
}

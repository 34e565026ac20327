//! `cargo xtask postgres`: runs a command with a private PostgreSQL.

use std::io::{BufRead as _, stdin};
use std::process::{Command, ExitCode};

use outlast_toolkit::postgres::{Cluster, Options, VARIABLES};
use outlast_toolkit::process;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The server does not offer TLS
    #[arg(long)]
    no_tls: bool,
    /// Starts a PgBouncer that pools transactions; the URL is that of the PgBouncer
    #[arg(long)]
    pgbouncer: bool,
    /// Runs this command, then stops the server; without a command the server runs until Enter is pressed
    #[arg(last = true)]
    command: Vec<String>,
}

pub(crate) fn variable_list() -> String {
    crate::listed("Environment variables of the command", VARIABLES.iter().copied())
}

/// Starts a server, and runs the command with its variables; without a command waits for Enter.
pub(crate) fn run(args: &Args) -> Result<ExitCode, String> {
    let options = Options { tls: !args.no_tls, pooled: args.pgbouncer, ..Options::default() };
    let cluster =
        Cluster::start(&options).map_err(|reason| format!("PostgreSQL could not be started: {reason}"))?;
    if let Some((program, args)) = args.command.split_first() {
        return process::run(Command::new(program).args(args).envs(cluster.variables()));
    }
    for (name, value) in cluster.variables() {
        println!("export {name}='{value}'");
    }
    println!("Press Enter to stop and remove the server.");
    let _ = stdin().lock().read_line(&mut String::new());
    Ok(ExitCode::SUCCESS)
}

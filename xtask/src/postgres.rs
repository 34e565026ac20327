//! `cargo xtask postgres`: runs a command with a private PostgreSQL.

use std::fmt::Write as _;
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
    VARIABLES.iter().fold(
        "Environment variables of the command:\n".to_string(),
        |mut text, (name, meaning)| {
            let _ = writeln!(text, "  {name:<32} {meaning}");
            text
        },
    )
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn all_arguments_after_two_hyphens_are_the_command() {
        let args = Line::parse_from(["postgres", "--no-tls", "--", "cargo", "test", "--", "--no-tls"]).args;
        assert_eq!((args.no_tls, args.pgbouncer), (true, false));
        assert_eq!(args.command, ["cargo", "test", "--", "--no-tls"]);
        assert!(Line::try_parse_from(["postgres", "cargo", "test"]).is_err());
    }
}

//! `cargo xtask postgres`: a private PostgreSQL for one command, or for as long as somebody looks at it.

#[cfg(unix)]
mod certificates;
#[cfg(unix)]
mod cluster;
#[cfg(any(not(unix), test))]
mod elsewhere;
#[cfg(unix)]
mod keeper;
#[cfg(unix)]
mod pooler;
#[cfg(unix)]
mod programs;
#[cfg(unix)]
mod server_user;

use std::io::{BufRead as _, stdin};
use std::process::{Command, ExitCode};

#[cfg(unix)]
pub(crate) use self::cluster::{Cluster, Options, VARIABLES};
#[cfg(not(unix))]
pub(crate) use self::elsewhere::{Cluster, Options, VARIABLES};
use crate::command::listing;
use crate::process;

pub(crate) fn details() -> String {
    let options = listing([
        ("--no-tls", "the server offers no TLS"),
        ("--pgbouncer", "the URL is that of a PgBouncer which pools transactions"),
        ("-- COMMAND ..", "run this, then stop; without it, the server runs until Enter is pressed"),
    ]);
    let variables = listing(VARIABLES.iter().copied());
    format!("{options}\nvariables that the command finds:\n{variables}")
}

pub(crate) fn run(args: &[String]) -> Result<ExitCode, String> {
    let call = Call::parse(args)?;
    let cluster = Cluster::start(&Options { tls: call.tls, pooled: call.pooled, ..Options::default() })
        .map_err(|reason| format!("there is no PostgreSQL: {reason}"))?;
    match call.command.split_first() {
        Some((program, args)) => {
            let mut command = Command::new(program);
            command.args(args).envs(cluster.variables());
            let status = command
                .status()
                .map_err(|error| format!("`{}` could not be run: {error}", process::display(&command)))?;
            Ok(status
                .code()
                .and_then(|code| u8::try_from(code).ok())
                .map_or(ExitCode::FAILURE, ExitCode::from))
        }
        None => {
            for (name, value) in cluster.variables() {
                println!("export {name}='{value}'");
            }
            println!("Enter stops the server and removes it.");
            // What is typed does not matter, and nor does the end of the input.
            let _ = stdin().lock().read_line(&mut String::new());
            Ok(ExitCode::SUCCESS)
        }
    }
}

#[derive(Debug, PartialEq)]
struct Call {
    tls: bool,
    pooled: bool,
    command: Vec<String>,
}

impl Call {
    fn parse(args: &[String]) -> Result<Self, String> {
        let mut call = Self { tls: true, pooled: false, command: Vec::new() };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--no-tls" => call.tls = false,
                "--pgbouncer" => call.pooled = true,
                "--" => call.command = args.by_ref().cloned().collect(),
                _ => return Err(format!("postgres: unknown argument `{arg}`\n\n{}", details())),
            }
        }
        Ok(call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Call, String> {
        let args: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        Call::parse(&args)
    }

    #[test]
    fn what_follows_the_dashes_is_the_command() {
        let command = ["cargo", "test", "--", "--no-tls"].map(str::to_string).to_vec();
        assert_eq!(parse("-- cargo test -- --no-tls"), Ok(Call { tls: true, pooled: false, command }));
        let command = vec!["psql".to_string()];
        assert_eq!(parse("--no-tls --pgbouncer -- psql"), Ok(Call { tls: false, pooled: true, command }));
        assert_eq!(parse(""), Ok(Call { tls: true, pooled: false, command: Vec::new() }));
    }

    #[test]
    fn mistakes_are_named() {
        assert!(parse("cargo test").unwrap_err().contains("unknown argument `cargo`"));
    }
}

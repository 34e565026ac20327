//! `cargo xtask chaos`: runs the package `outlast-chaos`, which kills worker processes.

use std::process::{Command, ExitCode};

use outlast_toolkit::postgres::{Cluster, Options};
use outlast_toolkit::process;

/// Runs `outlast-chaos` with these arguments, and with a server if the store needs one.
pub(crate) fn run(args: &[String]) -> Result<ExitCode, String> {
    let (package, program) = split(args);
    let server = server(args)?;
    let mut command = crate::tool("outlast-chaos", &package, &program);
    process::run(command.envs(server.iter().flat_map(Cluster::variables)))
}

/// Starts the server of a store that needs one. The server has no TLS because the supervisor reads the connections that
/// it cuts.
pub(crate) fn server(args: &[String]) -> Result<Option<Cluster>, String> {
    // The store is the first argument, or the second after `flood`.
    let is_wanted = args.iter().take(2).any(|store| store == "postgres");
    is_wanted.then(|| Cluster::start(&Options { tls: false, ..Options::default() })).transpose()
}

/// Adds the program's arguments to a built `outlast-chaos`.
pub(crate) fn add_args(command: &mut Command, args: &[String]) {
    command.args(split(args).1);
}

/// Separates the arguments of cargo from those of the program.
fn split(args: &[String]) -> (Vec<&'static str>, Vec<String>) {
    let (release, mut program): (Vec<String>, Vec<String>) =
        args.iter().cloned().partition(|arg| arg == "--release");
    if !matches!(program.first().map(String::as_str), Some("power" | "flood" | "--help")) {
        program.insert(0, "supervise".to_string());
    }
    let mut package = if release.is_empty() { Vec::new() } else { vec!["--profile", "sim"] };
    if program.get(1).is_some_and(|store| store == "cosmos") {
        package.extend(["--features", "cosmos"]);
    }
    if program.first().is_some_and(|command| command == "power") {
        package.extend(["--features", "power"]);
    }
    (package, program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn release_selects_the_profile_and_stores_are_supervised() {
        let call = |line: &str| {
            let args: Vec<String> = line.split(' ').map(str::to_string).collect();
            let (package, program) = split(&args);
            format!("{} -- {}", package.join(" "), program.join(" "))
        };
        assert_eq!(call("sqlite --kills 30 --release"), "--profile sim -- supervise sqlite --kills 30");
        assert_eq!(call("power --cuts 9"), "--features power -- power --cuts 9");
        assert_eq!(call("flood sqlite --messages 9 --release"), "--profile sim -- flood sqlite --messages 9");
        assert_eq!(call("--help"), " -- --help");
        assert_eq!(call("cosmos --kills 9"), "--features cosmos -- supervise cosmos --kills 9");
    }
}

//! `cargo xtask chaos`: runs the package `outlast-chaos`, which kills worker processes.

use std::process::{Command, ExitCode};

use outlast_toolkit::postgres::{Cluster, Options};
use outlast_toolkit::process;

pub(crate) const OPTIONS: &str = "\
`cargo xtask chaos STORE` kills the workers of a store: sqlite, postgres on a private server, or cosmos on a rig
(on the account that COSMOS_ENDPOINT and COSMOS_KEY name, if they are set).
  --minutes N        the longest time; without --kills and --instances, the exact time (1)
  --kills N          runs until this many workers are killed
  --instances N      runs until this many instances have ended
  --phases NAME,..   runs only these of kills, disk-full, fsync-errors, partitions
  --pace MS          the mean time between two kills (700)
  --in-flight N      instances that clients keep running at once (64)
  --seed S           the seed of all random choices (1)
  --json FILE        also writes the figures to this file
  --release          builds with optimisations, for long runs

`cargo xtask chaos power` cuts the power of simulated machines.
  --cuts N           power cuts for each setting
  --seed S, --json FILE

`cargo xtask chaos flood STORE` sends more messages than fit into memory.";

pub(crate) fn run(args: &[String]) -> Result<ExitCode, String> {
    let (package, program) = split(&relative_to_caller(args));
    let mut command = process::cargo(&["run", "-q", "-p", "outlast-chaos"]);
    command.args(package).arg("--").args(program);
    let server = server(args)?;
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
    if !matches!(program.first().map(String::as_str), Some("power" | "flood")) {
        program.insert(0, "supervise".to_string());
    }
    let mut package = if release.is_empty() { Vec::new() } else { vec!["--profile", "sim"] };
    if program.get(1).is_some_and(|store| store == "cosmos") {
        package.extend(["--features", "cosmos"]);
    }
    (package, program)
}

/// The path of `--json` is relative to the caller's working directory, but the supervisor runs in the workspace's root.
fn relative_to_caller(args: &[String]) -> Vec<String> {
    let mut args = args.to_vec();
    let file = args.iter().position(|arg| arg == "--json").and_then(|at| args.get_mut(at + 1));
    if let (Some(file), Ok(folder)) = (file, std::env::current_dir()) {
        *file = folder.join(&*file).display().to_string();
    }
    args
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
        assert_eq!(call("power --cuts 9"), " -- power --cuts 9");
        assert_eq!(call("flood sqlite --messages 9 --release"), "--profile sim -- flood sqlite --messages 9");
        assert_eq!(call("sqlite"), " -- supervise sqlite");
        assert_eq!(call("cosmos --kills 9"), "--features cosmos -- supervise cosmos --kills 9");
    }

    #[test]
    fn the_json_file_is_relative_to_the_caller() {
        let args = relative_to_caller(&["sqlite", "--json", "figures.json"].map(str::to_string));
        let folder = std::env::current_dir().unwrap();
        assert_eq!(args[2], folder.join("figures.json").display().to_string());
        assert_eq!(relative_to_caller(&["--json", "/x"].map(str::to_string))[1], "/x");
    }
}

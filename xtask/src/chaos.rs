//! `cargo xtask chaos`: worker processes that are killed, which is a package of its own.

use std::process::{ExitCode, Stdio};

use crate::command::listing;
use crate::postgres::{Cluster, Options};
use crate::process;

pub(crate) fn details() -> String {
    let options = listing([
        ("--minutes N", "how long it may take; without targets, how long it takes (1)"),
        ("--kills N", "go on until this many workers were killed"),
        ("--instances N", "go on until this many instances have ended"),
        ("--phases NAME,..", "only these of kills, disk-full, fsync-errors, partitions"),
        ("--pace MS", "from one kill to the next, on average (700)"),
        ("--in-flight N", "instances that clients keep running at once (64)"),
        ("--seed S", "what all chance comes from (1)"),
        ("--json FILE", "also write the figures to this file"),
        ("--release", "build with optimisations, for long runs"),
    ]);
    let power = listing([
        ("--cuts N", "how often the power goes, with each setting"),
        ("--seed S", ""),
        ("--json FILE", ""),
    ]);
    format!(
        "stores: sqlite, postgres (a server is started for it)\n\noptions:\n{options}\n`power` instead of a store cuts the power of machines:\n{power}"
    )
}

pub(crate) fn run(args: &[String]) -> Result<ExitCode, String> {
    let mut command = process::cargo(&call(&from_here(args)));
    let server = server(args)?;
    command.envs(server.iter().flat_map(Cluster::variables));
    let status = command
        .stdin(Stdio::inherit())
        .status()
        .map_err(|error| format!("`{}` could not be run: {error}", process::display(&command)))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The server of a store that has one. Its connections are cut by somebody who must be able to read them.
pub(crate) fn server(args: &[String]) -> Result<Option<Cluster>, String> {
    // After the name of a part, if there is one.
    let is_wanted = args.iter().take(2).any(|store| store == "postgres");
    is_wanted.then(|| Cluster::start(&Options { tls: false, ..Options::default() })).transpose()
}

/// `--release` is for cargo, the rest for the package.
pub(crate) fn call(args: &[String]) -> Vec<String> {
    let (release, mut rest): (Vec<&str>, Vec<&str>) =
        args.iter().map(String::as_str).partition(|arg| *arg == "--release");
    let mut call = vec!["run", "-q", "-p", "outlast-chaos"];
    if !release.is_empty() {
        call.extend(["--profile", "sim"]);
    }
    call.push("--");
    if !matches!(rest.first(), Some(&("power" | "flood"))) {
        call.push("supervise");
    }
    call.append(&mut rest);
    call.into_iter().map(str::to_string).collect()
}

/// The file of `--json` is named from where the command was called; the supervisor runs in the root of the workspace.
fn from_here(args: &[String]) -> Vec<String> {
    let mut args = args.to_vec();
    let named = args.iter().position(|arg| arg == "--json").and_then(|at| args.get_mut(at + 1));
    if let (Some(file), Ok(here)) = (named, std::env::current_dir()) {
        *file = here.join(&*file).display().to_string();
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_passed_on() {
        let args = ["sqlite", "--kills", "30", "--release"].map(str::to_string);
        let long = "run -q -p outlast-chaos --profile sim -- supervise sqlite --kills 30";
        assert_eq!(call(&args).join(" "), long);
        let power = ["power", "--cuts", "9"].map(str::to_string);
        assert_eq!(call(&power).join(" "), "run -q -p outlast-chaos -- power --cuts 9");
        assert_eq!(call(&args[..1]).join(" "), "run -q -p outlast-chaos -- supervise sqlite");
    }

    #[test]
    fn a_file_is_named_from_where_the_command_was_called() {
        let args = from_here(&["sqlite", "--json", "figures.json"].map(str::to_string));
        let here = std::env::current_dir().unwrap();
        assert_eq!(args[2], here.join("figures.json").display().to_string());
        assert_eq!(from_here(&["--json", "/x"].map(str::to_string))[1], "/x");
    }
}

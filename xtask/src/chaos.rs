//! `cargo xtask chaos`: worker processes that are killed, which is a package of its own.

use std::process::{ExitCode, Stdio};

use crate::command::listing;
use crate::process;

pub(crate) fn details() -> String {
    let options = listing([
        ("--minutes N", "how long it may take; without targets, how long it takes (1)"),
        ("--kills N", "go on until this many workers were killed"),
        ("--instances N", "go on until this many instances have ended"),
        ("--phases NAME,..", "only these of kills, disk-full, fsync-errors"),
        ("--pace MS", "from one kill to the next, on average (700)"),
        ("--in-flight N", "instances that clients keep running at once (64)"),
        ("--seed S", "what all chance comes from (1)"),
        ("--json FILE", "also write the figures to this file"),
        ("--release", "build with optimisations, for long runs"),
    ]);
    format!("stores: sqlite\n\noptions:\n{options}")
}

pub(crate) fn run(args: &[String]) -> Result<ExitCode, String> {
    let mut command = process::cargo(&call(&from_here(args)));
    let status = command
        .stdin(Stdio::inherit())
        .status()
        .map_err(|error| format!("`{}` could not be run: {error}", process::display(&command)))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// `--release` is for cargo, the rest for the supervisor.
pub(crate) fn call(args: &[String]) -> Vec<String> {
    let (release, rest): (Vec<&String>, Vec<&String>) = args.iter().partition(|arg| *arg == "--release");
    let cargo = ["run", "-q", "-p", "outlast-chaos"].into_iter().map(str::to_string);
    let release = release.into_iter().take(1).cloned();
    let supervise = ["--", "supervise"].into_iter().map(str::to_string);
    cargo.chain(release).chain(supervise).chain(rest.into_iter().cloned()).collect()
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
        assert_eq!(call(&args).join(" "), "run -q -p outlast-chaos --release -- supervise sqlite --kills 30");
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

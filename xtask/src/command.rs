//! Which commands exist, and how the first argument finds one.

use std::fmt::Write as _;
use std::process::ExitCode;

use crate::{bench, chaos, fuzz, mutants, new_provider, pages, postgres, scoreboard, sim, test, tidy};

/// One row of `cargo xtask help`.
struct Command {
    name: &'static str,
    args: &'static str,
    about: &'static str,
    /// What `cargo xtask NAME --help` says below the usage line.
    details: fn() -> String,
    run: fn(&[String]) -> Result<ExitCode, String>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "test",
        args: "[--only SUITE,..] [--list]",
        about: "run every suite and print one summary",
        details: test::details,
        run: test::run,
    },
    Command {
        name: "tidy",
        args: "",
        about: "check the rules of this repository",
        details: tidy::details,
        run: tidy::run,
    },
    Command {
        name: "pages",
        args: "",
        about: "write the parts of pages that are taken from source files",
        details: pages::details,
        run: pages::run,
    },
    Command {
        name: "new-provider",
        args: "NAME [--in FOLDER]",
        about: "write a crate to begin a store with",
        details: new_provider::details,
        run: new_provider::run,
    },
    Command {
        name: "sim",
        args: "[--seeds A..B | --seed S]",
        about: "run simulated worlds full of faults",
        details: sim::details,
        run: sim::run,
    },
    Command {
        name: "mutants",
        args: "[--target NAME] [--shard K/N]",
        about: "change the code, one place at a time: tests must notice",
        details: mutants::details,
        run: mutants::run,
    },
    Command {
        name: "scoreboard",
        args: "[add NAME FILE]",
        about: "write docs/reliability.md from recorded figures",
        details: scoreboard::details,
        run: scoreboard::run,
    },
    Command {
        name: "chaos",
        args: "STORE [--minutes N]",
        about: "kill worker processes and judge what is left",
        details: chaos::details,
        run: chaos::run,
    },
    Command {
        name: "fuzz",
        args: "[TARGET] [--minutes N] [--json FILE]",
        about: "run the fuzz targets, guided by coverage",
        details: fuzz::details,
        run: fuzz::run,
    },
    Command {
        name: "postgres",
        args: "[--no-tls] [-- COMMAND ..]",
        about: "run a command with a private PostgreSQL",
        details: postgres::details,
        run: postgres::run,
    },
    Command {
        name: "bench",
        args: "NAME [ARGS..]",
        about: "run a benchmark in release mode",
        details: bench::details,
        run: bench::run,
    },
];

/// Runs the command that `args` names. An error is a mistake in how xtask was called, or in the machine around it.
pub(crate) fn dispatch(args: &[String]) -> Result<ExitCode, String> {
    let Some((name, rest)) = args.split_first() else {
        return Err(format!("no command given\n\n{}", help()));
    };
    if is_help(name) {
        println!("{}", help());
        return Ok(ExitCode::SUCCESS);
    }
    let command = COMMANDS
        .iter()
        .find(|command| command.name == name)
        .ok_or_else(|| format!("unknown command `{name}`\n\n{}", help()))?;
    if rest.first().is_some_and(|arg| is_help(arg)) {
        println!("{}", usage(command));
        return Ok(ExitCode::SUCCESS);
    }
    (command.run)(rest)
}

/// Whether `cargo xtask NAME` is a command.
pub(crate) fn exists(name: &str) -> bool {
    COMMANDS.iter().any(|command| command.name == name)
}

/// A table of names and what they mean, as every help text shows one.
pub(crate) fn listing<'a>(rows: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut out = String::new();
    for (name, about) in rows {
        let _ = writeln!(out, "  {name:<16} {about}");
    }
    out
}

fn is_help(arg: &str) -> bool {
    matches!(arg, "help" | "--help" | "-h")
}

fn help() -> String {
    let mut out = String::from("usage: cargo xtask COMMAND\n\n");
    for command in COMMANDS {
        let call = format!("{} {}", command.name, command.args);
        let _ = writeln!(out, "  {call:<34} {}", command.about);
    }
    let _ = writeln!(out, "  {:<34} this text; `cargo xtask COMMAND --help` says more", "help");
    out
}

fn usage(command: &Command) -> String {
    let call = format!("cargo xtask {} {}", command.name, command.args);
    format!("usage: {}\n\n{}\n\n{}", call.trim_end(), command.about, (command.details)())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_that_workflows_call_exist() {
        let folder = crate::process::root().join(".github/workflows");
        let mut calls = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            for name in text.split("cargo xtask ").skip(1).filter_map(|rest| rest.split_whitespace().next()) {
                assert!(COMMANDS.iter().any(|command| command.name == name), "cargo xtask {name}");
                calls += 1;
            }
        }
        assert!(calls > 0);
    }

    fn args(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_string).collect()
    }

    #[test]
    fn an_unknown_command_lists_what_exists() {
        let error = dispatch(&args("tset")).unwrap_err();
        assert!(error.starts_with("unknown command `tset`"), "{error}");
        for command in COMMANDS {
            assert!(error.contains(command.name), "{error}");
        }
    }

    #[test]
    fn no_command_is_an_error_and_help_is_not() {
        assert!(dispatch(&[]).is_err());
        for line in [
            "help",
            "--help",
            "-h",
            "test --help",
            "tidy --help",
            "pages --help",
            "new-provider --help",
            "sim --help",
            "chaos --help",
            "fuzz --help",
            "postgres --help",
            "bench --help",
        ] {
            assert!(dispatch(&args(line)).is_ok(), "{line}");
        }
    }
}

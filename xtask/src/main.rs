//! The project's own commands. `cargo xtask help` lists them.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to its terminal")]

mod bench;
mod chaos;
mod command;
mod fuzz;
mod installed;
mod metadata;
mod mutants;
mod new_provider;
mod page;
mod pages;
mod postgres;
mod process;
mod scoreboard;
mod sim;
mod stopwatch;
mod suite;
mod test;
mod tidy;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match command::dispatch(&args) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::from(2)
        }
    }
}

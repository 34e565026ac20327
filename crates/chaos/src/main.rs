//! `cargo run -p outlast-chaos -- power`: what happens to a store whose machine loses its power.
#![allow(clippy::print_stderr, reason = "a command-line tool talks to its terminal")]

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.split_first() {
        Some((name, rest)) if name == "power" => outlast_chaos::power::run(rest),
        _ => {
            eprintln!("usage: cargo run -p outlast-chaos -- power [--cuts N] [--seed S] [--json FILE]");
            ExitCode::from(2)
        }
    }
}

//! `cargo xtask chaos`: real worker processes on one store, which are killed, stopped and starved of disk while clients
//! go on, and a judge of what is left.
//!
//! `supervise` is the run: it starts the others, hurts them, and judges. `worker` is one of the processes that are hurt.
//! `flood` asks what instances with more messages than fit into memory do to their process and to others.
//! They share a folder with the store, a ledger that testifies about it, and what each worker says it was told.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to its terminal")]

mod args;
mod evidence;
mod fleet;
mod flood;
mod job;
mod judge;
mod ledger;
mod load;
mod nemesis;
mod phase;
mod report;
mod store;
mod worker;

use args::{Args, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = Args::parse();
    if let Command::Power { args } = args.command {
        return outlast_chaos::power::run(&args);
    }
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let done = match tokio {
        Ok(tokio) => tokio.block_on(async {
            match args.command {
                Command::Supervise(run) => phase::run_all(run).await,
                Command::Flood(flood) => flood::run(flood).await,
                Command::Worker(worker) => worker::run(worker).await.map(|()| true),
                Command::Power { .. } => Ok(true),
            }
        }),
        Err(error) => Err(format!("the threads could not be started: {error}")),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("chaos: {message}");
            ExitCode::from(2)
        }
    }
}

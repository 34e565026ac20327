//! `cargo xtask chaos`: runs real worker processes on one store, kills and stops them and fills their disk while
//! clients continue, and then verifies the store.
//!
//! `supervise` is the run: it starts the worker processes, injects the faults, and verifies the store. `worker` is one
//! worker process. `flood` sends instances more messages than fit into memory, and checks this process and other
//! instances. The processes share a folder with the store, the effect ledger, and the commit log of each worker.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool prints to its terminal")]

mod args;
mod commit_log;
mod effect_ledger;
mod flood;
mod job;
mod load;
mod phase;
mod report;
mod store;
mod verify;
mod worker;
mod worker_faults;
mod worker_pool;

use args::{Args, Command};
use clap::Parser;
use outlast_chaos::PowerArgs;
use std::process::ExitCode;

#[cfg(feature = "power")]
fn cut_power(args: &PowerArgs) -> ExitCode {
    outlast_chaos::power::run(args)
}

#[cfg(not(feature = "power"))]
fn cut_power(_args: &PowerArgs) -> ExitCode {
    eprintln!(
        "power: this program is built without power cuts: use `cargo xtask chaos power`, or build it with `--features power`"
    );
    ExitCode::from(2)
}

fn main() -> ExitCode {
    let args = Args::parse();
    if let Command::Power(power) = &args.command {
        return cut_power(power);
    }
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let done = match tokio {
        Ok(tokio) => tokio.block_on(async {
            match args.command {
                Command::Supervise(run) => phase::run_all(run).await,
                Command::Flood(flood) => flood::run(flood).await,
                Command::Worker(worker) => worker::run(worker).await.map(|()| true),
                Command::Rig => store::serve_rig().await.map(|()| true),
                Command::Power(_) => Ok(true),
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

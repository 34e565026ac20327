//! The common parts of all programs of `cargo xtask bench compare`: the arguments, the line of JSON that a program prints,
//! and a few figures.
//!
//! This folder is compiled into `outlast-bench` and into the peers, which are outside of the workspace.

mod args;
mod outcome;
#[allow(dead_code, reason = "not every program has a store that bills requests")]
pub(crate) mod rig;
pub(crate) mod server;
mod spread;
mod tally;
#[allow(dead_code, reason = "not every program looks at all of it")]
pub(crate) mod usage;

pub(crate) use args::Args;
pub(crate) use outcome::Outcome;
pub(crate) use spread::{ms, percentile, steps};
pub(crate) use tally::{Counts, Tally};

use std::future::Future;
use std::process::ExitCode;

/// Runs one scenario and prints its result.
pub(crate) fn answer(outcome: Result<Outcome, String>) -> ExitCode {
    match outcome {
        Ok(outcome) => {
            println!("{}", outcome.line());
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

/// The number of threads is the same for all sides and on every machine.
pub(crate) fn on_two_threads<T>(work: impl Future<Output = T>) -> T {
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    threads.expect("a tokio runtime").block_on(work)
}

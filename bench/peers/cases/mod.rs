//! The scenarios of `cargo xtask bench compare`, written once: this folder is compiled against `duroxide` by the peer's
//! package and against Outlast, under the same name, by `outlast-bench`. Both sides run the same program.
//! The two differ in their module `side` only.
//!
//! A process runs one scenario on a fresh store and prints one line of JSON.

mod asleep;
mod backend;
mod billed;
mod hello;
mod many;
mod one;
mod processes;
mod progress;

use crate::measure::{Args, Outcome, answer, on_two_threads};
use crate::side;
use backend::Backend;
use std::process::ExitCode;

/// The options of the scenarios; those of the store belong to the side.
///
/// `--poll-ms` is `dispatcher_min_poll_interval`; `--limit-s` is the time after which a scenario gives up; `--seconds` is
/// the duration of a scenario that is bounded by time. `--apart` names what runs in other processes than the client, and
/// `--role` the part of such a process: `all`, `turns` or `work`.
const OPTIONS: &[&str] = &[
    "--dir",
    "--dispatchers",
    "--count",
    "--steps",
    "--in-flight",
    "--samples",
    "--seconds",
    "--limit-s",
    "--poll-ms",
    "--processes",
    "--apart",
    "--role",
    "--copies",
];

/// Runs the scenario that the arguments name.
pub(crate) fn main(args: impl Iterator<Item = String>) -> ExitCode {
    let known = [OPTIONS, side::OPTIONS].concat();
    answer(Args::parse(args, &known).and_then(|args| on_two_threads(run(&args))))
}

async fn run(args: &Args) -> Result<Outcome, String> {
    let others = billed::others(args)?;
    let backend = Backend::open(args).await?;
    let outcome = match args.scenario.as_str() {
        "hello" => hello::backlog(&backend, args).await,
        "sweep" => hello::sweep(&backend, args).await,
        "hello-closed" => hello::closed(&backend, args).await,
        "hello-idle" => hello::idle(&backend, args).await,
        "chains" => many::run(&backend, args, "Chain").await,
        "fan-outs" => many::run(&backend, args, "FanOut").await,
        "long-chain" => one::chain(&backend, args).await,
        "wide-fan-out" => one::fan_out(&backend, args).await,
        "processes" => processes::run(&backend, args).await,
        "other-process" => processes::other(&backend).await,
        "asleep" => asleep::run(&backend, args).await,
        "billed-hello" => billed::hello(&backend, args).await,
        "billed-chain" => billed::chain(&backend, args).await,
        "billed-among" => billed::among(&backend, args).await,
        other => Err(format!("unknown scenario '{other}'")),
    };
    backend.close().await;
    drop(others);
    outcome
}

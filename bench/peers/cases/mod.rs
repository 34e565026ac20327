//! The scenarios of `cargo xtask bench compare`, written once: this folder is compiled against `duroxide` by the peer's
//! package and against Outlast, under the same name, by `outlast-bench`. Both sides run the same program.
//! The two differ in their module `side` only.
//!
//! A process runs one scenario on a fresh store and prints one line of JSON.

mod asleep;
mod billed;
mod hello;
mod many;
mod one;
mod processes;
mod progress;
mod world;

use crate::measure::{Args, Outcome, answer, on_two_threads};
use crate::side;
use std::process::ExitCode;
use world::World;

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
    let world = World::open(args).await?;
    let outcome = match args.scenario.as_str() {
        "hello" => hello::backlog(&world, args).await,
        "sweep" => hello::sweep(&world, args).await,
        "hello-closed" => hello::closed(&world, args).await,
        "hello-idle" => hello::idle(&world, args).await,
        "chains" => many::run(&world, args, "Chain").await,
        "fan-outs" => many::run(&world, args, "FanOut").await,
        "long-chain" => one::chain(&world, args).await,
        "wide-fan-out" => one::fan_out(&world, args).await,
        "processes" => processes::run(&world, args).await,
        "other-process" => processes::other(&world).await,
        "asleep" => asleep::run(&world, args).await,
        "billed-hello" => billed::hello(&world, args).await,
        "billed-chain" => billed::chain(&world, args).await,
        "billed-among" => billed::among(&world, args).await,
        other => Err(format!("unknown scenario '{other}'")),
    };
    world.close().await;
    drop(others);
    outcome
}

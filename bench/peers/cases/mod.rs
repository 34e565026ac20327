//! The cases of `cargo xtask bench compare`, written once: this folder is compiled against `duroxide` by the peer's
//! package and against Outlast, under the same name, by `outlast-bench`. Both sides run the very same program.
//!
//! A process runs one case on a fresh store and prints one line of JSON.

mod args;
mod chain;
mod hello;
mod progress;
mod world;

use args::Args;
use std::process::ExitCode;
use world::World;

const HELP: &str = "\
CASE [OPTIONS], where CASE is one of

  hello-backlog   --count orchestrations of one activity, started at once: orchestrations/s
  hello-closed    the same, --in-flight at a time, until --count or --seconds
  hello-idle      the same, one at a time on an idle runtime: ms as the client sees it
  chain-one       one orchestration of --steps activities, one after the other: ms per step
  chain-many      --count orchestrations of --steps activities each: steps/s

  --store file|memory   default: file
  --dir PATH            where the file goes; default: the current folder
  --dispatchers N       for orchestrations, and as many for activities; default: 2
  --count N             default: 400
  --steps N             default: 10
  --in-flight N         default: 16
  --seconds N           when hello-closed stops to start new ones; default: 10
  --limit-s N           when a case gives up; default: 120
  --poll-ms N           dispatcher_min_poll_interval; default: that of the runtime";

/// Runs the case that the arguments name.
pub(crate) fn main(args: impl Iterator<Item = String>) -> ExitCode {
    match Args::parse(args) {
        Ok(args) => {
            // The same threads for both sides, whatever the machine.
            let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
            println!("{}", threads.expect("a tokio runtime").block_on(run(&args)));
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}\n\n{HELP}");
            ExitCode::from(2)
        }
    }
}

async fn run(args: &Args) -> serde_json::Value {
    let world = World::open(args).await;
    let mut result = match args.case.as_str() {
        "hello-backlog" => hello::backlog(&world, args).await,
        "hello-closed" => hello::closed(&world, args).await,
        "hello-idle" => hello::idle(&world, args).await,
        "chain-one" => chain::one(&world, args).await,
        _ => chain::many(&world, args).await,
    };
    result["case"] = args.case.as_str().into();
    result["dispatchers"] = args.dispatchers.into();
    world.close().await;
    result
}

fn ms(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

//! The `outlast` command: a demo that survives being killed, and a look into the instances of a store.
//!
//! `demo/` is a shop that shows what Outlast does, `instance/` one file per subcommand for operators. What a command
//! prints goes through `output.rs`, why it failed is a `Failure`.

mod args;
mod demo;
mod failure;
mod instance;
mod moment;
mod output;
mod store;

use args::{Args, Command};
use clap::Parser;
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = Args::parse();
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(args: Args) -> Result<(), Failure> {
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("the threads of the command could not be started: {error}")))?;
    tokio.block_on(async {
        match args.command {
            Command::Demo(demo) => demo::run(demo).await,
            Command::Instance(instance) => instance::run(instance).await,
        }
    })
}

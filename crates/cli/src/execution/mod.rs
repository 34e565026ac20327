//! `outlast execution`: the executions of an instance.

mod list;
mod prune;

use crate::failure::Failure;
use clap::{Args as ClapArgs, Subcommand};

#[derive(Debug, ClapArgs)]
pub(crate) struct ExecutionArgs {
    #[command(subcommand)]
    command: ExecutionCommand,
}

#[derive(Debug, Subcommand)]
enum ExecutionCommand {
    /// List the executions of an instance, newest first
    List(list::ListArgs),
    /// Delete old executions of an instance, or of all instances that match
    ///
    /// The current execution and a running one are never deleted. An execution is deleted if all conditions hold. The audit keeps a record
    /// per instance.
    #[command(after_help = prune::EXAMPLES)]
    Prune(prune::PruneArgs),
}

pub(crate) async fn run(args: ExecutionArgs) -> Result<(), Failure> {
    match args.command {
        ExecutionCommand::List(args) => list::run(args).await,
        ExecutionCommand::Prune(args) => prune::run(args).await,
    }
}

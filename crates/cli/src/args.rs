//! The command line.

use crate::duration::duration;
use crate::store::{StoreArgs, StoreUrl};
use crate::stress::Preset;
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use outlast::ExecutionStatus;
use std::path::PathBuf;
use std::time::Duration;

/// Durable execution: ordinary async functions that survive crashes, restarts and deployments.
///
/// Try `outlast demo`, kill it, and start it again.
#[derive(Debug, Parser)]
#[command(name = "outlast", version, arg_required_else_help = true)]
#[command(
    after_help = "Exit status: 0 if it worked, 1 if it failed, 2 for a command line that is not understood."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(DemoArgs),
    /// Show the instances of a store, and cancel them
    #[command(arg_required_else_help = true)]
    Instance(InstanceArgs),
    Stress(StressArgs),
}

/// Run a shop that loses no order and charges no customer twice, after any number of kills.
///
/// Orders reserve stock, wait for approval if they are expensive, pay at a gateway that fails and loses answers, are
/// packed item by item in parallel, delivered by a child orchestration, and undone when a step fails. Every step is stored
/// in a SQLite file. Stop it at any time, with Ctrl-C or `kill -9`, and start it again: it continues where it was.
///
/// The activities write their external effects (charges, parcels, refunds) to a second file, the ledger. At the end the
/// ledger is read, and must show that no order was lost or charged twice.
#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Exit status: 0 if the proof holds, 1 if it does not or the command failed, 130 if it was stopped.\n\n\
                        A run that was stopped continues with its own number of orders, seed and pace. After a finished \
                        run a new batch of orders starts in the same files; --fresh starts over."
)]
pub(crate) struct DemoArgs {
    /// Folder for the two files of the shop; created if it is missing
    #[arg(long, value_name = "PATH", default_value = "outlast-demo")]
    pub(crate) dir: PathBuf,
    /// Number of orders
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) orders: u32,
    /// Seed of the generated orders and failures
    #[arg(long, value_name = "S", default_value_t = 4)]
    pub(crate) seed: u64,
    /// Factor of all durations: 1 is for watching, 0.2 is five times as fast, 0 is without pauses
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = pace)]
    pub(crate) pace: f64,
    /// Empty the folder's two files and start over
    #[arg(long)]
    pub(crate) fresh: bool,
}

fn pace(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if (0.0..=100.0).contains(&factor) => Ok(factor),
        _ => Err("give a number from 0 to 100".to_string()),
    }
}

#[derive(Debug, ClapArgs)]
pub(crate) struct InstanceArgs {
    #[command(subcommand)]
    pub(crate) command: InstanceCommand,
}

// The options of every subcommand of `instance`. Not a doc comment: clap would show it as the help of the subcommand.
#[derive(Debug, ClapArgs)]
pub(crate) struct Common {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Output format: a table, or one JSON document
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: Format,
}

/// Put a store under load, and print its throughput.
///
/// A run starts instances of one orchestration, a bounded number at a time, for some seconds, with its own runtime, and
/// waits for all of them. It uses a new store: a file that it creates and removes, or a new schema of a PostgreSQL
/// database that it drops at the end. A store that holds instances is rejected.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  outlast stress --store memory --store sqlite:stress.db --preset baseline,default --check
  OUTLAST_STORE=postgres://ada@localhost/test outlast stress --preset default,large-payload --pool-size 2,10,20 -o json

Exit status: 0 if every instance completed and every check holds, 1 if not.")]
pub(crate) struct StressArgs {
    /// The store: memory, a file, sqlite:PATH, sqlite::memory:, or postgres://USER@HOST/DATABASE; may be given more than once;
    /// $OUTLAST_STORE if not given
    #[arg(long, value_name = "URL")]
    pub(crate) store: Vec<StoreUrl>,
    /// The schema of the PostgreSQL database; if not given, a new one that is dropped at the end
    #[arg(long, value_name = "NAME")]
    pub(crate) schema: Option<String>,
    /// The load to run
    #[arg(long, value_name = "PRESET", value_delimiter = ',', default_value = "default")]
    pub(crate) preset: Vec<Preset>,
    /// Connections of the PostgreSQL store; a list runs every preset with each
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "10", value_parser = clap::value_parser!(u32).range(2..=500))]
    pub(crate) pool_size: Vec<u32>,
    /// The time during which instances are started, instead of the preset's
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) seconds: Option<u64>,
    /// Check the results against the targets in docs/performance.md
    #[arg(long)]
    pub(crate) check: bool,
    /// Write the results to this file too, for `cargo xtask scoreboard add stress FILE`
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Keep the file or schema that was created for the run
    #[arg(long)]
    pub(crate) keep: bool,
    /// Run on a store that holds instances: existing instances that are ready are poisoned
    #[arg(long)]
    pub(crate) use_existing_data: bool,
    /// Output format: a table, or one JSON document
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns
    Table,
    /// One JSON document
    Json,
}

const LIST_EXAMPLES: &str = "Examples:
  outlast instance list --store shop.db --status Running --idle-for 1h
  OUTLAST_STORE=postgres://ada@db.example.com/shop outlast instance list --name Order --version 1.0.0 -o json";

const SHOW_EXAMPLES: &str = "Examples:
  outlast instance show order-17 --store sqlite:shop.db
  outlast instance show order-17 --store postgres://ada@db.example.com/shop --schema orders";

#[derive(Debug, Subcommand)]
pub(crate) enum InstanceCommand {
    /// List instances, newest first, page by page
    #[command(after_help = LIST_EXAMPLES)]
    List(ListArgs),
    /// Show one instance: status, what it waits for, outcome, custom status, keys and values, children
    #[command(after_help = SHOW_EXAMPLES)]
    Show(ShowArgs),
    /// Print the history of an instance, one line per event
    History(HistoryArgs),
    /// Cancel an instance
    ///
    /// The request is stored, and takes effect at the instance's next turn, in any process that runs it. The instance
    /// then fails with the reason, and its activities and children are cancelled.
    Cancel(CancelArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Only instances with this status
    #[arg(long, value_name = "STATUS", ignore_case = true)]
    pub(crate) status: Option<Status>,
    /// Only instances of this orchestration
    #[arg(long, value_name = "ORCHESTRATION")]
    pub(crate) name: Option<String>,
    /// Only instances of this version of their orchestration
    #[arg(long, value_name = "VERSION")]
    pub(crate) version: Option<String>,
    /// Only instances whose last turn was committed at least this long ago: 90s, 15m, 2h, 3d, 1h30m
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) idle_for: Option<Duration>,
    /// Only instances whose id starts with this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) prefix: Option<String>,
    /// The most instances to list
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) limit: u32,
    /// Continue after the page that ended with this mark
    #[arg(long, value_name = "MARK")]
    pub(crate) after: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Status {
    Running,
    Completed,
    Failed,
    // As tables print it.
    #[value(alias = "continuedasnew")]
    ContinuedAsNew,
    /// Not even the current execution is stored: the store is damaged
    Unknown,
}

impl Status {
    /// The text in the store.
    pub(crate) fn stored(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown",
            Self::Running => ExecutionStatus::Running.as_str(),
            Self::Completed => ExecutionStatus::Completed.as_str(),
            Self::Failed => ExecutionStatus::Failed.as_str(),
            Self::ContinuedAsNew => ExecutionStatus::ContinuedAsNew.as_str(),
        }
    }
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The instance's id
    pub(crate) instance: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The instance's id
    pub(crate) instance: String,
    /// Which execution; the newest if not given
    #[arg(long, value_name = "N")]
    pub(crate) execution: Option<u64>,
    /// Show inputs, results, errors and values too; they may hold secrets
    #[arg(long)]
    pub(crate) payloads: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The instance's id
    pub(crate) instance: String,
    /// The reason, which is stored in the history
    #[arg(long, value_name = "TEXT", default_value = "cancelled from the command line")]
    pub(crate) reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_pace_outside_of_0_to_100_is_rejected() {
        assert_eq!(pace("0.5"), Ok(0.5));
        for text in ["-1", "101", "NaN", "inf", "fast"] {
            assert!(pace(text).is_err(), "{text}");
        }
    }
}

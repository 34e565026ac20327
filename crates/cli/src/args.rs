//! The command line.

use crate::audit::AuditArgs;
use crate::check::CheckArgs;
use crate::config::ConfigArgs;
use crate::dead_letter::DeadLetterArgs;
use crate::doctor::DoctorArgs;
use crate::execution::ExecutionArgs;
use crate::instance::InstanceArgs;
use crate::licenses::LicensesArgs;
use crate::metrics::MetricsArgs;
use crate::migrate::MigrateArgs;
use crate::migrate_from::MigrateFromArgs;
use crate::node::NodeArgs;
use crate::orchestration::OrchestrationArgs;
use crate::queue::QueueArgs;
use crate::retention::RetentionArgs;
use crate::shell::{CompletionsArgs, ManArgs};
use crate::store::{StoreArgs, StoreUrl};
use crate::stress::Preset;
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Durable execution: ordinary async functions that survive crashes, restarts and deployments.
///
/// Try `outlast demo`, kill it, and start it again.
#[derive(Debug, Parser)]
#[command(name = "outlast", version, arg_required_else_help = true)]
#[command(
    after_help = "Exit status: 0 if it worked, 1 if it failed, 2 for a command line that is not understood, 3 if the \
                  instance does not exist or the checked program breaks instances, 4 for a timeout, 5 if the awaited \
                  instance failed, 6 if the command was refused, 7 if the store cannot be reached, is locked or was written by a \
                  newer release."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the audit: the changes that operators have made
    #[command(arg_required_else_help = true)]
    Audit(AuditArgs),
    Check(CheckArgs),
    Completions(CompletionsArgs),
    /// Show the profiles: named stores in a file of your configuration folder
    #[command(arg_required_else_help = true)]
    Config(ConfigArgs),
    /// Show, requeue and drop dead letters: items that the store no longer delivers
    #[command(arg_required_else_help = true)]
    DeadLetter(DeadLetterArgs),
    Demo(DemoArgs),
    Doctor(DoctorArgs),
    /// Show and delete the executions of an instance
    #[command(arg_required_else_help = true)]
    Execution(ExecutionArgs),
    /// Show the instances of a store, say why they wait, send them events, and cancel them
    #[command(arg_required_else_help = true)]
    Instance(InstanceArgs),
    Licenses(LicensesArgs),
    Man(ManArgs),
    Metrics(MetricsArgs),
    Migrate(MigrateArgs),
    /// Bring the instances of another product's store over
    #[command(arg_required_else_help = true)]
    MigrateFrom(MigrateFromArgs),
    /// Show the nodes that report to a store
    #[command(arg_required_else_help = true)]
    Node(NodeArgs),
    /// Pause and resume all instances of an orchestration, and list the paused orchestrations
    #[command(arg_required_else_help = true)]
    Orchestration(OrchestrationArgs),
    /// Show the queues of a store
    #[command(arg_required_else_help = true)]
    Queue(QueueArgs),
    /// Delete ended instances, records of the audit and dead letters after an age
    #[command(arg_required_else_help = true)]
    Retention(RetentionArgs),
    #[cfg(feature = "server")]
    Serve(crate::serve::ServeArgs),
    Stress(StressArgs),
    /// Make the token file of `outlast serve`
    #[cfg(feature = "server")]
    #[command(arg_required_else_help = true)]
    Token(crate::token::TokenArgs),
    #[cfg(feature = "tui")]
    Top(crate::top::TopArgs),
}

/// Run a shop that loses no order and charges no customer twice, after any number of kills.
///
/// Orders reserve stock, wait for approval if they are expensive, pay at a gateway that fails and loses answers, are
/// packed item by item in parallel, delivered by a child orchestration, and undone when a step fails. Every step is stored
/// in a SQLite file. Stop it at any time, with Ctrl-C or `kill -9`, and start it again: it continues where it was.
///
/// Two worker processes run the orders. The page at http://127.0.0.1:7411/demo shows them, asks for approvals, and has a button that
/// kills a worker: the other one takes its work over. On a terminal the page stays after the proof, until Ctrl-C.
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
    /// Serve no page, and no dashboard
    #[arg(long)]
    pub(crate) no_dashboard: bool,
    /// The port of the page on the loopback; if it is in use, the next free port is taken
    #[arg(long, value_name = "PORT", default_value_t = 7411)]
    pub(crate) port: u16,
    /// Keep the page after the proof, until Ctrl-C; the default on a terminal
    #[arg(long, conflicts_with = "no_dashboard")]
    pub(crate) stay: bool,
    // A worker process of the demo with this number. The supervisor starts it.
    #[arg(long, hide = true)]
    pub(crate) worker: Option<u32>,
}

fn pace(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if (0.0..=100.0).contains(&factor) => Ok(factor),
        _ => Err("give a number from 0 to 100".to_string()),
    }
}

/// Put a store under load, and print its throughput.
///
/// A run starts instances of one orchestration, a bounded number at a time, for some seconds, with its own runtime, and
/// waits for all of them. It uses a new store: a file that it creates and removes, a new schema of a PostgreSQL database
/// that it drops at the end, or a new container of a Cosmos DB database that it deletes at the end. A store that holds
/// instances is rejected.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  outlast stress --store memory --store sqlite:stress.db --preset baseline,default --check
  OUTLAST_STORE=postgres://ada@localhost/test outlast stress --preset default,large-payload --pool-size 2,10,20 -o json

Exit status: 0 if every instance completed and every check holds, 1 if not.")]
pub(crate) struct StressArgs {
    /// The store: memory, a file, sqlite:PATH, sqlite::memory:, postgres://USER@HOST/DATABASE, or cosmos://HOST/DATABASE with
    /// the key in COSMOS_KEY; may be given more than once; $OUTLAST_STORE if not given
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
    /// Write the results to this file too; `cargo xtask scoreboard run FILE -- COMMAND` adds the commit that the scoreboard needs
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Keep the file, schema or container that was created for the run
    #[arg(long)]
    pub(crate) keep: bool,
    /// Run on a store that holds instances: existing instances that are ready are poisoned
    #[arg(long)]
    pub(crate) use_existing_data: bool,
    /// Output format: a table, one JSON document, or one JSON object per line
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: Format,
}

// The options of every command that reads or changes one store and prints the result. Not a doc comment: clap would show it as the
// help of the command.
#[derive(Debug, ClapArgs)]
pub(crate) struct Common {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Output format: a table, one JSON document, or one JSON object per line
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns
    Table,
    /// One JSON document
    Json,
    /// One JSON object per line: a list has a line for each of its elements
    Jsonl,
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
    fn page_of_the_command_has_every_subcommand_and_option_of_instance_and_orchestration() {
        let page =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md")).unwrap();
        let command = Args::command();
        let groups = ["instance", "orchestration"].map(|name| command.find_subcommand(name).unwrap());
        for subcommand in groups.iter().flat_map(|group| group.get_subcommands()) {
            let row = format!("| `{}", subcommand.get_name());
            let row = page.lines().find(|line| line.starts_with(&row));
            let row = row.unwrap_or_else(|| panic!("docs/cli.md has a row of {}", subcommand.get_name()));
            let own = subcommand.get_arguments().filter_map(|argument| argument.get_long());
            let own = own.filter(|name| !["store", "profile", "schema", "output", "help"].contains(name));
            for option in own {
                assert!(row.contains(&format!("--{option}")), "--{option} in {row}");
            }
        }
    }

    #[test]
    fn a_pace_outside_of_0_to_100_is_rejected() {
        assert_eq!(pace("0.5"), Ok(0.5));
        for text in ["-1", "101", "NaN", "inf", "fast"] {
            assert!(pace(text).is_err(), "{text}");
        }
    }
}

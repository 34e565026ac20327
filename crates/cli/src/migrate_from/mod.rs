//! `outlast migrate-from duroxide`: brings the instances of a store that `duroxide` 0.1.32 or `duroxide-pg` 0.1.38 wrote into a store of
//! Outlast.
//!
//! The tables were learned from stores that the published crates wrote (`bench/peers/stores`, `testdata/duroxide`). Events and work items
//! have the JSON of the contract that both share, so an instance of the other store is a snapshot after its columns are read.

mod source;

use crate::args::Format;
use crate::failure::Failure;
use crate::output::print;
use crate::store::{Place, StoreArgs, StoreUrl};
use crate::transfer::import::{Found, Import, Options, Report, target};
use clap::{Args as ClapArgs, Subcommand};
use outlast::ExecutionStatus;
use outlast::providers::snapshot::InstanceSnapshot;
use outlast::providers::{Clock, SystemClock};
use serde::Serialize;
use source::Source;

#[derive(Debug, ClapArgs)]
pub(crate) struct MigrateFromArgs {
    #[command(subcommand)]
    command: MigrateFromCommand,
}

const EXAMPLES: &str = "Examples:
  outlast migrate-from duroxide --store sqlite:old.db --to new.db --dry-run
  outlast migrate-from duroxide --store sqlite:old.db --to new.db --create
  outlast migrate-from duroxide --store postgres://ada@db.example.com/shop --schema old --to postgres://ada@db.example.com/shop --to-schema new --create";

#[derive(Debug, Subcommand)]
enum MigrateFromCommand {
    /// Bring the instances of a store of duroxide 0.1.32 (SQLite) or duroxide-pg 0.1.38 (PostgreSQL) into a store of Outlast
    ///
    /// Finished and unfinished instances, keys, queues and timers come over, and unfinished instances go on with the same code. Stop
    /// the programs that use the old store first: a store with live leases is refused. The old store is only read, and stays as it is.
    #[command(after_help = EXAMPLES)]
    Duroxide(DuroxideArgs),
}

#[derive(Debug, ClapArgs)]
struct DuroxideArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// The store to bring the instances to: a file, sqlite:PATH, postgres://USER@HOST/DATABASE, or cosmos://HOST/DATABASE/CONTAINER
    #[arg(long, value_name = "URL")]
    to: StoreUrl,
    /// The schema of a PostgreSQL store in --to; `public` if not given
    #[arg(long, value_name = "NAME")]
    to_schema: Option<String>,
    /// Only read the old store, and say what would be imported
    #[arg(long)]
    dry_run: bool,
    /// Leave instances that exist in the new store as they are
    #[arg(long)]
    skip_existing: bool,
    /// Pause the unfinished instances, until `outlast instance resume`
    #[arg(long)]
    paused: bool,
    /// Create the new store if it does not exist, and bring its schema up to date
    #[arg(long)]
    create: bool,
    /// Your name, which is stored in the audit
    #[arg(long, value_name = "NAME", default_value = "the command line")]
    by: String,
    /// The reason, which is stored in the audit
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Output format: a table, one JSON document, or one JSON object per line
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,
}

pub(crate) async fn run(args: MigrateFromArgs) -> Result<(), Failure> {
    let MigrateFromCommand::Duroxide(args) = args.command;
    let place = args.store.place()?;
    let to = Place { url: args.to, schema: args.to_schema };
    let source = Source::open(&place).await?;
    source.check_idle(SystemClock.now_ms()).await?;
    let ids = source.ids().await?;
    // Everything is read before the first write, so that a row that does not decode leaves the new store as it is.
    let mut found = Found::of(&place.to_string());
    for id in &ids {
        found.add(&snapshot(&source, id).await?)?;
    }
    let left_out = source.activities_without_instance().await?;
    let options = Options {
        dry_run: args.dry_run,
        skip_existing: args.skip_existing,
        paused: args.paused,
        by: args.by,
        reason: args.reason,
        source: place.to_string(),
    };
    let provider = target(&to, args.dry_run, args.create).await?;
    let mut import = Import::begin(&*provider, options, &found).await?;
    for id in &ids {
        import.one(snapshot(&source, id).await?).await?;
    }
    let report = import.report;
    let done = Done { report, activities_without_instance: left_out };
    print(args.output, &done, Done::text)
}

/// An instance of the old store. Its rows must not contradict each other.
async fn snapshot(source: &Source, id: &str) -> Result<InstanceSnapshot, Failure> {
    let mut snapshot = source.snapshot(id).await?;
    complete(&mut snapshot);
    match snapshot.check() {
        Ok(()) => Ok(snapshot),
        Err(reason) => Err(Failure::new(format!(
            "instance '{}' of the old store cannot be read: {reason}. Nothing was imported",
            crate::output::plain(id)
        ))),
    }
}

/// Adds the end of executions that have ended without one: duroxide-pg writes none when an execution continues as new.
fn complete(snapshot: &mut InstanceSnapshot) {
    for execution in &mut snapshot.executions {
        let status = ExecutionStatus::from_text(&execution.status);
        if status.is_some_and(ExecutionStatus::ends_execution) && execution.completed_at.is_none() {
            let last = execution.events.last().map(|event| event.timestamp_ms);
            execution.completed_at = Some(last.unwrap_or(execution.started_at));
        }
    }
}

#[derive(Serialize)]
struct Done {
    #[serde(flatten)]
    report: Report,
    /// Activities of the old store that no instance awaits: they are left out.
    activities_without_instance: u64,
}

impl Done {
    fn text(&self) -> String {
        let mut text = self.report.text();
        if self.activities_without_instance > 0 {
            text += &format!(
                "  Left out {} activities that no instance awaits.\n",
                self.activities_without_instance
            );
        }
        text
    }
}

//! `outlast retention`: deletes ended instances, records of the audit and dead letters after an age.

use crate::args::Format;
use crate::duration::duration;
use crate::failure::Failure;
use crate::output::{print, table};
use crate::store::{self, Intent, StoreArgs};
use clap::{Args as ClapArgs, Subcommand};
use outlast::providers::{Clock, SystemClock};
use outlast::runtime::{Keep, Retention, RetentionReport};
use serde::Serialize;
use std::time::Duration;

#[derive(Debug, ClapArgs)]
pub(crate) struct RetentionArgs {
    #[command(subcommand)]
    command: RetentionCommand,
}

#[derive(Debug, Subcommand)]
enum RetentionCommand {
    /// Delete ended instances, records of the audit and dead letters that are older than the ages given
    ///
    /// A root is deleted with its descendants, or stays. Never deleted: an instance that runs, is held, or has a message or an activity;
    /// the newest record of the audit. The audit gets one record with the counts. Any number of processes may run this at once, also
    /// beside runtimes with the option `retention`.
    #[command(after_help = "Examples:
  outlast retention run --ended-for 30d --dry-run --store shop.db
  outlast retention run --completed-for 7d --failed-for 90d --orchestration Invoice=keep --store shop.db
  outlast retention run --audit-for 365d --dead-letters-for 90d -o jsonl --store shop.db")]
    Run(RunArgs),
}

#[derive(Debug, ClapArgs)]
#[group(id = "ages", multiple = true, required = true,
    args = ["ended_for", "completed_for", "failed_for", "orchestration", "audit_for", "dead_letters_for"])]
struct RunArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Delete instances that ended this long ago, whatever their status, such as 30d
    #[arg(long, value_name = "AGE", value_parser = duration)]
    ended_for: Option<Duration>,
    /// Delete instances that completed this long ago; in place of --ended-for
    #[arg(long, value_name = "AGE", value_parser = duration)]
    completed_for: Option<Duration>,
    /// Delete instances that failed or were cancelled this long ago; in place of --ended-for
    #[arg(long, value_name = "AGE", value_parser = duration)]
    failed_for: Option<Duration>,
    /// The age of one orchestration, or keep, in place of the ages above; may be given more than once
    #[arg(long, value_name = "NAME=AGE", value_parser = orchestration)]
    orchestration: Vec<(String, Keep)>,
    /// Delete records of the audit of this age
    #[arg(long, value_name = "AGE", value_parser = duration)]
    audit_for: Option<Duration>,
    /// Delete dead letters of this age
    #[arg(long, value_name = "AGE", value_parser = duration)]
    dead_letters_for: Option<Duration>,
    /// The most roots, records or dead letters of one step
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    batch: u16,
    /// The share of the time that steps may take, in percent; the command pauses after each step
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u8).range(1..=100))]
    load: u8,
    /// Count, and delete nothing
    #[arg(long)]
    dry_run: bool,
    /// Your name, which is stored in the audit
    #[arg(long, value_name = "NAME", default_value = "the command line")]
    by: String,
    /// Output format: a table, one JSON document, or one JSON object per line
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,
}

/// Reads `NAME=AGE` and `NAME=keep`.
fn orchestration(text: &str) -> Result<(String, Keep), String> {
    let (name, age) = text.rsplit_once('=').ok_or("give NAME=AGE or NAME=keep, as in Invoice=365d")?;
    let keep = match age {
        "keep" => Keep::Always,
        age => Keep::For(duration(age)?),
    };
    Ok((name.to_string(), keep))
}

impl RunArgs {
    fn policy(&self) -> Retention {
        Retention {
            completed_for: self.completed_for.or(self.ended_for),
            failed_for: self.failed_for.or(self.ended_for),
            orchestrations: self.orchestration.iter().cloned().collect(),
            audit_for: self.audit_for,
            dead_letters_for: self.dead_letters_for,
            batch: usize::from(self.batch),
            load_percent: self.load,
            ..Retention::default()
        }
    }
}

pub(crate) async fn run(args: RetentionArgs) -> Result<(), Failure> {
    let RetentionCommand::Run(args) = args.command;
    let intent = if args.dry_run { Intent::Read } else { Intent::Write };
    let (policy, now_ms) = (args.policy(), SystemClock.now_ms());
    let client = store::open(&args.store.place()?, intent).await?;
    let report = match args.dry_run {
        true => client.preview_retention(&policy, now_ms).await?,
        false => client.apply_retention(&policy, now_ms, &args.by).await?,
    };
    if let Some(part) = report.unsupported.first() {
        return Err(Failure::refused(format!("the store has no retention of {}", part.replace('_', " "))));
    }
    print(args.output, &Counts::of(args.dry_run, &report), Counts::text)
}

/// The counts of a pass, or of a dry run.
#[derive(Serialize)]
struct Counts {
    dry_run: bool,
    /// Instances that were examined.
    examined: u64,
    /// Roots that are old enough.
    matched: u64,
    /// Deleted instances, descendants included; 0 in a dry run.
    instances: u64,
    executions: u64,
    events: u64,
    audit_records: u64,
    dead_letters: u64,
}

impl Counts {
    fn of(dry_run: bool, report: &RetentionReport) -> Self {
        Self {
            dry_run,
            examined: report.examined,
            matched: report.matched,
            instances: report.instances,
            executions: report.executions,
            events: report.events,
            audit_records: report.audit_records,
            dead_letters: report.dead_letters,
        }
    }

    fn text(&self) -> String {
        let rows = [
            ("trees", self.matched, "older than their age"),
            ("instances", self.instances, "deleted, descendants included"),
            ("executions", self.executions, "deleted with them"),
            ("events", self.events, "deleted with them"),
            ("audit", self.audit_records, "records deleted"),
            ("dead letters", self.dead_letters, "deleted"),
        ];
        let dry = [
            ("trees", self.matched, "would be deleted, unless they are in use"),
            ("audit", self.audit_records, "records would be deleted"),
            ("dead letters", self.dead_letters, "would be deleted"),
        ];
        let rows: &[_] = if self.dry_run { &dry } else { &rows };
        let rows: Vec<Vec<String>> = rows
            .iter()
            .map(|(what, count, meaning)| vec![what.to_string(), count.to_string(), meaning.to_string()])
            .collect();
        table(&["KIND", "COUNT", ""], &rows)
    }
}

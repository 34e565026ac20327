//! The command line of `outlast instance`.

pub(crate) use super::change_args::{
    BulkArgs, CancelArgs, CutArgs, DeleteArgs, EnqueueArgs, ExportArgs, ForkArgs, HoldArgs, IfExists,
    ImportArgs, ResetArgs, SignalArgs, StartArgs, TerminateArgs,
};
use crate::args::Common;
use crate::duration::duration;
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use outlast::ExecutionStatus;
use outlast::runtime::RuntimeOptions;
use std::time::Duration;

#[derive(Debug, ClapArgs)]
pub(crate) struct InstanceArgs {
    #[command(subcommand)]
    pub(crate) command: InstanceCommand,
}

const LIST_EXAMPLES: &str = "Examples:
  outlast instance list --store shop.db --status Running --idle-for 1h
  OUTLAST_STORE=postgres://ada@db.example.com/shop outlast instance list --name Order --version 1.0.0 -o json
  outlast instance list --store shop.db --follow -o jsonl";

const SHOW_EXAMPLES: &str = "Examples:
  outlast instance show order-17 --store sqlite:shop.db
  outlast instance show order-17 --store postgres://ada@db.example.com/shop --schema orders
  outlast instance show order-17 --store shop.db --follow";

const WHY_EXAMPLES: &str = "Examples:
  outlast instance why order-17 --store shop.db
  outlast instance why order-17 --store shop.db -o json";

const HISTORY_EXAMPLES: &str = "Examples:
  outlast instance history order-17 --store shop.db
  outlast instance history order-17 --store shop.db --follow -o jsonl";

const TIMELINE_EXAMPLES: &str = "Examples:
  outlast instance timeline order-17 --store shop.db
  outlast instance timeline order-17 --store shop.db --execution 2 --tries";

const DIFF_EXAMPLES: &str = "Examples:
  outlast instance diff order-17 order-18 --store shop.db
  outlast instance diff monitor monitor --execution 4 --other-execution 5 --store shop.db";

const START_EXAMPLES: &str = "Examples:
  outlast instance start Order order-17 --input '{\"cents\":700}' --store shop.db
  outlast instance start Order --token 2026-03-01 --input-file order.json --store shop.db
  jq -c .order today.json | outlast instance start Order order-18 --input-file - --store shop.db

Exit status: 0 if it was started, 6 if an instance with this id exists.";

const WAIT_EXAMPLES: &str = "Examples:
  outlast instance wait order-17 --timeout 5m --store shop.db

Exit status: 0 if it completed, 5 if it failed, 4 after the timeout, 3 if it does not exist after the timeout.";

const CANCEL_EXAMPLES: &str = "Examples:
  outlast instance cancel order-17 --reason 'out of stock' --store shop.db
  outlast instance cancel --name Order --prefix order-2- --dry-run --store shop.db
  outlast instance cancel --name Order --prefix order-2- --yes --expect 14 --store shop.db
  outlast instance cancel --version 1.4.0 --idle-for 30d --dry-run --store shop.db";

const RESET_EXAMPLES: &str = "Examples:
  outlast instance reset order-17 --to-event 7 --dry-run --store shop.db
  outlast instance reset order-17 --to-event 7 --by ada --reason 'refund was wrong' --store shop.db";

const FORK_EXAMPLES: &str = "Examples:
  outlast instance fork order-17 --to-event 7 --as order-17-try --store shop.db";

const EXPORT_EXAMPLES: &str = "Examples:
  outlast instance export order-17 --file order-17.jsonl --store shop.db
  outlast instance export --status completed --name Order --file orders.jsonl --store shop.db";

const IMPORT_EXAMPLES: &str = "Examples:
  outlast instance import --file orders.jsonl --dry-run --store postgres://ada@db.example.com/shop
  outlast instance import --file orders.jsonl --create --paused --store new.db";

#[derive(Debug, Subcommand)]
pub(crate) enum InstanceCommand {
    /// List instances, newest first, page by page
    #[command(after_help = LIST_EXAMPLES)]
    List(ListArgs),
    /// Count the instances by status
    ///
    /// With --name or --prefix the command reads the rows of the instances that match, which takes longer.
    Count(CountArgs),
    /// Show one instance: status, what it waits for, outcome, custom status, keys and values, children
    #[command(after_help = SHOW_EXAMPLES)]
    Show(ShowArgs),
    /// Say in one sentence why an instance does not go on
    ///
    /// The sentence comes from the history of the instance, its queue rows, leases and dead letters; if it waits for a child, the
    /// sentence of the child follows. Payloads are not read. Where a command helps, the sentence ends with it.
    #[command(after_help = WHY_EXAMPLES)]
    Why(WhyArgs),
    /// Print the history of an instance, one line per event
    #[command(after_help = HISTORY_EXAMPLES)]
    History(HistoryArgs),
    /// Show an instance and its descendants as a tree
    Tree(TreeArgs),
    /// Show the keys and values of an instance, or the value of one key
    Kv(KvArgs),
    /// Show the size of an instance: events, bytes, keys
    Stats(StatsArgs),
    /// Draw the operations of an instance over time
    ///
    /// One line per operation, in the width of the terminal (100 characters without one). # is an activity that runs, x the failure
    /// of a try, - a wait, > an operation without an outcome, | a moment. Long idle times are cut out and shown as ~. The tries of an
    /// activity are one line. More than 2,000 operations are shown as one line per name.
    #[command(after_help = TIMELINE_EXAMPLES)]
    Timeline(TimelineArgs),
    /// Compare the histories of two instances event by event
    ///
    /// Types, names and sources of events are compared, and payloads beside them; times are not. Payloads are not printed.
    #[command(after_help = DIFF_EXAMPLES)]
    Diff(DiffArgs),
    /// Start an instance of an orchestration
    ///
    /// The start is stored at once; the first turn runs in a process that has the orchestration. For a typed orchestration the input is
    /// JSON. Other users of this machine can read command lines: --input-file keeps an input out of them.
    #[command(after_help = START_EXAMPLES)]
    Start(StartArgs),
    /// Send an event to an instance
    ///
    /// The instance takes it if it waits for an event of this name, or keeps early events.
    Signal(SignalArgs),
    /// Send a message to a queue of an instance, which keeps it until its code takes it
    Enqueue(EnqueueArgs),
    /// Wait until an instance has ended
    ///
    /// The instance need not exist yet. Prints its output or its failure.
    #[command(after_help = WAIT_EXAMPLES)]
    Wait(WaitArgs),
    /// Cancel an instance, or all running instances that match
    ///
    /// The request is stored, and takes effect at the instance's next turn, in any process that runs it. The instance
    /// then fails with the reason, and its activities and children are cancelled. Without an id, --status, --name, --version,
    /// --idle-for and --prefix select running instances; --yes --expect N cancels them if exactly N match.
    #[command(after_help = CANCEL_EXAMPLES)]
    Cancel(CancelArgs),
    /// End an instance at its next turn, or all running instances that match, also if their code answers requests to cancel
    ///
    /// No code of the orchestration runs any more: nothing is undone. The instance fails with the reason, and its activities and
    /// children are cancelled. Use `cancel` first: it gives an orchestration with `on_cancel` its grace period.
    Terminate(TerminateArgs),
    /// Delete an ended instance with its descendants, or all ended roots that match
    ///
    /// The histories, keys and waiting messages are gone; the audit keeps a record per root. A running instance is deleted only with
    /// --force, and never without its id. A child is deleted with its root only.
    Delete(DeleteArgs),
    /// Pause an instance, or all running instances that match
    ///
    /// Waits for a running turn. No process runs a turn of a paused instance: its messages wait, and activities that were
    /// scheduled run on. A cancellation releases it.
    Pause(HoldArgs),
    /// Resume an instance that is paused or parked, or all of them that match
    Resume(HoldArgs),
    /// Repeat an instance from one of its events on
    ///
    /// The newest execution ends, and the next one begins with a copy of its events up to N: `outlast instance history` shows their
    /// numbers. Activities and timers that these events leave open are scheduled again, later queue messages are sent again, and
    /// children that have ended are answered with their outcome. A paused or parked instance stays held. The audit records it.
    #[command(after_help = RESET_EXAMPLES)]
    Reset(ResetArgs),
    /// Start a new instance with a copy of the events of another one, up to one of them
    ///
    /// The other instance goes on. The new instance has no parent. The audit records it.
    #[command(after_help = FORK_EXAMPLES)]
    Fork(ForkArgs),
    /// Write instances to a file, with their histories, keys, messages and activities
    ///
    /// A root takes its descendants along. Pause the instances, or stop the runtimes of the store: an instance that changes while it is
    /// exported is detected, and no file is written. The file has payloads, and only you can read it. docs/export-format.md describes it.
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(ExportArgs),
    /// Bring the instances of a file into a store, where they go on
    ///
    /// The whole file is checked first: nothing of a damaged file is imported. Each instance is imported completely or not at all, and the
    /// audit records it. Ids that exist are refused.
    #[command(after_help = IMPORT_EXAMPLES)]
    Import(ImportArgs),
}

/// The options of [`Filters`].
pub(crate) const FILTERS: [&str; 5] = ["status", "name", "version", "idle_for", "prefix"];

// The conditions of `list`, and of the commands that change many instances. Not a doc comment: clap would show it as the help of the
// subcommand.
#[derive(Debug, ClapArgs)]
pub(crate) struct Filters {
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
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Only instances that are paused or parked, by id and with their hold; also those whose code has not run yet
    #[arg(long, conflicts_with_all = FILTERS)]
    pub(crate) held: bool,
    #[command(flatten)]
    pub(crate) filters: Filters,
    /// The most instances to list
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) limit: u32,
    /// Continue after the page that ended with this mark
    #[arg(long, value_name = "MARK")]
    pub(crate) after: Option<String>,
    /// Go on: show new and changed instances of the first page until Ctrl-C
    #[arg(short, long, conflicts_with_all = ["held", "after"])]
    pub(crate) follow: bool,
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
pub(crate) struct CountArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Only instances of this orchestration
    #[arg(long, value_name = "ORCHESTRATION")]
    pub(crate) name: Option<String>,
    /// Only instances whose id starts with this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) prefix: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct TreeArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The instance's id
    pub(crate) instance: String,
    /// Begin with the root of the instance
    #[arg(long)]
    pub(crate) root: bool,
    /// The most descendants to show
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) limit: u32,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct KvArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The instance's id
    pub(crate) instance: String,
    /// The key; all keys if not given
    pub(crate) key: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The instance's id
    pub(crate) instance: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The instance's id
    pub(crate) instance: String,
    /// Go on: show every change until the instance has ended, or until Ctrl-C
    #[arg(short, long)]
    pub(crate) follow: bool,
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
    /// Go on: print new events, also those of later executions, until the instance has ended, or until Ctrl-C
    #[arg(short, long)]
    pub(crate) follow: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct WaitArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The instance's id
    pub(crate) instance: String,
    /// How long to wait: 90s, 15m, 2h; without an end if not given
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct WhyArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The instance's id
    pub(crate) instance: String,
    /// The option `max_attempts` of the runtimes: the most deliveries of a message
    #[arg(long, value_name = "N", default_value_t = RuntimeOptions::default().max_attempts)]
    pub(crate) max_attempts: u32,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct TimelineArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The instance's id
    pub(crate) instance: String,
    /// Which execution; the newest if not given
    #[arg(long, value_name = "N")]
    pub(crate) execution: Option<u64>,
    /// Show the tries of an activity, and the timers between them, as lines of their own
    #[arg(long)]
    pub(crate) tries: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The id of the first instance
    pub(crate) instance: String,
    /// The id of the second instance
    pub(crate) other: String,
    /// Which execution of the first instance; the newest if not given
    #[arg(long, value_name = "N")]
    pub(crate) execution: Option<u64>,
    /// Which execution of the second instance; the newest if not given
    #[arg(long, value_name = "N")]
    pub(crate) other_execution: Option<u64>,
}

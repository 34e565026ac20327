//! The command line of the subcommands of `outlast instance` that change instances.

use super::args::{FILTERS, Filters, Status};
use crate::args::Common;
use crate::duration::duration;
use clap::{Args as ClapArgs, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

// The selection of a command for many instances, and its confirmation. Not a doc comment: clap would show it as the help of the
// subcommand.
#[derive(Debug, ClapArgs)]
pub(crate) struct BulkArgs {
    #[command(flatten)]
    pub(crate) filters: Filters,
    /// Without an id: show the instances that match, and change nothing
    #[arg(long, conflicts_with = "instance")]
    pub(crate) dry_run: bool,
    /// Without an id: change the instances, together with --expect
    #[arg(long, conflicts_with_all = ["instance", "dry_run"], requires = "expect")]
    pub(crate) yes: bool,
    /// The number of instances that must match; with another number nothing is changed
    #[arg(long, value_name = "N", requires = "yes")]
    pub(crate) expect: Option<usize>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The instance's id; without it, all running instances that --status, --name, --version, --idle-for and --prefix select
    #[arg(required_unless_present_any = FILTERS, conflicts_with_all = FILTERS)]
    pub(crate) instance: Option<String>,
    #[command(flatten)]
    pub(crate) bulk: BulkArgs,
    /// Your name, which is stored in the audit
    #[arg(long, value_name = "NAME", default_value = "the command line")]
    pub(crate) by: String,
    /// The reason, which is stored in the history and in the audit
    #[arg(long, value_name = "TEXT", default_value = "cancelled from the command line")]
    pub(crate) reason: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct TerminateArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The instance's id; without it, all running instances that --status, --name, --version, --idle-for and --prefix select
    #[arg(required_unless_present_any = FILTERS, conflicts_with_all = FILTERS)]
    pub(crate) instance: Option<String>,
    #[command(flatten)]
    pub(crate) bulk: BulkArgs,
    /// Your name, which is stored in the audit
    #[arg(long, value_name = "NAME", default_value = "the command line")]
    pub(crate) by: String,
    /// The reason, which is stored in the history and in the audit
    #[arg(long, value_name = "TEXT", default_value = "terminated from the command line")]
    pub(crate) reason: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The instance's id; without it, all ended roots that --status, --name, --version, --idle-for and --prefix select
    #[arg(required_unless_present_any = FILTERS, conflicts_with_all = FILTERS)]
    pub(crate) instance: Option<String>,
    #[command(flatten)]
    pub(crate) bulk: BulkArgs,
    /// Delete a running instance too; only with its id
    #[arg(long, requires = "instance")]
    pub(crate) force: bool,
    /// Your name, which is stored in the audit
    #[arg(long, value_name = "NAME", default_value = "the command line")]
    pub(crate) by: String,
    /// The reason, which is stored in the audit
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) reason: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct HoldArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The instance's id; without it, all running instances that --status, --name, --version, --idle-for and --prefix select
    #[arg(required_unless_present_any = FILTERS, conflicts_with_all = FILTERS)]
    pub(crate) instance: Option<String>,
    #[command(flatten)]
    pub(crate) bulk: BulkArgs,
    /// Your name, which is stored with the hold and in the audit
    #[arg(long, value_name = "NAME", default_value = "the command line")]
    pub(crate) by: String,
    /// The reason, which is stored with the hold and in the audit
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) reason: String,
}

// The options of `reset` and `fork`. Not a doc comment: clap would show it as the help of the subcommand.
#[derive(Debug, ClapArgs)]
pub(crate) struct CutArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The instance's id
    pub(crate) instance: String,
    /// The last event that is kept
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) to_event: u64,
    /// Show the effect, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Your name, which is stored in the audit
    #[arg(long, value_name = "NAME", default_value = "the command line")]
    pub(crate) by: String,
    /// The reason, which is stored in the audit
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) reason: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ResetArgs {
    #[command(flatten)]
    pub(crate) cut: CutArgs,
    /// Cancel running children whose outcome would be lost
    #[arg(long)]
    pub(crate) cancel_children: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ForkArgs {
    #[command(flatten)]
    pub(crate) cut: CutArgs,
    /// The id of the new instance
    #[arg(long = "as", value_name = "NEW-ID")]
    pub(crate) new_id: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StartArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The name of the orchestration
    pub(crate) orchestration: String,
    /// The id of the instance
    #[arg(required_unless_present = "token")]
    pub(crate) instance: Option<String>,
    /// Instead of an id: a text that names this start, from which the id is derived; a second start with it finds the first
    #[arg(long, value_name = "TEXT", conflicts_with = "instance")]
    pub(crate) token: Option<String>,
    /// The input, as the text that the code gets
    #[arg(long, value_name = "TEXT")]
    pub(crate) input: Option<String>,
    /// The file with the input; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "input")]
    pub(crate) input_file: Option<PathBuf>,
    /// The version of the orchestration; the process that runs the first turn chooses it if not given
    #[arg(long, value_name = "VERSION")]
    pub(crate) version: Option<String>,
    /// The time until the first turn: 90s, 15m, 2h
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) delay: Option<Duration>,
    /// What to do if an instance with this id exists, also one that has ended
    #[arg(long, value_name = "POLICY", default_value = "fail")]
    pub(crate) if_exists: IfExists,
    /// Your name, which is stored in the audit
    #[arg(long, value_name = "NAME", default_value = "the command line")]
    pub(crate) by: String,
    /// The reason, which is stored in the audit
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum IfExists {
    /// Store nothing, with exit status 6
    Fail,
    /// Store nothing, with exit status 0
    UseExisting,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SignalArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The instance's id
    pub(crate) instance: String,
    /// The name of the event
    pub(crate) event: String,
    /// The data of the event, as the text that its code gets
    #[arg(default_value = "")]
    pub(crate) data: String,
    /// Your name, which is stored in the audit
    #[arg(long, value_name = "NAME", default_value = "the command line")]
    pub(crate) by: String,
    /// The reason, which is stored in the audit
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) reason: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct EnqueueArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The instance's id
    pub(crate) instance: String,
    /// The name of the queue
    pub(crate) queue: String,
    /// The message, as the text that its code gets
    #[arg(default_value = "")]
    pub(crate) data: String,
    /// Your name, which is stored in the audit
    #[arg(long, value_name = "NAME", default_value = "the command line")]
    pub(crate) by: String,
    /// The reason, which is stored in the audit
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) reason: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The id of a root; without it, all instances that match
    #[arg(conflicts_with_all = ["status", "name", "prefix"])]
    pub(crate) instance: Option<String>,
    /// The file to write; it must not exist
    #[arg(long, value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Only roots with this status
    #[arg(long, value_name = "STATUS", ignore_case = true)]
    pub(crate) status: Option<Status>,
    /// Only roots of this orchestration
    #[arg(long, value_name = "ORCHESTRATION")]
    pub(crate) name: Option<String>,
    /// Only roots whose id starts with this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) prefix: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ImportArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The file that `outlast instance export` wrote
    #[arg(long, value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Only check the file and the store
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Leave instances that exist as they are
    #[arg(long)]
    pub(crate) skip_existing: bool,
    /// Pause the unfinished instances, until `outlast instance resume`
    #[arg(long)]
    pub(crate) paused: bool,
    /// Create the store if it does not exist, and bring its schema up to date
    #[arg(long)]
    pub(crate) create: bool,
    /// Your name, which is stored in the audit
    #[arg(long, value_name = "NAME", default_value = "the command line")]
    pub(crate) by: String,
    /// The reason, which is stored in the audit
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) reason: String,
}

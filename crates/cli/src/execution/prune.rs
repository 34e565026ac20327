//! `outlast execution prune`

use crate::args::Common;
use crate::duration::duration;
use crate::failure::Failure;
use crate::instance::unknown;
use crate::output::{plain, print};
use crate::record::{By, record};
use crate::store::{self, Intent, Place};
use clap::Args as ClapArgs;
use outlast::ExecutionStatus;
use outlast::client::Client;
use outlast::lens::counted;
use outlast::providers::{Clock, ExecutionInfo, InstanceQuery, PruneOptions, SystemClock, saturating_ms};
use outlast::runtime::OrchestrationStatus;
use serde::Serialize;
use std::time::Duration;

/// The number of instances that the output names.
const SAMPLES: usize = 10;

pub(super) const EXAMPLES: &str = "Examples:
  outlast execution prune monitor --keep 10 --store shop.db
  outlast execution prune --name Monitor --older-than 30d --dry-run --store shop.db
  outlast execution prune --name Monitor --older-than 30d --yes --expect 14 --store shop.db";

#[derive(Debug, ClapArgs)]
pub(super) struct PruneArgs {
    #[command(flatten)]
    common: Common,
    /// The instance's id; without it, all instances that --name and --prefix select
    #[arg(required_unless_present_any = ["name", "prefix"])]
    instance: Option<String>,
    /// Keep this number of newest executions, the current one included
    #[arg(long, value_name = "N", required_unless_present = "older_than", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
    /// Only executions that ended at least this long ago, by the clock of this machine: 15m, 2h, 30d
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    older_than: Option<Duration>,
    /// Without an id: only instances of this orchestration
    #[arg(long, value_name = "ORCHESTRATION", conflicts_with = "instance")]
    name: Option<String>,
    /// Without an id: only instances whose id starts with this text
    #[arg(long, value_name = "TEXT", conflicts_with = "instance")]
    prefix: Option<String>,
    /// Count the executions, and delete nothing
    #[arg(long)]
    dry_run: bool,
    /// Without an id: delete the executions, together with --expect
    #[arg(long, conflicts_with_all = ["instance", "dry_run"], requires = "expect")]
    yes: bool,
    /// The number of instances that must have such executions; with another number nothing is deleted
    #[arg(long, value_name = "N", requires = "yes")]
    expect: Option<usize>,
    /// Your name, which is stored in the audit
    #[arg(long, value_name = "NAME", default_value = "the command line")]
    by: String,
    /// The reason, which is stored in the audit
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
}

pub(super) async fn run(args: PruneArgs) -> Result<(), Failure> {
    let place = args.common.store.clone().place()?;
    let intent = if args.dry_run { Intent::Read } else { Intent::Write };
    let client = store::open(&place, intent).await?;
    let options = PruneOptions {
        keep_last: args.keep,
        completed_before: args.older_than.map(|age| SystemClock.now_ms().saturating_sub(saturating_ms(age))),
    };
    let found = matching(&client, &place, &args, &options).await?;
    if args.instance.is_none() && !args.dry_run {
        confirm(&args, found.len())?;
    }
    let mut pruned = Pruned {
        instances: found.len(),
        executions: 0,
        events: 0,
        samples: found.iter().take(SAMPLES).map(|(id, _)| id.clone()).collect(),
        dry_run: args.dry_run,
    };
    for (instance, old) in found {
        let (executions, events) = match args.dry_run {
            true => (old.len() as u64, old.iter().map(|info| info.event_count as u64).sum()),
            false => prune(&client, &instance, &options, &args).await?,
        };
        pruned.executions += executions;
        pruned.events += events;
    }
    print(args.common.output, &pruned, Pruned::text)
}

/// The executions and events that were deleted.
async fn prune(
    client: &Client,
    instance: &str,
    options: &PruneOptions,
    args: &PruneArgs,
) -> Result<(u64, u64), Failure> {
    let pruned = client.prune_executions(instance, options.clone()).await?;
    let by = By { name: args.by.clone(), reason: args.reason.clone() };
    record(client, &by, "execution.prune", instance).await?;
    Ok((pruned.executions_deleted, pruned.events_deleted))
}

type Old = Vec<ExecutionInfo>;

/// The instances with executions to delete.
async fn matching(
    client: &Client,
    place: &Place,
    args: &PruneArgs,
    options: &PruneOptions,
) -> Result<Vec<(String, Old)>, Failure> {
    if let Some(instance) = &args.instance {
        if client.get_orchestration_status(instance).await? == OrchestrationStatus::NotFound {
            return Err(unknown(instance, place));
        }
        let old = old(client, instance, options).await?;
        return Ok(if old.is_empty() { Vec::new() } else { vec![(instance.clone(), old)] });
    }
    let mut found = Vec::new();
    let mut query = InstanceQuery {
        orchestration_name: args.name.clone(),
        id_prefix: args.prefix.clone(),
        limit: Some(1_000),
        ..InstanceQuery::default()
    };
    loop {
        let page = client.list_instances_page(query.clone()).await?;
        let continued = page
            .instances
            .into_iter()
            .filter(|info| info.current_execution_id > outlast::INITIAL_EXECUTION_ID);
        for info in continued {
            let old = old(client, &info.instance_id, options).await?;
            found.extend(Some((info.instance_id, old)).filter(|(_, old)| !old.is_empty()));
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(found),
        }
    }
}

/// The executions that the store would delete, by the rules of [`Client::prune_executions`].
async fn old(client: &Client, instance: &str, options: &PruneOptions) -> Result<Old, Failure> {
    let kept = client.list_executions(instance).await?;
    let newest = options.keep_last.unwrap_or(0).max(1) as usize;
    let mut old = Vec::new();
    for execution in kept.iter().rev().skip(newest) {
        let info = client.get_execution_info(instance, *execution).await?;
        let has_ended = info.status != ExecutionStatus::Running.as_str();
        let is_old =
            options.completed_before.is_none_or(|limit| info.completed_at.is_some_and(|at| at < limit));
        old.extend(Some(info).filter(|_| has_ended && is_old));
    }
    Ok(old)
}

/// The set may have changed since the caller has looked at it: the caller names the number of instances.
fn confirm(args: &PruneArgs, found: usize) -> Result<(), Failure> {
    let have = if found == 1 { "has" } else { "have" };
    let instances = counted(found, "instance");
    match args.expect {
        Some(expected) if args.yes && expected == found => Ok(()),
        Some(expected) if args.yes => Err(Failure::refused(format!(
            "{instances} {have} such executions, and --expect names {expected}: nothing was deleted; look again with --dry-run"
        ))),
        _ => Err(Failure::refused(format!(
            "{instances} {have} such executions: nothing was deleted; `--yes --expect {found}` deletes them, --dry-run shows them"
        ))),
    }
}

#[derive(Serialize)]
struct Pruned {
    /// The instances with deleted executions.
    instances: usize,
    executions: u64,
    events: u64,
    /// Ids of some of the instances.
    samples: Vec<String>,
    dry_run: bool,
}

impl Pruned {
    fn text(&self) -> String {
        if self.instances == 0 {
            return "No execution is deleted: none matches the conditions.\n".to_string();
        }
        let numbers = format!(
            "{} with {} of {}",
            counted(self.executions, "execution"),
            counted(self.events, "event"),
            counted(self.instances, "instance")
        );
        if !self.dry_run {
            return format!("Deleted {numbers}.\n");
        }
        let samples: String = self.samples.iter().map(|id| format!("  {}\n", plain(id))).collect();
        let more = match self.instances - self.samples.len() {
            0 => String::new(),
            more => format!("  and {more} more\n"),
        };
        format!("{numbers} would be deleted. Nothing was changed.\n{samples}{more}")
    }
}

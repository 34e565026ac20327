//! `outlast instance cancel` without an id: all running instances that match.

use super::args::{BulkArgs, CancelArgs};
use crate::failure::Failure;
use crate::output::{plain, print};
use crate::store::{self, Intent};
use outlast::client::Client;
use outlast::lens::counted;
use outlast::providers::InstanceQuery;
use outlast::runtime::OrchestrationStatus;
use serde::Serialize;

/// The number of ids that a dry run shows.
const SAMPLES: usize = 10;

pub(super) async fn cancel(args: CancelArgs) -> Result<(), Failure> {
    let place = args.common.store.place()?;
    let intent = if args.bulk.dry_run { Intent::Read } else { Intent::Write };
    let client = store::open(&place, intent).await?;
    let found = matching(&client, &args.bulk).await?;
    let mut done = Done {
        matching: found.len(),
        samples: found.iter().take(SAMPLES).cloned().collect(),
        dry_run: args.bulk.dry_run,
        cancel_requested: 0,
        ended_before: 0,
    };
    if args.bulk.dry_run {
        return print(args.common.output, &done, Done::text);
    }
    confirm(&args.bulk, found.len())?;
    for instance in &found {
        match client.get_orchestration_status(instance).await? {
            OrchestrationStatus::Running { .. } => {
                client.cancel_instance(instance.as_str(), args.reason.as_str()).await?;
                done.cancel_requested += 1;
            }
            _ => done.ended_before += 1,
        }
    }
    print(args.common.output, &done, Done::text)
}

/// The running instances that match, newest first.
async fn matching(client: &Client, bulk: &BulkArgs) -> Result<Vec<String>, Failure> {
    let mut query = InstanceQuery {
        status: Some("Running".to_string()),
        orchestration_name: bulk.name.clone(),
        id_prefix: bulk.prefix.clone(),
        limit: Some(1_000),
        ..InstanceQuery::default()
    };
    let mut found = Vec::new();
    loop {
        let page = client.list_instances_page(query.clone()).await?;
        found.extend(page.instances.into_iter().map(|info| info.instance_id));
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(found),
        }
    }
}

/// The set may have changed since the caller has looked at it: the caller names the number of instances.
fn confirm(bulk: &BulkArgs, found: usize) -> Result<(), Failure> {
    match bulk.expect {
        Some(expected) if bulk.yes && expected == found => Ok(()),
        Some(expected) if bulk.yes => Err(Failure::refused(format!(
            "{}, and --expect names {expected}: nothing was changed; look again with --dry-run",
            match_text(found, "instance")
        ))),
        _ => Err(Failure::refused(format!(
            "{}: nothing was changed; `--yes --expect {found}` cancels, --dry-run shows",
            match_text(found, "instance")
        ))),
    }
}

#[derive(Serialize)]
struct Done {
    matching: usize,
    samples: Vec<String>,
    dry_run: bool,
    cancel_requested: usize,
    ended_before: usize,
}

impl Done {
    fn text(&self) -> String {
        if !self.dry_run {
            return format!(
                "Asked {} to stop; {} had ended before. The next turn fails the instance, in a process that runs it.\n",
                counted(self.cancel_requested, "instance"),
                self.ended_before
            );
        }
        let samples: String = self.samples.iter().map(|id| format!("  {}\n", plain(id))).collect();
        let more = match self.matching.saturating_sub(self.samples.len()) {
            0 => String::new(),
            more => format!("  and {more} more\n"),
        };
        let matching = match_text(self.matching, "running instance");
        format!("{matching}. Nothing was changed.\n{samples}{more}")
    }
}

/// `1 instance matches`, `2 instances match`.
fn match_text(count: usize, noun: &str) -> String {
    let verb = if count == 1 { "matches" } else { "match" };
    format!("{} {verb}", counted(count, noun))
}

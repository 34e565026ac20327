//! `outlast instance cancel|terminate|delete|pause|resume` without an id: all instances that match.

use super::args::{BulkArgs, Common};
use crate::failure::Failure;
use crate::output::{plain, print};
use crate::store::{self, Intent};
use outlast::client::{BulkChange, BulkVerb};
use outlast::lens::counted;
use outlast::providers::InstanceQuery;
use serde::Serialize;

/// The number of ids that a dry run shows.
const SAMPLES: usize = 10;

/// The person who makes a change, and the reason, for the audit.
pub(super) struct By {
    pub(super) name: String,
    pub(super) reason: String,
}

impl By {
    /// A command without an option for the name.
    pub(super) fn command(reason: String) -> Self {
        Self { name: "the command line".to_string(), reason }
    }
}

pub(super) async fn run(common: Common, bulk: &BulkArgs, verb: BulkVerb, by: By) -> Result<(), Failure> {
    let place = common.store.place()?;
    let intent = if bulk.dry_run { Intent::Read } else { Intent::Write };
    let client = store::open(&place, intent).await?;
    let query = InstanceQuery {
        orchestration_name: bulk.name.clone(),
        id_prefix: bulk.prefix.clone(),
        ..InstanceQuery::default()
    };
    let found = client.bulk_select(verb, &query, usize::MAX).await?;
    let mut done = Done {
        verb: verb.as_str(),
        kind: verb.is_for(),
        matching: found.len(),
        samples: found.iter().take(SAMPLES).cloned().collect(),
        dry_run: bulk.dry_run,
        changed: 0,
        unchanged: 0,
    };
    if bulk.dry_run {
        return print(common.output, &done, Done::text);
    }
    confirm(bulk, verb, found.len())?;
    let change = BulkChange { verb, actor: by.name, reason: by.reason, request: None, created_before: None };
    for instance in &found {
        match client.bulk_apply(&change, instance).await? {
            true => done.changed += 1,
            false => done.unchanged += 1,
        }
    }
    print(common.output, &done, Done::text)
}

/// The set may have changed since the caller has looked at it: the caller names the number of instances.
fn confirm(bulk: &BulkArgs, verb: BulkVerb, found: usize) -> Result<(), Failure> {
    match bulk.expect {
        Some(expected) if bulk.yes && expected == found => Ok(()),
        Some(expected) if bulk.yes => Err(Failure::refused(format!(
            "{}, and --expect names {expected}: nothing was changed; look again with --dry-run",
            match_text(found, "instance")
        ))),
        _ => Err(Failure::refused(format!(
            "{}: nothing was changed; `--yes --expect {found}` {}s them, --dry-run shows them",
            match_text(found, "instance"),
            verb.as_str()
        ))),
    }
}

#[derive(Serialize)]
struct Done {
    verb: &'static str,
    #[serde(skip)]
    kind: &'static str,
    matching: usize,
    samples: Vec<String>,
    dry_run: bool,
    /// The instances that the command changed, or asked to stop.
    changed: usize,
    /// The instances that had ended, were held or released, or were gone before.
    unchanged: usize,
}

impl Done {
    fn text(&self) -> String {
        let Self { changed, unchanged, .. } = self;
        if !self.dry_run {
            let instances = counted(*changed, "instance");
            return match self.verb {
                "cancel" => format!(
                    "Asked {instances} to stop; {unchanged} had ended before. The next turn fails the instance, in a process that runs it.\n"
                ),
                "terminate" => format!(
                    "Asked {instances} to end; {unchanged} had ended before. The next turn ends the instance, in a process that runs it.\n"
                ),
                "delete" => format!(
                    "Deleted {} with all descendants; {unchanged} had changed before.\n",
                    counted(*changed, "root")
                ),
                "pause" => format!("Paused {instances}; {unchanged} had ended or were held before.\n"),
                _ => format!("Resumed {instances}; {unchanged} had ended or were released before.\n"),
            };
        }
        let samples: String = self.samples.iter().map(|id| format!("  {}\n", plain(id))).collect();
        let more = match self.matching.saturating_sub(self.samples.len()) {
            0 => String::new(),
            more => format!("  and {more} more\n"),
        };
        let matching = match_text(self.matching, &format!("{} instance", self.kind));
        format!("{matching}. Nothing was changed.\n{samples}{more}")
    }
}

/// `1 instance matches`, `2 instances match`.
fn match_text(count: usize, noun: &str) -> String {
    let verb = if count == 1 { "matches" } else { "match" };
    format!("{} {verb}", counted(count, noun))
}

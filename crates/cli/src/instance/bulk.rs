//! `outlast instance cancel|terminate|delete|pause|resume` without an id: all instances that match.

use super::args::BulkArgs;
use super::list::{Selection, conditions};
use crate::args::Common;
use crate::failure::Failure;
use crate::output::{plain, print};
use crate::record::By;
use crate::store::{self, Intent};
use outlast::client::{BulkChange, BulkVerb, Client};
use outlast::lens::counted;
use outlast::runtime::OrchestrationStatus;
use serde::Serialize;

/// The number of ids that a dry run shows.
const SAMPLES: usize = 10;

pub(super) async fn run(common: Common, bulk: BulkArgs, verb: BulkVerb, by: By) -> Result<(), Failure> {
    let place = common.store.place()?;
    let intent = if bulk.dry_run { Intent::Read } else { Intent::Write };
    let client = store::open(&place, intent).await?;
    let BulkArgs { filters, dry_run, yes, expect } = bulk;
    let (query, selection) = conditions(filters);
    let mut found = Vec::new();
    for instance in client.bulk_select(verb, &query, usize::MAX).await? {
        if is_selected(&client, &selection, &instance).await? {
            found.push(instance);
        }
    }
    let mut done = Done {
        verb: verb.as_str(),
        kind: verb.is_for(),
        matching: found.len(),
        samples: found.iter().take(SAMPLES).cloned().collect(),
        dry_run,
        changed: 0,
        unchanged: 0,
        no_longer_matching: 0,
    };
    if dry_run {
        return print(common.output, &done, Done::text);
    }
    confirm(expect.filter(|_| yes), verb, found.len())?;
    let change = BulkChange { verb, actor: by.name, reason: by.reason, request: None, created_before: None };
    for instance in &found {
        // An instance that was idle may have had a turn, or may have continued with another version.
        if !is_selected(&client, &selection, instance).await? {
            done.no_longer_matching += 1;
            continue;
        }
        match client.bulk_apply(&change, instance).await {
            Ok(true) => done.changed += 1,
            Ok(false) => done.unchanged += 1,
            Err(error) => {
                let changed = done.changed + usize::from(error.change_was_made());
                let made =
                    format!("{changed} of {} changed before the error", counted(found.len(), "instance"));
                let failure = Failure::from(error);
                return Err(if changed == 0 { failure } else { failure.after(&made) });
            }
        }
    }
    print(common.output, &done, Done::text)
}

/// Whether the instance fulfils the conditions that the command checks itself. An instance that was deleted does not.
async fn is_selected(client: &Client, selection: &Selection, instance: &str) -> Result<bool, Failure> {
    if selection.is_everything() {
        return Ok(true);
    }
    match client.get_instance_info(instance).await {
        Ok(info) => Ok(selection.takes(&info)),
        // The contract's error for a missing instance has no code of its own.
        Err(error) => match client.get_orchestration_status(instance).await? {
            OrchestrationStatus::NotFound => Ok(false),
            _ => Err(error.into()),
        },
    }
}

/// The set may have changed since the caller has looked at it: the caller names the number of instances.
fn confirm(expected: Option<usize>, verb: BulkVerb, found: usize) -> Result<(), Failure> {
    match expected {
        Some(expected) if expected == found => Ok(()),
        Some(expected) => Err(Failure::refused(format!(
            "{}, and --expect names {expected}: nothing was changed; look again with --dry-run",
            match_text(found, "instance")
        ))),
        None => Err(Failure::refused(format!(
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
    /// The instances that fulfilled the conditions when the command selected them, and not any more.
    no_longer_matching: usize,
}

impl Done {
    fn text(&self) -> String {
        let Self { changed, unchanged, .. } = self;
        if !self.dry_run {
            let instances = counted(*changed, "instance");
            let mut text = match self.verb {
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
            if self.no_longer_matching > 0 {
                let moved = counted(self.no_longer_matching, "instance");
                text.push_str(&format!("Left {moved} unchanged that had gone on since the selection.\n"));
            }
            return text;
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

//! `outlast instance cancel|terminate|delete|pause|resume` without an id: all instances that match.

use super::args::{BulkArgs, Common};
use super::delete::delete;
use crate::failure::Failure;
use crate::output::{plain, print};
use crate::store::{self, Intent};
use outlast::client::{Client, ClientError};
use outlast::lens::counted;
use outlast::providers::InstanceQuery;
use outlast::runtime::OrchestrationStatus;
use serde::Serialize;

/// The number of ids that a dry run shows.
const SAMPLES: usize = 10;

/// The person who makes a change, and the reason, for the audit.
pub(super) struct By {
    pub(super) name: String,
    pub(super) reason: String,
}

/// The change to make to each instance.
pub(super) enum Verb {
    Cancel { reason: String },
    Terminate { reason: String },
    Delete(By),
    Pause(By),
    Resume(By),
}

impl Verb {
    fn name(&self) -> &'static str {
        match self {
            Self::Cancel { .. } => "cancel",
            Self::Terminate { .. } => "terminate",
            Self::Delete(_) => "delete",
            Self::Pause(_) => "pause",
            Self::Resume(_) => "resume",
        }
    }

    /// The instances that the verb is for.
    fn kind(&self) -> &'static str {
        match self {
            Self::Cancel { .. } | Self::Terminate { .. } | Self::Pause(_) => "running",
            Self::Delete(_) => "ended",
            Self::Resume(_) => "held",
        }
    }

    /// Changes an instance; false if it is not in a state for the change any more.
    async fn apply(&self, client: &Client, instance: &str) -> Result<bool, Failure> {
        if !matches!(self, Self::Delete(_)) {
            let status = client.get_orchestration_status(instance).await?;
            if !matches!(status, OrchestrationStatus::Running { .. }) {
                return Ok(false);
            }
        }
        match self {
            Self::Cancel { reason } => client.cancel_instance(instance, reason.as_str()).await?,
            Self::Terminate { reason } => client.terminate_instance(instance, reason.as_str()).await?,
            Self::Pause(by) => return Ok(client.pause_instance(instance, &by.name, &by.reason).await?),
            Self::Resume(by) => return Ok(client.resume_instance(instance, &by.name, &by.reason).await?),
            Self::Delete(by) => match delete(client, instance, false, by).await {
                Ok(_) => {}
                Err(ClientError::InstanceNotFound { .. } | ClientError::InstanceStillRunning { .. }) => {
                    return Ok(false);
                }
                Err(error) => return Err(error.into()),
            },
        }
        Ok(true)
    }
}

pub(super) async fn run(common: Common, bulk: &BulkArgs, verb: Verb) -> Result<(), Failure> {
    let place = common.store.place()?;
    let intent = if bulk.dry_run { Intent::Read } else { Intent::Write };
    let client = store::open(&place, intent).await?;
    let found = matching(&client, bulk, &verb).await?;
    let mut done = Done {
        verb: verb.name(),
        kind: verb.kind(),
        matching: found.len(),
        samples: found.iter().take(SAMPLES).cloned().collect(),
        dry_run: bulk.dry_run,
        changed: 0,
        unchanged: 0,
    };
    if bulk.dry_run {
        return print(common.output, &done, Done::text);
    }
    confirm(bulk, &verb, found.len())?;
    for instance in &found {
        match verb.apply(&client, instance).await? {
            true => done.changed += 1,
            false => done.unchanged += 1,
        }
    }
    print(common.output, &done, Done::text)
}

/// The instances that match, newest first.
async fn matching(client: &Client, bulk: &BulkArgs, verb: &Verb) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    let statuses: &[&str] = match verb {
        Verb::Delete(_) => &["Completed", "Failed"],
        _ => &["Running"],
    };
    for status in statuses {
        let mut query = InstanceQuery {
            status: Some(status.to_string()),
            orchestration_name: bulk.name.clone(),
            id_prefix: bulk.prefix.clone(),
            limit: Some(1_000),
            ..InstanceQuery::default()
        };
        loop {
            let page = client.list_instances_page(query.clone()).await?;
            for info in page.instances {
                let is_meant = match verb {
                    // A child is deleted with its root.
                    Verb::Delete(_) => info.parent_instance_id.is_none(),
                    Verb::Resume(_) => client.held_instance(&info.instance_id).await?.is_some(),
                    _ => true,
                };
                if is_meant {
                    found.push(info.instance_id);
                }
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => break,
            }
        }
    }
    Ok(found)
}

/// The set may have changed since the caller has looked at it: the caller names the number of instances.
fn confirm(bulk: &BulkArgs, verb: &Verb, found: usize) -> Result<(), Failure> {
    match bulk.expect {
        Some(expected) if bulk.yes && expected == found => Ok(()),
        Some(expected) if bulk.yes => Err(Failure::refused(format!(
            "{}, and --expect names {expected}: nothing was changed; look again with --dry-run",
            match_text(found, "instance")
        ))),
        _ => Err(Failure::refused(format!(
            "{}: nothing was changed; `--yes --expect {found}` {}s them, --dry-run shows them",
            match_text(found, "instance"),
            verb.name()
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

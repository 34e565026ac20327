//! Checks of the running instances, by the diagnosis of each.

use super::report::Check;
use crate::failure::Failure;
use outlast::client::Client;
use outlast::lens::{Diagnosis, Rule, counted, span};
use outlast::providers::{InstanceInfo, InstanceQuery, NodeRecord, PendingWork};
use std::collections::BTreeMap;

/// The number of instances that are read at once.
const PAGE: usize = 500;
/// The number of activities of an instance that are read.
const ACTIVITIES: usize = 200;

/// The limits of the checks.
pub(super) struct Look {
    pub(super) most: usize,
    pub(super) overdue_ms: u64,
    pub(super) max_attempts: u32,
}

/// The result of the checks.
pub(super) struct Seen {
    pub(super) checks: Vec<Check>,
    /// The instance with the newest turn, and the time of the turn.
    pub(super) newest_ms: Option<(String, u64)>,
}

/// Code that no process seems to run: the number of instances that wait for it, the longest wait, and one of the instances.
struct Unserved {
    count: usize,
    longest_ms: u64,
    instance: String,
}

#[derive(Default)]
struct Findings {
    operations: Vec<Diagnosis>,
    stuck: Vec<Diagnosis>,
    patches: Vec<Diagnosis>,
    /// The reports of nodes, if they tell which versions no live node registers.
    nodes: Option<Vec<NodeRecord>>,
    unregistered: BTreeMap<(String, String), Unserved>,
    turns: BTreeMap<(String, String), Unserved>,
    activities: BTreeMap<(String, Option<String>), Unserved>,
}

/// Diagnoses the running instances, newest first.
pub(super) async fn look(client: &Client, look: &Look) -> Result<Seen, Failure> {
    let mut query = InstanceQuery { status: Some("Running".to_string()), ..InstanceQuery::default() };
    let mut found = Findings { nodes: telling(client.node_records().await?), ..Findings::default() };
    let (mut newest_ms, mut checked) = (None, 0);
    let is_all = loop {
        query.limit = u32::try_from(PAGE.min(look.most - checked)).ok();
        if query.limit == Some(0) {
            break false;
        }
        let page = client.list_instances_page(query.clone()).await?;
        for info in &page.instances {
            found.add(client, look, info).await?;
            if newest_ms.as_ref().is_none_or(|(_, at_ms)| *at_ms < info.updated_at) {
                newest_ms = Some((info.instance_id.clone(), info.updated_at));
            }
        }
        checked += page.instances.len();
        query.after = page.next;
        if query.after.is_none() {
            break true;
        }
    };
    let scope = match is_all {
        true => format!("none in {}", counted(checked, "running instance")),
        false => format!("none in the newest {}", counted(checked, "running instance")),
    };
    Ok(Seen { checks: found.checks(&scope), newest_ms })
}

impl Findings {
    async fn add(&mut self, client: &Client, look: &Look, info: &InstanceInfo) -> Result<(), Failure> {
        let instance = info.instance_id.as_str();
        if self.is_unregistered(info) {
            let code = (info.orchestration_name.clone(), info.orchestration_version.clone());
            note(&mut self.unregistered, code, 1, instance);
        }
        let diagnosis = client.diagnose_instance(instance, look.max_attempts).await?;
        match diagnosis.rule() {
            Rule::OperationLost | Rule::SetAside | Rule::NoSuccessor => self.operations.push(diagnosis),
            Rule::WaitsForNothing | Rule::NoHistory | Rule::Undecodable | Rule::EventDropped => {
                self.stuck.push(diagnosis)
            }
            Rule::TurnNeedsPatch => self.patches.push(diagnosis),
            Rule::TurnDue | Rule::TurnNotCommitted | Rule::TurnGivenBack => {
                if let Some(pending) = client.pending_work(instance, 1).await? {
                    self.add_turn(look, info, &pending);
                }
            }
            Rule::ActivityQueued | Rule::ActivityNotCommitted => {
                if let Some(pending) = client.pending_work(instance, ACTIVITIES).await? {
                    self.add_activities(look, instance, &pending);
                }
            }
            // A child has a row of its own.
            _ => {}
        }
        Ok(())
    }

    /// Whether the reports of nodes show that no live node registers the code of the instance.
    fn is_unregistered(&self, info: &InstanceInfo) -> bool {
        let (name, version) = (info.orchestration_name.as_str(), info.orchestration_version.as_str());
        self.nodes.as_ref().is_some_and(|nodes| {
            let mut live = nodes.iter().filter(|node| !node.is_lost());
            !live.any(|node| node.report.registers(name, Some(version)))
        })
    }

    /// A turn that is due for long, or that was delivered and given back.
    fn add_turn(&mut self, look: &Look, info: &InstanceInfo, pending: &PendingWork) {
        let Some(first) = pending.messages.first() else { return };
        let due_ms = pending.now_ms.saturating_sub(first.visible_at);
        let is_given_back = first.attempt_count > 0 && first.visible_at > pending.now_ms;
        if (due_ms >= look.overdue_ms || is_given_back) && !self.is_unregistered(info) {
            let code = (info.orchestration_name.clone(), info.orchestration_version.clone());
            note(&mut self.turns, code, due_ms, &info.instance_id);
        }
    }

    fn add_activities(&mut self, look: &Look, instance: &str, pending: &PendingWork) {
        for activity in pending.activities.iter().filter(|activity| activity.locked_until.is_none()) {
            let due_ms = pending.now_ms.saturating_sub(activity.visible_at);
            if due_ms >= look.overdue_ms {
                let name = activity.name.clone().unwrap_or_default();
                note(&mut self.activities, (name, activity.tag.clone()), due_ms, instance);
            }
        }
    }

    fn checks(self, scope: &str) -> Vec<Check> {
        let mut operations = Check::fine("operations", scope);
        let mut stuck = Check::fine("stuck", scope);
        for (check, found) in [(&mut operations, self.operations), (&mut stuck, self.stuck)] {
            for diagnosis in found {
                check.found_in(diagnosis.instance(), diagnosis.sentence());
                check.mended_by(diagnosis.remedy());
            }
        }
        let mut versions = Check::fine("versions", scope);
        for diagnosis in self.patches {
            versions.found_in(diagnosis.instance(), diagnosis.sentence());
        }
        for ((name, version), unserved) in self.unregistered {
            let others = match unserved.count {
                1 => String::new(),
                count => format!(" and {} others", count - 1),
            };
            versions.found_in(
                &unserved.instance,
                format!(
                    "no live node registers orchestration '{name}' version {version}, which instance '{}'{others} need",
                    unserved.instance
                ),
            );
        }
        for ((name, version), unserved) in self.turns {
            let says = unserved.says("turns");
            versions.found_in(
                &unserved.instance,
                format!(
                    "{says}: does a process run that registers orchestration '{name}' version {version}?"
                ),
            );
        }
        let mut activities = Check::fine("activities", scope);
        for ((name, tag), unserved) in self.activities {
            let says = unserved.says("activities");
            let tag = tag.map(|tag| format!(" and takes tag '{tag}'")).unwrap_or_default();
            activities.found_in(
                &unserved.instance,
                format!("{says}: does a process run that registers activity '{name}'{tag}?"),
            );
        }
        vec![operations, stuck, versions, activities]
    }
}

/// The reports, if they are complete: at least one node reports, and no live node leaves handlers out.
fn telling(records: Option<Vec<NodeRecord>>) -> Option<Vec<NodeRecord>> {
    let is_partial = |node: &NodeRecord| !node.is_lost() && node.report.is_partial();
    records.filter(|nodes| !nodes.is_empty() && !nodes.iter().any(is_partial))
}

fn note<K: Ord>(of: &mut BTreeMap<K, Unserved>, code: K, due_ms: u64, instance: &str) {
    let first = || Unserved { count: 0, longest_ms: 0, instance: instance.to_string() };
    let unserved = of.entry(code).or_insert_with(first);
    unserved.count += 1;
    if due_ms > unserved.longest_ms {
        (unserved.longest_ms, unserved.instance) = (due_ms, instance.to_string());
    }
}

impl Unserved {
    fn says(&self, things: &str) -> String {
        let others = match self.count {
            1 => String::new(),
            2 => " and of another".to_string(),
            count => format!(" and of {} others", count - 1),
        };
        match self.longest_ms {
            0 => format!("{things} of instance '{}'{others} were delivered and given back", self.instance),
            ms => format!(
                "{things} of instance '{}'{others} have been due for {}, and no process takes them",
                self.instance,
                span(ms)
            ),
        }
    }
}

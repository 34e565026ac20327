//! What was observed at the border of the store, and must therefore be in it.

use outlast_model::WorkItem;
use std::collections::{BTreeMap, BTreeSet};

/// Instance, execution, scheduling event.
pub(crate) type ActivityKey = (String, u64, u64);

/// What the store took, whether or not its answer arrived.
#[derive(Default)]
pub(crate) struct Witness {
    /// Instances whose start was taken.
    pub(crate) starts: BTreeSet<String>,
    /// Events and queue messages by instance and data, which is unique.
    pub(crate) messages: BTreeSet<(String, String)>,
    /// Instances that somebody asked to be cancelled.
    pub(crate) cancelled: BTreeSet<String>,
    /// Outcomes of activities.
    pub(crate) results: BTreeMap<ActivityKey, WorkItem>,
    /// Turns that were fetched and neither committed nor given back, by lock token.
    pub(crate) turns: BTreeMap<String, Turn>,
    pub(crate) leases: Leases,
}

/// What a turn was fetched with.
#[derive(Clone)]
pub(crate) struct Turn {
    pub(crate) instance: String,
    pub(crate) execution_id: u64,
    pub(crate) messages: Vec<WorkItem>,
    pub(crate) now_ms: u64,
    pub(crate) attempts: u32,
}

/// I6: what is leased to whom, by the store's clock.
#[derive(Default)]
pub(crate) struct Leases(BTreeMap<String, Lease>);

struct Lease {
    /// An instance, or an activity.
    subject: String,
    ends: u64,
}

impl Leases {
    pub(crate) fn granted(&mut self, token: &str, subject: String, now: u64, ms: u64) -> Result<(), String> {
        let other = self.0.values().find(|lease| lease.subject == subject && lease.ends > now);
        let problem = other.map(|lease| {
            format!("I6: {subject} is leased twice; the other lease has {} ms left", lease.ends - now)
        });
        self.0.insert(token.to_string(), Lease { subject, ends: now.saturating_add(ms) });
        problem.map_or(Ok(()), Err)
    }

    pub(crate) fn renewed(&mut self, token: &str, now: u64, ms: u64) -> Result<(), String> {
        self.used(token, now, "renewed")?;
        if let Some(lease) = self.0.get_mut(token) {
            lease.ends = lease.ends.max(now.saturating_add(ms));
        }
        Ok(())
    }

    pub(crate) fn committed(&mut self, token: &str, now: u64) -> Result<(), String> {
        let used = self.used(token, now, "committed under");
        self.0.remove(token);
        used
    }

    pub(crate) fn given_back(&mut self, token: &str) {
        self.0.remove(token);
    }

    fn used(&self, token: &str, now: u64, what: &str) -> Result<(), String> {
        match self.0.get(token) {
            None => Err(format!("I6: {token} was {what}, which nobody holds")),
            Some(lease) if lease.ends <= now => Err(format!(
                "I6: the lease on {} was {what} {} ms after its end",
                lease.subject,
                now - lease.ends
            )),
            Some(_) => Ok(()),
        }
    }
}

impl Witness {
    /// A message was enqueued from outside.
    pub(crate) fn enqueued(&mut self, item: &WorkItem) {
        match item {
            WorkItem::StartOrchestration { instance, .. } => drop(self.starts.insert(instance.clone())),
            WorkItem::ExternalRaised { instance, data, .. }
            | WorkItem::QueueMessage { instance, data, .. } => {
                self.messages.insert((instance.clone(), data.clone()));
            }
            WorkItem::CancelInstance { instance, .. } => drop(self.cancelled.insert(instance.clone())),
            _ => {}
        }
    }

    /// An activity's outcome was taken. Says what is wrong with that.
    pub(crate) fn completed(&mut self, completion: &WorkItem) -> Result<(), String> {
        let (WorkItem::ActivityCompleted { instance, execution_id, id, .. }
        | WorkItem::ActivityFailed { instance, execution_id, id, .. }) = completion
        else {
            return Ok(());
        };
        let key = (instance.clone(), *execution_id, *id);
        match self.results.insert(key, completion.clone()) {
            None => Ok(()),
            Some(_) => Err(format!(
                "I3: two outcomes of activity {id} of '{instance}', execution {execution_id}, were taken"
            )),
        }
    }
}

/// What activities did to the world outside.
#[derive(Default)]
pub(crate) struct Effects {
    began: BTreeSet<String>,
    runs: BTreeMap<(String, u64, u64), u64>,
}

impl Effects {
    pub(crate) fn began(&mut self, key: &str) {
        self.began.insert(key.to_string());
    }

    /// Whether the body of this activity was ever run.
    pub(crate) fn has_begun(&self, instance: &str, execution_id: u64, id: u64) -> bool {
        self.began.contains(&format!("{instance}:{execution_id}:{id}"))
    }

    pub(crate) fn count(&mut self, instance: &str, execution_id: u64, task: u64) -> u64 {
        let runs = self.runs.entry((instance.to_string(), execution_id, task)).or_default();
        *runs += 1;
        *runs
    }
}

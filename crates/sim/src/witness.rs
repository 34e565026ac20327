//! What was observed at the border of the store, and must therefore be in it.

use crate::program::Task;
use outlast_model::WorkItem;
use outlast_runtime::ActivityContext;
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

/// I6 and I14: what is leased to whom, by the store's clock.
#[derive(Default)]
pub(crate) struct Leases(BTreeMap<String, Lease>);

struct Lease {
    /// An instance, or an activity.
    subject: String,
    ends: u64,
    holder: Holder,
    /// A call under it failed, and may have been done all the same.
    in_doubt: bool,
    /// Somebody else has had it since.
    is_over: bool,
}

/// Who holds a lease, and how much trouble that process had had before.
#[derive(Clone, Copy)]
pub(crate) struct Holder {
    pub(crate) node: usize,
    pub(crate) troubles: u64,
}

impl Leases {
    /// `troubles` says how much trouble a process has had by now.
    pub(crate) fn granted(
        &mut self,
        token: &str,
        lease: (String, Holder),
        now: u64,
        ms: u64,
        troubles: impl Fn(usize) -> u64,
    ) -> Result<(), String> {
        let (subject, holder) = lease;
        let mut problem = Ok(());
        let others = self.0.values_mut().filter(|other| other.subject == subject);
        for other in others.filter(|other| !other.in_doubt && !other.is_over) {
            if other.ends > now {
                let left = other.ends - now;
                problem = Err(format!("I6: {subject} is leased twice; the other lease has {left} ms left"));
            } else if troubles(other.holder.node) == other.holder.troubles {
                let node = other.holder.node;
                problem = Err(format!(
                    "I14: node{node} lost its lease on {subject}, although nothing had happened to it since"
                ));
            }
            // Whatever clocks do from now on.
            other.is_over = true;
        }
        let ends = now.saturating_add(ms);
        let lease = Lease { subject, ends, holder, in_doubt: false, is_over: false };
        self.0.insert(token.to_string(), lease);
        problem
    }

    /// Something was leased, nobody knows when.
    pub(crate) fn granted_earlier(&mut self, token: &str, (subject, holder): (String, Holder)) {
        for other in self.0.values_mut().filter(|other| other.subject == subject) {
            other.in_doubt = true;
        }
        let lease = Lease { subject, ends: 0, holder, in_doubt: true, is_over: true };
        self.0.insert(token.to_string(), lease);
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

    /// Somebody works on this without a lease, which only the absence of one allows.
    pub(crate) fn without_lease(&self, subject: &str, now: u64) -> Result<(), String> {
        let held = self.0.values().filter(|lease| lease.subject == subject && lease.ends > now);
        match held.filter(|lease| !lease.in_doubt && !lease.is_over).count() {
            0 => Ok(()),
            _ => Err(format!("I6: {subject} was committed by one while another held its lease")),
        }
    }

    pub(crate) fn given_back(&mut self, token: &str) {
        self.0.remove(token);
    }

    /// A call under the lease failed: it may have been extended, or be gone.
    pub(crate) fn doubt(&mut self, token: &str) {
        if let Some(lease) = self.0.get_mut(token) {
            lease.in_doubt = true;
        }
    }

    /// The clock is set back. Leases that were over are in doubt: somebody may have taken them over who did not hear of it
    /// yet, and never will.
    pub(crate) fn clock_is_set_back(&mut self, now: u64) {
        for lease in self.0.values_mut().filter(|lease| lease.ends <= now) {
            lease.in_doubt = true;
        }
    }

    fn used(&self, token: &str, now: u64, what: &str) -> Result<(), String> {
        match self.0.get(token) {
            None => Err(format!("I6: {token} was {what}, which nobody holds")),
            Some(lease) if lease.in_doubt => Ok(()),
            Some(lease) if lease.is_over => {
                Err(format!("I6: the lease on {} was {what} after it was taken over", lease.subject))
            }
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
    /// An activity's body begins. Says how often it did so far, this time included.
    pub(crate) fn ran(&mut self, context: &ActivityContext, task: &Task) -> u64 {
        self.began(context.idempotency_key());
        self.count(context.instance_id(), context.execution_id(), task.id)
    }

    fn began(&mut self, key: &str) {
        self.began.insert(key.to_string());
    }

    /// Whether the body of this activity was ever run.
    pub(crate) fn has_begun(&self, instance: &str, execution_id: u64, id: u64) -> bool {
        self.began.contains(&format!("{instance}:{execution_id}:{id}"))
    }

    fn count(&mut self, instance: &str, execution_id: u64, task: u64) -> u64 {
        let runs = self.runs.entry((instance.to_string(), execution_id, task)).or_default();
        *runs += 1;
        *runs
    }
}

//! The calls that the store performed. The invariants require that the contents of these calls are stored.

use crate::audit::Audit;
use crate::leases::Leases;
use crate::program::action::Copied;
use outlast_model::WorkItem;
use std::collections::{BTreeMap, BTreeSet};

/// Instance, execution, and event that scheduled the activity.
pub(crate) type ActivityKey = (String, u64, u64);

/// The calls that the store performed, also those whose answer was lost.
#[derive(Default)]
pub(crate) struct Performed {
    /// Instances whose start was accepted.
    pub(crate) starts: BTreeSet<String>,
    /// Events and queue messages by instance and data; data is unique.
    pub(crate) messages: BTreeSet<(String, String)>,
    /// Instances whose cancellation was accepted.
    pub(crate) cancelled: BTreeSet<String>,
    /// Accepted outcomes of activities.
    pub(crate) results: BTreeMap<ActivityKey, WorkItem>,
    /// Turns that were fetched and neither committed nor abandoned, by lock token.
    pub(crate) turns: BTreeMap<String, Turn>,
    /// Instances whose turn was given back for a hold, with the number of deliveries of that turn.
    held: BTreeMap<String, Turn>,
    /// The messages of each instance that a fetch has returned.
    delivered: BTreeMap<String, Vec<WorkItem>>,
    /// Instances with a turn that was given back with a delay.
    pub(crate) delayed: BTreeSet<String>,
    /// Resets and forks that were answered.
    pub(crate) copied: Vec<Copied>,
    /// The failures that workers noted, by activity.
    notes: BTreeMap<ActivityKey, Notes>,
    /// The activities that were fetched, by lock token.
    activities: BTreeMap<String, ActivityKey>,
    pub(crate) leases: Leases,
    pub(crate) audit: Audit,
}

/// The noted failures of an activity.
#[derive(Default)]
struct Notes {
    stored: u32,
    /// Calls that failed after a statement that may have been the commit.
    in_doubt: u32,
    /// The texts that may be the last one.
    last_errors: Vec<String>,
}

/// A fetched turn.
#[derive(Clone)]
pub(crate) struct Turn {
    pub(crate) instance: String,
    pub(crate) execution_id: u64,
    pub(crate) messages: Vec<WorkItem>,
    pub(crate) now_ms: u64,
    pub(crate) attempts: u32,
}

impl Performed {
    /// Records an accepted message of a client.
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

    /// Records that a turn was given back for a hold.
    pub(crate) fn held(&mut self, token: &str) {
        if let Some(turn) = self.turns.get(token) {
            self.held.insert(turn.instance.clone(), turn.clone());
        }
    }

    /// I15: the first turn after a hold is the turn that was given back, which is not counted. Messages that arrived meanwhile were
    /// never delivered. A turn that also has messages of an earlier delivery is not judged: these were delayed during the hold, and
    /// have counts of their own.
    pub(crate) fn delivered_after_hold(
        &mut self,
        instance: &str,
        attempts: u32,
        messages: &[WorkItem],
    ) -> Result<(), String> {
        let held = self.held.remove(instance);
        let delivered = self.delivered.entry(instance.to_string()).or_default();
        let is_judged = |held: &Turn| {
            messages.iter().all(|message| held.messages.contains(message) || !delivered.contains(message))
        };
        let counted = held.filter(|held| attempts > held.attempts && is_judged(held));
        delivered.extend(messages.iter().cloned());
        match counted {
            Some(held) => Err(format!(
                "I15: a turn of '{instance}' was given back for a hold at delivery {}, and the next delivery is {attempts}",
                held.attempts
            )),
            None => Ok(()),
        }
    }

    /// I17: a delivery of an activity reports the failures that were noted, each once, and the text of the last one.
    pub(crate) fn fetched(
        &mut self,
        token: &str,
        key: ActivityKey,
        failures: u32,
        last_error: Option<&str>,
    ) -> Result<(), String> {
        self.activities.insert(token.to_string(), key.clone());
        let noted = self.notes.entry(key.clone()).or_default();
        let counted = (noted.stored..=noted.stored + noted.in_doubt).contains(&failures);
        let known = match last_error {
            Some(text) => failures > 0 && noted.last_errors.iter().any(|known| known == text),
            None => failures == 0,
        };
        if counted && known {
            return Ok(());
        }
        let (instance, execution_id, id) = key;
        let Notes { stored, in_doubt, last_errors } = noted;
        Err(format!(
            "I17: {stored} failures of activity {id} of '{instance}', execution {execution_id}, were noted, {in_doubt} are in doubt, \
             the last is one of {last_errors:?}, and a delivery reports {failures}, the last {last_error:?}"
        ))
    }

    /// Records a noted failure. A call in doubt may or may not have stored it.
    pub(crate) fn noted(&mut self, token: &str, error: &str, is_certain: bool) {
        let Some(key) = self.activities.get(token) else { return };
        let noted = self.notes.entry(key.clone()).or_default();
        match is_certain {
            true => {
                noted.stored += 1;
                noted.last_errors = vec![error.to_string()];
            }
            false => {
                noted.in_doubt += 1;
                noted.last_errors.push(error.to_string());
            }
        }
    }

    /// Records an accepted outcome of an activity. Fails if the activity had an outcome before, unless it is the same one and `may_repeat`.
    pub(crate) fn completed(&mut self, completion: &WorkItem, may_repeat: bool) -> Result<(), String> {
        let (WorkItem::ActivityCompleted { instance, execution_id, id, .. }
        | WorkItem::ActivityFailed { instance, execution_id, id, .. }) = completion
        else {
            return Ok(());
        };
        let key = (instance.clone(), *execution_id, *id);
        match self.results.insert(key, completion.clone()) {
            None => Ok(()),
            Some(known) if may_repeat && known == *completion => Ok(()),
            Some(_) => Err(format!(
                "I3: two outcomes of activity {id} of '{instance}', execution {execution_id}, were accepted"
            )),
        }
    }
}

//! Instances in files: `outlast instance export`, `outlast instance import`, and the import that `outlast migrate-from` shares.
//!
//! `file.rs` is the format, which docs/export-format.md describes. No message shows a payload.

pub(crate) mod export;
mod file;
pub(crate) mod import;

use crate::failure::Failure;
use outlast::providers::snapshot::InstanceSnapshot;
use outlast::providers::{Provider, ProviderAdmin};
use serde::Serialize;

/// The number of ids that a message shows.
const SAMPLES: usize = 10;

/// The management interface of a store.
pub(crate) fn admin(provider: &dyn Provider) -> Result<&dyn ProviderAdmin, Failure> {
    provider.as_management_capability().ok_or_else(|| Failure::new("the store has no management interface"))
}

/// The numbers of what was moved.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    pub(crate) instances: u64,
    /// Instances that have not ended.
    pub(crate) unfinished: u64,
    pub(crate) held: u64,
    pub(crate) executions: u64,
    pub(crate) events: u64,
    pub(crate) keys: u64,
    /// Waiting messages, timers among them.
    pub(crate) messages: u64,
    pub(crate) activities: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, snapshot: &InstanceSnapshot) {
        self.instances += 1;
        self.unfinished += u64::from(!snapshot.has_ended());
        self.held += u64::from(snapshot.hold.is_some());
        self.executions += snapshot.executions.len() as u64;
        self.events += snapshot.executions.iter().map(|execution| execution.events.len() as u64).sum::<u64>();
        self.keys += snapshot.keys.len() as u64;
        self.messages += snapshot.messages.len() as u64;
        self.activities += snapshot.activities.len() as u64;
    }

    /// The numbers for people.
    pub(crate) fn text(&self) -> String {
        format!(
            "{} instances ({} unfinished, {} held) with {} executions, {} events, {} keys, {} waiting messages and {} waiting \
             activities",
            self.instances,
            self.unfinished,
            self.held,
            self.executions,
            self.events,
            self.keys,
            self.messages,
            self.activities
        )
    }
}

/// Some ids for a message, and the number of the others.
pub(crate) fn shown(ids: &[String]) -> String {
    let some: Vec<String> =
        ids.iter().take(SAMPLES).map(|id| format!("'{}'", crate::output::plain(id))).collect();
    match ids.len().saturating_sub(SAMPLES) {
        0 => some.join(", "),
        more => format!("{} and {more} more", some.join(", ")),
    }
}

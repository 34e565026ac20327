//! The bodies of activities that ran, and the number of their runs.

use crate::program::Task;
use outlast_runtime::ActivityContext;
use std::collections::{BTreeMap, BTreeSet};

/// The bodies of activities that began.
#[derive(Default)]
pub(crate) struct Effects {
    began: BTreeSet<String>,
    runs: BTreeMap<(String, u64, u64), u64>,
}

impl Effects {
    /// Records that a body begins; returns how often it has begun, this time included.
    pub(crate) fn ran(&mut self, context: &ActivityContext, task: &Task) -> u64 {
        self.began(context.idempotency_key());
        self.count(context.instance_id(), context.execution_id(), task.id)
    }

    fn began(&mut self, key: &str) {
        self.began.insert(key.to_string());
    }

    /// Whether the body of this activity ever began.
    pub(crate) fn has_begun(&self, instance: &str, execution_id: u64, id: u64) -> bool {
        self.began.contains(&format!("{instance}:{execution_id}:{id}"))
    }

    fn count(&mut self, instance: &str, execution_id: u64, task: u64) -> u64 {
        let runs = self.runs.entry((instance.to_string(), execution_id, task)).or_default();
        *runs += 1;
        *runs
    }
}

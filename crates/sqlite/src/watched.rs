//! Watches of clients on instances: a commit that ends an instance gives its outcome to the clients that watch it.

use crate::history;
use crate::transaction::Transaction;
use outlast_provider::InstanceOutcome;
use outlast_provider_kit::{CommitPlan, Watches};

/// The answer of a call that commits a turn, and the outcome of the instance if the turn ended it and a client watches it.
pub(crate) struct Committed<T> {
    pub(crate) answer: T,
    outcome: Option<InstanceOutcome>,
}

impl<T> Committed<T> {
    /// Reads the outcome in the transaction of the commit, which takes less time than a read of each client after it.
    pub(crate) fn of(
        answer: T,
        tx: &Transaction<'_>,
        watches: &Watches,
        instance: &str,
        plan: &CommitPlan,
    ) -> Self {
        let is_wanted = plan.ends_instance() && watches.has_watch_of(instance);
        // An outcome that cannot be read does not undo the commit: the client reads it again and gets the error.
        let outcome = is_wanted.then(|| history::outcome(tx.db, instance).ok().flatten()).flatten();
        Self { answer, outcome }
    }

    /// The answer of a call that committed no turn.
    pub(crate) fn without_turn(answer: T) -> Self {
        Self { answer, outcome: None }
    }

    /// Resolves the watches of the instance after the commit. A watch that was registered after the read gets no outcome.
    pub(crate) fn resolve(&self, watches: &Watches, instance: &str, plan: &CommitPlan) {
        match &self.outcome {
            Some(outcome) => watches.ended_with(instance, outcome),
            None => watches.committed(instance, plan.ends_instance()),
        }
    }
}

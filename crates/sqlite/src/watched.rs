//! Watches of clients on instances: a commit that ends an instance gives its outcome to the clients that watch it.

use crate::activity::{CompleteAllWithTurn, CompleteWithTurn};
use crate::commit::CommitTurn;
use crate::transaction::Transaction;
use crate::{history, leased};
use outlast_provider::{Completion, FusedCompletion, InstanceOutcome};
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
    fn resolve(&self, watches: &Watches, instance: &str, plan: &CommitPlan) {
        match &self.outcome {
            Some(outcome) => watches.ended_with(instance, outcome),
            None => watches.committed(instance, plan.ends_instance()),
        }
    }
}

/// Resolves the watches of an instance after the commit of its turn.
pub(crate) fn after_turn(turn: &CommitTurn, committed: &Committed<Option<u64>>) {
    if turn.watches.is_watched()
        && let Some(instance) = leased::instance_of(&turn.token)
    {
        committed.resolve(&turn.watches, instance, &turn.plan);
    }
}

/// Resolves the watches of an instance after the outcome of its activity, if the run-ahead turn was committed too.
pub(crate) fn after_completion(call: &CompleteWithTurn, committed: &Committed<Completion>) {
    if let Completion::WithTurn { .. } = committed.answer {
        committed.resolve(&call.watches, &call.completion.instance_id, &call.plan);
    }
}

/// Resolves the watches of an instance after the outcomes of its activities, if they were committed.
pub(crate) fn after_fused_outcomes(call: &CompleteAllWithTurn, committed: &Committed<FusedCompletion>) {
    if let FusedCompletion::WithTurn { .. } = committed.answer {
        committed.resolve(&call.watches, &call.instance, &call.plan);
    }
}

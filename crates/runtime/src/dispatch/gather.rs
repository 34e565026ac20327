//! Fused outcomes: the outcomes of all activities that an instance waits for, committed with the turn that they lead to.
//!
//! If an execution is warm, waits for several activities and for no child, and this runtime has leased all of them, then their
//! outcomes gather for at most [`LONGEST_WAIT`]. The last of them runs the next turn and commits all outcomes with the turn in one step
//! ([`Provider::complete_all_with_turn`](outlast_provider::Provider::complete_all_with_turn)). In every other case an outcome is
//! committed alone, as if it had not gathered.

mod group;

use self::group::Joined;
pub(crate) use self::group::{Gathering, Member};
use super::backoff::pause_report;
use super::lease::Lease;
use super::run_ahead;
use crate::core::Core;
use outlast_model::WorkItem;
use outlast_provider::{FusedCompletion, LeasedOutcome};
use std::sync::Arc;
use std::time::Duration;

/// The longest wait of an outcome for the outcomes of the other activities. The outcome is not stored meanwhile.
const LONGEST_WAIT: Duration = Duration::from_millis(2);

/// The most outcomes of one commit.
pub(super) const MOST_OUTCOMES: usize = 32;

/// The most bytes of an outcome that gathers.
pub(super) const MOST_BYTES: usize = 32 * 1024;

/// An outcome that is ready to be committed.
pub(super) struct Ready<'a> {
    pub(super) lease: &'a Lease,
    pub(super) instance: &'a Arc<str>,
    pub(super) completion: &'a WorkItem,
    /// The store's time.
    pub(super) now_ms: u64,
    pub(super) worker: usize,
}

/// Commits an outcome together with the outcomes of the other activities that its instance waits for, if all of them return soon.
/// Returns `false` if the caller has to commit the outcome alone.
pub(super) async fn commit(core: &Core, member: Member, ready: Ready<'_>) -> bool {
    if core.run_ahead_backoff.is_in_backoff(ready.instance)
        || core.warm.wait_for_commit(ready.instance).await.is_none()
    {
        return false;
    }
    let Some(open) = core.warm.open_activities(ready.instance, member.execution_id(), MOST_OUTCOMES) else {
        return false;
    };
    let (gathering, name) = (Arc::clone(member.gathering()), open.orchestration.as_str());
    if !open.ids.contains(&member.id()) || !gathering.may_try(name) {
        return false;
    }
    if !gathering.has_all(&member, &open.ids) {
        // The commit that scheduled the activities may have leased them to several slots, of which some have not run since.
        tokio::task::yield_now().await;
    }
    let outcome =
        LeasedOutcome { lock_token: ready.lease.token().to_string(), completion: ready.completion.clone() };
    match gathering.join(&member, outcome, &open.ids) {
        Joined::Alone => false,
        Joined::Last(outcomes, others) => {
            let accepted = commit_all(core, ready, outcomes).await;
            gathering.tried(name, accepted);
            // If the store refused, each sender is dropped, and its outcome is committed alone.
            for other in others.into_iter().filter(|_| accepted) {
                // The receiver is gone if its task was aborted.
                let _ = other.send(());
            }
            accepted
        }
        Joined::Waits(mut answered) => match tokio::time::timeout(LONGEST_WAIT, &mut answered).await {
            Ok(answer) => answer.is_ok(),
            Err(_) if gathering.leave(&member) => {
                gathering.tried(name, false);
                false
            }
            // The last outcome has come, and the commit of all outcomes is in progress.
            Err(_) => answered.await.is_ok(),
        },
    }
}

/// Runs the turn that all outcomes lead to, and commits the turn with the outcomes. Returns whether the store accepted the commit.
async fn commit_all(core: &Core, ready: Ready<'_>, outcomes: Vec<LeasedOutcome>) -> bool {
    let completions: Vec<WorkItem> = outcomes.iter().map(|outcome| outcome.completion.clone()).collect();
    let Ready { lease, instance, now_ms, worker, .. } = ready;
    let Some(ahead) = run_ahead::run(core, lease, instance, completions, now_ms, worker).await else {
        return false;
    };
    let mut failures = 0;
    loop {
        match core.store.complete_all_with_turn(outcomes.clone(), ahead.turn()).await {
            Ok(FusedCompletion::WithTurn { at_ms }) => {
                ahead.on_committed(at_ms);
                return true;
            }
            Ok(FusedCompletion::Unchanged) => {
                ahead.on_rejected();
                return false;
            }
            Err(error) if error.is_retryable() && !lease.lost().is_cancelled() => {
                failures += 1;
                pause_report(core, lease, failures).await;
            }
            // Each outcome is committed alone, and its own error decides.
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests;

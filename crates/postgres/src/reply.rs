//! Replies to the callers of requests.

use crate::batch::{Batch, instance_of};
use crate::db::{cell, text_option, unsigned};
use crate::request::{Commit, Committed};
use crate::resend::{reply_if_already_stored, reply_refused};
use crate::row::Row;
use crate::shared::Shared;
use crate::transaction::Done;
use crate::{PostgresError, functions, outcomes};
use outlast_provider::{ClassifiedError, InstanceOutcome, StartOutcome};
use outlast_provider_kit::{CommitPlan, invalid_token};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// Sends the result of a request to its caller.
pub(crate) struct Reply<T> {
    /// The operation that errors name.
    pub(crate) operation: &'static str,
    pub(crate) sender: oneshot::Sender<Result<T, ClassifiedError>>,
    /// The room that the request occupies until it is answered.
    pub(crate) room: Option<OwnedSemaphorePermit>,
}

/// The result that the caller of a request waits for.
pub(crate) struct Awaited<T> {
    operation: &'static str,
    receiver: oneshot::Receiver<Result<T, ClassifiedError>>,
}

impl<T> Awaited<T> {
    /// Waits for the result. If the reply was dropped without one, the error has the operation.
    pub(crate) async fn receive(self) -> Result<Result<T, ClassifiedError>, &'static str> {
        self.receiver.await.map_err(|_| self.operation)
    }
}

impl<T> Reply<T> {
    /// The reply to a caller, and the result that the caller waits for.
    pub(crate) fn channel(operation: &'static str) -> (Self, Awaited<T>) {
        let (sender, receiver) = oneshot::channel();
        (Self::new(operation, sender), Awaited { operation, receiver })
    }

    pub(crate) fn new(operation: &'static str, sender: oneshot::Sender<Result<T, ClassifiedError>>) -> Self {
        Self { operation, sender, room: None }
    }

    /// Sends the result. If the caller is gone, the result is dropped.
    pub(crate) fn send(self, result: Result<T, &PostgresError>) {
        let _ = self.sender.send(result.map_err(|error| error.classified(self.operation)));
    }

    pub(crate) fn refuse(self, message: String) {
        self.send(Err(&PostgresError::Refused(message)));
    }
}

/// The facts about an answered batch that the scheduler needs.
pub(crate) struct Replied {
    /// Whether messages wait for an instance whose turn was committed.
    pub(crate) has_more_messages: bool,
    /// The time until a message or activity that was stored with a delay becomes visible.
    pub(crate) visible_in_ms: Option<u64>,
}

/// Sends each caller of a batch the result of its request.
pub(crate) fn reply_to_callers(shared: &Arc<Shared>, batch: Batch, done: &Done) -> Replied {
    let unexpected = PostgresError::Damaged { details: "unexpected batch member in reply".to_string() };
    let mut visible_in_ms = batch.visible_in_ms(answered_at(done).unwrap_or(0));
    if answered_at(done).is_none() {
        // Without the time of the store, only the relative delays of abandoned leases are known.
        visible_in_ms = visible_in_ms.filter(|_| !batch.abandons.is_empty());
    }
    let answers = by_member(&done.commits, batch.commits.len(), functions::commit::MEMBER, |row| {
        let answer = cell::<i32>(row, functions::commit::ANSWER).ok()?;
        Some((answer, unsigned(row, functions::commit::AT).ok()?, custom_status(row)))
    });
    // If the outcomes cannot be read, the watchers of these instances read them again.
    let outcomes = outcomes::read(&done.outcomes).unwrap_or_default();
    for (commit, answer) in batch.commits.into_iter().zip(answers) {
        match answer {
            Some((functions::COMMIT_DONE, at_ms, custom_status)) => {
                resolve_watches(shared, &commit, custom_status, &outcomes);
                let is_turn = commit.plan.is_some();
                commit.reply.send(Ok(match is_turn {
                    true => Committed::WithTurn { at_ms },
                    false => Committed::Queued,
                }));
            }
            Some((functions::COMMIT_QUEUED, ..)) => commit.reply.send(Ok(Committed::Queued)),
            // An earlier attempt may have been stored.
            Some((functions::COMMIT_REFUSED, ..)) if commit.attempts.in_doubt.is_some() => {
                reply_if_already_stored(shared, commit)
            }
            Some((functions::COMMIT_REFUSED, ..)) => reply_refused(commit),
            Some(_) | None => commit.reply.send(Err(&unexpected)),
        }
    }
    let stored =
        by_member(&done.messages, batch.messages.len(), functions::enqueue_messages::MEMBER, |row| {
            Some(cell::<Option<i64>>(row, functions::enqueue_messages::VISIBLE_AT).ok()?.is_some())
        });
    for (message, is_stored) in batch.messages.into_iter().zip(stored) {
        message.reply.send(is_stored.ok_or(&unexpected));
    }
    for activity in batch.activities {
        activity.reply.send(Ok(()));
    }
    let outcomes = by_member(&done.starts, batch.starts.len(), functions::start::MEMBER, |row| {
        let is_taken = cell::<bool>(row, functions::start::IS_TAKEN).ok()?;
        let status = text_option(row, functions::start::STATUS).ok()?;
        Some(if is_taken { StartOutcome::AlreadyExists { status } } else { StartOutcome::Started })
    });
    for (start, outcome) in batch.starts.into_iter().zip(outcomes) {
        start.reply.send(outcome.ok_or(&unexpected));
    }
    let renewed = by_member(&done.renewals, batch.renewals.len(), functions::MEMBER, |_| Some(()));
    for (renew, is_renewed) in batch.renewals.into_iter().zip(renewed) {
        match is_renewed {
            Some(()) => renew.reply.send(Ok(())),
            None => {
                let token = renew.lease.text();
                renew.reply.refuse(invalid_token(&token));
            }
        }
    }
    let freed = by_member(&done.abandons, batch.abandons.len(), functions::MEMBER, |_| Some(()));
    for (abandon, is_freed) in batch.abandons.into_iter().zip(freed) {
        // After an earlier attempt in doubt, the caller no longer holds the lease, whether the first or the second attempt ended it.
        match is_freed.is_some() || abandon.attempts.in_doubt.is_some() {
            true => abandon.reply.send(Ok(())),
            false => {
                let token = abandon.lease.text();
                abandon.reply.refuse(invalid_token(&token));
            }
        }
    }
    for (read, rows) in batch.reads.into_iter().zip(&done.texts) {
        let texts: Result<HashMap<i64, String>, PostgresError> =
            rows.iter().map(|row| Ok((cell(row, "id")?, cell(row, "work_item")?))).collect();
        match texts {
            Ok(texts) => read.reply.send(Ok(texts)),
            Err(error) => read.reply.send(Err(&error)),
        }
    }
    let has_more = |row| cell::<bool>(row, functions::commit::HAS_MORE_MESSAGES).unwrap_or(true);
    Replied { has_more_messages: done.commits.iter().any(has_more), visible_in_ms }
}

/// The answer for each of `members`, from rows that name their member, counted from 1.
fn by_member<T>(
    rows: &[Row],
    members: usize,
    member_column: usize,
    read: impl Fn(&Row) -> Option<T>,
) -> Vec<Option<T>> {
    let mut answers: Vec<Option<T>> = (0..members).map(|_| None).collect();
    for row in rows {
        let member = cell::<i32>(row, member_column).ok();
        let place = member.and_then(|member| usize::try_from(member - 1).ok());
        if let Some(answer) = place.and_then(|place| answers.get_mut(place))
            && let Some(read) = read(row)
        {
            *answer = Some(read);
        }
    }
    answers
}

/// A custom status and its version.
type CustomStatus = (Option<String>, u64);

/// The custom status of an instance whose turn ended it, from the answer of a lone commit.
fn custom_status(row: &Row) -> Option<CustomStatus> {
    use functions::commit::{CUSTOM_STATUS, CUSTOM_STATUS_VERSION};
    let version = cell::<Option<i64>>(row, CUSTOM_STATUS_VERSION).ok()??;
    Some((text_option(row, CUSTOM_STATUS).ok()?, u64::try_from(version).ok()?))
}

/// Resolves the watches of a committed turn.
fn resolve_watches(
    shared: &Shared,
    commit: &Commit,
    custom_status: Option<CustomStatus>,
    outcomes: &HashMap<String, InstanceOutcome>,
) {
    let Some(plan) = commit.plan.as_ref().filter(|_| shared.watches.is_watched()) else { return };
    let (instance, ended) = (instance_of(commit), CommitPlan::ends_instance(plan));
    let of_plan = || Some(outcomes::of_plan(plan, custom_status?));
    match outcomes.get(instance).cloned().or_else(of_plan).filter(|_| ended) {
        Some(outcome) => shared.watches.ended_with(instance, &outcome),
        None => shared.watches.committed(instance, ended),
    }
}

/// The time of the store in the answers of a transaction.
fn answered_at(done: &Done) -> Option<u64> {
    let times = |rows: &[Row], column: usize| -> Option<u64> {
        rows.iter().filter_map(|row| unsigned(row, column).ok()).max()
    };
    times(&done.commits, functions::commit::AT)
        .max(times(&done.messages, functions::enqueue_messages::AT))
        .max(times(&done.starts, functions::start::AT))
}

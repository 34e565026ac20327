//! What became of requests, told to those who made them.

use crate::PostgresError;
use crate::batch::{Batch, instance_of};
use crate::db::{cell, text_option, unsigned};
use crate::history;
use crate::resend::recognise;
use crate::shared::Shared;
use crate::transact::Done;
use outlast_provider::{Completion, StartOutcome};
use outlast_provider_kit::{CommitPlan, invalid_token};
use std::sync::Arc;
use tokio_postgres::Row;

/// Tells the callers what became of their requests.
/// Says whether messages wait for an instance of it.
pub(crate) fn reply_to_callers(shared: &Arc<Shared>, batch: Batch, done: &Done) -> bool {
    let damaged = PostgresError::Damaged {
        details: "a function of the store answered for others than asked".to_string(),
    };
    let mut later = batch.later_ms(answered_at(done).unwrap_or(0));
    if answered_at(done).is_none() {
        // Nothing in it has an absolute time.
        later = later.filter(|_| !batch.abandons.is_empty());
    }
    let mut answers = vec![None; batch.commits.len()];
    for row in &done.commits {
        if let (Ok(member), Ok(answer), Ok(at)) = (cell::<i32>(row, 0), cell::<i32>(row, 1), unsigned(row, 2))
            && let Some(place) = usize::try_from(member - 1).ok().and_then(|place| answers.get_mut(place))
        {
            *place = Some((answer, at));
        }
    }
    // If they cannot be read, whoever waits for them is told when it looks.
    let outcomes = history::outcomes_of(&done.outcomes).unwrap_or_default();
    for (commit, answered) in batch.commits.into_iter().zip(answers) {
        let ended = commit.plan.as_ref().is_some_and(CommitPlan::ends_instance);
        match answered {
            Some((1, at_ms)) => {
                if commit.plan.is_some() && shared.watches.is_watched() {
                    let instance = instance_of(&commit);
                    match outcomes.get(instance).filter(|_| ended) {
                        Some(outcome) => shared.watches.ended_with(instance, outcome),
                        None => shared.watches.committed(instance, ended),
                    }
                }
                let is_turn = commit.plan.is_some();
                commit.reply.send(Ok(if is_turn {
                    Completion::WithTurn { at_ms }
                } else {
                    Completion::Queued
                }));
            }
            Some((2, _)) => commit.reply.send(Ok(Completion::Queued)),
            // An earlier attempt may have been stored.
            Some(_) if commit.attempts.in_doubt.is_some() => recognise(shared, commit),
            Some(_) => {
                let token = commit.lease.text();
                commit.reply.refuse(invalid_token(&token));
            }
            None => commit.reply.send(Err(&damaged)),
        }
    }
    let mut taken = vec![None; batch.messages.len()];
    for row in &done.messages {
        if let (Ok(member), Ok(visible_at)) = (cell::<i32>(row, 0), cell::<Option<i64>>(row, 1))
            && let Some(place) = usize::try_from(member - 1).ok().and_then(|place| taken.get_mut(place))
        {
            *place = Some(visible_at.is_some());
        }
    }
    for (message, taken) in batch.messages.into_iter().zip(taken) {
        message.reply.send(taken.ok_or(&damaged));
    }
    for activity in batch.activities {
        activity.reply.send(Ok(()));
    }
    let mut outcomes = vec![None; batch.starts.len()];
    for row in &done.starts {
        if let (Ok(member), Ok(is_taken), Ok(status)) =
            (cell::<i32>(row, 0), cell::<bool>(row, 1), text_option(row, 2))
            && let Some(place) = usize::try_from(member - 1).ok().and_then(|place| outcomes.get_mut(place))
        {
            *place =
                Some(if is_taken { StartOutcome::AlreadyExists { status } } else { StartOutcome::Started });
        }
    }
    for (start, outcome) in batch.starts.into_iter().zip(outcomes) {
        start.reply.send(outcome.ok_or(&damaged));
    }
    let members =
        |rows: &[Row]| -> Vec<i32> { rows.iter().filter_map(|row| cell::<i32>(row, 0).ok()).collect() };
    let renewed = members(&done.renewals);
    for (member, renew) in (1..).zip(batch.renewals) {
        match renewed.contains(&member) {
            true => renew.reply.send(Ok(())),
            false => {
                let token = renew.lease.text();
                renew.reply.refuse(invalid_token(&token));
            }
        }
    }
    let freed = members(&done.abandons);
    for (member, abandon) in (1..).zip(batch.abandons) {
        // Whether an earlier attempt has given the lease back or it is over: it is not the caller's any more.
        match freed.contains(&member) || abandon.attempts.in_doubt.is_some() {
            true => abandon.reply.send(Ok(())),
            false => {
                let token = abandon.lease.text();
                abandon.reply.refuse(invalid_token(&token));
            }
        }
    }
    if let Some(ms) = later {
        shared.look_within(ms);
    }
    done.commits.iter().any(|row| cell::<bool>(row, 3).unwrap_or(true))
}

/// The time of the store at which a transaction did something that it says the time of.
fn answered_at(done: &Done) -> Option<u64> {
    let commits = done.commits.iter().filter_map(|row| unsigned(row, 2).ok());
    let messages = done.messages.iter().filter_map(|row| unsigned(row, 2).ok());
    let starts = done.starts.iter().filter_map(|row| unsigned(row, 3).ok());
    commits.chain(messages).chain(starts).max()
}

//! What was leased, given to the fetches that it was leased for.

use crate::PostgresError;
use crate::db::{Result, cell, text, text_option, unsigned};
use crate::shared::{Shared, State};
use crate::transact::slots;
use crate::waiting::{ActivityAsk, Ask, Guarded, Parked, RawActivity, RawMessage, RawTurn, TurnAsk, Waiter};
use std::sync::Arc;
use tokio::time::Instant;
use tokio_postgres::Row;

/// Gives fetches the turns that were leased for them, in their order of arrival.
pub(crate) fn serve_turns(
    shared: &Arc<Shared>,
    groups: Vec<Vec<Waiter<TurnAsk>>>,
    news: u64,
    asked: bool,
    answers: Vec<Vec<Row>>,
) {
    for (group, rows) in groups.into_iter().zip(answers) {
        shared.db.counters.looks.add(1);
        let lock_ms = group[0].ask.lock_ms;
        let mut due_ms = None;
        let mut leased = Vec::new();
        for row in &rows {
            match raw_turn(row) {
                Ok(Some(turn)) => leased.push(turn),
                Ok(None) => due_ms = due_in(row, 10, 15),
                Err(error) => {
                    tracing::error!(target: "duroxide::providers::postgres", %error, "a turn cannot be read")
                }
            }
        }
        shared.db.counters.fetched.add(leased.len());
        let is_served = !leased.is_empty();
        if is_served {
            shared.state().turns.served_at = Some(Instant::now());
        }
        let mut leased = leased.into_iter();
        let mut unserved = Vec::new();
        for waiter in group {
            match leased.next() {
                Some(turn) => drop(waiter.reply.send(Ok(Some(Guarded::new(turn, Arc::clone(shared)))))),
                None => unserved.push(waiter),
            }
        }
        let hops = shared.state().turns.passes_on(is_served, !unserved.is_empty(), news);
        shared.pass_on(hops, None);
        if is_served {
            // Its lease may end.
            shared.look_within(lock_ms);
        }
        park(shared, unserved, Next { due_ms, asked }, |state| &mut state.turns, news, true);
    }
}

/// Gives fetches the activities that were leased for them.
pub(crate) fn serve_activities(
    shared: &Arc<Shared>,
    groups: Vec<Vec<Waiter<ActivityAsk>>>,
    news: u64,
    asked: bool,
    answers: Vec<Vec<Row>>,
) {
    for (group, rows) in groups.into_iter().zip(answers) {
        shared.db.counters.looks.add(1);
        let lock_ms = group[0].ask.lock_ms;
        let owners: Vec<usize> = slots(&group).collect();
        let (mut due_ms, mut sessionless) = (None, false);
        let mut leased: Vec<Vec<RawActivity>> = group.iter().map(|_| Vec::new()).collect();
        for row in &rows {
            match raw_activity(row) {
                Ok(Some((slot, activities))) => {
                    shared.db.counters.fetched.add(1);
                    let owner = owners.get(slot).and_then(|owner| leased.get_mut(*owner));
                    if let Some(owner) = owner {
                        owner.push(activities);
                    }
                }
                Ok(None) => {
                    due_ms = due_in(row, 8, 9);
                    sessionless = !cell::<Option<bool>>(row, 11).ok().flatten().unwrap_or(true);
                }
                Err(error) => {
                    tracing::error!(target: "duroxide::providers::postgres", %error, "an activity cannot be read")
                }
            }
        }
        let is_served = leased.iter().any(|activities| !activities.is_empty());
        {
            let mut state = shared.state();
            state.activities.sessionless = sessionless;
            if is_served {
                state.activities.served_at = Some(Instant::now());
            }
        }
        let mut unserved = Vec::new();
        for (waiter, activities) in group.into_iter().zip(leased) {
            match activities.is_empty() {
                false => drop(waiter.reply.send(Ok(Some(Guarded::new(activities, Arc::clone(shared)))))),
                true => unserved.push(waiter),
            }
        }
        let hops = shared.state().activities.passes_on(is_served, !unserved.is_empty(), news);
        shared.pass_on(None, hops);
        if is_served {
            shared.look_within(lock_ms);
        }
        park(shared, unserved, Next { due_ms, asked }, |state| &mut state.activities, news, false);
    }
}

/// In how many milliseconds something becomes available, from the row that says so.
fn due_in(row: &Row, now: usize, next: usize) -> Option<u64> {
    let next = cell::<Option<i64>>(row, next).ok().flatten()?;
    Some(u64::try_from(next).unwrap_or(0).saturating_sub(unsigned(row, now).unwrap_or(0)))
}

/// When to look again: in how long something is due, if that was asked for and anything is.
struct Next {
    due_ms: Option<u64>,
    asked: bool,
}

/// Fetches that found nothing stay, or are told so.
fn park<A: Ask>(
    shared: &Shared,
    unserved: Vec<Waiter<A>>,
    next: Next,
    queue: fn(&mut State) -> &mut Parked<A>,
    news: u64,
    turns: bool,
) {
    {
        let mut state = shared.state();
        let queue = queue(&mut state);
        if unserved.is_empty() {
            return queue.all_served();
        }
        if let Some(waiter) = unserved.first() {
            queue.learn(&waiter.ask);
        }
        for waiter in unserved.into_iter().rev() {
            queue.return_empty(waiter, news);
        }
    }
    match turns {
        true => shared.look_again(Some(next.due_ms), None, next.asked),
        false => shared.look_again(None, Some(next.due_ms), next.asked),
    }
    shared.changed.notify_one();
}

/// A leased turn; `None` for the row that says when to look again.
fn raw_turn(row: &Row) -> Result<Option<RawTurn>> {
    let Some(instance) = text_option(row, 1)? else { return Ok(None) };
    let secret: &[u8] = cell(row, 0)?;
    let name = text_option(row, 2)?;
    let known = match name {
        Some(name) => {
            let version = text_option(row, 3)?.unwrap_or_else(|| "unknown".to_string());
            let last_event = cell::<Option<i64>>(row, 5)?.and_then(|id| u64::try_from(id).ok()).unwrap_or(0);
            Some((name, version, unsigned(row, 4)?, last_event))
        }
        None => None,
    };
    let time = |index| {
        Ok::<_, PostgresError>(cell::<Option<i64>>(row, index)?.and_then(|at| u64::try_from(at).ok()))
    };
    let ids: Vec<i64> = cell(row, 11)?;
    let texts: Vec<String> = cell(row, 12)?;
    let available: Vec<i64> = cell(row, 13)?;
    let attempts: Vec<i32> = cell(row, 14)?;
    let messages = ids.into_iter().zip(texts).zip(available.into_iter().zip(attempts));
    Ok(Some(RawTurn {
        secret: secret.try_into().unwrap_or_default(),
        instance,
        row: known,
        created_at: time(6)?,
        has_ended: cell::<Option<bool>>(row, 7)?.unwrap_or(false),
        has_history: cell(row, 8)?,
        start_due: time(9)?,
        now: unsigned(row, 10)?,
        is_partial: cell::<Option<bool>>(row, 16)?.unwrap_or(false),
        messages: messages
            .map(|((id, text), (available_at, attempts))| RawMessage {
                id,
                text,
                available_at: u64::try_from(available_at).unwrap_or(0),
                attempts: u32::try_from(attempts).unwrap_or(0),
            })
            .collect(),
    }))
}

/// A leased activity and the slot that it is for; `None` for the row that says when to look again.
fn raw_activity(row: &Row) -> Result<Option<(usize, RawActivity)>> {
    let Some(slot) = cell::<Option<i32>>(row, 0)? else { return Ok(None) };
    let name = text_option(row, 6)?;
    let secret: &[u8] = cell(row, 10)?;
    let activities = RawActivity {
        secret: secret.try_into().unwrap_or_default(),
        id: cell(row, 1)?,
        text: cell(row, 2)?,
        instance: text(row, 3)?,
        attempts: u32::try_from(cell::<i32>(row, 5)?).unwrap_or(0),
        orchestration: match name {
            Some(name) => Some((name, text(row, 7)?)),
            None => None,
        },
        now: unsigned(row, 8)?,
    };
    Ok(Some((usize::try_from(slot - 1).unwrap_or(0), activities)))
}

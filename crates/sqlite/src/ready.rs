//! The ready messages, by which fetches find instances.
//!
//! | event | ready afterwards |
//! |---|---|
//! | a message is stored | the message, unless its instance has a live lease or a ready message that is visible as early |
//! | a lease covers messages | none of the covered messages |
//! | a lease is released, turned into a delay, or found expired | the first message of the instance |

use crate::db::{Result, column, stored_time};
use crate::park::FetchState;
use crate::sql;
use crate::transaction::Transaction;
use rusqlite::types::ValueRef;

/// A message that may be the first of its instance.
struct First {
    /// The time at which the message becomes visible, and its id.
    order: (i64, i64),
    is_ready: bool,
}

/// Makes the first message of an instance ready: the one that is visible first, and among equals the one that was stored first. The
/// parked fetches are polled when it is visible.
pub(crate) fn make_first_ready(tx: &mut Transaction<'_>, instance: &str) -> Result<()> {
    let mut first: Option<First> = None;
    tx.db.find(sql::MESSAGES_IN_ORDER, [instance], |row| {
        let id = row.get(0)?;
        let [visible_at, available_at] =
            [stored_time(row, 1)?, stored_time(row, 2)?].map(|at| at.unwrap_or(i64::MAX));
        // No message is visible before it is available, so no message from here on is visible earlier.
        if first.as_ref().is_some_and(|first| first.order < (available_at, id)) {
            return Ok(Some(()));
        }
        if first.as_ref().is_none_or(|first| (visible_at, id) < first.order) {
            let is_ready = matches!(row.get_ref(3)?, ValueRef::Integer(1));
            first = Some(First { order: (visible_at, id), is_ready });
        }
        Ok(None)
    })?;
    let Some(First { order: (visible_at, id), is_ready }) = first else { return Ok(()) };
    if !is_ready {
        tx.db.run_exactly(1, "making a message ready", sql::MAKE_READY, [id])?;
    }
    tx.wakeups.on_message(u64::try_from(visible_at).unwrap_or(0), tx.now);
    Ok(())
}

/// Makes the first messages of instances ready whose lease has expired. Without expired leases no table is read.
pub(crate) fn find_expired_leases(tx: &mut Transaction<'_>, state: &mut FetchState) -> Result<()> {
    if tx.now < state.next_lease_end.turns {
        return Ok(());
    }
    let now = column(tx.now);
    let instances = tx.db.all(sql::EXPIRED_LEASES, [now], |row| {
        Ok(row.get_ref(0)?.as_str().map(str::to_string).unwrap_or_default())
    })?;
    for instance in instances {
        make_first_ready(tx, &instance)?;
    }
    let next_end = tx.db.one(sql::NEXT_LEASE_END, [now], |row| stored_time(row, 0))?.flatten();
    state.next_lease_end.turns = next_end.map_or(u64::MAX, |at| u64::try_from(at).unwrap_or(0));
    Ok(())
}

#[cfg(test)]
mod tests;

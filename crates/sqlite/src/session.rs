//! Sessions: activities that run on one worker.

use crate::db::{Result, column};
use crate::sql;
use crate::transaction::Transaction;
use outlast_provider::{SessionFetchConfig, saturating_ms};
use outlast_provider_kit::token::Owner;
use std::time::Duration;

/// Leases a session to the caller of a fetch; false if another owner holds the session.
pub(crate) fn claim(tx: &mut Transaction<'_>, session_id: &str, caller: &SessionFetchConfig) -> Result<bool> {
    let locked_until = tx.now.saturating_add(saturating_ms(caller.lock_timeout));
    // When the lease ends, other owners can fetch the activities of the session.
    tx.wakeups.schedule_poll(locked_until);
    let owner = tx.owner.map(Owner::bytes);
    let claimed = (session_id, &caller.owner_id, column(locked_until), column(tx.now), owner);
    Ok(tx.db.run(sql::CLAIM_SESSION, claimed)? == 1)
}

/// Records that an activity of the session was completed or renewed, whichever owner holds the session.
pub(crate) fn stamp(tx: &Transaction<'_>, session_id: Option<&str>) -> Result<()> {
    if let Some(session_id) = session_id {
        tx.db.run(sql::STAMP_SESSION, (session_id, column(tx.now)))?;
    }
    Ok(())
}

/// The sessions of these owners, to extend.
pub(crate) struct RenewSessions {
    pub(crate) owners: Vec<String>,
    pub(crate) extend_for: Duration,
    /// Sessions without activities for this long are not extended.
    pub(crate) idle_timeout: Duration,
}

/// Extends the sessions that were active within the idle timeout; returns their number.
pub(crate) fn renew(tx: &mut Transaction<'_>, renewed: &RenewSessions) -> Result<usize> {
    let &RenewSessions { ref owners, extend_for, idle_timeout } = renewed;
    let until = column(tx.now.saturating_add(saturating_ms(extend_for)));
    // A window that begins before the epoch covers every time.
    let active_since = tx.now.checked_sub(saturating_ms(idle_timeout)).map_or(-1, column);
    let mut renewed = 0;
    // A process that continues with the sessions of an earlier one, under the same name, owns them from now on.
    let own = tx.owner.map(Owner::bytes);
    for owner in owners {
        renewed += tx.db.run(sql::RENEW_SESSIONS, (owner, until, column(tx.now), active_since, own))?;
    }
    Ok(renewed)
}

/// Deletes sessions with an expired lease and without activities; returns their number.
pub(crate) fn cleanup(tx: &mut Transaction<'_>, (): &()) -> Result<usize> {
    tx.db.run(sql::CLEANUP_SESSIONS, [column(tx.now)])
}

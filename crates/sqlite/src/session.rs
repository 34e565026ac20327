//! Sessions: work that stays with one owner.

use crate::command::Cx;
use crate::db::{Result, column};
use crate::sql;
use outlast_provider::{SessionFetchConfig, saturating_ms};
use std::time::Duration;

/// The caller takes work of a session; false if another owner holds it.
pub(crate) fn claim(cx: &mut Cx<'_>, session_id: &str, caller: &SessionFetchConfig) -> Result<bool> {
    let locked_until = cx.now.saturating_add(saturating_ms(caller.lock_timeout));
    // When it ends, others can take what is left of it.
    cx.news.available_at(locked_until);
    let claimed = (session_id, &caller.owner_id, column(locked_until), column(cx.now));
    Ok(cx.db.run(sql::CLAIM_SESSION, claimed)? == 1)
}

/// Work of a session was completed or renewed: the session is in use, whoever holds it.
pub(crate) fn stamp(cx: &Cx<'_>, session_id: Option<&str>) -> Result<()> {
    if let Some(session_id) = session_id {
        cx.db.run(sql::STAMP_SESSION, (session_id, column(cx.now)))?;
    }
    Ok(())
}

pub(crate) fn renew(
    cx: &mut Cx<'_>,
    owners: &[String],
    extend_for: Duration,
    idle: Duration,
) -> Result<usize> {
    let until = column(cx.now.saturating_add(saturating_ms(extend_for)));
    // A window that reaches back before the epoch covers everything.
    let active_since = cx.now.checked_sub(saturating_ms(idle)).map_or(-1, column);
    let mut renewed = 0;
    for owner in owners {
        renewed += cx.db.run(sql::RENEW_SESSIONS, (owner, until, column(cx.now), active_since))?;
    }
    Ok(renewed)
}

pub(crate) fn cleanup(cx: &mut Cx<'_>) -> Result<usize> {
    cx.db.run(sql::CLEANUP_SESSIONS, [column(cx.now)])
}

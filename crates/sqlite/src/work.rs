//! Activities: handing out, completing, giving back, keeping.

use crate::command::Cx;
use crate::db::{Result, attempts, column};
use crate::fetch::{Horizons, bury};
use crate::session;
use crate::sql;
use crate::waiting::WorkAsk;
use crate::write::{enqueue_message, refused};
use outlast_model::json;
use outlast_provider::{DeadLetterQueue, FetchedWork, SessionFetchConfig, TagFilter, saturating_ms};
use outlast_provider_kit::token::{key_of, prefix};
use outlast_provider_kit::MessageRow;
use rusqlite::Row;
use std::time::Duration;

/// A row under the new lease.
struct Leased {
    id: i64,
    text: String,
    token: String,
    attempts: u32,
    instance: String,
    session_id: Option<String>,
}

/// Whether two fetches want the same work, so that one finding nothing means that the other would not either.
pub(crate) fn same_demand(a: &WorkAsk, b: &WorkAsk) -> bool {
    let owner = |ask: &WorkAsk| ask.session.as_ref().map(|session| session.owner_id.clone());
    a.tags == b.tags && owner(a) == owner(b)
}

/// Leases the oldest activities that the caller may take; `None` if there are none.
pub(crate) fn fetch(cx: &mut Cx<'_>, ask: &WorkAsk, horizons: &mut Horizons) -> Result<Option<Vec<FetchedWork>>> {
    let mut fetched = Vec::new();
    // Rows that do not decode are set aside, and others looked for in their place.
    while fetched.len() < ask.max_items {
        let leased = lease(cx, ask, horizons, ask.max_items - fetched.len())?;
        if leased.is_empty() {
            break;
        }
        for row in leased {
            fetched.extend(hand_out(cx, ask, row)?);
        }
    }
    if fetched.is_empty() {
        return Ok(None);
    }
    let locked_until = cx.now.saturating_add(ask.lock_ms);
    horizons.work_leases = horizons.work_leases.min(locked_until);
    cx.news.available_at(locked_until);
    Ok(Some(fetched))
}

fn lease(cx: &Cx<'_>, ask: &WorkAsk, horizons: &mut Horizons, limit: usize) -> Result<Vec<Leased>> {
    let locked_until = column(cx.now.saturating_add(ask.lock_ms));
    let owner = ask.session.as_ref().map(|session| session.owner_id.as_str());
    let mut leased = match wanted_tags(&ask.tags) {
        // One tag and no lease that could be over: one statement.
        Some(tags) if tags.len() == 1 && cx.now < horizons.work_leases => {
            let tag = tags.into_iter().next().flatten();
            let demand =
                (prefix(cx.entropy), locked_until, column(cx.now), tag, column(limit as u64), owner);
            cx.db.all(sql::FETCH_WORK, demand, as_leased)?
        }
        tags => {
            let mut leased = Vec::new();
            for id in oldest(cx, ask, tags, horizons, limit, owner)? {
                let claim = (prefix(cx.entropy), locked_until, id);
                leased.extend(cx.db.one(sql::LEASE_WORK, claim, as_leased)?);
            }
            leased
        }
    };
    leased.sort_by_key(|row| row.id);
    Ok(leased)
}

/// The tags to look for, `None` for untagged work; nothing at all for "any tag".
fn wanted_tags(filter: &TagFilter) -> Option<Vec<Option<String>>> {
    match filter {
        TagFilter::DefaultOnly => Some(vec![None]),
        TagFilter::Tags(tags) => Some(tags.iter().cloned().map(Some).collect()),
        TagFilter::DefaultAnd(tags) => Some([None].into_iter().chain(tags.iter().cloned().map(Some)).collect()),
        TagFilter::Any => None,
        TagFilter::None => Some(Vec::new()),
    }
}

/// Ids of the oldest rows among several tags, rows whose lease is over included.
fn oldest(
    cx: &Cx<'_>,
    ask: &WorkAsk,
    tags: Option<Vec<Option<String>>>,
    horizons: &mut Horizons,
    limit: usize,
    owner: Option<&str>,
) -> Result<Vec<i64>> {
    let now = column(cx.now);
    let tags = match tags {
        Some(tags) => tags,
        None => {
            let found = cx.db.all(sql::WAITING_TAGS, [], |row| row.get::<_, String>(0))?;
            [None].into_iter().chain(found.into_iter().map(Some)).collect()
        }
    };
    let mut ids = Vec::new();
    for tag in tags {
        ids.extend(cx.db.all(sql::FREE_WORK, (now, tag, column(limit as u64), owner), |row| row.get::<_, i64>(0))?);
    }
    if cx.now >= horizons.work_leases {
        let expired = cx.db.all(sql::EXPIRED_WORK, (now, owner), |row| {
            let tag: Option<String> = row.get(1)?;
            Ok((row.get::<_, i64>(0)?, ask.tags.matches(tag.as_deref())))
        })?;
        ids.extend(expired.into_iter().filter(|(_, wanted)| *wanted).map(|(id, _)| id));
        let next = cx.db.one(sql::NEXT_WORK_LEASE_END, [i64::MIN], |row| row.get::<_, Option<i64>>(0))?.flatten();
        horizons.work_leases = next.map_or(u64::MAX, |at| u64::try_from(at).unwrap_or(0));
    }
    ids.sort_unstable();
    ids.truncate(limit);
    Ok(ids)
}

fn as_leased(row: &Row<'_>) -> rusqlite::Result<Leased> {
    Ok(Leased {
        id: row.get(0)?,
        text: row.get(1)?,
        token: row.get(2)?,
        attempts: attempts(row, 3)?,
        instance: row.get(4)?,
        session_id: row.get(5)?,
    })
}

/// Decodes a leased row and claims its session; a row that does not decode is set aside.
fn hand_out(cx: &Cx<'_>, ask: &WorkAsk, row: Leased) -> Result<Option<FetchedWork>> {
    let item = match json::decode_work_item(&row.text) {
        Ok(item) => item,
        Err(error) => {
            let attempts = row.attempts.saturating_sub(1);
            bury(cx, DeadLetterQueue::Worker, &row.instance, &row.text, &error.to_string(), attempts)?;
            cx.db.run_exactly(1, "setting an activity aside", sql::DELETE_WORK, [row.id])?;
            return Ok(None);
        }
    };
    if let (Some(session_id), Some(SessionFetchConfig { .. })) = (&row.session_id, &ask.session) {
        session::claim(cx, session_id, ask.session.as_ref())?;
    }
    let orchestration = match ask.with_name {
        true => cx.db.one(sql::INSTANCE_NAME, [&row.instance], |row| Ok((row.get(0)?, row.get(1)?)))?,
        false => None,
    };
    Ok(Some(FetchedWork { item, lock_token: row.token, attempt_count: row.attempts, orchestration }))
}

/// Completes an activity: the fence first, then its completion.
pub(crate) fn ack(cx: &mut Cx<'_>, token: &str, completion: Option<&MessageRow>) -> Result<()> {
    let Some(id) = row_id(token) else { return refused(token) };
    let fence = (id, token, column(cx.now));
    let Some(session_id) = cx.db.one(sql::DELETE_LEASED_WORK, fence, |row| row.get::<_, Option<String>>(0))? else {
        return refused(token);
    };
    if let Some(row) = completion {
        enqueue_message(cx, row, None)?;
    }
    session::stamp(cx, session_id.as_deref())
}

pub(crate) fn renew(cx: &mut Cx<'_>, token: &str, extend_for: Duration) -> Result<()> {
    let Some(id) = row_id(token) else { return refused(token) };
    let until = column(cx.now.saturating_add(saturating_ms(extend_for)));
    let renewed = (id, token, until, column(cx.now));
    let Some(session_id) = cx.db.one(sql::RENEW_WORK, renewed, |row| row.get::<_, Option<String>>(0))? else {
        return refused(token);
    };
    session::stamp(cx, session_id.as_deref())
}

/// Gives an activity back. A token whose lease is over but that nobody replaced is still good for this.
pub(crate) fn abandon(cx: &mut Cx<'_>, token: &str, delay: Option<Duration>, ignore_attempt: bool) -> Result<()> {
    let Some(id) = row_id(token) else { return refused(token) };
    let visible_at = cx.now.saturating_add(delay.map_or(0, saturating_ms));
    let delayed = visible_at > cx.now;
    let given_back = (id, token, column(visible_at), delayed, i64::from(ignore_attempt));
    if cx.db.run(sql::ABANDON_WORK, given_back)? != 1 {
        return refused(token);
    }
    match delayed {
        true => cx.news.available_at(visible_at),
        false => cx.news.work = true,
    }
    Ok(())
}

fn row_id(token: &str) -> Option<i64> {
    key_of(token)?.parse().ok()
}

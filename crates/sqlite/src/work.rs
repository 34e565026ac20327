//! Activities: handing out, completing, giving back, keeping.

use crate::command::Cx;
use crate::db::{Result, attempts, column, moment, readable, stored_text};
use crate::fetch::Horizons;
use crate::message::{bury, misplaced};
use crate::session;
use crate::sql;
use crate::waiting::WorkAsk;
use crate::write::{enqueue_message, refused};
use outlast_model::{WorkItem, json};
use outlast_provider::{DeadLetterQueue, FetchedWork, TagFilter, saturating_ms};
use outlast_provider_kit::token::{self, Secret};
use outlast_provider_kit::{MessageRow, Token};
use rusqlite::Row;
use std::collections::{HashSet, VecDeque};
use std::time::Duration;

/// A row that can be leased.
struct Free {
    id: i64,
    text: String,
    attempts: u32,
    instance: String,
    session_id: Option<String>,
    /// Name and version, for logs and metrics: an activity runs without.
    orchestration: Option<(String, String)>,
    /// Why a cell of it cannot be read.
    damage: Option<String>,
}

/// The activities that fetches with one demand are offered in this transaction, looked up for many fetches at once.
pub(crate) struct Line {
    tags: TagFilter,
    owner: Option<String>,
    waiting: VecDeque<Free>,
    exhausted: bool,
}

impl Line {
    pub(crate) fn new(ask: &WorkAsk) -> Self {
        let owner = ask.session.as_ref().map(|session| session.owner_id.clone());
        Self { tags: ask.tags.clone(), owner, waiting: VecDeque::new(), exhausted: false }
    }

    pub(crate) fn is_for(&self, ask: &WorkAsk) -> bool {
        self.tags == ask.tags && self.owner.as_ref() == ask.session.as_ref().map(|session| &session.owner_id)
    }

    /// The oldest row; looks up at most `wanted` of them at a time.
    fn next(&mut self, cx: &Cx<'_>, horizons: &mut Horizons, wanted: usize) -> Result<Option<Free>> {
        if self.waiting.is_empty() && !self.exhausted {
            self.waiting = self.oldest(cx, horizons, wanted)?.into();
            self.exhausted = self.waiting.len() < wanted;
        }
        Ok(self.waiting.pop_front())
    }

    /// The oldest rows that the demand admits, rows whose lease is over included.
    fn oldest(&self, cx: &Cx<'_>, horizons: &mut Horizons, limit: usize) -> Result<Vec<Free>> {
        let now = column(cx.now);
        let owner = self.owner.as_deref();
        let mut rows = Vec::new();
        let tags = self.wanted_tags(cx)?;
        for tag in tags {
            rows.extend(cx.db.all(sql::FREE_WORK, (now, tag, column(limit as u64), owner), free)?);
        }
        if cx.now >= horizons.work_leases {
            let over = cx.db.all(sql::EXPIRED_WORK, (now, owner), |row| {
                // Nobody asks for a tag that cannot be read.
                let tag: std::result::Result<Option<String>, _> = readable(row.get(7))?;
                Ok((free(row)?, tag.is_ok_and(|tag| self.tags.matches(tag.as_deref()))))
            })?;
            rows.extend(over.into_iter().filter(|(_, wanted)| *wanted).map(|(row, _)| row));
            let next = cx.db.one(sql::NEXT_WORK_LEASE_END, [i64::MIN], |row| moment(row, 0))?.flatten();
            horizons.work_leases = next.map_or(u64::MAX, |at| u64::try_from(at).unwrap_or(0));
        }
        rows.sort_unstable_by_key(|row| row.id);
        rows.truncate(limit);
        Ok(rows)
    }

    /// The tags to look for; `None` stands for untagged work.
    fn wanted_tags(&self, cx: &Cx<'_>) -> Result<Vec<Option<String>>> {
        let named = |tags: &HashSet<String>| tags.iter().cloned().map(Some).collect::<Vec<_>>();
        Ok(match &self.tags {
            TagFilter::DefaultOnly => vec![None],
            TagFilter::Tags(tags) => named(tags),
            TagFilter::DefaultAnd(tags) => [vec![None], named(tags)].concat(),
            TagFilter::Any => {
                let found = cx.db.all(sql::WAITING_TAGS, [], |row| readable(row.get::<_, String>(0)))?;
                [None].into_iter().chain(found.into_iter().flatten().map(Some)).collect()
            }
            TagFilter::None => Vec::new(),
        })
    }
}

fn free(row: &Row<'_>) -> rusqlite::Result<Free> {
    let (session_id, damage) = match readable(row.get::<_, String>(3).and_then(|_| row.get(4)))? {
        Ok(session_id) => (session_id, None),
        Err(reason) => (None, Some(reason)),
    };
    Ok(Free {
        id: row.get(0)?,
        text: stored_text(row, 1)?,
        attempts: attempts(row, 2)?.saturating_add(1),
        instance: stored_text(row, 3)?,
        session_id,
        orchestration: readable(name(row))?.ok().flatten(),
        damage,
    })
}

fn name(row: &Row<'_>) -> rusqlite::Result<Option<(String, String)>> {
    let Some(name) = row.get(5)? else { return Ok(None) };
    Ok(Some((name, row.get::<_, Option<String>>(6)?.unwrap_or_else(|| "unknown".to_string()))))
}

/// Leases the oldest activities that the caller may take; `None` if there are none. `wanted`: how many activities are
/// to be taken from this line.
pub(crate) fn fetch(
    cx: &mut Cx<'_>,
    ask: &WorkAsk,
    line: &mut Line,
    wanted: usize,
    horizons: &mut Horizons,
) -> Result<Option<Vec<FetchedWork>>> {
    let mut fetched = Vec::new();
    while fetched.len() < ask.max_items {
        let Some(row) = line.next(cx, horizons, wanted)? else { break };
        fetched.extend(lease(cx, ask, row)?);
    }
    if fetched.is_empty() {
        return Ok(None);
    }
    let locked_until = cx.now.saturating_add(ask.lock_ms);
    horizons.work_leases = horizons.work_leases.min(locked_until);
    cx.news.available_at(locked_until);
    Ok(Some(fetched))
}

/// Decodes a row, claims its session and leases it. `None` if it does not decode, and is set aside, or if a fetch with
/// another demand was faster.
fn lease(cx: &mut Cx<'_>, ask: &WorkAsk, row: Free) -> Result<Option<FetchedWork>> {
    let item = match activity(&row) {
        Ok(item) => item,
        Err(reason) => {
            let attempts = row.attempts.saturating_sub(1);
            bury(cx, DeadLetterQueue::Worker, &row.instance, &row.text, &reason, attempts)?;
            cx.db.run_exactly(1, "setting an activity aside", sql::DELETE_WORK, [row.id])?;
            return Ok(None);
        }
    };
    // The token says whether there is a session to look after.
    let key = match row.session_id {
        Some(_) => format!("s{}", row.id),
        None => row.id.to_string(),
    };
    let token = Token::mint(cx.entropy, key);
    let locked_until = column(cx.now.saturating_add(ask.lock_ms));
    if let (Some(session_id), Some(caller)) = (&row.session_id, &ask.session)
        && !session::claim(cx, session_id, caller)?
    {
        return Ok(None);
    }
    if cx.db.run(sql::LEASE_WORK, (row.id, token.secret, locked_until, column(cx.now)))? != 1 {
        return Ok(None);
    }
    Ok(Some(FetchedWork {
        item,
        lock_token: token.text,
        attempt_count: row.attempts,
        orchestration: row.orchestration,
        now_ms: Some(cx.now),
    }))
}

/// The activity of a row, or why there is none: it does not decode, or belongs to somebody else.
fn activity(row: &Free) -> std::result::Result<WorkItem, String> {
    if let Some(reason) = &row.damage {
        return Err(reason.clone());
    }
    let item = json::decode_work_item(&row.text).map_err(|error| error.to_string())?;
    match item {
        WorkItem::ActivityExecute { .. } if item.target_instance() == row.instance => Ok(item),
        other => Err(misplaced(&other, &row.instance)),
    }
}

/// Completes an activity: the fence first, then its completion.
pub(crate) fn ack(cx: &mut Cx<'_>, token: &str, completion: Option<&MessageRow>) -> Result<()> {
    let Some((id, has_session, secret)) = row_of(token) else { return refused(token) };
    let session_id = if has_session { session_of(cx, id)? } else { None };
    if cx.db.run(sql::DELETE_LEASED_WORK, (id, secret, column(cx.now)))? != 1 {
        return refused(token);
    }
    if let Some(row) = completion {
        enqueue_message(cx, row, None)?;
    }
    session::stamp(cx, session_id.as_deref())
}

pub(crate) fn renew(cx: &mut Cx<'_>, token: &str, extend_for: Duration) -> Result<()> {
    let Some((id, has_session, secret)) = row_of(token) else { return refused(token) };
    let until = column(cx.now.saturating_add(saturating_ms(extend_for)));
    if cx.db.run(sql::RENEW_WORK, (id, secret, until, column(cx.now)))? != 1 {
        return refused(token);
    }
    let session_id = if has_session { session_of(cx, id)? } else { None };
    session::stamp(cx, session_id.as_deref())
}

fn session_of(cx: &Cx<'_>, id: i64) -> Result<Option<String>> {
    Ok(cx.db.one(sql::SESSION_OF_WORK, [id], |row| row.get(0))?.flatten())
}

/// Gives an activity back. A token whose lease is over but that nobody replaced is still good for this.
pub(crate) fn abandon(
    cx: &mut Cx<'_>,
    token: &str,
    delay: Option<Duration>,
    ignore_attempt: bool,
) -> Result<()> {
    let Some((id, _, secret)) = row_of(token) else { return refused(token) };
    let delay_ms = delay.map_or(0, saturating_ms);
    let (visible_at, delayed) = (cx.now.saturating_add(delay_ms), delay_ms != 0);
    let given_back = (id, secret, column(visible_at), delayed, i64::from(ignore_attempt));
    if cx.db.run(sql::ABANDON_WORK, given_back)? != 1 {
        return refused(token);
    }
    match delayed {
        true => cx.news.available_at(visible_at),
        false => cx.news.work = true,
    }
    Ok(())
}

/// The row that a token leases, whether it belongs to a session, and the secret that makes the token valid.
fn row_of(token: &str) -> Option<(i64, bool, Secret)> {
    let (secret, key) = token::parse(token)?;
    match key.strip_prefix('s') {
        Some(id) => Some((id.parse().ok()?, true, secret)),
        None => Some((key.parse().ok()?, false, secret)),
    }
}

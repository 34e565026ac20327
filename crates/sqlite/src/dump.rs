//! The rows of a store in the lines that the memory store prints, and contradictions between its tables (feature `test-hooks`).

use crate::SqliteProvider;
use crate::command::CallInfo;
use crate::db::{Db, Result, column};
use crate::executor::Executor;
use outlast_provider::ProviderError;
use rusqlite::Row;

impl SqliteProvider {
    /// Every row, one line each, sorted, as `MemoryProvider::dump` prints them; and a line for each contradiction between rows.
    pub async fn dump(&self) -> std::result::Result<Vec<String>, ProviderError> {
        match self.executor {
            // No other caller runs meanwhile, so the statements see one state without a transaction, and a busy file does not matter.
            Executor::Inline(_) => {
                self.read_with("dump", self.options.clock.now_ms(), |db, now| lines(db, *now)).await
            }
            // The writer opens a closed connection again.
            Executor::Threaded(_) => {
                self.write(CallInfo::of("dump"), (), |tx, ()| lines(tx.db, tx.now)).await
            }
        }
    }
}

fn lines(db: &Db, now: u64) -> Result<Vec<String>> {
    let mut lines = rows(db)?;
    lines.extend(contradictions(db, now)?);
    lines.sort();
    Ok(lines)
}

fn rows(db: &Db) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for (sql, line) in TABLES {
        let mut statement = db.conn.prepare_cached(sql)?;
        for row in statement.query_map([], line)? {
            lines.push(row?);
        }
    }
    Ok(lines)
}

type Line = fn(&Row<'_>) -> rusqlite::Result<String>;

const TABLES: [(&str, Line); 10] = [
    (include_str!("dump/instances.sql"), instance),
    (include_str!("dump/executions.sql"), execution),
    (include_str!("dump/history.sql"), event),
    (include_str!("dump/messages.sql"), message),
    (include_str!("dump/leases.sql"), lease),
    (include_str!("dump/holds.sql"), hold),
    (include_str!("dump/activities.sql"), activity),
    (include_str!("dump/sessions.sql"), session),
    (include_str!("dump/keys.sql"), key_value),
    (include_str!("dump/dead_letters.sql"), dead_letter),
];

fn lease(row: &Row<'_>) -> rusqlite::Result<String> {
    Ok(format!("lease {} {}", row.get::<_, String>("instance_id")?, row.get::<_, i64>("locked_until")?))
}

fn hold(row: &Row<'_>) -> rusqlite::Result<String> {
    Ok(format!(
        "hold {} {} {:?} {:?} {}",
        row.get::<_, String>("instance_id")?,
        row.get::<_, String>("kind")?,
        row.get::<_, String>("actor")?,
        row.get::<_, String>("reason")?,
        row.get::<_, i64>("held_at")?,
    ))
}

fn session(row: &Row<'_>) -> rusqlite::Result<String> {
    let (id, owner) = (row.get::<_, String>("session_id")?, row.get::<_, String>("worker_id")?);
    let (until, active) = (row.get::<_, i64>("locked_until")?, row.get::<_, i64>("last_activity_at")?);
    Ok(format!("session {id} {owner} {until} {active}"))
}

fn dead_letter(row: &Row<'_>) -> rusqlite::Result<String> {
    let (queue, instance) = (row.get::<_, String>("queue")?, row.get::<_, String>("instance_id")?);
    let attempts = row.get::<_, u32>("attempt_count")?;
    Ok(format!("dead {queue} {instance} {attempts} {}", row.get::<_, String>("work_item")?))
}

fn instance(row: &Row<'_>) -> rusqlite::Result<String> {
    Ok(format!(
        "instance {} {} {} {} {:?} {:?} {} {} {}",
        row.get::<_, String>("instance_id")?,
        row.get::<_, String>("orchestration_name")?,
        row.get::<_, String>("orchestration_version")?,
        row.get::<_, i64>("current_execution_id")?,
        row.get::<_, Option<String>>("parent_instance_id")?,
        row.get::<_, Option<String>>("custom_status")?,
        row.get::<_, i64>("custom_status_version")?,
        row.get::<_, i64>("created_at")?,
        row.get::<_, i64>("touched_at")?,
    ))
}

fn execution(row: &Row<'_>) -> rusqlite::Result<String> {
    let pinned = match row.get::<_, Option<i64>>("duroxide_version_major")? {
        Some(major) => {
            let minor: i64 = row.get("duroxide_version_minor")?;
            let patch: i64 = row.get("duroxide_version_patch")?;
            let pre: String = row.get("duroxide_version_pre")?;
            let dash = if pre.is_empty() { "" } else { "-" };
            Some(format!("{major}.{minor}.{patch}{dash}{pre}"))
        }
        None => None,
    };
    Ok(format!(
        "execution {} {} {} {:?} {} {:?} {pinned:?}",
        row.get::<_, String>("instance_id")?,
        row.get::<_, i64>("execution_id")?,
        row.get::<_, String>("status")?,
        row.get::<_, Option<String>>("output")?,
        row.get::<_, i64>("started_at")?,
        row.get::<_, Option<i64>>("completed_at")?,
    ))
}

fn event(row: &Row<'_>) -> rusqlite::Result<String> {
    Ok(format!(
        "history {} {} {:05} {}",
        row.get::<_, String>("instance_id")?,
        row.get::<_, i64>("execution_id")?,
        row.get::<_, i64>("event_id")?,
        row.get::<_, String>("event_data")?,
    ))
}

fn message(row: &Row<'_>) -> rusqlite::Result<String> {
    let (visible_at, locked_until): (i64, Option<i64>) = (row.get("visible_at")?, row.get("locked_until")?);
    let is_locked = row.get::<_, Option<Vec<u8>>>("lock_token")?.is_some();
    Ok(format!(
        "message {} {} {visible_at} {} {is_locked} {} {}",
        row.get::<_, String>("instance_id")?,
        row.get::<_, i64>("available_at")?,
        locked_until.filter(|_| is_locked).unwrap_or(visible_at),
        row.get::<_, u32>("attempt_count")?,
        row.get::<_, String>("work_item")?,
    ))
}

fn activity(row: &Row<'_>) -> rusqlite::Result<String> {
    Ok(format!(
        "work {} {} {} {} {} {} {} {} {:?} {:?} {:?} {}",
        row.get::<_, String>("instance_id")?,
        row.get::<_, i64>("execution_id")?,
        row.get::<_, i64>("activity_id")?,
        row.get::<_, i64>("visible_at")?,
        row.get::<_, Option<Vec<u8>>>("lock_token")?.is_some(),
        row.get::<_, Option<i64>>("locked_until")?.unwrap_or(0),
        row.get::<_, u32>("attempt_count")?,
        row.get::<_, u32>("failures")?,
        row.get::<_, Option<String>>("last_error")?,
        row.get::<_, Option<String>>("session_id")?,
        row.get::<_, Option<String>>("tag")?,
        row.get::<_, String>("work_item")?,
    ))
}

fn key_value(row: &Row<'_>) -> rusqlite::Result<String> {
    let (tier, id, key): (String, String, String) =
        (row.get("tier")?, row.get("instance_id")?, row.get("key")?);
    let (value, at): (Option<String>, i64) = (row.get("value")?, row.get("last_updated_at_ms")?);
    Ok(match tier.as_str() {
        "kv" => format!("kv {id} {key:?} {:?} {at}", value.unwrap_or_default()),
        _ => format!("kv-delta {id} {key:?} {value:?} {at}"),
    })
}

/// Columns that repeat the content of other rows must agree with them: each statement finds the rows that do not.
const CONTRADICTIONS: [(&str, &str); 9] = [
    ("last_event_id is not the last event", include_str!("dump/wrong_last_event.sql")),
    ("a covered message without its lease", include_str!("dump/covered_without_lease.sql")),
    ("a message half covered", include_str!("dump/half_covered.sql")),
    ("a first message that no fetch finds", include_str!("dump/first_not_ready.sql")),
    ("a covered message that is ready", include_str!("dump/ready_under_lease.sql")),
    ("a message of a held instance that a fetch finds", include_str!("dump/ready_under_hold.sql")),
    ("an activity half leased", include_str!("dump/half_leased.sql")),
    ("an unmarked activity that waits for its time", include_str!("dump/unmarked_delay.sql")),
    ("a message and its text that do not belong together", include_str!("dump/text_without_message.sql")),
];

/// Rows that contradict each other, as lines that no other store prints.
fn contradictions(db: &Db, now: u64) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for (what, sql) in CONTRADICTIONS {
        let mut statement = db.conn.prepare_cached(sql)?;
        let now = (statement.parameter_count() > 0).then(|| column(now));
        let ids = statement.query_map(rusqlite::params_from_iter(now), |row| row.get::<_, String>(0))?;
        for id in ids {
            found.push(format!("contradiction {} {what}", id?));
        }
    }
    Ok(found)
}

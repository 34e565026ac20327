//! The content of a SQLite store, in the lines that the specification prints, and what must hold between its tables.

use rusqlite::{Connection, Row};

/// Every row, one line each, as `MemoryProvider::dump` has it.
pub(super) fn dump(conn: &Connection) -> Vec<String> {
    let mut lines = Vec::new();
    for (sql, line) in TABLES {
        let mut statement = conn.prepare_cached(sql).unwrap();
        let rows = statement.query_map([], line).unwrap();
        lines.extend(rows.map(Result::unwrap));
    }
    lines
}

/// One text, sorted. A column ends where an `i64` ends, which is as good as for ever.
pub(super) fn comparable(lines: Vec<String>) -> String {
    let (most, for_ever) = (u64::MAX.to_string(), i64::MAX.to_string());
    let mut lines: Vec<String> = lines.into_iter().map(|line| line.replace(&most, &for_ever)).collect();
    lines.sort();
    lines.join("\n")
}

type Line = fn(&Row<'_>) -> rusqlite::Result<String>;

const TABLES: [(&str, Line); 9] = [
    // A turn that only concerns its execution leaves its time there.
    (
        "SELECT i.*, max(i.updated_at, ifnull((SELECT max(e.updated_at) FROM executions AS e
         WHERE e.instance_id = i.instance_id), 0)) AS touched_at FROM instances AS i",
        instance,
    ),
    ("SELECT * FROM executions", execution),
    ("SELECT * FROM history", event),
    ("SELECT * FROM orchestrator_queue", message),
    ("SELECT * FROM instance_locks", |row| {
        Ok(format!("lease {} {}", row.get::<_, String>("instance_id")?, row.get::<_, i64>("locked_until")?))
    }),
    ("SELECT * FROM worker_queue", work),
    ("SELECT * FROM sessions", |row| {
        let (id, owner) = (row.get::<_, String>("session_id")?, row.get::<_, String>("worker_id")?);
        let (until, active) = (row.get::<_, i64>("locked_until")?, row.get::<_, i64>("last_activity_at")?);
        Ok(format!("session {id} {owner} {until} {active}"))
    }),
    ("SELECT 'kv' AS tier, * FROM kv_store UNION ALL SELECT 'kv-delta', * FROM kv_delta", key_value),
    ("SELECT * FROM dead_letters", |row| {
        let (queue, instance) = (row.get::<_, String>("queue")?, row.get::<_, String>("instance_id")?);
        let attempts = row.get::<_, u32>("attempt_count")?;
        Ok(format!("dead {queue} {instance} {attempts} {}", row.get::<_, String>("work_item")?))
    }),
];

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

fn work(row: &Row<'_>) -> rusqlite::Result<String> {
    Ok(format!(
        "work {} {} {} {} {} {} {} {:?} {:?} {}",
        row.get::<_, String>("instance_id")?,
        row.get::<_, i64>("execution_id")?,
        row.get::<_, i64>("activity_id")?,
        row.get::<_, i64>("visible_at")?,
        row.get::<_, Option<Vec<u8>>>("lock_token")?.is_some(),
        row.get::<_, Option<i64>>("locked_until")?.unwrap_or(0),
        row.get::<_, u32>("attempt_count")?,
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

/// What the columns that only spare a look must not get wrong: each statement finds the rows that do.
const CONTRADICTIONS: [(&str, &str); 5] = [
    (
        "last_event_id is not the last event",
        "SELECT instance_id FROM executions AS e WHERE last_event_id <> ifnull((SELECT max(event_id)
         FROM history AS h WHERE h.instance_id = e.instance_id AND h.execution_id = e.execution_id), 0)",
    ),
    (
        "a covered message without its lease",
        "SELECT instance_id FROM orchestrator_queue AS q WHERE lock_token IS NOT NULL AND NOT EXISTS
         (SELECT 1 FROM instance_locks AS l WHERE l.instance_id = q.instance_id AND l.lock_token = q.lock_token
          AND l.locked_until = q.locked_until)",
    ),
    (
        "a message half covered",
        "SELECT instance_id FROM orchestrator_queue WHERE (lock_token IS NULL) <> (locked_until IS NULL)",
    ),
    (
        "an activity half leased",
        "SELECT instance_id FROM worker_queue WHERE (lock_token IS NULL) <> (locked_until IS NULL)",
    ),
    (
        "an unmarked activity that waits for its time",
        "SELECT instance_id FROM worker_queue WHERE visible_at > ?1 AND delayed = 0",
    ),
];

/// Rows that contradict each other.
pub(super) fn contradictions(conn: &Connection, now: u64) -> Vec<String> {
    let mut found = Vec::new();
    for (what, sql) in CONTRADICTIONS {
        let mut statement = conn.prepare_cached(sql).unwrap();
        let now = i64::try_from(now).unwrap();
        let ids = match statement.parameter_count() {
            0 => {
                statement.query_map([], |row| row.get::<_, String>(0)).unwrap().collect::<Result<Vec<_>, _>>()
            }
            _ => statement.query_map([now], |row| row.get(0)).unwrap().collect(),
        };
        found.extend(ids.unwrap().into_iter().map(|id| format!("{what}: {id}")));
    }
    found
}

//! The rows of a store file, read with SQL and not through the store.

use outlast_model::{Event, EventKind, WorkItem, json};
use rusqlite::{Connection, OpenFlags};
use std::collections::BTreeMap;
use std::path::Path;

/// The rows of one instance.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) history: Vec<Event>,
    pub(crate) messages: Vec<WorkItem>,
    /// Ids of queued activities.
    pub(crate) activities: Vec<u64>,
    pub(crate) execution: Option<Execution>,
}

#[derive(Debug)]
pub(crate) struct Execution {
    pub(crate) last_event_id: u64,
    pub(crate) status: String,
    /// Whether the instance has its row as well.
    pub(crate) has_instance: bool,
}

impl Rows {
    pub(crate) fn is_empty(&self) -> bool {
        self.history.is_empty()
            && self.messages.is_empty()
            && self.activities.is_empty()
            && self.execution.is_none()
    }

    /// Number of events that match.
    pub(crate) fn events(&self, says: impl Fn(&Event) -> bool) -> usize {
        self.history.iter().filter(|event| says(event)).count()
    }

    /// The number of times that this message is queued or recorded in the history.
    pub(crate) fn times(&self, sent: &WorkItem) -> usize {
        let waiting = self.messages.iter().filter(|message| *message == sent).count();
        let delivered = self.events(|event| match (&event.kind, sent) {
            (EventKind::OrchestrationStarted { .. }, WorkItem::StartOrchestration { .. }) => true,
            (
                EventKind::QueueEventDelivered { name, data },
                WorkItem::QueueMessage { name: sent_name, data: sent_data, .. },
            ) => (name, data) == (sent_name, sent_data),
            _ => false,
        });
        waiting + delivered
    }

    /// The number of times that the outcome of an activity is stored.
    pub(crate) fn outcomes(&self, activity: u64) -> usize {
        let waiting = self
            .messages
            .iter()
            .filter(|message| matches!(message, WorkItem::ActivityCompleted { id, .. } if *id == activity));
        waiting.count()
            + self.events(|event| {
                event.source_event_id == Some(activity)
                    && matches!(event.kind, EventKind::ActivityCompleted { .. })
            })
    }

    pub(crate) fn output(&self) -> Option<&str> {
        match &self.history.last()?.kind {
            EventKind::OrchestrationCompleted { output } => Some(output),
            _ => None,
        }
    }
}

/// Reads a store file with its log after a cut. An error means that the file is damaged.
pub(crate) fn read(path: &Path) -> Result<BTreeMap<String, Rows>, String> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags).map_err(|error| error.to_string())?;
    read_from(&conn).map_err(|error| error.to_string()).and_then(|(rows, problems)| {
        match problems.is_empty() {
            true => Ok(rows),
            false => Err(problems.join("; ")),
        }
    })
}

type Read = (BTreeMap<String, Rows>, Vec<String>);

fn read_from(conn: &Connection) -> rusqlite::Result<Read> {
    let mut problems = Vec::new();
    conn.pragma_query(None, "integrity_check", |row| {
        let found: String = row.get(0)?;
        if found != "ok" {
            problems.push(found);
        }
        Ok(())
    })?;
    let mut rows: BTreeMap<String, Rows> = BTreeMap::new();
    let mark: i64 = conn.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if mark == 0 {
        // The power was cut before the store was created; the store creates it again.
        return Ok((rows, problems));
    }
    let mut statement = conn.prepare(include_str!("sql/stored_history.sql"))?;
    for text in statement.query_map([], |row| row.get::<_, String>(0))? {
        match json::decode_event(&text?) {
            Ok(event) => rows.entry(event.instance_id.clone()).or_default().history.push(event),
            Err(error) => problems.push(error.to_string()),
        }
    }
    let mut statement = conn.prepare(include_str!("sql/stored_messages.sql"))?;
    for text in statement.query_map([], |row| row.get::<_, String>(0))? {
        match json::decode_work_item(&text?) {
            Ok(item) => rows.entry(item.target_instance().to_string()).or_default().messages.push(item),
            Err(error) => problems.push(error.to_string()),
        }
    }
    let mut statement = conn.prepare(include_str!("sql/stored_work.sql"))?;
    for row in statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))? {
        let (instance, id) = row?;
        rows.entry(instance).or_default().activities.push(id.unsigned_abs());
    }
    let mut statement = conn.prepare(include_str!("sql/stored_executions.sql"))?;
    let mut found = statement.query([])?;
    while let Some(row) = found.next()? {
        let execution = Execution {
            last_event_id: row.get::<_, i64>(1)?.unsigned_abs(),
            status: row.get(2)?,
            has_instance: row.get(3)?,
        };
        rows.entry(row.get(0)?).or_default().execution = Some(execution);
    }
    let oddities: (i64, i64) =
        conn.query_row(include_str!("sql/stored_oddities.sql"), [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if oddities != (0, 0) {
        problems.push(format!("{} dead letters, {} instances without execution", oddities.0, oddities.1));
    }
    Ok((rows, problems))
}

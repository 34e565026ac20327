//! Messages as they lie in the queue: read, decoded, set aside.

use crate::command::Cx;
use crate::db::{Db, Result, attempts, column, readable, stored_text, unsigned};
use crate::sql;
use outlast_model::{WorkItem, json};
use outlast_provider::{DeadLetterQueue, MessageBound};
use outlast_provider_kit::MessageRow;
use rusqlite::Row;
use rusqlite::types::ValueRef;

/// A text above this length is stored apart from its message, since SQLite writes a row whole when one of its columns changes.
const LARGEST_INLINE: usize = 16 << 10;

/// A message under the new lease.
pub(crate) struct Tagged {
    pub(crate) id: i64,
    /// Empty until [`read_texts`] if the text is stored apart.
    pub(crate) text: String,
    /// The length of a text that is stored apart.
    pub(crate) apart_bytes: Option<usize>,
    pub(crate) available_at: u64,
    pub(crate) attempts: u32,
    /// Why a cell of it cannot be read.
    pub(crate) damage: Option<String>,
}

impl Tagged {
    /// The length of its text.
    pub(crate) fn bytes(&self) -> usize {
        self.apart_bytes.unwrap_or(self.text.len())
    }
}

/// A message: its id, text, time, number of deliveries and length of a text that is stored apart.
pub(crate) fn tagged(
    row: &Row<'_>,
    [id, text, available_at, count, apart_bytes]: [usize; 5],
) -> rusqlite::Result<Tagged> {
    let (available_at, damage) = match readable(unsigned(row, available_at))? {
        Ok(at) => (at, None),
        Err(reason) => (0, Some(reason)),
    };
    let (apart_bytes, damage) = match readable(length_apart(row, apart_bytes))? {
        Ok(length) => (length, damage),
        // The text may be stored apart, and is set aside with its message.
        Err(reason) => (Some(0), Some(reason)),
    };
    let attempts = attempts(row, count)?.saturating_add(1);
    let text = stored_text(row, text)?;
    Ok(Tagged { id: row.get(id)?, text, apart_bytes, available_at, attempts, damage })
}

fn length_apart(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<usize>> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        _ => Ok(usize::try_from(unsigned(row, column)?).ok()),
    }
}

/// Reads the texts that are stored apart.
pub(crate) fn read_texts(db: &Db, messages: &mut [Tagged]) -> Result<()> {
    // No text is empty: the length of one that is stored apart is damaged.
    let is_apart = |message: &&mut Tagged| message.apart_bytes.is_some() || message.text.is_empty();
    for message in messages.iter_mut().filter(is_apart) {
        match db.one(sql::READ_TEXT, [message.id], |row| stored_text(row, 0))? {
            Some(text) => message.text = text,
            None => _ = message.damage.get_or_insert_with(|| "its text is missing".to_string()),
        }
    }
    Ok(())
}

/// Stores a message.
pub(crate) fn insert(db: &Db, row: &MessageRow, visible_at: u64) -> Result<()> {
    let begins = i64::from(row.begins) + i64::from(row.continues());
    let text = row.work_item.as_str();
    let apart_bytes = Some(text.len()).filter(|length| *length > LARGEST_INLINE);
    let inline = if apart_bytes.is_some() { "" } else { text };
    let columns = (
        &row.instance_id,
        inline,
        column(visible_at),
        begins,
        apart_bytes.map(|length| column(length as u64)),
    );
    db.run(sql::ENQUEUE_MESSAGE, columns)?;
    if apart_bytes.is_some() {
        db.run(sql::INSERT_TEXT, (db.conn.last_insert_rowid(), text))?;
    }
    Ok(())
}

/// Deletes a message that cannot be delivered.
pub(crate) fn delete(db: &Db, id: i64) -> Result<()> {
    db.run(sql::DELETE_TEXT, [id])?;
    db.run_exactly(1, "setting a message aside", sql::DELETE_MESSAGE, [id])
}

/// What a fetch takes of the visible messages of an instance, in order of availability.
pub(crate) struct Visible {
    pub(crate) messages: Vec<Tagged>,
    /// More of them are left.
    pub(crate) is_partial: bool,
}

/// As many of the visible messages of an instance as a fetch takes.
pub(crate) fn visible(cx: &Cx<'_>, instance: &str, bound: MessageBound) -> Result<Visible> {
    let now = column(cx.now);
    let mut taken = Taken::new(bound);
    let rows = (instance, now);
    cx.db.find(sql::VISIBLE_MESSAGES, rows, |row| Ok((!taken.take(row)?).then_some(())))?;
    let is_partial = taken.is_full;
    if is_partial {
        // No turn is possible without the start of its execution, wherever it is in the line.
        let mut first = Taken::new(bound);
        for begins in [2, 1] {
            let rows = (instance, now, begins);
            cx.db.find(sql::VISIBLE_STARTS, rows, |row| {
                // The text of a large one is not read here: if it is damaged, it is set aside and the turn is looked for again.
                let is_apart = !matches!(readable(length_apart(row, 4))?, Ok(None));
                let is_start = is_apart || begins_an_execution(&stored_text(row, 1)?);
                Ok((is_start && !first.take(row)?).then_some(()))
            })?;
        }
        taken = first.and(taken);
    }
    let mut messages = taken.messages;
    messages.sort_by_key(|message| (message.available_at, message.id));
    Ok(Visible { messages, is_partial })
}

/// Whether a message starts an execution, the text of which may be damaged.
pub(crate) fn begins_an_execution(text: &str) -> bool {
    let decoded = json::decode_work_item(text);
    matches!(decoded, Ok(WorkItem::StartOrchestration { .. } | WorkItem::ContinueAsNew { .. }))
}

/// Messages that a fetch has taken so far.
struct Taken {
    messages: Vec<Tagged>,
    bytes: usize,
    bound: MessageBound,
    /// One more did not fit.
    is_full: bool,
}

impl Taken {
    fn new(bound: MessageBound) -> Self {
        Self { messages: Vec::new(), bytes: 0, bound, is_full: false }
    }

    /// Says whether the message of this row was taken.
    fn take(&mut self, row: &Row<'_>) -> rusqlite::Result<bool> {
        // Before the text is copied.
        let size = match readable(length_apart(row, 4))? {
            Ok(Some(length)) => length,
            Ok(None) | Err(_) => row.get_ref(1)?.as_bytes().map_or(0, <[u8]>::len),
        };
        self.is_full |= !self.bound.takes(self.messages.len(), self.bytes, size);
        if !self.is_full {
            self.bytes = self.bytes.saturating_add(size);
            self.messages.push(tagged(row, [0, 1, 2, 3, 4])?);
        }
        Ok(!self.is_full)
    }

    /// These, and as many of the others as fit.
    fn and(mut self, others: Self) -> Self {
        for message in others.messages {
            if self.messages.iter().any(|taken| taken.id == message.id) {
                continue;
            }
            self.is_full |= !self.bound.takes(self.messages.len(), self.bytes, message.bytes());
            if self.is_full {
                break;
            }
            self.bytes += message.bytes();
            self.messages.push(message);
        }
        self
    }
}

/// The messages; those that do not decode or belong to somebody else leave `covered`, each with the reason.
pub(crate) fn decode(instance: &str, covered: &mut Vec<Tagged>) -> (Vec<WorkItem>, Vec<(Tagged, String)>) {
    let mut messages = Vec::with_capacity(covered.len());
    let mut damaged = Vec::new();
    for mut message in std::mem::take(covered) {
        let decoded = match message.damage.take() {
            None => json::decode_work_item(&message.text).map_err(|error| error.to_string()),
            Some(reason) => Err(reason),
        };
        match decoded {
            Ok(item)
                if item.target_instance() == instance
                    && !matches!(item, WorkItem::ActivityExecute { .. }) =>
            {
                messages.push(item);
                covered.push(message);
            }
            Ok(item) => damaged.push((message, misplaced(&item, instance))),
            Err(reason) => damaged.push((message, reason)),
        }
    }
    (messages, damaged)
}

/// What is said of an item that lies with the wrong instance, or in the wrong queue.
pub(crate) fn misplaced(item: &WorkItem, instance: &str) -> String {
    let (kind, owner) = (item.kind_name(), item.target_instance());
    format!("a {kind} for instance '{owner}' in a row of instance '{instance}'")
}

/// Sets a message aside.
pub(crate) fn bury(
    cx: &Cx<'_>,
    queue: DeadLetterQueue,
    instance: &str,
    text: &str,
    reason: &str,
    attempts: u32,
) -> Result<()> {
    // The reason may quote the message, so it goes to the table and not to the log.
    tracing::warn!(
        target: "duroxide::providers::sqlite",
        instance, queue = queue.as_str(), "a message was set aside, see dead_letters"
    );
    cx.db.counters.dead_letters.add(1);
    cx.db.run(sql::DEAD_LETTER, (queue.as_str(), instance, text, reason, attempts, column(cx.now)))?;
    Ok(())
}

//! Messages in the queue: storing, reading, decoding, and dead letters.

use crate::db::{Db, Result, attempts, column, readable, stored_text, unsigned};
use crate::transaction::Transaction;
use crate::{hold, sql, start};
use outlast_model::{WorkItem, json};
use outlast_provider::{DeadLetterQueue, EnqueueOnce, MessageBound};
use outlast_provider_kit::plan::visible_at;
use outlast_provider_kit::transfer::ImportMessage;
use outlast_provider_kit::{MessageRow, rows};
use rusqlite::Row;
use rusqlite::types::ValueRef;
use std::time::Duration;

/// A text above this length is stored in `message_texts`, because SQLite rewrites a whole row when one of its columns changes.
const LARGEST_INLINE: usize = 16 << 10;

/// A message that a fetch covers with its lease.
pub(crate) struct CoveredMessage {
    pub(crate) id: i64,
    /// Empty until [`read_texts`] if the text is in `message_texts`.
    pub(crate) text: String,
    /// The length of the text in `message_texts`.
    pub(crate) external_bytes: Option<usize>,
    pub(crate) available_at: u64,
    pub(crate) attempts: u32,
    /// The reason why a cell of the row cannot be read.
    pub(crate) damage: Option<String>,
}

impl CoveredMessage {
    /// The length of the text.
    pub(crate) fn bytes(&self) -> usize {
        self.external_bytes.unwrap_or(self.text.len())
    }
}

/// Reads a message from the columns of its id, text, time, number of deliveries and length of its text in `message_texts`.
pub(crate) fn covered_message(
    row: &Row<'_>,
    [id, text, available_at, count, external_bytes]: [usize; 5],
) -> rusqlite::Result<CoveredMessage> {
    let (available_at, damage) = match readable(unsigned(row, available_at))? {
        Ok(at) => (at, None),
        Err(reason) => (0, Some(reason)),
    };
    let (external_bytes, damage) = match readable(length_in_message_texts(row, external_bytes))? {
        Ok(length) => (length, damage),
        // The text may be in `message_texts`; then it becomes a dead letter with its message.
        Err(reason) => (Some(0), Some(reason)),
    };
    let attempts = attempts(row, count)?.saturating_add(1);
    let text = stored_text(row, text)?;
    Ok(CoveredMessage { id: row.get(id)?, text, external_bytes, available_at, attempts, damage })
}

/// The length of the text in `message_texts`; `None` for a text in the row itself.
fn length_in_message_texts(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<usize>> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        _ => Ok(usize::try_from(unsigned(row, column)?).ok()),
    }
}

/// Reads the texts in `message_texts`.
pub(crate) fn read_texts(db: &Db, messages: &mut [CoveredMessage]) -> Result<()> {
    // A stored text is never empty. With an empty text in the row, the text is in `message_texts` and its length is damaged.
    let is_external =
        |message: &&mut CoveredMessage| message.external_bytes.is_some() || message.text.is_empty();
    for message in messages.iter_mut().filter(is_external) {
        match db.one(sql::READ_TEXT, [message.id], |row| stored_text(row, 0))? {
            Some(text) => message.text = text,
            None => _ = message.damage.get_or_insert_with(|| "its text is missing".to_string()),
        }
    }
    Ok(())
}

/// A message to store.
pub(crate) struct Enqueue {
    pub(crate) row: MessageRow,
    /// How long no fetch takes the message.
    pub(crate) delay: Option<Duration>,
}

/// Stores the message of a call.
pub(crate) fn enqueue(tx: &mut Transaction<'_>, message: &Enqueue) -> Result<()> {
    store(tx, &message.row, message.delay)
}

/// A message to store if fewer than `most_waiting` messages wait for its instance.
pub(crate) struct EnqueueWithin {
    pub(crate) row: MessageRow,
    pub(crate) most_waiting: usize,
}

/// Stores the message of a call if its bound allows; returns whether the message is stored.
pub(crate) fn enqueue_within(tx: &mut Transaction<'_>, message: &EnqueueWithin) -> Result<bool> {
    let EnqueueWithin { row, most_waiting } = message;
    if !has_room(tx, &row.instance_id, *most_waiting)? {
        return Ok(false);
    }
    store(tx, row, None)?;
    Ok(true)
}

/// A message to store unless its key is stored for its instance.
pub(crate) struct EnqueueKeyed {
    pub(crate) row: MessageRow,
    pub(crate) key: String,
    pub(crate) most_waiting: usize,
}

/// Stores the message and the key of a call, or returns the reason why they are not stored.
pub(crate) fn enqueue_once(tx: &mut Transaction<'_>, message: &EnqueueKeyed) -> Result<EnqueueOnce> {
    let EnqueueKeyed { row, key, most_waiting } = message;
    let instance = row.instance_id.as_str();
    let is = |found: Option<bool>| found.unwrap_or(false);
    if is(tx.db.one(sql::IS_REPEATED, (instance, key), |row| row.get(0))?) {
        return Ok(EnqueueOnce::Repeated);
    }
    if is(tx.db.one(sql::HAS_ENDED, [instance], |row| row.get(0))?) {
        return Ok(EnqueueOnce::Ended);
    }
    if !start::is_taken(tx, instance)? {
        return Ok(EnqueueOnce::NotFound);
    }
    if !has_room(tx, instance, *most_waiting)? {
        return Ok(EnqueueOnce::Full);
    }
    tx.db.run_exactly(
        1,
        "storing a message key",
        sql::INSERT_MESSAGE_KEY,
        (instance, key, column(tx.now)),
    )?;
    store(tx, row, None)?;
    Ok(EnqueueOnce::Stored)
}

/// Whether fewer messages wait for the instance.
fn has_room(tx: &Transaction<'_>, instance: &str, most_waiting: usize) -> Result<bool> {
    let most = i64::try_from(most_waiting).unwrap_or(i64::MAX);
    let waiting: i64 = tx.db.one(sql::COUNT_WAITING, (instance, most), |row| row.get(0))?.unwrap_or(0);
    Ok(waiting < most)
}

/// Stores a message. The parked fetches are polled when it becomes visible.
pub(crate) fn store(tx: &mut Transaction<'_>, row: &MessageRow, delay: Option<Duration>) -> Result<()> {
    let visible_at = visible_at(row, tx.now, delay);
    tx.wakeups.on_message(visible_at, tx.now);
    insert(tx, row, visible_at)?;
    if row.cancels() {
        // A held instance must be able to end.
        hold::release(tx, &row.instance_id)?;
    }
    Ok(())
}

/// The time of messages that are delivered before all messages that wait for the instance. Plans of one chain of resets have the same
/// time, so that messages of an earlier reset can wait with the time of a plan.
pub(crate) fn first_available(tx: &Transaction<'_>, instance: &str, planned: u64) -> Result<u64> {
    let earliest: Option<i64> = tx.db.one(sql::EARLIEST_MESSAGE, [instance], |row| row.get(0))?.flatten();
    let before_waiting = earliest.map(|earliest| u64::try_from(earliest).unwrap_or(0).saturating_sub(1));
    let available_at = planned.min(tx.now);
    Ok(before_waiting.map_or(available_at, |before| before.min(available_at)))
}

/// Stores a message with the time of [`first_available`].
pub(crate) fn store_first(tx: &mut Transaction<'_>, row: &MessageRow, available_at: u64) -> Result<()> {
    tx.wakeups.on_message(available_at, tx.now);
    insert(tx, row, available_at)
}

fn insert(tx: &Transaction<'_>, row: &MessageRow, visible_at: u64) -> Result<()> {
    let db = tx.db;
    let (inline, external_bytes) = placed(&row.work_item);
    let columns = (&row.instance_id, inline, column(visible_at), begins(row), external_bytes, column(tx.now));
    db.run(sql::ENQUEUE_MESSAGE, columns)?;
    if external_bytes.is_some() {
        db.run(sql::INSERT_TEXT, (db.conn.last_insert_rowid(), &row.work_item))?;
    }
    Ok(())
}

/// Stores a message of an imported instance. It is not ready.
pub(crate) fn import(tx: &Transaction<'_>, message: &ImportMessage) -> Result<()> {
    let (db, row) = (tx.db, &message.row);
    let (inline, external_bytes) = placed(&row.work_item);
    let columns = (
        &row.instance_id,
        inline,
        column(message.visible_at),
        column(message.available_at),
        begins(row),
        external_bytes,
        message.attempt_count,
    );
    db.run_exactly(1, "importing a message", sql::IMPORT_MESSAGE, columns)?;
    if external_bytes.is_some() {
        db.run(sql::INSERT_TEXT, (db.conn.last_insert_rowid(), &row.work_item))?;
    }
    Ok(())
}

/// The text in the row of a message, and the length of its text in `message_texts`.
fn placed(text: &str) -> (&str, Option<i64>) {
    match text.len() > LARGEST_INLINE {
        true => ("", Some(column(text.len() as u64))),
        false => (text, None),
    }
}

/// The column `begins` of a message.
fn begins(row: &MessageRow) -> i64 {
    i64::from(row.begins) + i64::from(row.continues())
}

/// Deletes a message that became a dead letter.
pub(crate) fn delete(db: &Db, id: i64) -> Result<()> {
    db.run(sql::DELETE_TEXT, [id])?;
    db.run_exactly(1, "deleting a dead letter's message", sql::DELETE_MESSAGE, [id])
}

/// The visible messages of an instance that a fetch takes, in order of availability.
pub(crate) struct Visible {
    pub(crate) messages: Vec<CoveredMessage>,
    /// Whether the instance has more visible messages.
    pub(crate) is_partial: bool,
}

/// The visible messages of an instance, up to the bound of a fetch. `None` if they have `limit` bytes or more: the rest of them is
/// not read.
pub(crate) fn visible(
    tx: &Transaction<'_>,
    instance: &str,
    bound: MessageBound,
    limit: usize,
) -> Result<Option<Visible>> {
    let now = column(tx.now);
    let mut taken = Taken::new(bound);
    let rows = (instance, now);
    tx.db.find(sql::VISIBLE_MESSAGES, rows, |row| {
        Ok((!taken.take(row)? || taken.bytes >= limit).then_some(()))
    })?;
    if taken.bytes >= limit {
        return Ok(None);
    }
    let is_partial = taken.is_full;
    if is_partial {
        // A turn needs the start of its execution, wherever the start is in the order of messages.
        let mut first = Taken::new(bound);
        for begins in [2, 1] {
            let rows = (instance, now, begins);
            tx.db.find(sql::VISIBLE_STARTS, rows, |row| {
                // A large text is not read here. If it is damaged, the message becomes a dead letter and the candidates are
                // looked up again.
                let is_external = !matches!(readable(length_in_message_texts(row, 4))?, Ok(None));
                let is_start = is_external || begins_an_execution(&stored_text(row, 1)?);
                Ok((is_start && !first.take(row)?).then_some(()))
            })?;
        }
        taken = first.and(taken);
    }
    let mut messages = taken.messages;
    messages.sort_by_key(|message| (message.available_at, message.id));
    Ok(Some(Visible { messages, is_partial }))
}

/// Whether a message starts an execution. A text that does not decode does not.
pub(crate) fn begins_an_execution(text: &str) -> bool {
    let decoded = json::decode_work_item(text);
    matches!(decoded, Ok(WorkItem::StartOrchestration { .. } | WorkItem::ContinueAsNew { .. }))
}

/// The messages that a fetch has taken so far.
struct Taken {
    messages: Vec<CoveredMessage>,
    bytes: usize,
    bound: MessageBound,
    /// Whether a message did not fit into the bound.
    is_full: bool,
}

impl Taken {
    fn new(bound: MessageBound) -> Self {
        Self { messages: Vec::new(), bytes: 0, bound, is_full: false }
    }

    /// Takes the message of a row if it fits; returns whether it does.
    fn take(&mut self, row: &Row<'_>) -> rusqlite::Result<bool> {
        // The size is known before the text is copied.
        let size = match readable(length_in_message_texts(row, 4))? {
            Ok(Some(length)) => length,
            Ok(None) | Err(_) => row.get_ref(1)?.as_bytes().map_or(0, <[u8]>::len),
        };
        self.is_full |= !self.bound.takes(self.messages.len(), self.bytes, size);
        if !self.is_full {
            self.bytes = self.bytes.saturating_add(size);
            self.messages.push(covered_message(row, [0, 1, 2, 3, 4])?);
        }
        Ok(!self.is_full)
    }

    /// Adds the other messages that fit.
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

/// Decodes messages. Messages that do not decode or belong to another instance are removed from `covered` and returned with the
/// reason.
pub(crate) fn decode(
    instance: &str,
    covered: &mut Vec<CoveredMessage>,
) -> (Vec<WorkItem>, Vec<(CoveredMessage, String)>) {
    let mut messages = Vec::with_capacity(covered.len());
    let mut damaged = Vec::new();
    for mut message in std::mem::take(covered) {
        let decoded = match message.damage.take() {
            None => rows::decode_message(instance, &message.text),
            Some(reason) => Err(reason),
        };
        match decoded {
            Ok(item) => {
                messages.push(item);
                covered.push(message);
            }
            Err(reason) => damaged.push((message, reason)),
        }
    }
    (messages, damaged)
}

/// Stores a dead letter.
pub(crate) fn store_dead_letter(
    tx: &Transaction<'_>,
    queue: DeadLetterQueue,
    instance: &str,
    text: &str,
    reason: &str,
    attempts: u32,
) -> Result<()> {
    // The reason may quote the message, so it goes to the table and not to the log.
    tracing::warn!(
        target: "duroxide::providers::sqlite",
        instance, queue = queue.as_str(), "a message became a dead letter, see dead_letters"
    );
    tx.db.counters.dead_letters.add(1);
    tx.db.run(sql::DEAD_LETTER, (queue.as_str(), instance, text, reason, attempts, column(tx.now)))?;
    Ok(())
}

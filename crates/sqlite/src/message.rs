//! Messages as they lie in the queue: read, decoded, set aside.

use crate::command::Cx;
use crate::db::{Result, attempts, column, readable, stored_text, unsigned};
use crate::sql;
use outlast_model::{WorkItem, json};
use outlast_provider::DeadLetterQueue;
use rusqlite::Row;

/// A message under the new lease.
pub(crate) struct Tagged {
    pub(crate) id: i64,
    pub(crate) text: String,
    pub(crate) available_at: u64,
    pub(crate) attempts: u32,
    /// Why a cell of it cannot be read.
    pub(crate) damage: Option<String>,
}

/// A message: its id, text, time and number of deliveries.
pub(crate) fn tagged(row: &Row<'_>, [id, text, available_at, count]: [usize; 4]) -> rusqlite::Result<Tagged> {
    let (available_at, damage) = match readable(unsigned(row, available_at))? {
        Ok(at) => (at, None),
        Err(reason) => (0, Some(reason)),
    };
    let attempts = attempts(row, count)?.saturating_add(1);
    Ok(Tagged { id: row.get(id)?, text: stored_text(row, text)?, available_at, attempts, damage })
}

/// All visible messages of an instance, in order of availability.
pub(crate) fn visible(cx: &Cx<'_>, instance: &str) -> Result<Vec<Tagged>> {
    let rows = (instance, column(cx.now));
    let mut visible = cx.db.all(sql::VISIBLE_MESSAGES, rows, |row| tagged(row, [0, 1, 2, 3]))?;
    visible.sort_by_key(|message| (message.available_at, message.id));
    Ok(visible)
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

//! Damage that cannot be detected, because rows have no checksums: the result is a valid row that agrees with all other
//! rows.
//!
//! Payloads, values of keys, the order and time of messages, and whether a message exists cannot be compared with other
//! rows. All other damage must be detected before it changes the output of an instance: texts that do not decode;
//! events that are missing, duplicated, moved or of another instance; messages in the queue of another instance; states
//! that contradict each other.

use super::damage::Damage;
use super::store_run::SECOND;
use super::table::Cell;
use outlast_model::{Event, ExecutionStatus, WorkItem, json};
use rusqlite::types::Value;

/// Whether the damage affects the second instance of the store.
pub(super) fn affects_second_instance(damage: &Damage) -> bool {
    let columns = ["instance_id", "parent_instance_id"];
    columns.iter().flat_map(|column| damage.cells(column)).flatten().any(|cell| cell.text() == Some(SECOND))
}

/// Whether the damage may change the output of an instance without being detectable.
pub(super) fn is_silent(damage: &Damage) -> bool {
    let changed = |column: &str| {
        let [before, after] = damage.cells(column);
        before != after
    };
    match damage.table {
        "history" => changed("event_data") && is_event_of_row(damage),
        "orchestrator_queue" => match (&damage.before, &damage.after) {
            // Removed: no other row refers to a message.
            (_, None) => true,
            (None, Some(_)) => is_counted(item(damage)),
            // Moved in time, or to another instance, which must not receive it.
            (Some(_), Some(_)) if !changed("work_item") => !changed("attempt_count"),
            // An undecodable message is stored as a dead letter, and later messages are delivered. An instance must not begin without
            // its start.
            (Some(_), Some(_)) => {
                !is_start(damage) || item(damage).is_some_and(|item| is_for_row(&item, damage))
            }
        },
        "worker_queue" => match (&damage.before, &damage.after) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(_), Some(_)) if !changed("work_item") => !changed("attempt_count"),
            (Some(_), Some(_)) => item(damage).is_some_and(|item| is_for_row(&item, damage)),
        },
        "kv_store" | "kv_delta" => true,
        "executions" => {
            let [_, status] = damage.cells("status");
            let [_, output] = damage.cells("output");
            (changed("status") && status.is_some_and(is_status)) || (changed("output") && is_output(output))
        }
        _ => false,
    }
}

/// Whether the cell is a valid output; an execution need not have one.
fn is_output(cell: Option<&Cell>) -> bool {
    cell.is_some_and(|cell| cell.text().is_some() || *cell == Cell::Value(Value::Null))
}

fn is_status(cell: &Cell) -> bool {
    cell.text().and_then(ExecutionStatus::from_text).is_some()
}

/// Whether the stored text is an event that belongs to its row.
fn is_event_of_row(damage: &Damage) -> bool {
    let [_, Some(text)] = damage.cells("event_data") else { return false };
    let Some(Ok(event)) = text.text().map(json::decode_event) else { return false };
    let Event { event_id, instance_id, execution_id, .. } = event;
    let number = |column: &str, number: u64| {
        damage.cells(column)[1].and_then(Cell::number) == i64::try_from(number).ok()
    };
    damage.cells("instance_id")[1].and_then(Cell::text) == Some(&instance_id)
        && number("event_id", event_id)
        && number("execution_id", execution_id)
}

fn item(damage: &Damage) -> Option<WorkItem> {
    json::decode_work_item(damage.cells("work_item")[1]?.text()?).ok()
}

fn is_for_row(item: &WorkItem, damage: &Damage) -> bool {
    let is_activity = matches!(item, WorkItem::ActivityExecute { .. });
    damage.cells("instance_id")[1].and_then(Cell::text) == Some(item.target_instance())
        && is_activity == (damage.table == "worker_queue")
}

/// Whether the damaged message began an execution.
fn is_start(damage: &Damage) -> bool {
    let before = damage.cells("work_item")[0].and_then(Cell::text).map(json::decode_work_item);
    matches!(before, Some(Ok(WorkItem::StartOrchestration { .. } | WorkItem::ContinueAsNew { .. })))
}

/// Whether a duplicate of the message counts as a second message.
fn is_counted(item: Option<WorkItem>) -> bool {
    matches!(item, Some(WorkItem::QueueMessage { .. } | WorkItem::ExternalRaised { .. }))
}

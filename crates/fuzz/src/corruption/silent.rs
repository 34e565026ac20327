//! Damage that nobody can notice, since rows carry no checksums: what is left is a valid row, in agreement with all others.
//!
//! Payloads, keys' values, the order and the time of messages, and whether a message is there at all are what the store
//! was told; there is nothing to hold them against. Everything else must be noticed before it changes what an instance
//! returns: texts that do not decode, events that are missing, doubled, moved or of somebody else, messages that are not
//! for the instance they lie with, states that contradict each other.

use super::damage::Damage;
use super::table::Cell;
use super::world::OTHER;
use outlast_model::{Event, WorkItem, json};
use rusqlite::types::Value;

/// Whether the damage concerns the bystander; the rest is the damaged instance's, its children's or nobody's.
pub(super) fn touches_bystander(damage: &Damage) -> bool {
    let columns = ["instance_id", "parent_instance_id"];
    columns.iter().flat_map(|column| damage.cells(column)).flatten().any(|cell| cell.text() == Some(OTHER))
}

/// Whether it may change what an instance returns without anybody being able to know.
pub(super) fn is_silent(damage: &Damage) -> bool {
    let changed = |column: &str| {
        let [before, after] = damage.cells(column);
        before != after
    };
    match damage.table {
        "history" => changed("event_data") && is_event_of_row(damage),
        "orchestrator_queue" => match (&damage.before, &damage.after) {
            // Lost: nobody knows that it was there.
            (_, None) => true,
            (None, Some(_)) => is_counted(item(damage)),
            // Moved in time, or to somebody else, who must not take it.
            (Some(_), Some(_)) if !changed("work_item") => !changed("attempt_count"),
            // It is set aside, and those behind it are delivered. Without its start an instance must not begin.
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

/// An execution need not have an output.
fn is_output(cell: Option<&Cell>) -> bool {
    cell.is_some_and(|cell| cell.text().is_some() || *cell == Cell::Value(Value::Null))
}

fn is_status(cell: &Cell) -> bool {
    matches!(cell.text(), Some("Running" | "Completed" | "Failed" | "ContinuedAsNew"))
}

/// Whether what is stored now is an event that belongs where it lies.
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

/// Whether it was what begins an execution.
fn is_start(damage: &Damage) -> bool {
    let before = damage.cells("work_item")[0].and_then(Cell::text).map(json::decode_work_item);
    matches!(before, Some(Ok(WorkItem::StartOrchestration { .. } | WorkItem::ContinueAsNew { .. })))
}

/// Whether two of them are not one.
fn is_counted(item: Option<WorkItem>) -> bool {
    matches!(item, Some(WorkItem::QueueMessage { .. } | WorkItem::ExternalRaised { .. }))
}

//! Exports and imports of instances.

use crate::commit::{insert_events, make_first_ready};
use crate::db::{Db, Result, column, id_column, key_column, stored_text};
use crate::start::is_taken;
use crate::transaction::Transaction;
use crate::{SqliteError, hold, message, sql};
use outlast_provider::{ExportOutcome, ImportOutcome};
use outlast_provider_kit::ImportRows;
use outlast_provider_kit::pin::PinColumns;
use outlast_provider_kit::transfer::{ExportRow, ImportActivity, ImportExecution, exported};
use rusqlite::Row;
use rusqlite::types::ValueRef;

/// All rows of an instance.
pub(crate) fn export(db: &Db, instance: &str) -> Result<ExportOutcome> {
    let rows = db.all(sql::EXPORT_INSTANCE, [instance], export_row)?;
    exported(instance, rows).map_err(|details| SqliteError::Damaged { details })
}

fn export_row(row: &Row<'_>) -> rusqlite::Result<ExportRow> {
    let mut read = ExportRow { part: row.get(0)?, ..ExportRow::default() };
    for (text, n) in read.texts.iter_mut().zip(1..) {
        if !matches!(row.get_ref(n)?, ValueRef::Null) {
            *text = Some(stored_text(row, n)?);
        }
    }
    for (number, n) in read.numbers.iter_mut().zip(5..) {
        *number = row.get(n)?;
    }
    Ok(read)
}

/// Stores an instance, unless its id is taken.
pub(crate) fn import(tx: &mut Transaction<'_>, rows: &ImportRows) -> Result<ImportOutcome> {
    if is_taken(tx, &rows.instance)? {
        return Ok(ImportOutcome::Taken);
    }
    let id = rows.instance.as_str();
    if let Some(row) = &rows.row {
        let columns = (
            id,
            &row.orchestration_name,
            &row.orchestration_version,
            id_column("execution id", row.current_execution_id)?,
            &row.parent_instance_id,
            &row.custom_status,
            column(row.custom_status_version),
            column(row.created_at),
            column(row.updated_at),
        );
        tx.db.run_exactly(1, "importing an instance", sql::IMPORT_INSTANCE, columns)?;
    }
    for execution in &rows.executions {
        import_execution(tx, id, execution)?;
    }
    for key in &rows.keys {
        let columns = (id, &key.key, &key.value, column(key.last_updated_at_ms));
        tx.db.run(sql::IMPORT_KEY, columns)?;
    }
    for key in &rows.changed_keys {
        let columns = (id, &key.key, &key.value, column(key.last_updated_at_ms));
        tx.db.run(sql::IMPORT_CHANGED_KEY, columns)?;
    }
    for row in &rows.messages {
        message::import(tx, row)?;
    }
    for activity in &rows.activities {
        import_activity(tx, activity)?;
    }
    for key in &rows.message_keys {
        tx.db.run(sql::IMPORT_MESSAGE_KEY, (id, key, column(tx.now)))?;
    }
    if let Some(wanted) = &rows.hold {
        hold::import(tx, id, wanted)?;
    }
    if rows.hold.is_none() || !hold::is_held(tx.db, id)? {
        make_first_ready(tx, id)?;
    }
    hold::append_audit(tx, &rows.audit)?;
    Ok(ImportOutcome::Imported)
}

fn import_execution(tx: &Transaction<'_>, instance: &str, execution: &ImportExecution) -> Result<()> {
    let pin = execution.pin.as_ref().map(PinColumns::of);
    let pin = pin.as_ref();
    let columns = (
        instance,
        id_column("execution id", execution.execution_id)?,
        &execution.status,
        &execution.output,
        column(execution.started_at),
        execution.completed_at.map(column),
        id_column("event id", execution.last_event_id())?,
        execution.terminal_event_id.map(column),
        pin.map(|pin| pin.major),
        pin.map(|pin| pin.minor),
        pin.map(|pin| pin.patch),
        pin.map(|pin| &pin.pre),
    );
    tx.db.run_exactly(1, "importing an execution", sql::IMPORT_EXECUTION, columns)?;
    insert_events(tx.db, instance, execution.execution_id, &execution.history)
}

fn import_activity(tx: &mut Transaction<'_>, activity: &ImportActivity) -> Result<()> {
    let row = &activity.row;
    let is_delayed = activity.visible_at > tx.now;
    match is_delayed {
        true => tx.wakeups.schedule_poll(activity.visible_at),
        false => tx.wakeups.poll.activities = true,
    }
    let columns = (
        &row.work_item,
        column(activity.visible_at),
        &row.instance_id,
        id_column("execution id", row.execution_id)?,
        key_column(row.activity_id),
        &row.session_id,
        &row.tag,
        is_delayed,
        activity.attempt_count,
        activity.failures,
        &activity.last_error,
    );
    tx.db.run_exactly(1, "importing an activity", sql::IMPORT_ACTIVITY, columns)
}

/// A page of ids without an instance for which messages wait.
pub(crate) struct UnstartedPage {
    pub(crate) after: Option<String>,
    pub(crate) limit: usize,
}

pub(crate) fn unstarted(db: &Db, page: &UnstartedPage) -> Result<Vec<String>> {
    let after = page.after.as_deref().unwrap_or("");
    db.all(sql::LIST_UNSTARTED, (after, column(page.limit as u64)), |row| stored_text(row, 0))
}

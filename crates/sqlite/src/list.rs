//! Lists and figures.

use crate::SqliteError;
use crate::db::{Db, Result, attempts, column, unsigned};
use crate::sql;
use outlast_provider::{
    DeadLetter, DeadLetterQueue, ExecutionInfo, InstanceInfo, InstancePage, InstanceQuery, QueueDepths,
    SystemMetrics,
};
use rusqlite::Row;

/// Rows read at a time where a list may be long.
const PAGE: usize = 1_000;

/// Ids of instances, newest first, read page by page.
pub(crate) fn ids(db: &Db, status: Option<&str>) -> Result<Vec<String>> {
    let mut all = Vec::new();
    let mut before = i64::MAX;
    loop {
        let page: Vec<(i64, String)> =
            db.all(sql::LIST_INSTANCE_IDS, (before, status, column(PAGE as u64)), |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
        let full = page.len() == PAGE;
        before = page.last().map_or(before, |(position, _)| *position);
        all.extend(page.into_iter().map(|(_, id)| id));
        if !full {
            return Ok(all);
        }
    }
}

/// One page of instances. The position is that of the last row seen, so that pages neither repeat nor skip.
pub(crate) fn page(db: &Db, query: &InstanceQuery) -> Result<InstancePage> {
    let before = match &query.after {
        None => i64::MAX,
        Some(after) => position(after).ok_or_else(|| {
            SqliteError::Refused(format!(
                "page position '{after}' is not one of ours: start from the first page"
            ))
        })?,
    };
    let size = query.page_size();
    let wanted = (
        before,
        &query.status,
        &query.orchestration_name,
        &query.id_prefix,
        &query.parent_instance_id,
        query.created_from.map(column),
        query.created_before.map(column),
        // One more than asked for tells whether there is a next page.
        column(size as u64 + 1),
    );
    let mut rows: Vec<(i64, InstanceInfo)> =
        db.all(sql::LIST_INSTANCES, wanted, |row| Ok((row.get(0)?, info_of(row)?)))?;
    let more = rows.len() > size;
    rows.truncate(size);
    let next = rows.last().filter(|_| more).map(|(position, _)| position.to_string());
    Ok(InstancePage { instances: rows.into_iter().map(|(_, info)| info).collect(), next })
}

/// A page position, in exactly the form in which we give one out.
fn position(text: &str) -> Option<i64> {
    text.parse().ok().filter(|position: &i64| *position > 0 && position.to_string() == text)
}

pub(crate) fn info(db: &Db, instance: &str) -> Result<InstanceInfo> {
    let info = db.one(sql::INSTANCE_INFO, [instance], info_of)?;
    info.ok_or_else(|| SqliteError::Refused(format!("instance '{instance}' not found")))
}

fn info_of(row: &Row<'_>) -> rusqlite::Result<InstanceInfo> {
    Ok(InstanceInfo {
        instance_id: row.get(1)?,
        orchestration_name: row.get(2)?,
        orchestration_version: row.get(3)?,
        current_execution_id: unsigned(row, 4)?,
        status: row.get(5)?,
        output: row.get(6)?,
        created_at: unsigned(row, 7)?,
        updated_at: unsigned(row, 8)?,
        parent_instance_id: row.get(9)?,
    })
}

pub(crate) fn executions(db: &Db, instance: &str) -> Result<Vec<u64>> {
    db.all(sql::LIST_EXECUTIONS, [instance], |row| unsigned(row, 0))
}

pub(crate) fn execution(db: &Db, instance: &str, execution_id: u64) -> Result<ExecutionInfo> {
    let info = db.one(sql::EXECUTION_INFO, (instance, column(execution_id)), |row| {
        Ok(ExecutionInfo {
            execution_id,
            status: row.get(0)?,
            output: row.get(1)?,
            started_at: unsigned(row, 2)?,
            completed_at: row.get::<_, Option<i64>>(3)?.map(|at| u64::try_from(at).unwrap_or(0)),
            event_count: usize::try_from(unsigned(row, 4)?).unwrap_or(usize::MAX),
        })
    })?;
    let missing =
        || SqliteError::Refused(format!("execution {execution_id} of instance '{instance}' not found"));
    info.ok_or_else(missing)
}

pub(crate) fn metrics(db: &Db) -> Result<SystemMetrics> {
    let by_status =
        db.all(sql::STATUS_COUNTS, [], |row| Ok((row.get::<_, Option<String>>(0)?, unsigned(row, 1)?)))?;
    let with_status = |wanted: &str| {
        by_status.iter().filter(|(status, _)| status.as_deref() == Some(wanted)).map(|(_, count)| count).sum()
    };
    let count = |sql: &str| Ok::<u64, SqliteError>(db.one(sql, [], |row| unsigned(row, 0))?.unwrap_or(0));
    Ok(SystemMetrics {
        total_instances: by_status.iter().map(|(_, count)| count).sum(),
        total_executions: count(sql::COUNT_EXECUTIONS)?,
        running_instances: with_status("Running"),
        completed_instances: with_status("Completed"),
        failed_instances: with_status("Failed"),
        total_events: count(sql::COUNT_EVENTS)?,
    })
}

pub(crate) fn depths(db: &Db, now: u64) -> Result<QueueDepths> {
    let counts =
        db.one(sql::QUEUE_DEPTHS, [column(now)], |row| Ok((unsigned(row, 0)?, unsigned(row, 1)?)))?;
    let (messages, work) = counts.unwrap_or_default();
    Ok(QueueDepths { orchestrator_queue: messages as usize, worker_queue: work as usize, timer_queue: 0 })
}

pub(crate) fn children(db: &Db, instance: &str) -> Result<Vec<String>> {
    db.all(sql::LIST_CHILDREN, [instance], |row| row.get(0))
}

/// `None` for an unknown instance, `Some(None)` for a root.
pub(crate) fn parent(db: &Db, instance: &str) -> Result<Option<Option<String>>> {
    db.one(sql::PARENT_OF, [instance], |row| row.get(0))
}

/// The instance and its descendants, root first.
pub(crate) fn tree(db: &Db, root: &str) -> Result<Vec<String>> {
    db.all(sql::INSTANCE_TREE, [root], |row| row.get(0))
}

pub(crate) fn dead_letters(db: &Db, limit: usize) -> Result<Vec<DeadLetter>> {
    db.all(sql::LIST_DEAD_LETTERS, [column(limit as u64)], |row| {
        let queue: String = row.get(0)?;
        Ok(DeadLetter {
            queue: match queue == DeadLetterQueue::Worker.as_str() {
                true => DeadLetterQueue::Worker,
                false => DeadLetterQueue::Orchestrator,
            },
            instance_id: row.get(1)?,
            work_item: row.get(2)?,
            reason: row.get(3)?,
            attempt_count: attempts(row, 4)?,
            dead_at: unsigned(row, 5)?,
        })
    })
}

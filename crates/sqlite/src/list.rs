//! Lists of instances, and figures of the store.

use crate::SqliteError;
use crate::db::{Db, Result, column, unsigned};
use crate::history::ExecutionKey;
use crate::sql;
use outlast_model::ExecutionStatus;
use outlast_provider::{
    ExecutionInfo, InstanceInfo, InstancePage, InstanceQuery, OldestDue, QueueBacklog, QueueDepths,
    StoreGauges, SystemMetrics,
};
use outlast_provider_kit::listing::{BUDGET, PageRows, WINDOW, WINDOWS, is_filtered, needs_attention};
use rusqlite::Row;

/// Ids of instances, newest first, read window by window.
pub(crate) fn ids(db: &Db, status: Option<&str>) -> Result<Vec<String>> {
    if let Some(status) = status.filter(|status| needs_attention(status))
        && are_few(db, status)?
    {
        return db.all(sql::LIST_ATTENTION_IDS, [status], |row| row.get(0));
    }
    let mut all = Vec::new();
    let mut before = i64::MAX;
    loop {
        let end = window_end(db, before, WINDOW)?;
        all.extend(db.all(sql::LIST_INSTANCE_IDS, (before, end.unwrap_or(0), status), |row| row.get(0))?);
        match end {
            Some(end) => before = end + 1,
            None => return Ok(all),
        }
    }
}

/// Whether the partial index holds at most [`BUDGET`] executions of this status, so that all of them can be read for one page.
/// Otherwise the newest instances are read first.
fn are_few(db: &Db, status: &str) -> Result<bool> {
    let found = db.one(sql::COUNT_ATTENTION, (status, column(BUDGET + 1)), |row| unsigned(row, 0))?;
    Ok(found.unwrap_or(0) <= BUDGET)
}

/// The first instance after a window; `None` if the window reaches to the oldest one.
fn window_end(db: &Db, before: i64, instances: u64) -> Result<Option<i64>> {
    db.one(sql::WINDOW_END, (before, column(instances)), |row| row.get(0))
}

/// One page of instances. A page may be short if few instances match: it ends after [`BUDGET`] instances.
pub(crate) fn page(db: &Db, query: &InstanceQuery) -> Result<InstancePage> {
    let mut page = PageRows::of(query).map_err(SqliteError::Refused)?;
    let attention = match query.status.as_deref().filter(|status| needs_attention(status)) {
        Some(status) => are_few(db, status)?,
        None => false,
    };
    if attention {
        page.add(matching(db, sql::LIST_ATTENTION, query, page.before(), 0, page.wanted())?);
    } else if !is_filtered(query) {
        page.add(matching(db, sql::LIST_INSTANCES, query, page.before(), 0, page.wanted())?);
    } else {
        for window in WINDOWS {
            let end = window_end(db, page.before(), window)?;
            let after = end.unwrap_or(0);
            let rows = matching(db, sql::LIST_INSTANCES, query, page.before(), after, page.wanted())?;
            if !page.add_window(rows, end) {
                break;
            }
        }
    }
    let (instances, next) = page.finish();
    Ok(InstancePage { instances, next })
}

/// The newest matching instances between two positions, with their positions.
fn matching(
    db: &Db,
    sql: &str,
    query: &InstanceQuery,
    before: i64,
    after: i64,
    limit: usize,
) -> Result<Vec<(i64, InstanceInfo)>> {
    let wanted = (
        before,
        &query.status,
        &query.orchestration_name,
        &query.id_prefix,
        &query.parent_instance_id,
        query.created_from.map(column),
        query.created_before.map(column),
        column(limit as u64),
        after,
    );
    db.all(sql, wanted, |row| Ok((row.get(0)?, info_of(row)?)))
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

pub(crate) fn execution(db: &Db, key: &ExecutionKey) -> Result<ExecutionInfo> {
    let &ExecutionKey { ref instance, execution_id } = key;
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
    let with_status = |wanted: ExecutionStatus| {
        by_status
            .iter()
            .filter(|(status, _)| status.as_deref() == Some(wanted.as_str()))
            .map(|(_, count)| count)
            .sum()
    };
    let count = |sql: &str| Ok::<u64, SqliteError>(db.one(sql, [], |row| unsigned(row, 0))?.unwrap_or(0));
    Ok(SystemMetrics {
        total_instances: by_status.iter().map(|(_, count)| count).sum(),
        total_executions: count(sql::COUNT_EXECUTIONS)?,
        running_instances: with_status(ExecutionStatus::Running),
        completed_instances: with_status(ExecutionStatus::Completed),
        failed_instances: with_status(ExecutionStatus::Failed),
        total_events: count(sql::COUNT_EVENTS)?,
    })
}

pub(crate) fn depths(db: &Db, now: u64) -> Result<QueueDepths> {
    let counts =
        db.one(sql::QUEUE_DEPTHS, [column(now)], |row| Ok((unsigned(row, 0)?, unsigned(row, 1)?)))?;
    let (messages, activities) = counts.unwrap_or_default();
    Ok(QueueDepths {
        orchestrator_queue: messages as usize,
        worker_queue: activities as usize,
        timer_queue: 0,
    })
}

pub(crate) fn gauges(db: &Db, now: u64) -> Result<StoreGauges> {
    let running_instances = db.one(sql::COUNT_RUNNING, [], |row| unsigned(row, 0))?.unwrap_or(0);
    let counts = db.one(sql::QUEUE_BACKLOGS, [column(now)], |row| {
        let depth = |all: u64, leased: u64| all.saturating_sub(leased);
        let messages = (depth(unsigned(row, 0)?, unsigned(row, 1)?), unsigned(row, 2)?);
        let activities = (depth(unsigned(row, 3)?, unsigned(row, 4)?), unsigned(row, 5)?);
        Ok((messages, activities))
    })?;
    let ((messages, delayed_messages), (activities, delayed_activities)) = counts.unwrap_or_default();
    Ok(StoreGauges {
        running_instances,
        orchestrator_queue: messages,
        worker_queue: activities,
        orchestrator_backlog: Some(QueueBacklog::of(messages, delayed_messages)),
        worker_backlog: Some(QueueBacklog::of(activities, delayed_activities)),
    })
}

pub(crate) fn oldest_due(db: &Db, now: u64) -> Result<OldestDue> {
    let waited = |at: Option<i64>| at.map(|at| now.saturating_sub(u64::try_from(at).unwrap_or(0)));
    let found =
        db.one(sql::OLDEST_DUE, [column(now)], |row| Ok((waited(row.get(0)?), waited(row.get(1)?))))?;
    let (message_ms, activity_ms) = found.unwrap_or_default();
    Ok(OldestDue { message_ms, activity_ms })
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

#[cfg(test)]
mod tests;

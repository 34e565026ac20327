//! Lists and figures.

use crate::PostgresError;
use crate::db::{Db, Param, Result, cell, column, text, text_option, unsigned};
use crate::text::{owned, owned_option};
use outlast_provider::{
    DeadLetter, DeadLetterQueue, ExecutionInfo, InstanceInfo, InstancePage, InstanceQuery, QueueDepths,
    SystemMetrics,
};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// Rows read at a time where a list may be long.
const PAGE: i64 = 1_000;

/// Ids of instances, newest first, read page by page.
pub(crate) async fn ids(db: &Db, status: Option<&str>) -> Result<Vec<String>> {
    let status = status.map(owned);
    let mut all = Vec::new();
    let mut before = i64::MAX;
    loop {
        let wanted: [Param<'_>; 3] = [(&before, Type::INT8), (&status, Type::TEXT), (&PAGE, Type::INT8)];
        let page = db.all(&db.statements.list_instance_ids, &wanted).await?;
        for row in &page {
            before = cell(row, 0)?;
            all.push(text(row, 1)?);
        }
        if page.len() < usize::try_from(PAGE).unwrap_or(usize::MAX) {
            return Ok(all);
        }
    }
}

/// One page of instances. The position is that of the last row seen, so that pages neither repeat nor skip.
pub(crate) async fn page(db: &Db, query: &InstanceQuery) -> Result<InstancePage> {
    let before = match &query.after {
        None => i64::MAX,
        Some(after) => position(after).ok_or_else(|| {
            PostgresError::Refused(format!(
                "page position '{after}' is not one of ours: start from the first page"
            ))
        })?,
    };
    let size = query.page_size();
    let [status, name, prefix, parent] =
        [&query.status, &query.orchestration_name, &query.id_prefix, &query.parent_instance_id]
            .map(|text| owned_option(text.as_ref()));
    let [from, to] = [query.created_from, query.created_before].map(|at| at.map(column));
    // One more than asked for tells whether there is a next page.
    let limit = column(size as u64 + 1);
    let wanted: [Param<'_>; 8] = [
        (&before, Type::INT8),
        (&status, Type::TEXT),
        (&name, Type::TEXT),
        (&prefix, Type::TEXT),
        (&parent, Type::TEXT),
        (&from, Type::INT8),
        (&to, Type::INT8),
        (&limit, Type::INT8),
    ];
    let rows = db.all(&db.statements.list_instances, &wanted).await?;
    let shown = &rows[..rows.len().min(size)];
    let next = match (rows.len() > size, shown.last()) {
        (true, Some(last)) => Some(cell::<i64>(last, 0)?.to_string()),
        _ => None,
    };
    Ok(InstancePage { instances: shown.iter().map(info_of).collect::<Result<_>>()?, next })
}

/// A page position, in exactly the form in which we give one out.
fn position(text: &str) -> Option<i64> {
    text.parse().ok().filter(|position: &i64| *position > 0 && position.to_string() == text)
}

pub(crate) async fn info(db: &Db, instance: &str) -> Result<InstanceInfo> {
    let id = owned(instance);
    match db.one(&db.statements.instance_info, &[(&id, Type::TEXT)]).await? {
        Some(row) => info_of(&row),
        None => Err(PostgresError::Refused(format!("instance '{instance}' not found"))),
    }
}

fn info_of(row: &Row) -> Result<InstanceInfo> {
    Ok(InstanceInfo {
        instance_id: text(row, 1)?,
        orchestration_name: text(row, 2)?,
        orchestration_version: text(row, 3)?,
        current_execution_id: unsigned(row, 4)?,
        status: text(row, 5)?,
        output: text_option(row, 6)?,
        created_at: unsigned(row, 7)?,
        updated_at: unsigned(row, 8)?,
        parent_instance_id: text_option(row, 9)?,
    })
}

pub(crate) async fn executions(db: &Db, instance: &str) -> Result<Vec<u64>> {
    let instance = owned(instance);
    let rows = db.all(&db.statements.list_executions, &[(&instance, Type::TEXT)]).await?;
    rows.iter().map(|row| unsigned(row, 0)).collect()
}

pub(crate) async fn execution(db: &Db, instance: &str, execution_id: u64) -> Result<ExecutionInfo> {
    let (id, execution) = (owned(instance), column(execution_id));
    let key: [Param<'_>; 2] = [(&id, Type::TEXT), (&execution, Type::INT8)];
    let Some(row) = db.one(&db.statements.execution_info, &key).await? else {
        let message = format!("execution {execution_id} of instance '{instance}' not found");
        return Err(PostgresError::Refused(message));
    };
    Ok(ExecutionInfo {
        execution_id,
        status: text(&row, 0)?,
        output: text_option(&row, 1)?,
        started_at: unsigned(&row, 2)?,
        completed_at: cell::<Option<i64>>(&row, 3)?.map(|at| u64::try_from(at).unwrap_or(0)),
        event_count: usize::try_from(unsigned(&row, 4)?).unwrap_or(usize::MAX),
    })
}

pub(crate) async fn metrics(db: &Db) -> Result<SystemMetrics> {
    let Some(row) = db.one(&db.statements.system_metrics, &[]).await? else {
        return Ok(SystemMetrics::default());
    };
    Ok(SystemMetrics {
        total_executions: unsigned(&row, 0)?,
        total_events: unsigned(&row, 1)?,
        total_instances: unsigned(&row, 2)?,
        running_instances: unsigned(&row, 3)?,
        completed_instances: unsigned(&row, 4)?,
        failed_instances: unsigned(&row, 5)?,
    })
}

pub(crate) async fn depths(db: &Db) -> Result<QueueDepths> {
    let Some(row) = db.one(&db.statements.queue_depths, &[]).await? else {
        return Ok(QueueDepths::default());
    };
    let count =
        |index| Ok::<usize, PostgresError>(usize::try_from(unsigned(&row, index)?).unwrap_or(usize::MAX));
    Ok(QueueDepths { orchestrator_queue: count(0)?, worker_queue: count(1)?, timer_queue: 0 })
}

pub(crate) async fn children(db: &Db, instance: &str) -> Result<Vec<String>> {
    let instance = owned(instance);
    let rows = db.all(&db.statements.list_children, &[(&instance, Type::TEXT)]).await?;
    rows.iter().map(|row| text(row, 0)).collect()
}

/// `None` for an unknown instance, `Some(None)` for a root.
pub(crate) async fn parent(db: &Db, instance: &str) -> Result<Option<Option<String>>> {
    let instance = owned(instance);
    match db.one(&db.statements.parent_of, &[(&instance, Type::TEXT)]).await? {
        Some(row) => Ok(Some(text_option(&row, 0)?)),
        None => Ok(None),
    }
}

/// The instance and its descendants, root first.
pub(crate) async fn tree(db: &Db, root: &str) -> Result<Vec<String>> {
    let roots = vec![owned(root)];
    let rows = db.all(&db.statements.instance_tree, &[(&roots, Type::TEXT_ARRAY)]).await?;
    rows.iter().map(|row| text(row, 0)).collect()
}

pub(crate) async fn dead_letters(db: &Db, limit: usize) -> Result<Vec<DeadLetter>> {
    let limit = column(limit as u64);
    let rows = db.all(&db.statements.list_dead_letters, &[(&limit, Type::INT8)]).await?;
    let letter = |row: &Row| {
        Ok(DeadLetter {
            queue: match cell::<&str>(row, 0)? == DeadLetterQueue::Worker.as_str() {
                true => DeadLetterQueue::Worker,
                false => DeadLetterQueue::Orchestrator,
            },
            instance_id: text_option(row, 1)?,
            work_item: cell(row, 2)?,
            reason: text(row, 3)?,
            attempt_count: u32::try_from(cell::<i32>(row, 4)?).unwrap_or(0),
            dead_at: unsigned(row, 5)?,
        })
    };
    rows.iter().map(letter).collect()
}

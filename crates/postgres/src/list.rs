//! Lists of instances and executions, and figures of the store.

use crate::PostgresError;
use crate::db::{Db, ONLY, Param, Result, cell, column, text, text_option, unsigned};
use crate::text::{owned, owned_option};
use outlast_provider::{
    ExecutionInfo, InstanceInfo, InstancePage, InstanceQuery, OldestDue, QueueBacklog, QueueDepths,
    StoreGauges, SystemMetrics,
};
use outlast_provider_kit::listing::{BUDGET, PageRows, WINDOW, WINDOWS, is_filtered, needs_attention};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// Ids of instances, newest first, read window by window.
pub(crate) async fn ids(db: &Db, status: Option<&str>) -> Result<Vec<String>> {
    let wanted = status.map(owned);
    if let Some(status) = status.filter(|status| needs_attention(status))
        && are_few(db, status).await?
    {
        let found = db.all(&db.statements.list_attention_ids, &[(&wanted, Type::TEXT)]).await?;
        return found.iter().map(|row| text(row, ONLY)).collect();
    }
    let mut all = Vec::new();
    let mut before = i64::MAX;
    loop {
        let end = window_end(db, before, column(WINDOW)).await?;
        let after = end.unwrap_or(0);
        let window: [Param<'_>; 3] = [(&before, Type::INT8), (&after, Type::INT8), (&wanted, Type::TEXT)];
        for row in &db.all(&db.statements.list_instance_ids, &window).await? {
            all.push(text(row, "instance_id")?);
        }
        match end {
            Some(end) => before = end + 1,
            None => return Ok(all),
        }
    }
}

/// Whether the partial index holds at most [`BUDGET`] executions of this status, so that one page can read all of these executions.
/// Otherwise the page reads the newest instances first.
async fn are_few(db: &Db, status: &str) -> Result<bool> {
    let (status, most) = (owned(status), column(BUDGET + 1));
    let wanted: [Param<'_>; 2] = [(&status, Type::TEXT), (&most, Type::INT8)];
    match db.one(&db.statements.count_attention, &wanted).await? {
        Some(row) => Ok(cell::<i64>(&row, ONLY)? <= column(BUDGET)),
        None => Ok(true),
    }
}

/// The first instance after a window; `None` if the window reaches to the oldest one.
async fn window_end(db: &Db, before: i64, instances: i64) -> Result<Option<i64>> {
    let wanted: [Param<'_>; 2] = [(&before, Type::INT8), (&instances, Type::INT8)];
    match db.one(&db.statements.window_end, &wanted).await? {
        Some(row) => Ok(Some(cell(&row, ONLY)?)),
        None => Ok(None),
    }
}

/// One page of instances. A page may be short if few instances match: the page ends after [`BUDGET`] instances are read.
pub(crate) async fn page(db: &Db, query: &InstanceQuery) -> Result<InstancePage> {
    let mut page = PageRows::of(query).map_err(PostgresError::Refused)?;
    let attention = match query.status.as_deref().filter(|status| needs_attention(status)) {
        Some(status) => are_few(db, status).await?,
        None => false,
    };
    if attention {
        page.add(matching(db, &db.statements.list_attention, query, page.before(), 0, page.wanted()).await?);
    } else if !is_filtered(query) {
        page.add(matching(db, &db.statements.list_instances, query, page.before(), 0, page.wanted()).await?);
    } else {
        for window in WINDOWS {
            let end = window_end(db, page.before(), column(window)).await?;
            let (after, wanted) = (end.unwrap_or(0), page.wanted());
            let rows =
                matching(db, &db.statements.list_instances, query, page.before(), after, wanted).await?;
            if !page.add_window(rows, end) {
                break;
            }
        }
    }
    let (instances, next) = page.finish();
    Ok(InstancePage { instances, next })
}

/// The newest matching instances between two positions, with their positions.
async fn matching(
    db: &Db,
    sql: &str,
    query: &InstanceQuery,
    before: i64,
    after: i64,
    limit: usize,
) -> Result<Vec<(i64, InstanceInfo)>> {
    let [status, name, prefix, parent] =
        [&query.status, &query.orchestration_name, &query.id_prefix, &query.parent_instance_id]
            .map(|text| owned_option(text.as_ref()));
    let [from, to] = [query.created_from, query.created_before].map(|at| at.map(column));
    let limit = column(limit as u64);
    let wanted: [Param<'_>; 9] = [
        (&before, Type::INT8),
        (&status, Type::TEXT),
        (&name, Type::TEXT),
        (&prefix, Type::TEXT),
        (&parent, Type::TEXT),
        (&from, Type::INT8),
        (&to, Type::INT8),
        (&limit, Type::INT8),
        (&after, Type::INT8),
    ];
    let rows = db.all(sql, &wanted).await?;
    rows.iter().map(|row| Ok((cell(row, "created_as")?, info_of(row)?))).collect()
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
        instance_id: text(row, "instance_id")?,
        orchestration_name: text(row, "orchestration_name")?,
        orchestration_version: text(row, "orchestration_version")?,
        current_execution_id: unsigned(row, "current_execution_id")?,
        status: text(row, "status")?,
        output: text_option(row, "output")?,
        created_at: unsigned(row, "created_at")?,
        updated_at: unsigned(row, "updated_at")?,
        parent_instance_id: text_option(row, "parent_instance_id")?,
    })
}

pub(crate) async fn executions(db: &Db, instance: &str) -> Result<Vec<u64>> {
    let instance = owned(instance);
    let rows = db.all(&db.statements.list_executions, &[(&instance, Type::TEXT)]).await?;
    rows.iter().map(|row| unsigned(row, ONLY)).collect()
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
        status: text(&row, "status")?,
        output: text_option(&row, "output")?,
        started_at: unsigned(&row, "started_at")?,
        completed_at: cell::<Option<i64>>(&row, "completed_at")?.map(|at| u64::try_from(at).unwrap_or(0)),
        event_count: usize::try_from(unsigned(&row, "events")?).unwrap_or(usize::MAX),
    })
}

/// The totals of the store.
pub(crate) async fn metrics(db: &Db) -> Result<SystemMetrics> {
    let Some(row) = db.one(&db.statements.system_metrics, &[]).await? else {
        return Ok(SystemMetrics::default());
    };
    Ok(SystemMetrics {
        total_executions: unsigned(&row, "executions")?,
        total_events: unsigned(&row, "events")?,
        total_instances: unsigned(&row, "instances")?,
        running_instances: unsigned(&row, "running")?,
        completed_instances: unsigned(&row, "completed")?,
        failed_instances: unsigned(&row, "failed")?,
    })
}

/// The numbers of messages and activities that wait.
pub(crate) async fn depths(db: &Db) -> Result<QueueDepths> {
    let Some(row) = db.one(&db.statements.queue_depths, &[]).await? else {
        return Ok(QueueDepths::default());
    };
    let count =
        |name: &str| Ok::<usize, PostgresError>(usize::try_from(unsigned(&row, name)?).unwrap_or(usize::MAX));
    Ok(QueueDepths {
        orchestrator_queue: count("messages")?,
        worker_queue: count("activities")?,
        timer_queue: 0,
    })
}

/// The numbers that runtimes publish as gauges.
pub(crate) async fn gauges(db: &Db) -> Result<StoreGauges> {
    let Some(row) = db.one(&db.statements.gauges, &[]).await? else { return Ok(StoreGauges::default()) };
    let (messages, activities) = (unsigned(&row, "messages")?, unsigned(&row, "activities")?);
    Ok(StoreGauges {
        running_instances: unsigned(&row, "running")?,
        orchestrator_queue: messages,
        worker_queue: activities,
        orchestrator_backlog: Some(QueueBacklog::of(messages, unsigned(&row, "later_messages")?)),
        worker_backlog: Some(QueueBacklog::of(activities, unsigned(&row, "later_activities")?)),
    })
}

/// For each queue the longest wait of a fetchable item.
pub(crate) async fn oldest_due(db: &Db) -> Result<OldestDue> {
    let Some(row) = db.one(&db.statements.oldest_due, &[]).await? else { return Ok(OldestDue::default()) };
    let waited = |name: &str| {
        let waited: Option<i64> = cell(&row, name)?;
        Ok::<_, PostgresError>(waited.map(|ms| u64::try_from(ms).unwrap_or(0)))
    };
    Ok(OldestDue { message_ms: waited("message_ms")?, activity_ms: waited("activity_ms")? })
}

pub(crate) async fn children(db: &Db, instance: &str) -> Result<Vec<String>> {
    let instance = owned(instance);
    let rows = db.all(&db.statements.list_children, &[(&instance, Type::TEXT)]).await?;
    rows.iter().map(|row| text(row, ONLY)).collect()
}

/// The parent of an instance: `None` for an unknown instance, `Some(None)` for a root.
pub(crate) async fn parent(db: &Db, instance: &str) -> Result<Option<Option<String>>> {
    let instance = owned(instance);
    match db.one(&db.statements.parent_of, &[(&instance, Type::TEXT)]).await? {
        Some(row) => Ok(Some(text_option(&row, ONLY)?)),
        None => Ok(None),
    }
}

/// The instance and its descendants, root first.
pub(crate) async fn tree(db: &Db, root: &str) -> Result<Vec<String>> {
    let roots = vec![owned(root)];
    let rows = db.all(&db.statements.instance_tree, &[(&roots, Type::TEXT_ARRAY)]).await?;
    rows.iter().map(|row| text(row, ONLY)).collect()
}

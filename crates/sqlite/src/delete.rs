//! Deletes of instances, and pruning of old executions.

use crate::db::{Db, Result, column};
use crate::transaction::Transaction;
use crate::{SqliteError, list, sql};
use outlast_provider::{DeleteInstanceResult, InstanceFilter, PruneOptions, PruneResult};
use outlast_provider_kit::removed::{add_deleted, add_pruned};

/// Deleted instances.
pub(crate) struct Deleted {
    pub(crate) ids: Vec<String>,
    pub(crate) counts: DeleteInstanceResult,
}

/// Deletes exactly these instances, or none.
pub(crate) fn instances(
    tx: &mut Transaction<'_>,
    ids: &[String],
    force: bool,
) -> Result<DeleteInstanceResult> {
    let refuse = |message: String| Err(SqliteError::Refused(message));
    for id in ids {
        if !force && is_running(tx.db, id)? {
            return refuse(format!("instance '{id}' is still running: cancel it first, or use force"));
        }
    }
    for id in ids {
        if let Some(child) = list::children(tx.db, id)?.into_iter().find(|child| !ids.contains(child)) {
            return refuse(format!("child '{child}' of '{id}' would be orphaned: delete the whole tree"));
        }
    }
    let mut deleted = DeleteInstanceResult::default();
    for id in ids {
        add_deleted(&mut deleted, &one(tx.db, id)?);
    }
    // The deleted rows may have been in front of other rows of the queues, so the parked fetches are polled.
    tx.wakeups.poll.turns = true;
    tx.wakeups.poll.activities = true;
    Ok(deleted)
}

/// Deletes a root and its descendants.
pub(crate) fn tree(tx: &mut Transaction<'_>, root: &str, force: bool) -> Result<Deleted> {
    match list::parent(tx.db, root)? {
        None => Err(SqliteError::Refused(format!("instance '{root}' not found"))),
        Some(Some(parent)) => Err(SqliteError::Refused(format!(
            "instance '{root}' is a sub-orchestration of '{parent}': delete its root instance instead"
        ))),
        Some(None) => {
            let ids = list::tree(tx.db, root)?;
            let counts = instances(tx, &ids, force)?;
            Ok(Deleted { ids, counts })
        }
    }
}

/// A finished root to delete with its descendants, if it completed before this time.
pub(crate) struct FinishedTree {
    pub(crate) root: String,
    pub(crate) completed_before: Option<u64>,
}

/// Deletes a finished root that still matches, with its descendants. `None` if the root does not match, or a descendant runs or is
/// kept.
pub(crate) fn finished_tree(
    tx: &mut Transaction<'_>,
    finished: &FinishedTree,
    is_kept: impl Fn(&Db, &str) -> Result<bool>,
) -> Result<Option<Deleted>> {
    let FinishedTree { root, completed_before } = finished;
    if candidate(tx.db, root, *completed_before, true)?.is_none() {
        return Ok(None);
    }
    let ids = list::tree(tx.db, root)?;
    for id in &ids {
        if is_running(tx.db, id)? || is_kept(tx.db, id)? {
            return Ok(None);
        }
    }
    let counts = instances(tx, &ids, true)?;
    Ok(Some(Deleted { ids, counts }))
}

/// Deletes the rows of one instance.
fn one(db: &Db, id: &str) -> Result<DeleteInstanceResult> {
    let count = |sql: &str| Ok::<u64, SqliteError>(db.run(sql, [id])? as u64);
    db.run(sql::DELETE_INSTANCE_MESSAGE_TEXTS, [id])?;
    let deleted = DeleteInstanceResult {
        events_deleted: count(sql::DELETE_INSTANCE_HISTORY)?,
        executions_deleted: count(sql::DELETE_INSTANCE_EXECUTIONS)?,
        queue_messages_deleted: count(sql::DELETE_INSTANCE_ORCHESTRATOR_QUEUE)?
            + count(sql::DELETE_INSTANCE_WORKER_QUEUE)?,
        instances_deleted: count(sql::DELETE_INSTANCE_INSTANCES)?,
    };
    for sql in [
        sql::DELETE_INSTANCE_INSTANCE_LOCKS,
        sql::DELETE_HOLD,
        sql::DELETE_INSTANCE_KV_STORE,
        sql::DELETE_INSTANCE_KV_DELTA,
        sql::DELETE_INSTANCE_MESSAGE_KEYS,
    ] {
        db.run(sql, [id])?;
    }
    Ok(deleted)
}

fn is_running(db: &Db, id: &str) -> Result<bool> {
    Ok(db.one(sql::IS_RUNNING, [id], |_| Ok(()))?.is_some())
}

/// Deletes old executions of an instance.
pub(crate) fn prune(tx: &mut Transaction<'_>, instance: &str, options: &PruneOptions) -> Result<PruneResult> {
    if list::parent(tx.db, instance)?.is_none() {
        return Err(SqliteError::Refused(format!("instance '{instance}' not found")));
    }
    let keep = i64::from(options.keep_last.unwrap_or(0));
    let candidates = (instance, keep, options.completed_before.map(column));
    let executions: Vec<i64> = tx.db.all(sql::PRUNE_CANDIDATES, candidates, |row| row.get(0))?;
    let mut result = PruneResult { instances_processed: 1, ..PruneResult::default() };
    if !executions.is_empty() {
        tx.db.run_exactly(1, "keeping the time of an instance", sql::PRUNE_UPDATED_AT, [instance])?;
    }
    for execution in executions {
        result.events_deleted += tx.db.run(sql::PRUNE_HISTORY, (instance, execution))? as u64;
        tx.db.run_exactly(1, "pruning an execution", sql::PRUNE_EXECUTION, (instance, execution))?;
        result.executions_deleted += 1;
    }
    Ok(result)
}

/// [`prune`] for the instances of a page. An instance that was deleted after it was listed is left out.
pub(crate) fn prune_page(
    tx: &mut Transaction<'_>,
    (page, options): &(Vec<(i64, String)>, PruneOptions),
) -> Result<PruneResult> {
    let mut sum = PruneResult::default();
    for (_, instance) in page {
        if list::parent(tx.db, instance)?.is_some() {
            add_pruned(&mut sum, &prune(tx, instance, options)?);
        }
    }
    Ok(sum)
}

/// A page of the candidates of a bulk operation.
pub(crate) struct BulkPage {
    /// The position of the last candidate before the page.
    pub(crate) after: i64,
    pub(crate) filter: InstanceFilter,
    /// Whether only finished roots are candidates.
    pub(crate) finished_roots: bool,
    pub(crate) limit: usize,
}

/// The next instances, in order of creation, that a bulk filter selects after a position.
pub(crate) fn candidates_after(db: &Db, page: &BulkPage) -> Result<Vec<(i64, String)>> {
    let &BulkPage { after, ref filter, finished_roots, limit } = page;
    let before = filter.completed_before.map(column);
    if let Some(ids) = &filter.instance_ids {
        let mut found = Vec::new();
        for id in ids {
            if let Some(position) = candidate(db, id, filter.completed_before, finished_roots)?
                && position > after
            {
                found.push((position, id.clone()));
            }
        }
        found.sort();
        found.dedup();
        found.truncate(limit);
        return Ok(found);
    }
    let page = (after, before, finished_roots, column(limit as u64));
    db.all(sql::BULK_CANDIDATES, page, |row| Ok((row.get(0)?, row.get(1)?)))
}

fn candidate(db: &Db, id: &str, completed_before: Option<u64>, finished_roots: bool) -> Result<Option<i64>> {
    let wanted = (id, completed_before.map(column), finished_roots);
    db.one(sql::BULK_CANDIDATE, wanted, |row| row.get(0))
}

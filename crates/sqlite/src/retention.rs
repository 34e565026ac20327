//! Retention: the oldest instances, and the deletion of ended trees, old records of the audit and old dead letters.

use crate::db::{Db, Result, column, unsigned};
use crate::delete::{self, Deleted, FinishedTree};
use crate::sql;
use crate::transaction::Transaction;
use outlast_provider::{DeleteInstanceResult, OldInstance, OldestPage};
use outlast_provider_kit::removed::add_deleted;

/// The most trees that are deleted before the writer serves other calls.
pub(crate) const TREES_AT_ONCE: usize = 16;

/// A page of the oldest instances.
pub(crate) struct Page {
    pub(crate) after: Option<u64>,
    pub(crate) limit: usize,
}

pub(crate) fn oldest(db: &Db, page: &Page) -> Result<OldestPage> {
    let wanted = (page.after.map_or(i64::MIN, column), column(page.limit as u64).saturating_add(1));
    let mut rows = db.all(sql::OLDEST_INSTANCES, wanted, |row| {
        let instance = OldInstance {
            instance_id: row.get(1)?,
            orchestration_name: row.get(2)?,
            status: row.get(3)?,
            is_root: row.get(4)?,
            created_at: unsigned(row, 5)?,
            ended_at: row.get::<_, Option<i64>>(6)?.map(|_| unsigned(row, 6)).transpose()?,
        };
        Ok((unsigned(row, 0)?, instance))
    })?;
    let is_cut = rows.len() > page.limit;
    rows.truncate(page.limit);
    let next = rows.last().map(|(position, _)| *position).filter(|_| is_cut);
    Ok(OldestPage { instances: rows.into_iter().map(|(_, instance)| instance).collect(), next })
}

/// Roots to delete with their descendants.
pub(crate) struct EndedRoots {
    pub(crate) roots: Vec<String>,
    pub(crate) ended_before: u64,
}

/// Deletes the trees that match.
pub(crate) fn delete_ended(tx: &mut Transaction<'_>, ended: &EndedRoots) -> Result<Deleted> {
    let mut total = Deleted { ids: Vec::new(), counts: DeleteInstanceResult::default() };
    for root in &ended.roots {
        let finished = FinishedTree { root: root.clone(), completed_before: Some(ended.ended_before) };
        if let Some(deleted) = delete::finished_tree(tx, &finished, is_in_use)? {
            add_deleted(&mut total.counts, &deleted.counts);
            total.ids.extend(deleted.ids);
        }
    }
    Ok(total)
}

/// Whether an instance is held, or an item other than a timer waits for it.
fn is_in_use(db: &Db, id: &str) -> Result<bool> {
    Ok(db.one(sql::IS_IN_USE, [id], |row| row.get(0))?.unwrap_or(false))
}

/// Rows to examine, oldest first, and the time before which they are deleted.
pub(crate) struct Oldest {
    pub(crate) before: u64,
    pub(crate) limit: usize,
}

pub(crate) fn prune_audit(tx: &mut Transaction<'_>, oldest: &Oldest) -> Result<u64> {
    Ok(tx.db.run(sql::PRUNE_AUDIT, (column(oldest.before), column(oldest.limit as u64)))? as u64)
}

pub(crate) fn prune_dead_letters(tx: &mut Transaction<'_>, oldest: &Oldest) -> Result<u64> {
    Ok(tx.db.run(sql::PRUNE_DEAD_LETTERS, (column(oldest.before), column(oldest.limit as u64)))? as u64)
}

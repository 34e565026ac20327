//! Reports of nodes.

use crate::db::{Db, Result, column, stored_text, unsigned};
use crate::sql;
use crate::transaction::Transaction;
use outlast_provider::NodeRecord;
use outlast_provider_kit::{NodeRow, node_record};

/// Stores the report of a node in place of its earlier one.
pub(crate) fn announce(tx: &mut Transaction<'_>, row: &NodeRow) -> Result<bool> {
    let times = [tx.now, row.expires_at(tx.now), row.kept_until(tx.now)].map(column);
    let [seen_at, expires_at, kept_until] = times;
    let stored = (&row.node_id, &row.report, seen_at, expires_at, kept_until);
    tx.db.run_exactly(1, "storing the report of a node", sql::ANNOUNCE_NODE, stored)?;
    Ok(true)
}

/// Deletes the report of a node; returns whether there was one.
pub(crate) fn remove(tx: &mut Transaction<'_>, node_id: &str) -> Result<bool> {
    Ok(tx.db.run(sql::REMOVE_NODE, [node_id])? > 0)
}

/// Deletes reports that are kept no longer; returns their number.
pub(crate) fn sweep(tx: &mut Transaction<'_>, limit: &usize) -> Result<u64> {
    Ok(tx.db.run(sql::SWEEP_NODES, (column(tx.now), column(*limit as u64)))? as u64)
}

/// A page of the list of nodes.
pub(crate) struct NodePage {
    pub(crate) after: Option<String>,
    pub(crate) limit: usize,
    pub(crate) now: u64,
}

pub(crate) fn list(db: &Db, page: &NodePage) -> Result<Vec<NodeRecord>> {
    let after = page.after.as_deref().unwrap_or("");
    db.all(sql::LIST_NODES, (after, column(page.limit as u64)), |row| {
        let (node_id, report) = (stored_text(row, 0)?, stored_text(row, 1)?);
        Ok(node_record(&node_id, &report, unsigned(row, 2)?, unsigned(row, 3)?, page.now))
    })
}

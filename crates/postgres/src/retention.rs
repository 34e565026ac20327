//! Retention: the oldest instances, and the deletion of old records of the audit and old dead letters.

use crate::db::{Db, ONLY, Param, Result, cell, column, text, unsigned};
use crate::deadline::within;
use crate::delete::begin;
use outlast_provider::{OldInstance, OldestPage};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

/// The next instances in order of creation.
pub(crate) async fn oldest(db: &Db, after: Option<u64>, limit: usize) -> Result<OldestPage> {
    // One surplus row shows whether the page has a successor.
    let (from, most) = (after.map_or(i64::MIN, column), column(limit as u64).saturating_add(1));
    let wanted: [Param<'_>; 2] = [(&from, Type::INT8), (&most, Type::INT8)];
    let rows = by_keys(db, &db.statements.oldest_instances, &wanted).await?;
    let mut page = OldestPage::default();
    for row in rows.iter().take(limit) {
        page.instances.push(OldInstance {
            instance_id: text(row, "instance_id")?,
            orchestration_name: text(row, "orchestration_name")?,
            status: text(row, "status")?,
            is_root: cell(row, "is_root")?,
            created_at: unsigned(row, "created_at")?,
            ended_at: cell::<Option<i64>>(row, "completed_at")?.map(|at| u64::try_from(at).unwrap_or(0)),
        });
        page.next = Some(unsigned(row, "created_as")?).filter(|_| rows.len() > limit);
    }
    Ok(page)
}

pub(crate) async fn prune_audit(db: &Db, before: u64, limit: usize) -> Result<u64> {
    prune(db, &db.statements.prune_audit, before, limit).await
}

pub(crate) async fn prune_dead_letters(db: &Db, before: u64, limit: usize) -> Result<u64> {
    prune(db, &db.statements.prune_dead_letters, before, limit).await
}

async fn prune(db: &Db, statement: &str, before: u64, limit: usize) -> Result<u64> {
    let (before, limit) = (column(before), column(limit as u64));
    let wanted: [Param<'_>; 2] = [(&before, Type::INT8), (&limit, Type::INT8)];
    by_keys(db, statement, &wanted).await?.first().map_or(Ok(0), |row| unsigned(row, ONLY))
}

/// The rows of a statement that uses index lookups only: without statistics the planner would read a whole table for a few rows.
async fn by_keys(db: &Db, statement: &str, wanted: &[Param<'_>]) -> Result<Vec<Row>> {
    let mut connection = db.connection().await?;
    let closer = connection.closer();
    within(db, &closer, db.long_deadline, in_transaction(db, &mut connection, statement, wanted)).await
}

/// Runs one statement in a transaction with the settings of removals.
async fn in_transaction(
    db: &Db,
    client: &mut Client,
    statement: &str,
    wanted: &[Param<'_>],
) -> Result<Vec<Row>> {
    let transaction = begin(db, client).await?;
    let rows = transaction.query_typed(statement, wanted).await?;
    transaction.commit().await?;
    Ok(rows)
}

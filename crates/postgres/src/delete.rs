//! Removes instances and old executions in several transactions, so that each is short and holds its locks for a short time.

use crate::PostgresError;
use crate::db::{Db, ONLY, Param, Result, cell, column, text, unsigned};
use crate::deadline::within;
use crate::text::owned;
use outlast_provider::{DeleteInstanceResult, InstanceFilter, PruneOptions, PruneResult};
use std::time::Duration;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, GenericClient, Transaction};

/// The result of a removal.
pub(crate) struct Deleted {
    pub(crate) ids: Vec<String>,
    pub(crate) counts: DeleteInstanceResult,
}

/// Instances to remove.
#[derive(Clone, Copy)]
pub(crate) enum Removal<'a> {
    /// The given instances.
    Listed { ids: &'a [String], force: bool },
    /// A root and its descendants.
    Tree { root: &'a str, force: bool },
    /// Several roots with their descendants, if all roots still match, none of these instances runs, and one transaction may remove
    /// that many instances; otherwise no instance.
    Finished { roots: &'a [String], completed_before: Option<u64> },
    /// As `Finished`, if also none of the instances is held, and no item other than a timer waits for an instance.
    Unused { roots: &'a [String], completed_before: u64 },
}

impl Removal<'_> {
    /// Whether instances that no longer match are skipped without an error.
    fn passes_over(self) -> bool {
        matches!(self, Self::Finished { .. } | Self::Unused { .. })
    }

    fn takes_several(self) -> bool {
        matches!(self, Self::Finished { roots, .. } | Self::Unused { roots, .. } if roots.len() > 1)
    }
}

/// Most instances that a transaction removes, except for one tree, which a transaction removes as a whole.
const MOST_INSTANCES: usize = 1_000;
/// Most executions of an instance that a transaction removes.
const MOST_EXECUTIONS: usize = 200;

/// As in the functions: right after a load the planner has no statistics, and would read whole tables for each removal.
const BY_KEYS: &str =
    "SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off";

/// The attempts at a removal that conflicts with other transactions.
const TRIES: u32 = 5;

/// Removes all instances of a removal, or none. `None` if the instances do not match any more.
pub(crate) async fn remove(db: &Db, removal: Removal<'_>) -> Result<Option<Deleted>> {
    let mut tries = 0;
    loop {
        tries += 1;
        match remove_once(db, removal).await {
            Err(PostgresError::Conflict { .. }) if tries < TRIES => {
                db.counters.conflicts.add(1);
                tokio::time::sleep(Duration::from_millis(10 * u64::from(tries))).await;
            }
            removed => return removed,
        }
    }
}

/// Removes the instances of a removal in one transaction, within the deadline of removals.
async fn remove_once(db: &Db, removal: Removal<'_>) -> Result<Option<Deleted>> {
    let mut connection = db.connection().await?;
    let closer = connection.closer();
    within(db, &closer, db.long_deadline, remove_on(db, &mut connection, removal)).await
}

/// Selects, locks and checks the instances of a removal in one transaction, and deletes them. `None` if they no longer match.
async fn remove_on(db: &Db, client: &mut Client, removal: Removal<'_>) -> Result<Option<Deleted>> {
    let transaction = begin(db, client).await?;
    let (ids, force) = match removal {
        Removal::Listed { ids, force } => (ids.to_vec(), force),
        Removal::Tree { root, force } => (rooted(db, &transaction, root).await?, force),
        Removal::Finished { roots, completed_before } => {
            let is_old = are_finished(db, &transaction, roots, completed_before).await?;
            let ids = trees(db, &transaction, roots).await?;
            if !is_old || (roots.len() > 1 && ids.len() > MOST_INSTANCES) {
                return Ok(None);
            }
            (ids, false)
        }
        Removal::Unused { roots, .. } => {
            let ids = trees(db, &transaction, roots).await?;
            if roots.len() > 1 && ids.len() > MOST_INSTANCES {
                return Ok(None);
            }
            (ids, false)
        }
    };
    let keys: Vec<String> = ids.iter().map(|id| owned(id)).collect();
    let wanted: [Param<'_>; 1] = [(&keys, Type::TEXT_ARRAY)];
    transaction.query_typed(&db.statements.lock_leases, &wanted).await?;
    transaction.query_typed(&db.statements.lock_instances, &wanted).await?;
    if let Removal::Unused { roots, completed_before } = removal {
        let is_old = are_finished(db, &transaction, roots, Some(completed_before)).await?;
        if !is_old || transaction.query_typed_opt(&db.statements.in_use_of, &wanted).await?.is_some() {
            return Ok(None);
        }
    }
    if !force && let Some(row) = transaction.query_typed_opt(&db.statements.running_of, &wanted).await? {
        if removal.passes_over() {
            return Ok(None);
        }
        let id = text(&row, ONLY)?;
        let message = format!("instance '{id}' is still running: cancel it first, or use force");
        return Err(PostgresError::Refused(message));
    }
    if let Some(row) = transaction.query_typed_opt(&db.statements.orphan_of, &wanted).await? {
        if removal.takes_several() || matches!(removal, Removal::Unused { .. }) {
            return Ok(None);
        }
        let (child, id) = (text(&row, "instance_id")?, text(&row, "parent_instance_id")?);
        let message = format!("child '{child}' of '{id}' would be orphaned: delete the whole tree");
        return Err(PostgresError::Refused(message));
    }
    let row = transaction.query_typed_one(&db.statements.delete_instances, &wanted).await?;
    if matches!(removal, Removal::Unused { .. }) && unsigned(&row, "in_use")? > 0 {
        // A message arrived after the check. It stays, because the transaction is rolled back.
        return Ok(None);
    }
    transaction.commit().await?;
    let counts = DeleteInstanceResult {
        instances_deleted: unsigned(&row, "instances")?,
        executions_deleted: unsigned(&row, "executions")?,
        events_deleted: unsigned(&row, "events")?,
        queue_messages_deleted: unsigned(&row, "queued")?,
    };
    Ok(Some(Deleted { ids, counts }))
}

/// Whether all given instances are roots that have ended before a time.
async fn are_finished(
    db: &Db,
    transaction: &Transaction<'_>,
    roots: &[String],
    completed_before: Option<u64>,
) -> Result<bool> {
    let instance_ids = Some(roots.to_vec());
    let filter = InstanceFilter { instance_ids, completed_before, ..InstanceFilter::default() };
    let found = candidates(db, transaction, i64::MIN, &filter, true, roots.len()).await?;
    Ok(found.len() == roots.len())
}

/// A transaction with the settings of removals.
pub(crate) async fn begin<'a>(db: &Db, client: &'a mut Client) -> Result<Transaction<'a>> {
    let limits = &db.begin_statements(client).await?.long;
    let transaction = client.transaction().await?;
    // Both statements are sent before the first answer is read.
    futures::future::try_join(transaction.batch_execute(BY_KEYS), transaction.batch_execute(limits)).await?;
    Ok(transaction)
}

/// A root with its descendants. An unknown instance and a child are refused.
async fn rooted(db: &Db, transaction: &Transaction<'_>, root: &str) -> Result<Vec<String>> {
    let key = owned(root);
    let found = transaction.query_typed_opt(&db.statements.parent_of, &[(&key, Type::TEXT)]).await?;
    match found.map(|row| crate::db::text_option(&row, ONLY)).transpose()? {
        None => Err(PostgresError::Refused(format!("instance '{root}' not found"))),
        Some(Some(parent)) => Err(PostgresError::Refused(format!(
            "instance '{root}' is a sub-orchestration of '{parent}': delete its root instance instead"
        ))),
        Some(None) => trees(db, transaction, &[root.to_string()]).await,
    }
}

/// Roots with their descendants.
async fn trees(db: &Db, transaction: &Transaction<'_>, roots: &[String]) -> Result<Vec<String>> {
    let keys: Vec<String> = roots.iter().map(|root| owned(root)).collect();
    let rows = transaction.query_typed(&db.statements.instance_tree, &[(&keys, Type::TEXT_ARRAY)]).await?;
    rows.iter().map(|row| text(row, ONLY)).collect()
}

/// Removes old executions of an instance; `None` for an unknown instance. Turns of the instance wait for a transaction of this
/// removal, so a large removal has several transactions.
pub(crate) async fn prune(db: &Db, instance: &str, options: &PruneOptions) -> Result<Option<PruneResult>> {
    let mut result = PruneResult { instances_processed: 1, ..PruneResult::default() };
    loop {
        let Some((executions, events)) = prune_some(db, instance, options).await? else {
            // The instance is unknown, or was deleted meanwhile.
            return Ok((result.executions_deleted > 0).then_some(result));
        };
        result.executions_deleted += executions;
        result.events_deleted += events;
        if executions < MOST_EXECUTIONS as u64 {
            return Ok(Some(result));
        }
    }
}

/// Removes the oldest executions; returns the numbers of executions and events.
async fn prune_some(db: &Db, instance: &str, options: &PruneOptions) -> Result<Option<(u64, u64)>> {
    let mut connection = db.connection().await?;
    let closer = connection.closer();
    within(db, &closer, db.long_deadline, prune_on(db, &mut connection, instance, options)).await
}

/// Removes the oldest executions of a locked instance in one transaction; `None` if the instance is unknown.
async fn prune_on(
    db: &Db,
    client: &mut Client,
    instance: &str,
    options: &PruneOptions,
) -> Result<Option<(u64, u64)>> {
    let (id, keep) = (owned(instance), i64::from(options.keep_last.unwrap_or(0)));
    let (before, most) = (options.completed_before.map(column), column(MOST_EXECUTIONS as u64));
    let transaction = begin(db, client).await?;
    let ids = vec![id.clone()];
    let locked = transaction.query_typed(&db.statements.lock_instances, &[(&ids, Type::TEXT_ARRAY)]).await?;
    if locked.is_empty() {
        return Ok(None);
    }
    let wanted: [Param<'_>; 4] =
        [(&id, Type::TEXT), (&keep, Type::INT8), (&before, Type::INT8), (&most, Type::INT8)];
    let executions = transaction.query_typed(&db.statements.prune_candidates, &wanted).await?;
    let executions = executions.iter().map(|row| cell::<i64>(row, ONLY)).collect::<Result<Vec<_>>>()?;
    if executions.is_empty() {
        return Ok(Some((0, 0)));
    }
    let pruned: [Param<'_>; 2] = [(&id, Type::TEXT), (&executions, Type::INT8_ARRAY)];
    let row = transaction.query_typed_one(&db.statements.prune, &pruned).await?;
    let counts = (unsigned(&row, "executions")?, unsigned(&row, "events")?);
    transaction.commit().await?;
    Ok(Some(counts))
}

/// The next instances, in order of creation, that a bulk filter selects after a position.
pub(crate) async fn candidates(
    db: &Db,
    client: &impl GenericClient,
    after: i64,
    filter: &InstanceFilter,
    finished_roots: bool,
    limit: usize,
) -> Result<Vec<(i64, String)>> {
    let before = filter.completed_before.map(column);
    let limit = column(limit as u64);
    let ids: Option<Vec<String>> =
        filter.instance_ids.as_ref().map(|ids| ids.iter().map(|id| owned(id)).collect());
    let page: [Param<'_>; 5] = [
        (&after, Type::INT8),
        (&before, Type::INT8),
        (&finished_roots, Type::BOOL),
        (&limit, Type::INT8),
        (&ids, Type::TEXT_ARRAY),
    ];
    let rows = client.query_typed(&db.statements.bulk_candidates, &page).await?;
    rows.iter().map(|row| Ok((cell(row, "created_as")?, text(row, "instance_id")?))).collect()
}

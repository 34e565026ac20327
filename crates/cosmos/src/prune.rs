//! Removal of old executions.

use crate::client::Op;
use crate::document::{Address, Events, Execution, Instance, Versioned};
use crate::error::{contended, refused};
use crate::history::visible_executions;
use crate::instance::Written;
use crate::number::parameter;
use crate::sql;
use crate::store::Store;
use crate::tally::Counts;
use outlast_model::ExecutionStatus;
use outlast_provider::{InstanceFilter, ProviderError, PruneOptions, PruneResult};
use outlast_provider_kit::DEFAULT_BULK_LIMIT;
use outlast_provider_kit::removed::add_pruned;

const PRUNE: &str = "prune_executions";
const ATTEMPTS: usize = 8;

impl Store {
    /// Executions of an instance with at least one commit, by id.
    pub(crate) async fn executions(
        &self,
        operation: &str,
        address: &Address,
    ) -> Result<Vec<Execution>, ProviderError> {
        for _ in 0..ATTEMPTS {
            let Some(read) = self.read_instance(operation, address).await? else { return Ok(Vec::new()) };
            let found = self.client.query(operation, &address.partition, sql::EXECUTIONS, &[]).await?;
            let Some(found) = visible_executions(&read.document, found) else { continue };
            let mut all = std::collections::BTreeMap::new();
            for document in found {
                all.insert(document.execution_id, document.execution);
            }
            if let Some(latest) = read.document.latest {
                all.insert(latest.execution_id, latest);
            }
            return Ok(all.into_values().filter(|execution| !execution.has_events_only).collect());
        }
        Err(contended(operation, &address.id))
    }

    /// Removes old executions of an instance in one step, which removes documents or hides them. This call removes the hidden
    /// documents after the step; otherwise the next call that prunes or runs the instance removes them.
    pub(crate) async fn prune(
        &self,
        instance: &str,
        options: &PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        let address = Address::of(instance);
        for _ in 0..ATTEMPTS {
            let read = self.read_instance(PRUNE, &address).await?;
            let Some(mut read) = read.filter(|read| read.document.row.is_some()) else {
                return Err(refused(PRUNE, format!("instance '{instance}' not found")));
            };
            if is_half_removed(&read.document) {
                let Some(recovered) = self.recover(PRUNE, &address, read).await? else { continue };
                read = recovered;
            }
            let current = read.document.row.as_ref().map(|row| row.current);
            let all = self.executions(PRUNE, &address).await?;
            let pruned = old(&all, current, options);
            let mut result = PruneResult { instances_processed: 1, ..PruneResult::default() };
            if pruned.is_empty() {
                return Ok(result);
            }
            let mut next = read.document.clone();
            let (documents, events) = self.documents_of(&address, &mut next, &all, &pruned).await?;
            result.executions_deleted = pruned.len() as u64;
            result.events_deleted = events.iter().map(|document| document.d.len() as u64).sum();
            next.executions = next.executions.saturating_sub(result.executions_deleted);
            next.events = next.events.saturating_sub(result.events_deleted);
            let ids = documents.into_iter().chain(events.into_iter().map(|document| document.id)).collect();
            let change = Counts::of(&next).since(Counts::of(&read.document));
            if self.pruned(&address, &read.etag, next, ids).await? {
                self.tally.add(self.now(), change);
                return Ok(result);
            }
        }
        Err(contended(PRUNE, instance))
    }

    /// The documents of old executions and of their events. If the execution in the instance document is old, the newest execution
    /// that stays moves into the instance document.
    async fn documents_of(
        &self,
        address: &Address,
        next: &mut Instance,
        all: &[Execution],
        pruned: &[&Execution],
    ) -> Result<(Vec<String>, Vec<Events>), ProviderError> {
        let (mut documents, mut events) = (Vec::new(), Vec::new());
        for execution in pruned {
            let parameters = [("@execution", parameter(execution.execution_id))];
            let more: Vec<Events> =
                self.client.query(PRUNE, &address.partition, sql::HISTORY, &parameters).await?;
            events.extend(more);
            let found = self.execution_documents(PRUNE, address, next, execution.execution_id).await?;
            documents.extend(found.unwrap_or_default().into_iter().map(|document| document.id));
            if next.latest.as_ref().is_some_and(|latest| latest.execution_id == execution.execution_id) {
                next.latest = all.iter().rev().find(|kept| !pruned.contains(kept)).cloned();
                documents.extend(self.ids_of(address, next.latest.as_ref()).await?);
            }
        }
        Ok((documents, events))
    }

    /// The documents of the execution that the instance document takes over.
    async fn ids_of(
        &self,
        address: &Address,
        latest: Option<&Execution>,
    ) -> Result<Vec<String>, ProviderError> {
        let Some(latest) = latest else { return Ok(Vec::new()) };
        let parameters = [("@execution", parameter(latest.execution_id))];
        let found: Vec<crate::document::ExecutionDocument> =
            self.client.query(PRUNE, &address.partition, sql::EXECUTION, &parameters).await?;
        Ok(found.into_iter().map(|document| document.id).collect())
    }

    /// Removes documents in one batch with the write of the instance document. If the batch is full, the instance document lists
    /// the remaining documents as dropped, and `recover` deletes them.
    async fn pruned(
        &self,
        address: &Address,
        etag: &str,
        mut next: Instance,
        ids: Vec<String>,
    ) -> Result<bool, ProviderError> {
        let mut ids = ids.into_iter();
        let room = self.limits.operations - 1;
        let removals: Vec<Op> = ids.by_ref().take(room).map(|id| Op::delete(&id, None)).collect();
        next.dropped.extend(ids);
        let written = self.write_instance(PRUNE, Some(etag), &mut next, self.uid(), removals, None).await?;
        let Written::Done { etag, is_last, .. } = written else { return Ok(false) };
        if is_last && is_half_removed(&next) {
            let next = Versioned { etag, document: next };
            if let Err(error) = self.recover(PRUNE, address, next).await {
                tracing::debug!(target: "duroxide::providers::cosmosdb", %error, "documents of pruned executions are not deleted yet");
            }
        }
        Ok(true)
    }

    /// Removes old executions of every instance that matches.
    pub(crate) async fn prune_bulk(
        &self,
        filter: &InstanceFilter,
        options: &PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        const BULK: &str = "prune_executions_bulk";
        let mut total = PruneResult::default();
        let most = filter.limit.unwrap_or(DEFAULT_BULK_LIMIT) as usize;
        for instance in self.bulk(BULK, filter).await?.into_iter().take(most) {
            let Some(address) = instance.address() else { continue };
            let pruned = self.prune(&address.id, options).await?;
            add_pruned(&mut total, &pruned);
        }
        Ok(total)
    }
}

/// The executions that the options select.
fn old<'a>(all: &'a [Execution], current: Option<u64>, options: &PruneOptions) -> Vec<&'a Execution> {
    let keep = options.keep_last.unwrap_or(0) as usize;
    let kept: Vec<u64> = all.iter().rev().take(keep).map(|execution| execution.execution_id).collect();
    let is_old = |execution: &&Execution| {
        Some(execution.execution_id) != current
            && execution.status != ExecutionStatus::Running.as_str()
            && !kept.contains(&execution.execution_id)
            && options
                .completed_before
                .is_none_or(|before| execution.completed_at.is_some_and(|at| at < before))
    };
    all.iter().filter(is_old).collect()
}

/// Whether hidden documents wait for their removal, and no turn is being staged, which its owner would lose.
pub(crate) fn is_half_removed(instance: &Instance) -> bool {
    !instance.dropped.is_empty() && instance.staged.is_none()
}

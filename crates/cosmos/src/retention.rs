//! Retention: the oldest instances, and the deletion of ended trees.
//!
//! Messages are documents of their own, so a message may arrive between the check and the deletion. The deletion removes the
//! messages that it lists before the check: later ones stay.

use crate::delete::Found;
use crate::document::{Address, Instance, Item, Versioned};
use crate::error::contended;
use crate::hold::has_ended;
use crate::message::counted;
use crate::number;
use crate::sql;
use crate::store::Store;
use outlast_model::ExecutionStatus;
use outlast_provider::{DeleteInstanceResult, OldInstance, OldestPage, ProviderError};
use outlast_provider_kit::removed::add_deleted;
use std::collections::BTreeSet;

const OLDEST: &str = "oldest_instances";
const DELETE: &str = "delete_ended";
const ATTEMPTS: usize = 8;

impl Store {
    /// The next instances in order of creation.
    pub(crate) async fn oldest_instances(
        &self,
        after: Option<u64>,
        limit: usize,
    ) -> Result<OldestPage, ProviderError> {
        let parameters = [("@after", number::parameter(number::indexed(after.unwrap_or(0))))];
        // One more than the page has shows whether there is a next one.
        let most = limit.saturating_add(1);
        let mut found: Vec<Instance> =
            self.client.query_all(OLDEST, sql::INSTANCES_OLDEST, &parameters, most).await?;
        let is_cut = found.len() > limit;
        found.truncate(limit);
        let next = found.last().and_then(|instance| instance.ct).filter(|_| is_cut);
        let alive = self.alive(OLDEST, found).await?;
        Ok(OldestPage { instances: alive.iter().filter_map(old).collect(), next })
    }

    /// Deletes the trees of these roots that match.
    pub(crate) async fn delete_ended(
        &self,
        roots: &[String],
        ended_before: u64,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        let mut total = DeleteInstanceResult::default();
        for root in roots {
            let Some(deleted) = self.delete_unused(root, ended_before).await? else { continue };
            add_deleted(&mut total, &deleted);
        }
        Ok(total)
    }

    /// Deletes the tree of a root; `None` if it does not match.
    async fn delete_unused(
        &self,
        root: &str,
        ended_before: u64,
    ) -> Result<Option<DeleteInstanceResult>, ProviderError> {
        for nth in 0..ATTEMPTS {
            if nth > 0 {
                self.spread(nth).await;
            }
            let Some(read) = self.read_instance(DELETE, &Address::of(root)).await? else { return Ok(None) };
            if !is_old_root(&read.document, ended_before) {
                return Ok(None);
            }
            let tree = self.tree(DELETE, root).await?;
            let Some(found) = self.unused(&tree).await? else { return Ok(None) };
            let ids: BTreeSet<&String> = tree.iter().collect();
            if let Some(deleted) = self.delete_found(&ids, found).await? {
                return Ok(Some(deleted));
            }
        }
        Err(contended(DELETE, root))
    }

    /// Reads the instances; `None` if one of them is in use.
    async fn unused(&self, ids: &[String]) -> Result<Option<Vec<Found>>, ProviderError> {
        let mut found = Vec::new();
        for id in ids {
            let one = self.found(Address::of(id)).await?;
            if let Some(read) = &one.read
                && self.is_in_use(&one.address, &read.document).await?
            {
                return Ok(None);
            }
            found.push(one);
        }
        Ok(Some(found))
    }

    async fn is_in_use(&self, address: &Address, instance: &Instance) -> Result<bool, ProviderError> {
        let is_running = instance.st.as_deref() == Some(ExecutionStatus::Running.as_str());
        if is_running || instance.hold.is_some() {
            return Ok(true);
        }
        // Messages that must be read again belong to an instance that just changed.
        let Some(messages) = self.messages_of(DELETE, address, instance).await? else { return Ok(true) };
        if messages.iter().any(|message| !message.item.d.starts_with("{\"TimerFired\"")) {
            return Ok(true);
        }
        let activities: Vec<Versioned<Item>> =
            self.client.query(DELETE, &address.partition, sql::ACTIVITIES, &[]).await?;
        Ok(counted(instance, activities).is_none_or(|activities| !activities.is_empty()))
    }
}

fn is_old_root(instance: &Instance, ended_before: u64) -> bool {
    let ended = instance.row.as_ref().and_then(|row| row.completed_at);
    instance.par.is_none() && has_ended(instance) && ended.is_some_and(|at| at < ended_before)
}

fn old(instance: &Instance) -> Option<OldInstance> {
    let (row, address) = (instance.row.as_ref()?, instance.address()?);
    Some(OldInstance {
        instance_id: address.id,
        orchestration_name: row.name.clone(),
        status: instance.st.clone().unwrap_or_else(|| "Unknown".to_string()),
        is_root: instance.par.is_none(),
        created_at: row.created_at,
        ended_at: row.completed_at,
    })
}

//! Deletion of instances, atomically by a record: each instance is marked with the record, and the flip of the record is the
//! moment at which all of them are gone. A purge removes their documents, and can be resumed by every process.

use crate::client::{Op, is_conflict};
use crate::document::{Address, DeleteRecord, Instance, Item, Versioned};
use crate::doubt::Verdict;
use crate::error::{contended, refused};
use crate::ids::{self, Uid};
use crate::instance::Written;
use crate::layout;
use crate::list::Listed;
use crate::number;
use crate::sql;
use crate::store::Store;
use outlast_model::ExecutionStatus;
use outlast_provider::{DeleteInstanceResult, InstanceFilter, ProviderError};
use outlast_provider_kit::DEFAULT_BULK_LIMIT;
use serde::Deserialize;
use std::collections::BTreeSet;

const DELETE: &str = "delete_instances_atomic";
const ATTEMPTS: usize = 8;

/// A record that was not flipped after this time is given up.
const RECORD_LIFE_MS: u64 = 60_000;

/// A document of a partition that is purged.
#[derive(Deserialize)]
struct Left {
    id: String,
    #[serde(rename = "_etag")]
    etag: String,
    t: String,
    #[serde(rename = "q", default)]
    sequence: u64,
}

impl Store {
    /// The instance, unless its deletion is committed. Resumes the purge of a deletion that is.
    pub(crate) async fn unless_deleted(
        &self,
        operation: &str,
        address: &Address,
        mut found: Versioned<Instance>,
    ) -> Result<Option<Versioned<Instance>>, ProviderError> {
        let Some(uid) = found.document.deleted_by else { return Ok(Some(found)) };
        let record = self.client.read::<DeleteRecord>(operation, layout::SYSTEM, &record_id(uid)).await?;
        match record {
            Some(record) if record.document.is_flipped => {
                Box::pin(self.purge(operation, address, &record.document)).await?;
                Ok(None)
            }
            Some(record) if self.now() > record.document.made_at.saturating_add(RECORD_LIFE_MS) => {
                // Its deleter is gone. An absent record counts as given up.
                let removal = Op::delete(&record.document.id, Some(&record.etag));
                self.client.batch(layout::SYSTEM, vec![removal]).await?;
                Ok(Some(found))
            }
            Some(_) => Ok(Some(found)),
            None => {
                found.document.deleted_by = None;
                Ok(Some(found))
            }
        }
    }

    /// Removes exactly these instances, or none.
    pub(crate) async fn delete(
        &self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        let ids: BTreeSet<&String> = ids.iter().collect();
        if ids.is_empty() {
            return Ok(DeleteInstanceResult::default());
        }
        for _ in 0..ATTEMPTS {
            let mut found = Vec::new();
            for id in &ids {
                let address = Address::of(id);
                let read = self.read_instance(DELETE, &address).await?;
                found.push((address, read));
            }
            let running =
                |instance: &Instance| instance.st.as_deref() == Some(ExecutionStatus::Running.as_str());
            let is_running = |read: &Option<Versioned<Instance>>| {
                read.as_ref().is_some_and(|read| running(&read.document))
            };
            if let Some((address, _)) = found.iter().find(|(_, read)| !force && is_running(read)) {
                return Err(refused(
                    DELETE,
                    format!("instance '{}' is still running: cancel it first, or use force", address.id),
                ));
            }
            for id in &ids {
                let children = self.children(DELETE, id).await?;
                if let Some(child) = children.iter().find(|child| !ids.contains(child)) {
                    return Err(refused(
                        DELETE,
                        format!("child '{child}' would be orphaned: delete the whole tree"),
                    ));
                }
            }
            if let Some(deleted) = self.delete_found(&ids, found).await? {
                for id in ids {
                    self.ready.forget(id);
                    self.watches.committed(id, true);
                }
                return Ok(deleted);
            }
        }
        Err(contended(DELETE, ids.first().map_or("", |id| id.as_str())))
    }

    /// Marks the instances, flips the record and purges; `None` if an instance changed meanwhile.
    async fn delete_found(
        &self,
        ids: &BTreeSet<&String>,
        found: Vec<(Address, Option<Versioned<Instance>>)>,
    ) -> Result<Option<DeleteInstanceResult>, ProviderError> {
        let uid = self.uid();
        let mut record = DeleteRecord {
            id: record_id(uid),
            partition: layout::SYSTEM.to_string(),
            t: "d".to_string(),
            ids: ids.iter().map(ToString::to_string).collect(),
            is_flipped: false,
            made_at: self.now(),
            sequence: 0,
        };
        let created = self.client.batch(layout::SYSTEM, vec![Op::create(&record)?]).await?;
        if created.verdict() != Verdict::Applied {
            return Err(created.error(DELETE));
        }
        let etag = created.etags.first().cloned().unwrap_or_default();
        for (address, read) in &found {
            let (before, mut instance) = match read {
                Some(read) => (Some(read.etag.as_str()), read.document.clone()),
                None => (None, Instance::skeleton(address, self.uid())),
            };
            instance.deleted_by = Some(uid);
            let written =
                self.write_instance(DELETE, before, &mut instance, self.uid(), Vec::new(), None).await?;
            if matches!(written, Written::Conflict { .. }) {
                self.client.batch(layout::SYSTEM, vec![Op::delete(&record.id, Some(&etag))]).await?;
                return Ok(None);
            }
        }
        (record.is_flipped, record.sequence) = (true, self.time.sequence());
        let flip = Op::replace(&record.id, &record, Some(&etag))?;
        let flipped = self.client.batch(layout::SYSTEM, vec![flip]).await?;
        match flipped.verdict() {
            Verdict::Applied => {}
            Verdict::Refused(refusal) if is_conflict(refusal) => return Ok(None),
            Verdict::Refused(_) => return Err(flipped.error(DELETE)),
            Verdict::InDoubt => {
                let read = self.client.read::<DeleteRecord>(DELETE, layout::SYSTEM, &record.id).await?;
                if !read.is_some_and(|read| read.document.is_flipped) {
                    return Ok(None);
                }
            }
        }
        let mut deleted = DeleteInstanceResult::default();
        for (address, read) in &found {
            if let Some(read) = read {
                deleted.instances_deleted += u64::from(read.document.row.is_some());
                deleted.executions_deleted += read.document.executions;
                deleted.events_deleted += read.document.events;
            }
            deleted.queue_messages_deleted += self.purge(DELETE, address, &record).await?;
        }
        self.client.batch(layout::SYSTEM, vec![Op::delete(&record.id, None)]).await?;
        Ok(Some(deleted))
    }

    /// Removes the documents of a deleted instance, the instance last. Returns the number of messages and activities. Messages
    /// that arrived after the deletion stay: they are for a new instance.
    async fn purge(
        &self,
        operation: &str,
        address: &Address,
        record: &DeleteRecord,
    ) -> Result<u64, ProviderError> {
        let mut messages = 0;
        for _ in 0..1_000 {
            let mut left: Vec<Left> =
                self.client.query(operation, &address.partition, sql::PARTITION, &[]).await?;
            left.retain(|document| {
                let is_later =
                    matches!(document.t.as_str(), "m" | "a") && document.sequence > record.sequence;
                !is_later && !matches!(document.t.as_str(), "b" | "z")
            });
            if left.is_empty() {
                break;
            }
            for intent in left.iter().filter(|document| document.t == "o") {
                // A committed turn sent it: it is not part of the instance.
                let read = self.client.read::<Item>(operation, &address.partition, &intent.id).await?;
                if let Some(read) = read
                    && self.is_visible(operation, address, &read.document).await?
                {
                    self.deliver(&read.document).await?;
                }
            }
            left.retain(|document| document.t != "o");
            for chunk in left.chunks(100) {
                let removals: Vec<Op> =
                    chunk.iter().map(|document| Op::delete(&document.id, Some(&document.etag))).collect();
                let batched = self.client.batch(&address.partition, removals.clone()).await?;
                let queued = |document: &&Left| matches!(document.t.as_str(), "m" | "a");
                match batched.verdict() {
                    Verdict::Applied => messages += chunk.iter().filter(queued).count() as u64,
                    Verdict::Refused(refusal) if is_conflict(refusal) => {
                        // Another process purges as well, or a worker writes its activity.
                        for removal in removals {
                            self.client.batch(&address.partition, vec![removal]).await?;
                        }
                    }
                    Verdict::Refused(_) => return Err(batched.error(operation)),
                    Verdict::InDoubt => {}
                }
            }
        }
        let read = self.client.read::<Instance>(operation, &address.partition, ids::INSTANCE).await?;
        if let Some(read) = read.filter(|read| read.document.deleted_by == record_uid(&record.id)) {
            let removal = Op::delete(ids::INSTANCE, Some(&read.etag));
            self.client.batch(&address.partition, vec![removal]).await?;
        }
        Ok(messages)
    }

    async fn is_visible(
        &self,
        operation: &str,
        address: &Address,
        item: &Item,
    ) -> Result<bool, ProviderError> {
        let instance = self.client.read::<Instance>(operation, &address.partition, ids::INSTANCE).await?;
        Ok(instance.is_none_or(|instance| {
            let rev = item.rev.filter(|_| item.is_staged);
            instance.document.marks().visibility(&item.id, rev) == crate::visible::Visibility::Visible
        }))
    }

    /// Removes finished roots that match, each with its descendants.
    pub(crate) async fn delete_bulk(
        &self,
        filter: &InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        const BULK: &str = "delete_instance_bulk";
        let mut total = DeleteInstanceResult::default();
        let mut left = filter.limit.unwrap_or(DEFAULT_BULK_LIMIT);
        for root in self.bulk(BULK, filter).await? {
            if left == 0 {
                break;
            }
            let has_ended =
                |status: &str| ExecutionStatus::from_text(status).is_some_and(ExecutionStatus::ends_instance);
            if root.par.is_some() || !root.st.as_deref().is_some_and(has_ended) {
                continue;
            }
            let Some(address) = root.address() else { continue };
            let tree = self.tree(BULK, &address.id).await?;
            if self.has_running(BULK, &tree).await? {
                continue;
            }
            let deleted = self.delete(&tree, true).await?;
            left -= 1;
            total.instances_deleted += deleted.instances_deleted;
            total.executions_deleted += deleted.executions_deleted;
            total.events_deleted += deleted.events_deleted;
            total.queue_messages_deleted += deleted.queue_messages_deleted;
        }
        Ok(total)
    }

    async fn has_running(&self, operation: &str, ids: &[String]) -> Result<bool, ProviderError> {
        for id in ids {
            let read = self.read_instance(operation, &Address::of(id)).await?;
            if read.is_some_and(|read| read.document.st.as_deref() == Some(ExecutionStatus::Running.as_str()))
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The instance and its descendants.
    pub(crate) async fn tree(&self, operation: &str, root: &str) -> Result<Vec<String>, ProviderError> {
        // The set guards against a cycle in a damaged store.
        let mut seen = BTreeSet::from([root.to_string()]);
        let mut all = vec![root.to_string()];
        let mut next = 0;
        while let Some(id) = all.get(next).cloned() {
            let children = self.children(operation, &id).await?;
            all.extend(children.into_iter().filter(|child| seen.insert(child.clone())));
            next += 1;
        }
        Ok(all)
    }

    pub(crate) async fn children(&self, operation: &str, parent: &str) -> Result<Vec<String>, ProviderError> {
        let parameters = [("@parent", parent.into())];
        let found: Vec<Listed> =
            self.client.query_all(operation, sql::CHILDREN, &parameters, usize::MAX).await?;
        Ok(found.into_iter().filter_map(Listed::into_id).collect())
    }
}

fn record_id(uid: Uid) -> String {
    format!("d:{uid}")
}

fn record_uid(id: &str) -> Option<Uid> {
    id.strip_prefix("d:").and_then(Uid::parse)
}

/// The largest number of a creation, for queries without an upper end.
pub(crate) const NEWEST: u64 = number::LARGEST;

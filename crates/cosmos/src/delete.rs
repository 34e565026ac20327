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
use crate::tally::Counts;
use outlast_model::ExecutionStatus;
use outlast_provider::{DeleteInstanceResult, InstanceFilter, ProviderError};
use outlast_provider_kit::DEFAULT_BULK_LIMIT;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::time::Duration;

const DELETE: &str = "delete_instances_atomic";
const ATTEMPTS: usize = 8;

/// A record that was not flipped after this time counts as given up.
const RECORD_LIFE_MS: u64 = 60_000;

/// The service removes a record that was not flipped after this time, in seconds. Its deleter has died.
const ABANDONED_LIFE: u32 = 60 * 60;

/// An instance to delete; `None` if there is no document of it.
pub(crate) type Found = (Address, Option<Versioned<Instance>>);

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
                // The deleter has died. An absent record counts as given up.
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

    /// Gives up a deletion that is not committed, so that a writer may change an instance that the deletion marked. False if the
    /// deletion is committed.
    pub(crate) async fn give_up_deletion(&self, operation: &str, record: Uid) -> Result<bool, ProviderError> {
        let id = record_id(record);
        for _ in 0..ATTEMPTS {
            let read = self.client.read::<DeleteRecord>(operation, layout::SYSTEM, &id).await?;
            let Some(read) = read else { return Ok(true) };
            if read.document.is_flipped {
                return Ok(false);
            }
            let removed = self.client.batch(layout::SYSTEM, vec![Op::delete(&id, Some(&read.etag))]).await?;
            match removed.verdict() {
                Verdict::Applied => return Ok(true),
                // The deleter flipped or removed the record. A removal that is in doubt is read again.
                Verdict::Refused(refusal) if is_conflict(refusal) => {}
                Verdict::InDoubt => {}
                Verdict::Refused(_) => return Err(removed.error(operation)),
            }
        }
        Err(contended(operation, &id))
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
        for nth in 0..ATTEMPTS {
            if nth > 0 {
                self.spread(nth).await;
            }
            let found = self.deletable(&ids, force).await?;
            if let Some(deleted) = self.delete_found(&ids, found, None).await? {
                return Ok(deleted);
            }
        }
        Err(contended(DELETE, ids.first().map_or("", |id| id.as_str())))
    }

    /// Waits before the next attempt. Two deletions of the same instances give each other up: one of them goes first.
    pub(crate) async fn spread(&self, nth: usize) {
        let spread = u64::try_from(self.uid().0 % 32).unwrap_or_default();
        tokio::time::sleep(Duration::from_millis(spread * nth as u64)).await;
    }

    /// Reads the instances; an error if one is still running or has a child that would stay.
    async fn deletable(&self, ids: &BTreeSet<&String>, force: bool) -> Result<Vec<Found>, ProviderError> {
        let mut found = Vec::new();
        for id in ids {
            let address = Address::of(id);
            let read = self.read_instance(DELETE, &address).await?;
            found.push((address, read));
        }
        let running = ExecutionStatus::Running.as_str();
        let is_running = |read: &Option<Versioned<Instance>>| {
            read.as_ref().is_some_and(|read| read.document.st.as_deref() == Some(running))
        };
        if let Some((address, _)) = found.iter().find(|(_, read)| !force && is_running(read)) {
            return Err(refused(
                DELETE,
                format!("instance '{}' is still running: cancel it first, or use force", address.id),
            ));
        }
        for id in ids {
            let children = self.children(DELETE, id).await?;
            if let Some(child) = children.iter().find(|child| !ids.contains(child)) {
                return Err(refused(
                    DELETE,
                    format!("child '{child}' would be orphaned: delete the whole tree"),
                ));
            }
        }
        Ok(found)
    }

    /// Marks the instances, flips the record and purges; `None` if an instance changed meanwhile. With a sequence, messages that
    /// arrived after it stay.
    pub(crate) async fn delete_found(
        &self,
        ids: &BTreeSet<&String>,
        found: Vec<Found>,
        as_of: Option<u64>,
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
            ttl: Some(ABANDONED_LIFE),
        };
        let etag = self.create_record(&record).await?;
        for (address, read) in &found {
            if !self.mark(address, read.as_ref(), uid).await? {
                self.client.batch(layout::SYSTEM, vec![Op::delete(&record.id, Some(&etag))]).await?;
                return Ok(None);
            }
        }
        (record.is_flipped, record.sequence, record.ttl) =
            (true, as_of.unwrap_or_else(|| self.time.sequence()), None);
        if !self.flip(&record, &etag).await? {
            return Ok(None);
        }
        let mut deleted = DeleteInstanceResult::default();
        for (address, read) in &found {
            if let Some(read) = read {
                deleted.instances_deleted += u64::from(read.document.row.is_some());
                deleted.executions_deleted += read.document.executions;
                deleted.events_deleted += read.document.events;
                self.tally.add(self.now(), Counts::default().since(Counts::of(&read.document)));
            }
            deleted.queue_messages_deleted += self.purge(DELETE, address, &record).await?;
        }
        self.client.batch(layout::SYSTEM, vec![Op::delete(&record.id, None)]).await?;
        for id in ids {
            self.ready.forget(id);
            self.watches.committed(id, true);
        }
        Ok(Some(deleted))
    }

    /// Stores a record and returns its version.
    async fn create_record(&self, record: &DeleteRecord) -> Result<String, ProviderError> {
        let created = self.client.batch(layout::SYSTEM, vec![Op::create(record)?]).await?;
        if created.verdict() == Verdict::Applied {
            return Ok(created.etags.first().cloned().unwrap_or_default());
        }
        // The id is new: a record under it was stored by this write, whatever its answer was.
        match self.client.read::<DeleteRecord>(DELETE, layout::SYSTEM, &record.id).await? {
            Some(read) => Ok(read.etag),
            None => Err(created.error(DELETE)),
        }
    }

    /// Marks an instance with the record; false if it is not the one that was read.
    async fn mark(
        &self,
        address: &Address,
        read: Option<&Versioned<Instance>>,
        record: Uid,
    ) -> Result<bool, ProviderError> {
        let (before, mut instance) = match read {
            Some(read) => (Some(read.etag.as_str()), read.document.clone()),
            None => (None, Instance::skeleton(address, self.uid())),
        };
        if let Some(other) = instance.deleted_by
            && !self.give_up_deletion(DELETE, other).await?
        {
            return Ok(false);
        }
        instance.deleted_by = Some(record);
        let written =
            self.replace_instance(DELETE, before, &mut instance, self.uid(), Vec::new(), None).await?;
        Ok(matches!(written, Written::Done { .. }))
    }

    /// Flips the record: the moment of the deletion. False if another process gave the deletion up.
    async fn flip(&self, record: &DeleteRecord, etag: &str) -> Result<bool, ProviderError> {
        let flip = Op::replace(&record.id, record, Some(etag))?;
        let flipped = self.client.batch(layout::SYSTEM, vec![flip]).await?;
        match flipped.verdict() {
            Verdict::Applied => Ok(true),
            Verdict::Refused(refusal) if is_conflict(refusal) => Ok(false),
            Verdict::Refused(_) => Err(flipped.error(DELETE)),
            Verdict::InDoubt => {
                let read = self.client.read::<DeleteRecord>(DELETE, layout::SYSTEM, &record.id).await?;
                Ok(read.is_some_and(|read| read.document.is_flipped))
            }
        }
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
                // A committed turn sent the message: it is not part of the instance.
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
        self.listed(operation, found).await
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

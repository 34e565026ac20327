//! Deletion of instances, atomically by a record: each instance is marked with the record, and the flip of the record is the
//! moment at which all of them are gone. A purge removes their documents ([`crate::purge`]).

use crate::client::{Op, is_conflict};
use crate::document::{Address, DeleteRecord, Earlier, Instance, Versioned};
use crate::doubt::Verdict;
use crate::error::{contended, refused};
use crate::ids::{self, Uid};
use crate::instance::Written;
use crate::layout;
use crate::list::Listed;
use crate::number;
use crate::purge::Left;
use crate::sql;
use crate::store::Store;
use crate::tally::Counts;
use outlast_model::ExecutionStatus;
use outlast_provider::{DeleteInstanceResult, ErrorClass, InstanceFilter, ProviderError};
use outlast_provider_kit::DEFAULT_BULK_LIMIT;
use outlast_provider_kit::removed::add_deleted;
use std::collections::BTreeSet;
use std::time::Duration;

pub(crate) const DELETE: &str = "delete_instances_atomic";
const ATTEMPTS: usize = 8;

/// A record that was not flipped after this time counts as given up.
const RECORD_LIFE_MS: u64 = 60_000;

/// The service removes a record that was not flipped after this time, in seconds. Its deleter has died.
const ABANDONED_LIFE: u32 = 60 * 60;

/// The deleter of a flipped record has died if the record is older: another process completes the deletion.
const FINISHED_AFTER_MS: u64 = 300_000;

/// An instance to delete.
pub(crate) struct Found {
    pub(crate) address: Address,
    /// `None` if there is no document of it.
    pub(crate) read: Option<Versioned<Instance>>,
    pub(crate) earlier: Earlier,
}

/// The state of an instance that a deletion marked.
enum Fate {
    Lives(Box<Versioned<Instance>>),
    /// The deletion with this record is committed.
    Deleted(Uid),
}

impl Store {
    /// The instance, unless its deletion is committed. Resumes the purge of a committed deletion.
    pub(crate) async fn unless_deleted(
        &self,
        operation: &str,
        address: &Address,
        found: Versioned<Instance>,
    ) -> Result<Option<Versioned<Instance>>, ProviderError> {
        match self.fate(operation, found).await? {
            Fate::Lives(found) => Ok(Some(*found)),
            Fate::Deleted(record) => {
                Box::pin(self.purge(operation, address, record)).await?;
                Ok(None)
            }
        }
    }

    /// [`Self::unless_deleted`] for lists and counts: an instance whose deletion is committed is gone, also if its purge fails.
    pub(crate) async fn read_listed(
        &self,
        operation: &str,
        address: &Address,
    ) -> Result<Option<Versioned<Instance>>, ProviderError> {
        let read = self.client.read::<Instance>(operation, &address.partition, ids::INSTANCE).await?;
        let Some(found) = read else { return Ok(None) };
        match self.fate(operation, found).await? {
            Fate::Lives(found) => Ok(Some(*found)),
            Fate::Deleted(record) => {
                if let Err(error) = Box::pin(self.purge(operation, address, record)).await {
                    // The text of an error about a damaged document may quote it.
                    let is_damaged = ErrorClass::of(&error) == ErrorClass::Damaged;
                    let error =
                        if is_damaged { "a document does not decode" } else { error.message.as_str() };
                    tracing::debug!(
                        target: "duroxide::providers::cosmosdb",
                        %error, instance = %address.id, "the documents of a deleted instance are removed later"
                    );
                }
                Ok(None)
            }
        }
    }

    /// Whether the deletion that marked an instance is committed.
    async fn fate(&self, operation: &str, mut found: Versioned<Instance>) -> Result<Fate, ProviderError> {
        let Some(uid) = found.document.deleted_by else { return Ok(Fate::Lives(Box::new(found))) };
        let record = self.client.read::<DeleteRecord>(operation, layout::SYSTEM, &record_id(uid)).await?;
        match record {
            Some(record) if record.document.is_flipped => Ok(Fate::Deleted(uid)),
            Some(record) => {
                if self.now() > record.document.made_at.saturating_add(RECORD_LIFE_MS) {
                    // The deleter has died. If the removal fails, the next reader repeats it.
                    let removal = Op::delete(&record.document.id, Some(&record.etag));
                    self.client.batch(layout::SYSTEM, vec![removal]).await?;
                }
                Ok(Fate::Lives(Box::new(found)))
            }
            // An absent record counts as given up.
            None => {
                found.document.unmark();
                Ok(Fate::Lives(Box::new(found)))
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
            if let Some(deleted) = self.delete_found(&ids, found).await? {
                return Ok(deleted);
            }
        }
        Err(contended(DELETE, ids.first().map_or("", |id| id.as_str())))
    }

    /// Waits for a random time before the next attempt. Two deletions of the same instances give each other up; after different
    /// waits one deletion succeeds first.
    pub(crate) async fn spread(&self, nth: usize) {
        let spread = u64::try_from(self.uid().0 % 32).unwrap_or_default();
        tokio::time::sleep(Duration::from_millis(spread * nth as u64)).await;
    }

    /// Reads the instances; an error if one is still running or has a child that would stay.
    async fn deletable(&self, ids: &BTreeSet<&String>, force: bool) -> Result<Vec<Found>, ProviderError> {
        let mut found = Vec::new();
        for id in ids {
            found.push(self.found(Address::of(id)).await?);
        }
        let running = ExecutionStatus::Running.as_str();
        let is_running = |read: &Option<Versioned<Instance>>| {
            read.as_ref().is_some_and(|read| read.document.st.as_deref() == Some(running))
        };
        if let Some(found) = found.iter().find(|found| !force && is_running(&found.read)) {
            let id = &found.address.id;
            return Err(refused(
                DELETE,
                format!("instance '{id}' is still running: cancel it first, or use force"),
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

    /// Reads an instance, and then its waiting messages. A message that is stored after this read is not deleted.
    pub(crate) async fn found(&self, address: Address) -> Result<Found, ProviderError> {
        let read = self.read_instance(DELETE, &address).await?;
        let found: Vec<Left> = self.client.query(DELETE, &address.partition, sql::FROM_OUTSIDE, &[]).await?;
        let earlier = Earlier::of(found.iter().filter_map(Left::as_outside));
        Ok(Found { address, read, earlier })
    }

    /// Marks the instances, flips the record and purges; `None` if an instance changed meanwhile.
    pub(crate) async fn delete_found(
        &self,
        ids: &BTreeSet<&String>,
        found: Vec<Found>,
    ) -> Result<Option<DeleteInstanceResult>, ProviderError> {
        let uid = self.uid();
        let mut record = DeleteRecord {
            id: record_id(uid),
            partition: layout::SYSTEM.to_string(),
            t: "d".to_string(),
            ids: ids.iter().map(ToString::to_string).collect(),
            is_flipped: false,
            made_at: self.now(),
            ttl: Some(ABANDONED_LIFE),
        };
        let etag = self.create_record(&record).await?;
        for found in &found {
            if !self.mark(found, uid).await? {
                self.client.batch(layout::SYSTEM, vec![Op::delete(&record.id, Some(&etag))]).await?;
                return Ok(None);
            }
        }
        (record.is_flipped, record.ttl) = (true, None);
        if !self.flip(&record, &etag).await? {
            return Ok(None);
        }
        let mut deleted = DeleteInstanceResult::default();
        for read in found.iter().filter_map(|found| found.read.as_ref()) {
            deleted.instances_deleted += u64::from(read.document.row.is_some());
            deleted.executions_deleted += read.document.executions;
            deleted.events_deleted += read.document.events;
            self.tally.add(self.now(), Counts::default().since(Counts::of(&read.document)));
        }
        let purged = self.purge_all(&found, uid).await;
        for id in ids {
            self.ready.forget(id);
            self.watches.committed(id, true);
        }
        deleted.queue_messages_deleted = purged?;
        Ok(Some(deleted))
    }

    /// Completes the deletions whose deleters died after the flip, and removes their records.
    pub(crate) async fn finish_deletions(&self) -> Result<(), ProviderError> {
        const FINISH: &str = "finish_deletions";
        let records: Vec<DeleteRecord> = self.client.query(FINISH, layout::SYSTEM, sql::RECORDS, &[]).await?;
        let now = self.now();
        let is_left = |record: &DeleteRecord| {
            record.is_flipped && now >= record.made_at.saturating_add(FINISHED_AFTER_MS)
        };
        for record in records.into_iter().filter(is_left) {
            let uid = record.id.strip_prefix(RECORD).and_then(Uid::parse);
            let Some(uid) = uid else { continue };
            if let Err(error) = self.purge_record(&record, uid).await {
                // The text of an error about a damaged document may quote it.
                let is_damaged = ErrorClass::of(&error) == ErrorClass::Damaged;
                let error = if is_damaged { "a document does not decode" } else { error.message.as_str() };
                tracing::debug!(
                    target: "duroxide::providers::cosmosdb",
                    %error, record = %record.id, "a deletion is completed later"
                );
            }
        }
        Ok(())
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
    async fn mark(&self, found: &Found, record: Uid) -> Result<bool, ProviderError> {
        let (before, mut instance) = match &found.read {
            Some(read) => (Some(read.etag.as_str()), read.document.clone()),
            None => (None, Instance::skeleton(&found.address, self.uid())),
        };
        if let Some(other) = instance.deleted_by
            && !self.give_up_deletion(DELETE, other).await?
        {
            return Ok(false);
        }
        (instance.deleted_by, instance.earlier) = (Some(record), Some(found.earlier.clone()));
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
            add_deleted(&mut total, &deleted);
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

/// The beginning of the ids of records.
const RECORD: &str = "d:";

pub(crate) fn record_id(uid: Uid) -> String {
    format!("{RECORD}{uid}")
}

/// The largest number of a creation, for queries without an upper end.
pub(crate) const NEWEST: u64 = number::LARGEST;

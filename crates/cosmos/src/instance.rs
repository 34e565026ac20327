//! Reads and fenced writes of the document of an instance.

use crate::client::{Op, is_conflict};
use crate::document::{Address, Events, Instance, Versioned};
use crate::doubt::{Attempts, InstanceWrite, Resolved, StoredInstance, Verdict};
use crate::error::contended;
use crate::ids::{self, Uid};
use crate::store::Store;
use outlast_provider::ProviderError;

/// Attempts of a write whose outcome is in doubt.
const ATTEMPTS: usize = 4;

/// The outcome of a write.
#[derive(Debug)]
pub(crate) enum Written {
    /// The write is applied. `is_last` says that no other write came after it.
    Done { etag: String, etags: Vec<String>, is_last: bool },
    /// A document is not the one that the writer read: the operation with this index, 0 for the instance.
    Conflict { failed: Option<usize> },
}

impl Store {
    pub(crate) async fn read_instance(
        &self,
        operation: &str,
        address: &Address,
    ) -> Result<Option<Versioned<Instance>>, ProviderError> {
        let read = self.client.read::<Instance>(operation, &address.partition, ids::INSTANCE).await?;
        match read {
            Some(instance) if instance.document.deleted_by.is_some() => {
                self.unless_deleted(operation, address, instance).await
            }
            read => Ok(read),
        }
    }

    /// Replaces the instance under `If-Match`, or creates it, with further operations in the same batch. `events` is the id of a
    /// document of events in the batch, which proves the write for longer than the instance does.
    ///
    /// If a deletion has marked the instance and is not committed, the write gives the deletion up: the caller of the deletion saw
    /// the instance before this write.
    pub(crate) async fn write_instance(
        &self,
        operation: &str,
        before: Option<&str>,
        instance: &mut Instance,
        write: Uid,
        further: Vec<Op>,
        events: Option<&str>,
    ) -> Result<Written, ProviderError> {
        if let Some(record) = instance.deleted_by {
            if !self.give_up_deletion(operation, record).await? {
                return Ok(Written::Conflict { failed: Some(0) });
            }
            instance.unmark();
        }
        self.replace_instance(operation, before, instance, write, further, events).await
    }

    /// [`Self::write_instance`] that keeps the mark of a deletion.
    pub(crate) async fn replace_instance(
        &self,
        operation: &str,
        before: Option<&str>,
        instance: &mut Instance,
        write: Uid,
        further: Vec<Op>,
        events: Option<&str>,
    ) -> Result<Written, ProviderError> {
        instance.seal(write);
        let partition = instance.partition.clone();
        let first = match before {
            Some(etag) => Op::replace(ids::INSTANCE, instance, Some(etag))?,
            None => Op::create(instance)?,
        };
        let mut operations = vec![first];
        operations.extend(further);
        let mut attempts = Attempts::default();
        for _ in 0..ATTEMPTS {
            let batched = self.client.batch(&partition, operations.clone()).await?;
            match attempts.verdict(&batched.answer) {
                Verdict::Applied => {
                    let etag = batched.etags.first().cloned().unwrap_or_default();
                    return Ok(Written::Done { etag, etags: batched.etags, is_last: true });
                }
                Verdict::Refused(refusal) if is_conflict(refusal) => {
                    return Ok(Written::Conflict { failed: batched.failed });
                }
                Verdict::Refused(_) => return Err(batched.error(operation)),
                Verdict::InDoubt => {}
            }
            let secret = instance.lock.as_ref().map(|lock| lock.secret);
            let written = self.resolve(operation, before, &partition, (write, secret), events).await?;
            if let Some(written) = written {
                return Ok(written);
            }
        }
        Err(contended(operation, instance.iid.as_deref().unwrap_or(&partition)))
    }

    /// Reads whether a write that is in doubt was applied; `None`: it may be repeated. After a write with the secret of a lease,
    /// the writer continues only if it still holds the lease.
    async fn resolve(
        &self,
        operation: &str,
        before: Option<&str>,
        partition: &str,
        (write, secret): (Uid, Option<Uid>),
        events: Option<&str>,
    ) -> Result<Option<Written>, ProviderError> {
        let stored = self.client.read::<Instance>(operation, partition, ids::INSTANCE).await?;
        let has_events = match events {
            Some(id) => {
                let events = self.client.read::<Events>(operation, partition, id).await?;
                events.is_some_and(|events| events.document.w == write)
            }
            None => false,
        };
        let found = stored
            .as_ref()
            .map(|stored| StoredInstance { etag: &stored.etag, writes: &stored.document.writes });
        // Nothing matches an empty ETag.
        let in_doubt = InstanceWrite { write, etag: before.unwrap_or_default() };
        let holds = stored.as_ref().and_then(|stored| stored.document.lock.as_ref()).map(|lock| lock.secret);
        let resolved = match secret {
            _ if before.is_none() && found.is_none() => Resolved::Repeat,
            Some(_) => in_doubt.resolve_kept(found, holds == secret),
            None => in_doubt.resolve(found, has_events),
        };
        Ok(match resolved {
            Resolved::Repeat => None,
            Resolved::Lost => Some(Written::Conflict { failed: Some(0) }),
            Resolved::Applied => {
                let (etag, is_last) = match &stored {
                    Some(stored) => (stored.etag.clone(), stored.document.writes.last() == Some(&write)),
                    None => (String::new(), false),
                };
                Some(Written::Done { etag, etags: Vec::new(), is_last })
            }
        })
    }
}

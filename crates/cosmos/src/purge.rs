//! Removal of the documents of instances whose deletion is committed. Every process that reads such an instance resumes the removal.
//!
//! The record stays until every purge is complete, because a marked instance without a record counts as not deleted. So a
//! purge is complete only when a read shows that the marked instance is gone, or its removal was acknowledged.
//!
//! Messages are documents of their own, so a message may arrive after the deletion, for a new instance. No clock of a client
//! says which messages these are: the clocks of two machines differ. The deleter lists the messages before it marks the
//! instance, and the mark names them ([`Earlier`](crate::document::Earlier)); a message that the mark does not name stays.

use crate::client::{Op, is_conflict};
use crate::delete::{DELETE, Found, record_id};
use crate::document::{Address, DeleteRecord, FromOutside, Instance, Item};
use crate::doubt::Verdict;
use crate::error::contended;
use crate::ids::{self, Uid};
use crate::layout;
use crate::number;
use crate::sql;
use crate::store::Store;
use crate::visible::Visibility;
use outlast_provider::ProviderError;
use serde::Deserialize;

/// Rounds in a row that remove nothing.
const ATTEMPTS: usize = 8;

/// A document in the partition of an instance that is deleted.
#[derive(Deserialize)]
pub(crate) struct Left {
    id: String,
    #[serde(rename = "_etag")]
    etag: String,
    t: String,
    #[serde(with = "number::option", default)]
    rev: Option<u64>,
    /// The time of the last write, in whole seconds of the service.
    #[serde(rename = "_ts", default)]
    stamp: u64,
}

impl Left {
    /// The document, if it is no part of a turn of the instance.
    pub(crate) fn as_outside(&self) -> Option<FromOutside<'_>> {
        let is_from_outside = self.rev.is_none() && ids::may_arrive(&self.id);
        is_from_outside.then_some(FromOutside { id: &self.id, stamp: self.stamp })
    }

    fn is_queued(&self) -> bool {
        matches!(self.t.as_str(), "m" | "a")
    }
}

/// The outcome of one round of a purge.
#[derive(Default)]
struct Round {
    /// Whether a batch was applied.
    is_useful: bool,
    /// The removed messages and activities.
    messages: u64,
    /// The error of the last batch that is in doubt.
    in_doubt: Option<ProviderError>,
}

impl Store {
    /// Purges the instances of a record, and removes the record if nothing is left. Returns the number of messages and
    /// activities.
    pub(crate) async fn purge_all(&self, found: &[Found], record: Uid) -> Result<u64, ProviderError> {
        let mut messages = 0;
        for Found { address, .. } in found {
            let purged = self.purge(DELETE, address, record).await;
            messages += purged.map_err(|error| unfinished(address, error))?;
        }
        // A record that stays is found and removed by the reconciler of a process.
        self.client.batch(layout::SYSTEM, vec![Op::delete(&record_id(record), None)]).await?;
        Ok(messages)
    }

    /// The same for a record whose deleter died.
    pub(crate) async fn purge_record(&self, record: &DeleteRecord, uid: Uid) -> Result<(), ProviderError> {
        for id in &record.ids {
            self.purge(DELETE, &Address::of(id), uid).await?;
        }
        self.client.batch(layout::SYSTEM, vec![Op::delete(&record.id, None)]).await.map(drop)
    }

    /// Removes the documents of a deleted instance, the instance last. Returns the number of messages and activities. An error
    /// unless the instance is gone: a removal that is in doubt is read again.
    pub(crate) async fn purge(
        &self,
        operation: &str,
        address: &Address,
        record: Uid,
    ) -> Result<u64, ProviderError> {
        let mut messages = 0;
        let (mut fruitless, mut last) = (0, None);
        while fruitless < ATTEMPTS {
            let read = self.client.read::<Instance>(operation, &address.partition, ids::INSTANCE).await?;
            let Some(marked) = read.filter(|read| read.document.deleted_by == Some(record)) else {
                return Ok(messages);
            };
            let left = self.left(operation, address, &marked.document).await?;
            let round = self.remove_marked(operation, address, &marked.etag, &left).await?;
            if left.is_empty() && round.is_useful {
                return Ok(messages);
            }
            messages += round.messages;
            fruitless = if round.is_useful { 0 } else { fruitless + 1 };
            last = round.in_doubt.or(last);
        }
        Err(last.unwrap_or_else(|| contended(operation, &address.id)))
    }

    /// The documents of a deleted instance, without the instance. Delivers the messages that it sent.
    async fn left(
        &self,
        operation: &str,
        address: &Address,
        instance: &Instance,
    ) -> Result<Vec<Left>, ProviderError> {
        let mut left: Vec<Left> =
            self.client.query(operation, &address.partition, sql::PARTITION, &[]).await?;
        let earlier = instance.earlier.clone().unwrap_or_default();
        let is_later = |document: &Left| document.as_outside().is_some_and(|found| !earlier.has(&found));
        // The gate stays with a later message: without it, a start would count the id as one that never had a message.
        let has_later = left.iter().any(is_later);
        left.retain(|document| !(is_later(document) || has_later && document.id == ids::GATE));
        for intent in left.iter().filter(|document| document.t == "o") {
            // A committed turn sent the message: it is not part of the instance.
            let read = self.client.read::<Item>(operation, &address.partition, &intent.id).await?;
            if let Some(read) = read {
                let rev = read.document.rev.filter(|_| read.document.is_staged);
                if instance.marks().visibility(&read.document.id, rev) == Visibility::Visible {
                    self.hand_over(&read.document).await?;
                }
            }
        }
        Ok(left)
    }

    /// Removes documents of a deleted instance, or the instance itself if no others are left. Each batch begins with a read of
    /// the marked instance under `If-Match`: after another process has completed the purge, the documents may be those of a new
    /// instance.
    async fn remove_marked(
        &self,
        operation: &str,
        address: &Address,
        etag: &str,
        left: &[Left],
    ) -> Result<Round, ProviderError> {
        let mut round = Round::default();
        let guard = Op::Guard { id: ids::INSTANCE.to_string(), etag: etag.to_string() };
        let mut batches: Vec<(&[Left], Vec<Op>)> = Vec::new();
        for chunk in left.chunks(self.limits.operations - 1) {
            let removals = chunk.iter().map(|document| Op::delete(&document.id, Some(&document.etag)));
            batches.push((chunk, std::iter::once(guard.clone()).chain(removals).collect()));
        }
        if left.is_empty() {
            batches.push((&[], vec![Op::delete(ids::INSTANCE, Some(etag))]));
        }
        for (chunk, operations) in batches {
            let batched = self.client.batch(&address.partition, operations).await?;
            match batched.verdict() {
                Verdict::Applied => {
                    round.messages += chunk.iter().filter(|document| document.is_queued()).count() as u64;
                    round.is_useful = true;
                }
                // Another process purges as well, or a worker wrote its activity: the next round reads again.
                Verdict::Refused(refusal) if is_conflict(refusal) => {}
                Verdict::Refused(_) => return Err(batched.error(operation)),
                Verdict::InDoubt => round.in_doubt = Some(batched.error(operation)),
            }
        }
        Ok(round)
    }
}

/// The error of a deletion that is committed and not complete.
fn unfinished(address: &Address, error: ProviderError) -> ProviderError {
    let message = format!(
        "the instances are deleted, but documents of instance '{}' are left, which the next call that meets them removes: {}",
        address.id, error.message
    );
    ProviderError { message, ..error }
}

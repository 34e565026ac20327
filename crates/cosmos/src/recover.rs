//! Stages of a turn, and the removal of documents that an attempt left behind. Every batch is guarded by a read of the instance
//! under `If-Match`, because two attempts at a turn give their documents the same ids.

use crate::aside::waits_for_messages;
use crate::client::{Op, is_conflict};
use crate::commit::{ACK, Applied, written};
use crate::document::{Address, Instance, Pair, Versioned};
use crate::doubt::{Attempts, Resolved, Verdict, resolve_staged};
use crate::error::contended;
use crate::ids::{self, Uid};
use crate::instance::Written;
use crate::load::has_leftovers;
use crate::number::parameter;
use crate::prepare::Body;
use crate::sql;
use crate::staging::{Operation, removal};
use crate::store::Store;
use outlast_provider::ProviderError;
use serde::Deserialize;
use serde_json::Value;

/// The number of attempts of a batch that is in doubt, and the number of rounds of a sweep.
const ATTEMPTS: usize = 4;
const ROUNDS: usize = 100;

/// The ids that one query names: Cosmos DB refuses a query of more than 512 KiB.
const MOST_NAMED: usize = 5_000;

/// A document that was left behind.
#[derive(Deserialize)]
struct Left {
    id: String,
    #[serde(rename = "_etag")]
    etag: String,
    t: String,
}

/// The write id of any document.
#[derive(Deserialize)]
struct Stamped {
    w: Uid,
}

impl Store {
    /// Creates hidden documents.
    pub(crate) async fn stage(
        &self,
        address: &Address,
        guard: &str,
        write: Uid,
        stage: Vec<Operation<Body>>,
    ) -> Result<Applied, ProviderError> {
        let ids: Vec<String> = stage.iter().map(|operation| operation.id().to_string()).collect();
        let mut operations = vec![Op::Guard { id: ids::INSTANCE.to_string(), etag: guard.to_string() }];
        for operation in stage {
            operations.push(written(address, operation, true)?);
        }
        let mut attempts = Attempts::default();
        for _ in 0..ATTEMPTS {
            let batched = self.client.batch(&address.partition, operations.clone()).await?;
            match attempts.verdict(&batched.answer) {
                Verdict::Applied => {
                    let etags = ids.into_iter().zip(batched.etags.into_iter().skip(1)).collect();
                    return Ok(Applied::Yes { etags, after: None });
                }
                Verdict::Refused(refusal) if is_conflict(refusal) => {
                    let failed = batched.failed.and_then(|failed| failed.checked_sub(1));
                    let taken = failed.and_then(|failed| ids.get(failed)).filter(|id| id.starts_with("a:"));
                    return Ok(Applied::No { taken: taken.cloned() });
                }
                Verdict::Refused(_) => return Err(batched.error(ACK)),
                Verdict::InDoubt => {}
            }
            let first = ids.first().map_or(ids::INSTANCE, String::as_str);
            let stored = self.client.read::<Stamped>(ACK, &address.partition, first).await?;
            let instance = self.client.read::<Instance>(ACK, &address.partition, ids::INSTANCE).await?;
            let is_guarded = instance.is_some_and(|instance| instance.etag == guard);
            match resolve_staged(write, stored.map(|stored| stored.document.w), is_guarded) {
                Resolved::Applied => {
                    return Ok(Applied::Yes { etags: Default::default(), after: None });
                }
                Resolved::Lost => return Ok(Applied::No { taken: None }),
                Resolved::Repeat => {}
            }
        }
        Err(contended(ACK, &address.id))
    }

    /// Gives a staged turn up and removes its documents, removes documents that were consumed, and puts messages back that a hold
    /// had set aside. Keeps the lock. Returns the instance without these marks; `None` if it changed meanwhile.
    pub(crate) async fn recover(
        &self,
        operation: &str,
        address: &Address,
        mut found: Versioned<Instance>,
    ) -> Result<Option<Versioned<Instance>>, ProviderError> {
        if has_leftovers(&found.document) {
            let Some(swept) = self.sweep(operation, address, found).await? else { return Ok(None) };
            found = swept;
        }
        match waits_for_messages(&found.document) {
            true => self.put_all_back(operation, address, found).await,
            false => Ok(Some(found)),
        }
    }

    async fn sweep(
        &self,
        operation: &str,
        address: &Address,
        found: Versioned<Instance>,
    ) -> Result<Option<Versioned<Instance>>, ProviderError> {
        let (mut etag, mut instance) = (found.etag, found.document);
        if instance.staged.is_some() {
            let mut marks = instance.marks();
            marks.give_up_staged();
            instance.set_marks(marks);
            let wrote = self
                .write_instance(operation, Some(&etag), &mut instance, self.uid(), Vec::new(), None)
                .await?;
            let Written::Done { etag: next, is_last: true, .. } = wrote else { return Ok(None) };
            etag = next;
        }
        for _ in 0..ROUNDS {
            let mut left = self.left_behind(operation, address, &mut instance).await?;
            if left.is_empty() {
                let wrote = self
                    .write_instance(operation, Some(&etag), &mut instance, self.uid(), Vec::new(), None)
                    .await?;
                return Ok(match wrote {
                    Written::Done { etag, is_last: true, .. } => Some(Versioned { etag, document: instance }),
                    _ => None,
                });
            }
            left.truncate(self.limits.operations - 1);
            if !self.remove(operation, address, &etag, &instance, left).await? {
                return Ok(None);
            }
        }
        Err(contended(operation, &address.id))
    }

    /// The documents of dead revs; if there are none, the dropped documents. Clears the marks without a remaining document.
    async fn left_behind(
        &self,
        operation: &str,
        address: &Address,
        instance: &mut Instance,
    ) -> Result<Vec<Left>, ProviderError> {
        if !instance.dead.is_empty() {
            let revs: Vec<Value> = instance.dead.iter().map(|rev| parameter(*rev)).collect();
            let parameters = [("@revs", Value::from(revs))];
            let mut left: Vec<Left> =
                self.client.query(operation, &address.partition, sql::OF_REVS, &parameters).await?;
            left.retain(|document| document.t != "i");
            if !left.is_empty() {
                return Ok(left);
            }
            instance.dead.clear();
        }
        while !instance.dropped.is_empty() {
            let ids: Vec<String> = instance.dropped.iter().take(MOST_NAMED).cloned().collect();
            let parameters = [("@ids", serde_json::json!(ids))];
            let mut left: Vec<Left> =
                self.client.query(operation, &address.partition, sql::OF_IDS, &parameters).await?;
            left.retain(|document| document.t != "b");
            if !left.is_empty() {
                return Ok(left);
            }
            for id in &ids {
                instance.dropped.remove(id);
            }
        }
        Ok(Vec::new())
    }

    /// Removes documents, or restores the committed content of keys; false if the instance changed.
    async fn remove(
        &self,
        operation: &str,
        address: &Address,
        guard: &str,
        instance: &Instance,
        left: Vec<Left>,
    ) -> Result<bool, ProviderError> {
        let mut operations = vec![Op::Guard { id: ids::INSTANCE.to_string(), etag: guard.to_string() }];
        for document in left {
            let is_dropped = instance.dropped.contains(&document.id);
            operations.push(match document.t.as_str() {
                "k" if !is_dropped => {
                    let pair = self.client.read::<Pair>(operation, &address.partition, &document.id).await?;
                    match pair {
                        Some(pair) => restored(pair)?,
                        None => continue,
                    }
                }
                _ if is_dropped => match removal::<Body>(document.id) {
                    Operation::Delete(id) => Op::delete(&id, Some(&document.etag)),
                    buried => written(address, buried, false)?,
                },
                _ => Op::delete(&document.id, Some(&document.etag)),
            });
        }
        let batched = self.client.batch(&address.partition, operations).await?;
        match batched.verdict() {
            Verdict::Applied => Ok(true),
            Verdict::Refused(refusal) if is_conflict(refusal) => Ok(batched.failed != Some(0)),
            Verdict::Refused(_) => Err(batched.error(operation)),
            // The next query shows what is left.
            Verdict::InDoubt => Ok(true),
        }
    }
}

/// The operation that brings the committed content of a key back.
fn restored(pair: Versioned<Pair>) -> Result<Op, ProviderError> {
    let Versioned { etag, document: mut pair } = pair;
    let committed = pair.committed.take();
    match committed.and_then(|committed| Some((committed.rev, committed.content?))) {
        Some((rev, content)) => {
            (pair.rev, pair.content) = (rev, content);
            Op::replace(&pair.id.clone(), &pair, Some(&etag))
        }
        None => Ok(Op::delete(&pair.id, Some(&etag))),
    }
}

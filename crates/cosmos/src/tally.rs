//! The numbers of instances, executions and events of a large store.
//!
//! Cosmos DB counts the documents of one partition only, so a count over all instances reads a row of each. Small stores are
//! counted in this way. In a larger store every process counts its own changes and adds them every [`EVERY`] to one of a few
//! documents, and a reader adds these up. A process that dies loses the changes since its last flush. The first call of
//! `get_system_metrics` counts all instances, and a call counts them again once a day. No process counts them without a call.

use crate::client::{Op, is_conflict};
use crate::document::{Address, Instance, Versioned};
use crate::doubt::Verdict;
use crate::error::contended;
use crate::ids::Uid;
use crate::layout;
use crate::number;
use crate::sql;
use crate::store::{Store, locked};
use outlast_model::ExecutionStatus;
use outlast_provider::{ProviderError, SystemMetrics};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::{Mutex, Weak};
use std::time::Duration;

/// The interval at which a process adds its changes to the documents.
pub(crate) const EVERY: Duration = Duration::from_secs(10);

/// The interval at which all instances are counted again.
const RECOUNT_MS: u64 = 24 * 60 * 60 * 1_000;

/// The number of documents that processes share.
const SHARDS: u128 = 16;

const ATTEMPTS: usize = 8;

/// Numbers, or changes of numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    #[serde(rename = "i")]
    instances: i64,
    #[serde(rename = "r")]
    running: i64,
    #[serde(rename = "c")]
    completed: i64,
    #[serde(rename = "f")]
    failed: i64,
    #[serde(rename = "x")]
    executions: i64,
    #[serde(rename = "e")]
    events: i64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.instances += other.instances;
        self.running += other.running;
        self.completed += other.completed;
        self.failed += other.failed;
        self.executions += other.executions;
        self.events += other.events;
    }
}

impl Counts {
    fn new(status: Option<&str>, executions: u64, events: u64) -> Self {
        let is = |wanted: ExecutionStatus| i64::from(status == Some(wanted.as_str()));
        Self {
            instances: i64::from(status.is_some()),
            running: is(ExecutionStatus::Running),
            completed: is(ExecutionStatus::Completed),
            failed: is(ExecutionStatus::Failed),
            executions: signed(executions),
            events: signed(events),
        }
    }

    pub(crate) fn of(instance: &Instance) -> Self {
        Self::new(instance.st.as_deref(), instance.executions, instance.events)
    }

    /// The change from `before` to these.
    pub(crate) fn since(mut self, before: Self) -> Self {
        self += Self {
            instances: -before.instances,
            running: -before.running,
            completed: -before.completed,
            failed: -before.failed,
            executions: -before.executions,
            events: -before.events,
        };
        self
    }

    fn metrics(self) -> SystemMetrics {
        let count = |number: i64| u64::try_from(number).unwrap_or(0);
        SystemMetrics {
            total_instances: count(self.instances),
            total_executions: count(self.executions),
            running_instances: count(self.running),
            completed_instances: count(self.completed),
            failed_instances: count(self.failed),
            total_events: count(self.events),
        }
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The changes of this process that no document has, by the time at which they were made, in steps.
#[derive(Default)]
pub(crate) struct Tally(Mutex<BTreeMap<u64, Counts>>);

/// The length of a step, in milliseconds.
const STEP_MS: u64 = 100;

impl Tally {
    pub(crate) fn add(&self, at: u64, change: Counts) {
        *locked(&self.0).entry(at - at % STEP_MS).or_default() += change;
    }

    fn take(&self) -> BTreeMap<u64, Counts> {
        std::mem::take(&mut *locked(&self.0))
    }

    fn put_back(&self, changes: BTreeMap<u64, Counts>) {
        for (at, change) in changes {
            self.add(at, change);
        }
    }

    fn read(&self, counted_at: u64) -> Counts {
        sum(&locked(&self.0), counted_at)
    }
}

/// The sum of the changes that a count at this time has not seen.
fn sum(changes: &BTreeMap<u64, Counts>, counted_at: u64) -> Counts {
    let mut sum = Counts::default();
    for (_, change) in changes.range(counted_at + 1..) {
        sum += *change;
    }
    sum
}

/// A document of numbers: `t = "n"`. The one with a time is that of all instances, counted at that time; the others are changes.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Document {
    id: String,
    #[serde(rename = "instanceId")]
    partition: String,
    t: String,
    w: Uid,
    #[serde(with = "number::option", default, skip_serializing_if = "Option::is_none")]
    counted_at: Option<u64>,
    #[serde(rename = "d")]
    counts: Counts,
}

impl Document {
    fn new(id: &str, w: Uid, counted_at: Option<u64>, counts: Counts) -> Self {
        let (partition, t) = (layout::SYSTEM.to_string(), "n".to_string());
        Self { id: id.to_string(), partition, t, w, counted_at, counts }
    }
}

/// The id of the document of all instances.
const ALL: &str = "n";

/// One instance, as a count reads it.
#[derive(Deserialize)]
struct Row {
    #[serde(rename = "instanceId")]
    partition: String,
    #[serde(default)]
    iid: Option<String>,
    #[serde(default)]
    st: Option<String>,
    #[serde(rename = "nx", with = "number", default)]
    executions: u64,
    #[serde(rename = "ne", with = "number", default)]
    events: u64,
    #[serde(rename = "del", default)]
    deleted_by: Option<Uid>,
}

impl Store {
    /// The numbers of the store: exact for a small store, else as the documents have them.
    pub(crate) async fn metrics(&self, operation: &str) -> Result<SystemMetrics, ProviderError> {
        let (documents, now) = (self.tallies(operation).await?, self.now());
        let known = self.known(&documents, now);
        let is_large = |known: &Counts| known.metrics().total_instances > 2 * self.counted_exactly as u64;
        if let Some(known) = known.filter(is_large) {
            return Ok(known.metrics());
        }
        let counted = match (self.counted(operation, self.counted_exactly).await?, known) {
            (Some(counted), _) | (None, Some(counted)) => counted,
            (None, None) => self.recount(operation, documents, now).await?,
        };
        Ok(counted.metrics())
    }

    /// The number of running instances by the documents; `None` if all instances were not counted within a day.
    pub(crate) async fn tallied_running(&self, operation: &str) -> Result<Option<u64>, ProviderError> {
        let known = self.known(&self.tallies(operation).await?, self.now());
        Ok(known.map(|known| known.metrics().running_instances))
    }

    /// Counts all instances; `None` if there are more than `most`.
    async fn counted(&self, operation: &str, most: usize) -> Result<Option<Counts>, ProviderError> {
        let read = most.saturating_add(1);
        let rows: Vec<Row> = self.client.query_all(operation, sql::COUNTS, &[], read).await?;
        if rows.len() > most {
            return Ok(None);
        }
        let mut counts = Counts::default();
        for row in rows {
            if row.deleted_by.is_some()
                && let Some(address) = Address::of_document(&row.partition, row.iid.as_deref())
                && self.read_listed(operation, &address).await?.is_none()
            {
                continue;
            }
            counts += Counts::new(row.st.as_deref(), row.executions, row.events);
        }
        Ok(Some(counts))
    }

    async fn tallies(&self, operation: &str) -> Result<Vec<Versioned<Document>>, ProviderError> {
        self.client.query(operation, layout::SYSTEM, sql::TALLIES, &[]).await
    }

    /// The sum of the documents and of the changes of this process; `None` if the count of all instances is older than a day.
    fn known(&self, documents: &[Versioned<Document>], now: u64) -> Option<Counts> {
        let counted_at = counted_at(documents).filter(|at| now.saturating_sub(*at) < RECOUNT_MS)?;
        let mut sum = self.tally.read(counted_at);
        for document in documents {
            sum += document.document.counts;
        }
        Some(sum)
    }

    /// Counts all instances and replaces the documents, unless another process changes them meanwhile.
    async fn recount(
        &self,
        operation: &str,
        documents: Vec<Versioned<Document>>,
        now: u64,
    ) -> Result<Counts, ProviderError> {
        let counts = self.counted(operation, usize::MAX).await?.unwrap_or_default();
        let all = Document::new(ALL, self.uid(), Some(now), counts);
        let mut operations = vec![Op::create(&all)?];
        for Versioned { etag, document } in documents {
            match document.id == ALL {
                true => operations[0] = Op::replace(ALL, &all, Some(&etag))?,
                false => operations.push(Op::delete(&document.id, Some(&etag))),
            }
        }
        let batched = self.client.batch(layout::SYSTEM, operations).await?;
        match batched.verdict() {
            // After a conflict or without an answer the next reader counts again, or finds the count.
            Verdict::Applied | Verdict::InDoubt => Ok(counts),
            Verdict::Refused(refusal) if is_conflict(refusal) => Ok(counts),
            Verdict::Refused(_) => Err(batched.error(operation)),
        }
    }

    /// Adds the changes of this process to its document. A store that was never counted needs no changes.
    pub(crate) async fn flush_tally(&self) -> Result<(), ProviderError> {
        let changes = self.tally.take();
        if changes.is_empty() {
            return Ok(());
        }
        let flushed = self.add_to_document(&changes).await;
        if flushed.is_err() {
            self.tally.put_back(changes);
        }
        flushed
    }

    async fn add_to_document(&self, changes: &BTreeMap<u64, Counts>) -> Result<(), ProviderError> {
        const FLUSH: &str = "flush_counts";
        let (id, write) = (format!("{ALL}:{}", self.own.0 % SHARDS), self.uid());
        for _ in 0..ATTEMPTS {
            let documents = self.tallies(FLUSH).await?;
            let Some(counted_at) = counted_at(&documents) else { return Ok(()) };
            let mut next = Document::new(&id, write, None, sum(changes, counted_at));
            let own = documents.into_iter().find(|document| document.document.id == id);
            let operation = match own {
                // An earlier attempt was applied.
                Some(own) if own.document.w == write => return Ok(()),
                Some(own) => {
                    next.counts += own.document.counts;
                    Op::replace(&id, &next, Some(&own.etag))?
                }
                None => Op::create(&next)?,
            };
            let batched = self.client.batch(layout::SYSTEM, vec![operation]).await?;
            match batched.verdict() {
                Verdict::Applied => return Ok(()),
                Verdict::Refused(refusal) if !is_conflict(refusal) => return Err(batched.error(FLUSH)),
                // Another process was faster, or the next read shows whether the write was applied.
                _ => {}
            }
        }
        Err(contended(FLUSH, &id))
    }
}

/// The time at which all instances were counted.
fn counted_at(documents: &[Versioned<Document>]) -> Option<u64> {
    documents.iter().find_map(|document| document.document.counted_at)
}

/// Flushes the changes of a process, at first after one interval.
pub(crate) async fn flusher(store: Weak<Store>) {
    loop {
        tokio::time::sleep(EVERY).await;
        let Some(store) = store.upgrade() else { return };
        if let Err(error) = store.flush_tally().await {
            tracing::debug!(target: "duroxide::providers::cosmosdb", %error, "counts are stored later");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance(status: Option<&str>, executions: u64, events: u64) -> Instance {
        Instance { st: status.map(str::to_string), executions, events, ..Instance::default() }
    }

    #[test]
    fn a_change_moves_an_instance_between_the_numbers() {
        let (absent, running) = (instance(None, 0, 0), instance(Some("Running"), 1, 2));
        let ended = instance(Some("Completed"), 1, 5);
        let tally = Tally::default();
        tally.add(1_000, Counts::of(&running).since(Counts::of(&absent)));
        let metrics = tally.read(0).metrics();
        assert_eq!((metrics.total_instances, metrics.running_instances, metrics.total_events), (1, 1, 2));
        tally.add(2_000, Counts::of(&ended).since(Counts::of(&running)));
        let metrics = tally.read(0).metrics();
        assert_eq!((metrics.running_instances, metrics.completed_instances, metrics.total_events), (0, 1, 5));
        tally.add(2_050, Counts::default().since(Counts::of(&ended)));
        assert_eq!(tally.read(0), Counts::default());
        let after = Counts::default().since(Counts::of(&running));
        assert_eq!(tally.read(1_999), after, "a count at this time has seen the first change");
        assert_eq!(sum(&tally.take(), 2_000), Counts::default());
    }
}

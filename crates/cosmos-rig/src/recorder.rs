//! The recorder: one record per request, and totals.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::Kind;

/// A request that the rig answered or dropped.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The kind of the request.
    pub kind: Kind,
    /// The database in the path.
    pub database: Option<String>,
    /// The container in the path.
    pub container: Option<String>,
    /// The partition key: its text, or the JSON of a key that is no text. Cross-partition queries have none.
    pub partition: Option<String>,
    /// The document of a point operation.
    pub id: Option<String>,
    /// The operations of a batch.
    pub operations: Vec<RecordedOperation>,
    /// The text of a query.
    pub query: Option<String>,
    /// The properties that the query filters by and that the container does not index. Azure scans for them.
    pub unindexed: Vec<String>,
    /// The documents in the answer of a read, query or feed.
    pub documents_read: usize,
    /// The documents that were created, replaced or deleted.
    pub documents_written: usize,
    /// The bytes of the body of the request.
    pub request_bytes: usize,
    /// The bytes of the body of the emulator's answer.
    pub response_bytes: usize,
    /// The status that the client saw; 0 if the rig dropped the connection or reset the request.
    pub status: u16,
    /// The substatus, if there was one.
    pub substatus: Option<u32>,
    /// Whether the emulator executed the request.
    pub executed: bool,
    /// Whether a fault changed the answer.
    pub faulted: bool,
    /// The charge by our model.
    pub charge: f64,
    /// The charge that the emulator stated.
    pub emulator_charge: f64,
    /// The major version of HTTP: 1 or 2.
    pub http: u8,
}

/// An operation of a batch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecordedOperation {
    /// The kind of the operation.
    pub kind: Kind,
    /// The document.
    pub id: Option<String>,
    /// The bytes of the document that was sent.
    pub bytes: usize,
    /// The status of the operation; none if the batch was not executed.
    pub status: Option<u16>,
}

/// Sums over records.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Totals {
    /// All requests, also for metadata.
    pub requests: u64,
    /// Requests by kind.
    pub by_kind: BTreeMap<Kind, u64>,
    /// Operations by kind: those in batches, and those outside. Batches themselves are not counted.
    pub operations: BTreeMap<Kind, u64>,
    /// The documents in answers.
    pub documents_read: u64,
    /// The documents that were created, replaced or deleted.
    pub documents_written: u64,
    /// The bytes of the bodies of requests.
    pub request_bytes: u64,
    /// The bytes of the bodies of answers.
    pub response_bytes: u64,
    /// The charge by our model.
    pub charge: f64,
    /// The charge that the emulator stated.
    pub emulator_charge: f64,
}

impl Totals {
    /// Sums up records.
    pub fn of<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut totals = Self::default();
        records.into_iter().for_each(|record| totals.add(record));
        totals
    }

    /// The requests on documents, without those for metadata.
    pub fn data_requests(&self) -> u64 {
        self.by_kind.iter().filter(|(kind, _)| kind.is_data()).map(|(_, count)| count).sum()
    }

    fn add(&mut self, record: &Record) {
        self.requests += 1;
        *self.by_kind.entry(record.kind).or_default() += 1;
        match record.kind {
            Kind::Batch => {
                for operation in &record.operations {
                    *self.operations.entry(operation.kind).or_default() += 1;
                }
            }
            kind => *self.operations.entry(kind).or_default() += 1,
        }
        self.documents_read += record.documents_read as u64;
        self.documents_written += record.documents_written as u64;
        self.request_bytes += record.request_bytes as u64;
        self.response_bytes += record.response_bytes as u64;
        self.charge += record.charge;
        self.emulator_charge += record.emulator_charge;
    }
}

pub(crate) struct Recorder {
    keeps_records: bool,
    state: Mutex<(Totals, Vec<Record>)>,
}

impl Recorder {
    pub(crate) fn new(keeps_records: bool) -> Self {
        Self { keeps_records, state: Mutex::default() }
    }

    pub(crate) fn add(&self, record: Record) {
        let mut state = self.lock();
        state.0.add(&record);
        if self.keeps_records {
            state.1.push(record);
        }
    }

    pub(crate) fn records(&self) -> Vec<Record> {
        self.lock().1.clone()
    }

    pub(crate) fn totals(&self) -> Totals {
        self.lock().0.clone()
    }

    pub(crate) fn take(&self) -> (Totals, Vec<Record>) {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (Totals, Vec<Record>)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

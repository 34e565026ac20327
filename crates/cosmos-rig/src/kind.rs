//! The kinds of operations, as the recorder counts them and as faults address them.

use hyper::{HeaderMap, Method};
use serde::{Deserialize, Serialize};

/// The kind of a request, or of an operation in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Creates a document.
    Create,
    /// Creates or replaces a document.
    Upsert,
    /// Replaces a document.
    Replace,
    /// Changes parts of a document.
    Patch,
    /// Deletes a document.
    Delete,
    /// Reads a document by its id.
    Read,
    /// Runs one page of a query, in one partition or over several.
    Query,
    /// Asks the gateway for the plan of a query.
    QueryPlan,
    /// Runs several operations on one partition, atomically.
    Batch,
    /// Reads one page of a change feed.
    ChangeFeed,
    /// Reads one page of all documents.
    ReadFeed,
    /// Reads the properties of the account.
    Account,
    /// Creates, reads, lists or deletes a database.
    Database,
    /// Creates, reads, lists, replaces or deletes a container.
    Container,
    /// Reads the physical partitions of a container.
    PartitionRanges,
    /// Reads or changes provisioned throughput.
    Offer,
    /// A request that the emulator does not know.
    Other,
}

impl Kind {
    /// Whether the operation reads or writes documents. Requests for metadata depend on the caches of the SDK, so
    /// [`Fault::any`](crate::Fault::any) does not count them.
    pub fn is_data(self) -> bool {
        use Kind::*;
        match self {
            Create | Upsert | Replace | Patch | Delete | Read | Query | QueryPlan | Batch | ChangeFeed
            | ReadFeed => true,
            Account | Database | Container | PartitionRanges | Offer | Other => false,
        }
    }

    /// Whether the operation may change documents.
    pub fn is_write(self) -> bool {
        matches!(self, Self::Create | Self::Upsert | Self::Replace | Self::Patch | Self::Delete | Self::Batch)
    }

    /// Whether the operation addresses one logical partition, by a header that Azure requires.
    pub(crate) fn needs_partition(self) -> bool {
        self.is_write() || self == Self::Read
    }

    pub(crate) fn of(method: &Method, segments: &[String], headers: &HeaderMap) -> Self {
        let on = |name: &str| {
            headers.get(name).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"))
        };
        let names: Vec<&str> = segments.iter().step_by(2).map(String::as_str).collect();
        match (names.as_slice(), segments.len()) {
            ([], 0) => Self::Account,
            (["dbs"], _) => Self::Database,
            (["dbs", "colls"], _) => Self::Container,
            (["dbs", "colls", "pkranges"], _) => Self::PartitionRanges,
            (["offers"], _) => Self::Offer,
            (["dbs", "colls", "docs"], 5) => match *method {
                Method::GET if headers.contains_key("a-im") => Self::ChangeFeed,
                Method::GET => Self::ReadFeed,
                Method::POST if on("x-ms-cosmos-is-query-plan-request") => Self::QueryPlan,
                Method::POST if on("x-ms-documentdb-isquery") || on("x-ms-documentdb-query") => Self::Query,
                Method::POST if on("x-ms-cosmos-is-batch-request") => Self::Batch,
                Method::POST if on("x-ms-documentdb-is-upsert") => Self::Upsert,
                Method::POST => Self::Create,
                _ => Self::Other,
            },
            (["dbs", "colls", "docs"], 6) => match *method {
                Method::GET => Self::Read,
                Method::PUT => Self::Replace,
                Method::DELETE => Self::Delete,
                Method::PATCH => Self::Patch,
                _ => Self::Other,
            },
            _ => Self::Other,
        }
    }

    /// The kind of an operation in a batch.
    pub(crate) fn of_batch_operation(name: &str) -> Self {
        match name {
            "Create" => Self::Create,
            "Upsert" => Self::Upsert,
            "Replace" => Self::Replace,
            "Patch" => Self::Patch,
            "Delete" => Self::Delete,
            "Read" => Self::Read,
            _ => Self::Other,
        }
    }
}

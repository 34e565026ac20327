//! The state that all requests share.

use crate::access::Buckets;
use crate::api::StoreMarks;
use crate::kept::{Kept, Refreshed};
use crate::metrics::{Figures, Requests};
use crate::operations::Operations;
use crate::options::Options;
use crate::problem::{Code, Problem};
use crate::streams::Streams;
use crate::view::Samples;
use outlast::Client;
use outlast::providers::SystemMetrics;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// The age up to which totals are not read again: they cost a scan of the store. A scan that takes long is repeated more seldom.
pub(crate) const TOTALS_MS: u64 = 5_000;
/// The time for which a page waits for totals. A page without them is painted at once, and gets them later.
const SOON: Duration = Duration::from_millis(50);
/// The time for which a request waits for totals that it cannot do without.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) type Shared = Arc<App>;

pub(crate) struct App {
    pub(crate) client: Client,
    pub(crate) options: Options,
    pub(crate) requests: Semaphore,
    pub(crate) rates: Buckets,
    pub(crate) streams: Streams,
    totals: Refreshed<SystemMetrics>,
    pub(crate) figures: Kept<Figures>,
    pub(crate) marks: Kept<StoreMarks>,
    pub(crate) samples: Samples,
    pub(crate) operations: Operations,
    /// The requests so far.
    pub(crate) seen: Requests,
}

/// The totals of the store, and the time of their read.
pub(crate) struct Totals {
    pub(crate) at_ms: u64,
    pub(crate) metrics: SystemMetrics,
    /// Whether they need not be read again yet.
    pub(crate) is_fresh: bool,
}

impl App {
    pub(crate) fn new(client: Client, mut options: Options) -> Shared {
        let path = options.base_path.trim_matches('/');
        options.base_path = if path.is_empty() { String::new() } else { format!("/{path}") };
        Arc::new(Self {
            client,
            requests: Semaphore::new(options.requests),
            rates: Buckets::new(options.request_rate, options.request_burst),
            streams: Streams::new(options.streams, options.streams_per_caller),
            totals: Refreshed::default(),
            figures: Kept::default(),
            marks: Kept::default(),
            samples: Samples::default(),
            operations: Operations::new(options.operation_rate),
            seen: Requests::default(),
            options,
        })
    }

    /// The totals of the store, counted a short time ago.
    pub(crate) async fn totals(&self) -> Result<Totals, Problem> {
        let late =
            || Problem::later(Code::UNAVAILABLE, "the store has not counted its instances in time", 10);
        self.totals_within(PATIENCE).await?.ok_or_else(late)
    }

    /// The totals of the store if they are known now, also older ones.
    pub(crate) async fn known_totals(&self) -> Result<Option<Totals>, Problem> {
        self.totals_within(SOON).await
    }

    async fn totals_within(&self, patience: Duration) -> Result<Option<Totals>, Problem> {
        let client = self.client.clone();
        let read = async move { Ok(client.get_system_metrics().await?) };
        let Some(read) = self.totals.get(TOTALS_MS, patience, read).await else { return Ok(None) };
        let is_fresh = read.is_fresh(TOTALS_MS);
        Ok(Some(Totals { at_ms: read.at_ms, metrics: read.value?, is_fresh }))
    }
}

//! The state that all requests share.

use crate::access::Buckets;
use crate::api::StoreMarks;
use crate::options::Options;
use crate::problem::{Code, Problem};
use outlast::Client;
use outlast::providers::{Clock, SystemClock, SystemMetrics};
use std::sync::Arc;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

/// The age up to which totals are not read again: they cost a scan of the store.
const TOTALS_MS: u64 = 5_000;

pub(crate) type Shared = Arc<App>;

pub(crate) struct App {
    pub(crate) client: Client,
    pub(crate) options: Options,
    pub(crate) requests: Semaphore,
    pub(crate) rates: Buckets,
    streams: Arc<Semaphore>,
    totals: Mutex<Option<Totals>>,
    pub(crate) marks: StoreMarks,
}

/// The totals of the store, and the time of their read.
#[derive(Clone)]
pub(crate) struct Totals {
    pub(crate) at_ms: u64,
    pub(crate) metrics: SystemMetrics,
}

impl App {
    pub(crate) fn new(client: Client, mut options: Options) -> Shared {
        let path = options.base_path.trim_matches('/');
        options.base_path = if path.is_empty() { String::new() } else { format!("/{path}") };
        Arc::new(Self {
            client,
            requests: Semaphore::new(options.requests),
            rates: Buckets::new(options.request_rate, options.request_burst),
            streams: Arc::new(Semaphore::new(options.streams)),
            totals: Mutex::new(None),
            marks: StoreMarks::default(),
            options,
        })
    }

    /// The right to a stream or a wait, until the permit is dropped.
    pub(crate) fn stream_permit(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let permit = Arc::clone(&self.streams).try_acquire_owned();
        permit.map_err(|_| {
            Problem::later(Code::BUSY, "the server has as many streams and waits as it may: try again later", 1)
        })
    }

    /// The totals of the store, at most some seconds old. Concurrent requests share one read.
    pub(crate) async fn totals(&self) -> Result<Totals, Problem> {
        let mut kept = self.totals.lock().await;
        let now_ms = SystemClock.now_ms();
        if let Some(totals) = kept.as_ref().filter(|totals| now_ms.abs_diff(totals.at_ms) < TOTALS_MS) {
            return Ok(totals.clone());
        }
        let totals = Totals { at_ms: now_ms, metrics: self.client.get_system_metrics().await? };
        *kept = Some(totals.clone());
        Ok(totals)
    }
}

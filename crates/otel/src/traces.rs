//! The front door: builds the exporter, makes observers for runtimes, flushes and stops.

use crate::export::{Counts, Job, StoreTraces, start};
use crate::observer::Observer;
use opentelemetry_otlp::{ExporterBuildError, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SpanExporter;
use outlast::providers::Provider;
use outlast::runtime::observer::{CommitObserver, Observe};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;

/// Turns and activities that wait for the task that makes spans; if more wait, they are dropped.
const QUEUE: usize = 4_096;

/// The longest time for which a span waits for others.
const DELAY: Duration = Duration::from_secs(1);

/// Makes traces of runtimes and exports them. Clones are handles to the same exporter.
#[derive(Clone)]
pub struct Traces {
    jobs: Sender<Job>,
    counts: Arc<Counts>,
    ratio: f64,
}

/// Settings for [`Traces`], which [`TracesBuilder::start`] starts.
#[must_use = "no traces are made until it is started"]
pub struct TracesBuilder<E> {
    exporter: E,
    resource: Option<Resource>,
    ratio: f64,
    queue: usize,
    delay: Duration,
}

impl Traces {
    /// Exports by OTLP over HTTP with protobuf bodies, to the path `/v1/traces` of a collector such as `http://127.0.0.1:4318`.
    /// A failed request is repeated three times within ten seconds. Further headers come from `OTEL_EXPORTER_OTLP_HEADERS`.
    ///
    /// The address is `http://`: for TLS run a collector beside the process, or pass an exporter with another HTTP client to
    /// [`Traces::with_exporter`].
    ///
    /// # Errors
    ///
    /// For an endpoint that is no URL.
    pub fn otlp(
        endpoint: &str,
    ) -> Result<TracesBuilder<opentelemetry_otlp::SpanExporter>, ExporterBuildError> {
        let endpoint = endpoint.trim_end_matches('/');
        let path = if endpoint.ends_with("/v1/traces") { "" } else { "/v1/traces" };
        let exporter = opentelemetry_otlp::SpanExporter::builder().with_http();
        Ok(Self::with_exporter(exporter.with_endpoint(format!("{endpoint}{path}")).build()?))
    }

    /// Exports with any exporter of spans.
    pub fn with_exporter<E: SpanExporter + 'static>(exporter: E) -> TracesBuilder<E> {
        TracesBuilder { exporter, resource: None, ratio: 1.0, queue: QUEUE, delay: DELAY }
    }

    /// The value of [`RuntimeOptions::observer`](outlast::RuntimeOptions::observer).
    pub fn observe(&self) -> Arc<dyn Observe> {
        Arc::new(self.clone())
    }

    /// The number of spans that the exporter has accepted.
    pub fn exported(&self) -> u64 {
        self.counts.read().0
    }

    /// The number of spans, turns and activities that were dropped; the metric `outlast_traces_dropped_total` has the reasons.
    pub fn dropped(&self) -> u64 {
        self.counts.read().1
    }

    /// Exports the spans of all turns and activities that were committed before this call.
    ///
    /// Cancellation safety: when the future is dropped, the spans are exported all the same.
    ///
    /// # Errors
    ///
    /// [`FlushError`] if the exporter was not done in time, or was shut down.
    pub async fn flush(&self, timeout: Duration) -> Result<(), FlushError> {
        self.finish(timeout, false).await
    }

    /// Exports like [`Traces::flush`] and stops. Later turns and activities are counted as dropped. Call it after
    /// [`Runtime::shutdown`](outlast::runtime::Runtime::shutdown).
    ///
    /// Cancellation safety: when the future is dropped, the exporter stops all the same, or it did not get the request.
    ///
    /// # Errors
    ///
    /// [`FlushError`] if the exporter was not done in time, or was shut down before.
    pub async fn shutdown(&self, timeout: Duration) -> Result<(), FlushError> {
        self.finish(timeout, true).await
    }

    async fn finish(&self, timeout: Duration, ends: bool) -> Result<(), FlushError> {
        let (done, is_done) = oneshot::channel();
        let flushed = async {
            self.jobs.send(Job::Flush { done, ends }).await.map_err(|_| FlushError { is_stopped: true })?;
            is_done.await.map_err(|_| FlushError { is_stopped: true })
        };
        tokio::time::timeout(timeout, flushed).await.unwrap_or(Err(FlushError { is_stopped: false }))
    }
}

impl Observe for Traces {
    fn observer(&self, store: Arc<dyn Provider>) -> Arc<dyn CommitObserver> {
        let traces = Arc::new(StoreTraces::new(store, self.ratio));
        Arc::new(Observer { traces, jobs: self.jobs.clone(), counts: Arc::clone(&self.counts) })
    }
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (exported, dropped) = self.counts.read();
        f.debug_struct("Traces")
            .field("exported", &exported)
            .field("dropped", &dropped)
            .finish_non_exhaustive()
    }
}

impl<E: SpanExporter + 'static> TracesBuilder<E> {
    /// The attribute `service.name` of all spans. Without it `OTEL_SERVICE_NAME` decides.
    pub fn service(self, name: impl Into<String>) -> Self {
        self.resource(Resource::builder().with_service_name(name.into()).build())
    }

    /// The resource of all spans. Without it the environment decides.
    pub fn resource(self, resource: Resource) -> Self {
        Self { resource: Some(resource), ..self }
    }

    /// The part of the traces that are exported, from 0 to 1; all by default. A trace is exported as a whole, by all nodes with the
    /// same ratio. The flag of a caller's `traceparent` decides instead for the traces that continue it.
    pub fn sample_ratio(self, ratio: f64) -> Self {
        Self { ratio, ..self }
    }

    /// The most turns and activities that wait to be made into spans, and the most groups of spans that wait to be exported; 4,096
    /// by default, and at least 1. If more wait, they are dropped and counted.
    pub fn queue(self, queue: usize) -> Self {
        Self { queue: queue.max(1), ..self }
    }

    /// The longest time for which a span waits for others, to be exported with them; a second by default.
    pub fn delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Starts the tasks that make and export spans, on the current tokio runtime.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn start(self) -> Traces {
        let Self { mut exporter, resource, ratio, queue, delay } = self;
        exporter.set_resource(&resource.unwrap_or_else(|| Resource::builder().build()));
        let counts = Arc::default();
        let jobs = start(exporter, queue, delay, &counts);
        Traces { jobs, counts, ratio }
    }
}

/// Spans were not exported in time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlushError {
    /// Whether the exporter was shut down before.
    pub is_stopped: bool,
}

impl fmt::Display for FlushError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.is_stopped {
            true => "the exporter of traces was shut down before",
            false => {
                "spans were not exported in time: the collector does not answer; they are exported later unless the process ends"
            }
        })
    }
}

impl std::error::Error for FlushError {}

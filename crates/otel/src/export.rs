//! The two tasks behind the observers: one makes spans, the other sends them. Both queues are bounded, and a full queue drops.

use crate::fold::{Fold, Opening};
use crate::origin::{Origin, Origins};
use crate::seen::{Kind, Seen};
use crate::span::{Delivered, Spans};
use metrics::counter;
use opentelemetry::InstrumentationScope;
use opentelemetry::trace::SpanContext;
use opentelemetry_sdk::error::OTelSdkError;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use outlast::providers::{Provider, ProviderError};
use outlast::runtime::observer::StartNote;
use outlast::{INITIAL_EVENT_ID, INITIAL_EXECUTION_ID};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// The most executions whose open operations are kept. The others are read from the store when their next turn ends an operation.
const MOST_FOLDS: usize = 10_000;

/// The events of one read of a history.
const PAGE: usize = 500;

/// The most spans of one request.
const MOST_SPANS: usize = 512;

/// Work for the task that makes spans.
pub(crate) enum Job {
    Turn {
        traces: Arc<StoreTraces>,
        instance: String,
        execution_id: u64,
        seen: Vec<Seen>,
    },
    Activity {
        traces: Arc<StoreTraces>,
        instance: String,
        execution_id: u64,
        delivered: Delivered,
    },
    /// Answers when all jobs before it are exported. The task ends if `ends` is set.
    Flush {
        done: oneshot::Sender<()>,
        ends: bool,
    },
}

/// Work for the task that sends spans.
enum Batch {
    Spans(Vec<SpanData>),
    Flush { done: oneshot::Sender<()>, ends: bool },
}

/// The facts about one store that traces need.
pub(crate) struct StoreTraces {
    pub(crate) origins: Origins,
    folds: Mutex<HashMap<(String, u64), Fold>>,
}

/// The number of exported spans, and of dropped spans, turns and activities.
#[derive(Default)]
pub(crate) struct Counts {
    exported: AtomicU64,
    dropped: AtomicU64,
}

impl Counts {
    pub(crate) fn dropped(&self, reason: &'static str, number: u64) {
        self.dropped.fetch_add(number, Ordering::Relaxed);
        counter!("outlast_traces_dropped_total", "reason" => reason).increment(number);
    }

    fn exported(&self, number: u64) {
        self.exported.fetch_add(number, Ordering::Relaxed);
        counter!("outlast_traces_exported_total").increment(number);
    }

    /// The numbers of exported spans and of drops.
    pub(crate) fn read(&self) -> (u64, u64) {
        (self.exported.load(Ordering::Relaxed), self.dropped.load(Ordering::Relaxed))
    }
}

/// Starts both tasks on the current tokio runtime.
pub(crate) fn start<E: SpanExporter + 'static>(
    exporter: E,
    queue: usize,
    delay: Duration,
    counts: &Arc<Counts>,
) -> Sender<Job> {
    let (jobs, waiting_jobs) = channel(queue);
    let (batches, waiting_batches) = channel(queue);
    tokio::spawn(make_spans(waiting_jobs, batches, Arc::clone(counts)));
    tokio::spawn(send_spans(exporter, waiting_batches, delay, Arc::clone(counts)));
    jobs
}

async fn make_spans(mut jobs: Receiver<Job>, batches: Sender<Batch>, counts: Arc<Counts>) {
    let scope = InstrumentationScope::builder("outlast").with_version(env!("CARGO_PKG_VERSION")).build();
    while let Some(job) = jobs.recv().await {
        let made = match job {
            Job::Turn { traces, instance, execution_id, seen } => {
                traces.turn(&scope, instance, execution_id, &seen).await
            }
            Job::Activity { traces, instance, execution_id, delivered } => {
                traces.activity(&scope, &instance, execution_id, delivered).await
            }
            Job::Flush { done, ends } => {
                // The other task lives until it gets the message that ends it.
                if batches.send(Batch::Flush { done, ends }).await.is_err() || ends {
                    return;
                }
                continue;
            }
        };
        match made {
            Ok(Some(spans)) if spans.is_empty() => {}
            Ok(Some(spans)) => {
                let number = spans.len() as u64;
                if batches.try_send(Batch::Spans(spans)).is_err() {
                    counts.dropped("queue_full", number);
                }
            }
            Ok(None) | Err(_) => counts.dropped("store", 1),
        }
    }
}

impl StoreTraces {
    pub(crate) fn new(store: Arc<dyn Provider>, ratio: f64) -> Self {
        Self { origins: Origins::new(store, ratio), folds: Mutex::default() }
    }

    fn folds(&self) -> MutexGuard<'_, HashMap<(String, u64), Fold>> {
        self.folds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The spans of a delivery of an activity. `None` if the store does not have the execution.
    async fn activity(
        &self,
        scope: &InstrumentationScope,
        instance: &str,
        execution_id: u64,
        delivered: Delivered,
    ) -> Result<Option<Vec<SpanData>>, ProviderError> {
        let Some(origin) = self.origins.find(instance, execution_id).await? else { return Ok(None) };
        let spans = Spans { instance, execution_id, origin: &origin, scope };
        Ok(Some(origin.is_sampled.then(|| spans.activity(delivered)).into_iter().collect()))
    }

    /// The spans of a turn. `None` if the store does not have the beginning of the execution.
    async fn turn(
        &self,
        scope: &InstrumentationScope,
        instance: String,
        execution_id: u64,
        seen: &[Seen],
    ) -> Result<Option<Vec<SpanData>>, ProviderError> {
        let Some(first) = seen.first() else { return Ok(Some(Vec::new())) };
        let kept = self.folds().remove(&(instance.clone(), execution_id));
        let mut fold = match kept.filter(|fold| fold.last + 1 == first.id) {
            Some(fold) => fold,
            None => self.load(&instance, execution_id, first.id).await?,
        };
        let closed = fold.apply(seen);
        let Some(opening) = fold.opening.clone() else { return Ok(None) };
        let origin = self.origins.of(&instance, execution_id, &opening).await?;
        let is_ended = seen
            .iter()
            .any(|seen| matches!(seen.kind, Kind::Completed | Kind::Failed(_) | Kind::ContinuedAsNew));
        let mut made = Vec::new();
        if origin.is_sampled {
            let link = match is_ended {
                true => self.link(&instance, execution_id, &opening).await?,
                false => None,
            };
            let spans = Spans { instance: &instance, execution_id, origin: &origin, scope };
            if first.id == INITIAL_EVENT_ID {
                made.extend(spans.begun(&opening));
            }
            made.extend(closed.into_iter().map(|closed| spans.closed(closed)));
            made.extend(seen.iter().filter_map(|seen| spans.event(seen, &opening, link.clone())));
        }
        if !is_ended {
            let mut folds = self.folds();
            if folds.len() >= MOST_FOLDS {
                folds.clear();
            }
            folds.insert((instance, execution_id), fold);
        }
        Ok(Some(made))
    }

    /// The state of an execution before an event, from the store. Turns that another node has committed, and turns that were
    /// dropped, are read here.
    async fn load(&self, instance: &str, execution_id: u64, before: u64) -> Result<Fold, ProviderError> {
        let mut fold = Fold::default();
        let Some(admin) = self.origins.store().as_management_capability() else { return Ok(fold) };
        while fold.last + 1 < before {
            let missing = usize::try_from(before - 1 - fold.last).unwrap_or(PAGE).min(PAGE);
            let events = admin.history_page(instance, execution_id, fold.last, missing).await?;
            if events.is_empty() {
                break;
            }
            fold.apply(&Seen::all(&events));
        }
        Ok(fold)
    }

    /// The link of an orchestration's span: to the execution before it, or to the start by another orchestration.
    async fn link(
        &self,
        instance: &str,
        execution_id: u64,
        opening: &Opening,
    ) -> Result<Option<SpanContext>, ProviderError> {
        if execution_id > INITIAL_EXECUTION_ID {
            let before = self.origins.find(instance, execution_id - 1).await?;
            return Ok(before.map(|before| before.context(before.span)));
        }
        let Some(StartNote::Starter { instance, execution_id, event_id }) = &opening.note else {
            return Ok(None);
        };
        let starter: Option<Origin> = self.origins.find(instance, *execution_id).await?;
        Ok(starter.map(|starter| {
            starter.context(crate::ids::span_id(starter.trace, instance, *execution_id, *event_id, 0))
        }))
    }
}

async fn send_spans<E: SpanExporter>(
    exporter: E,
    mut batches: Receiver<Batch>,
    delay: Duration,
    counts: Arc<Counts>,
) {
    let mut outbox = Outbox { exporter, counts, spans: Vec::new(), is_failing: false };
    let mut due = Instant::now();
    loop {
        let next = match outbox.spans.is_empty() {
            true => batches.recv().await,
            false => match tokio::time::timeout_at(due, batches.recv()).await {
                Ok(next) => next,
                Err(_) => {
                    outbox.send().await;
                    continue;
                }
            },
        };
        match next {
            Some(Batch::Spans(more)) => {
                if outbox.spans.is_empty() {
                    due = Instant::now() + delay;
                }
                outbox.spans.extend(more);
                if outbox.spans.len() >= MOST_SPANS {
                    outbox.send().await;
                }
            }
            Some(Batch::Flush { done, ends }) => {
                outbox.send().await;
                // The caller may have given up.
                let _ = done.send(());
                if ends {
                    break;
                }
            }
            None => {
                outbox.send().await;
                break;
            }
        }
    }
    // An exporter has nothing left to send, and its errors have no reader.
    let _ = outbox.exporter.shutdown();
}

/// The spans that wait to be sent.
struct Outbox<E> {
    exporter: E,
    counts: Arc<Counts>,
    spans: Vec<SpanData>,
    is_failing: bool,
}

impl<E: SpanExporter> Outbox<E> {
    /// Sends all spans. The exporter repeats failed requests itself, so spans of a request that failed are dropped.
    async fn send(&mut self) {
        while !self.spans.is_empty() {
            let rest = self.spans.split_off(self.spans.len().min(MOST_SPANS));
            let batch = std::mem::replace(&mut self.spans, rest);
            let number = batch.len() as u64;
            let answer = self.exporter.export(batch).await;
            match &answer {
                Ok(()) => self.counts.exported(number),
                Err(_) => self.counts.dropped("export", number),
            }
            self.report(answer.err());
        }
    }

    /// Logs when requests begin to fail, and when they succeed again: a collector that is down fails all of them.
    fn report(&mut self, error: Option<OTelSdkError>) {
        match (error, self.is_failing) {
            (Some(error), false) => {
                tracing::warn!(target: "outlast::otel", %error, "spans were not exported and are dropped; see outlast_traces_dropped_total");
                self.is_failing = true;
            }
            (None, true) => {
                tracing::info!(target: "outlast::otel", "spans are exported again");
                self.is_failing = false;
            }
            _ => {}
        }
    }
}

//! The span of each store operation, and the record at its end: ids, counts and outcome, and no payload.

use crate::instrumented::Witness;
use outlast_memory::MemoryProvider;
use outlast_model::{Event, EventKind, WorkItem};
use outlast_provider::{
    ErrorClass, Provider, StartPolicy, StartRequest, TagFilter, TurnCommit, TurnRequest, WorkRequest,
};
use outlast_runtime::observability::MetricsProvider;
use outlast_runtime::{Client, InstrumentedProvider};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Dispatch, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

const SECOND: Duration = Duration::from_secs(1);
const TARGET: &str = "duroxide::providers";

/// The text of every payload in these tests.
const PAYLOAD: &str = "payload-that-no-log-shows";

#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Fields(BTreeMap<&'static str, String>);

impl Fields {
    fn shown(&self) -> String {
        let shown: Vec<String> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        shown.join(" ")
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_string());
    }

    fn record_f64(&mut self, field: &Field, _: f64) {
        // A duration, which differs from run to run.
        self.0.insert(field.name(), "f64".to_string());
    }
}

/// Captures closed spans and events as lines.
#[derive(Clone, Default)]
struct Captured {
    lines: Arc<Mutex<Vec<String>>>,
    most: Option<Level>,
}

impl Captured {
    fn wants(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == TARGET && self.most.is_none_or(|most| *metadata.level() <= most)
    }

    /// The lines that `test` causes, at this level and above.
    fn during(most: Level, test: impl Future<Output = ()>) -> Vec<String> {
        // With only one dispatcher, tracing lets the first thread that reaches a callsite decide for all threads.
        static OTHER: OnceLock<Dispatch> = OnceLock::new();
        OTHER.get_or_init(|| Dispatch::new(tracing_subscriber::registry().with(Self::default())));
        let captured = Self { most: Some(most), ..Self::default() };
        let subscriber = tracing_subscriber::registry().with(captured.clone());
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        tracing::subscriber::with_default(subscriber, || runtime.block_on(test));
        let lines = captured.lines.lock().unwrap().clone();
        assert!(!lines.join("\n").contains(PAYLOAD), "{lines:#?}");
        lines
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Captured {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        // Decided for each span, so that threads of other tests have no spans.
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        self.wants(metadata)
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        context.span(id).unwrap().extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        values.record(span.extensions_mut().get_mut::<Fields>().unwrap());
    }

    fn on_event(&self, event: &tracing::Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let message = fields.0.remove("message").unwrap();
        let inside = context.event_span(event).map_or("no span", |span| span.name());
        let line = format!("{} in {inside}: {message} {}", event.metadata().level(), fields.shown());
        self.lines.lock().unwrap().push(line);
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let span = context.span(&id).unwrap();
        let fields = span.extensions().get::<Fields>().unwrap().shown();
        self.lines.lock().unwrap().push(format!("{} {} {fields}", span.metadata().level(), span.name()));
    }
}

fn start(instance: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.into(),
        orchestration: "O".into(),
        input: PAYLOAD.into(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

fn activity(id: u64) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: "i".into(),
        execution_id: 1,
        id,
        name: "A".into(),
        input: PAYLOAD.into(),
        session_id: None,
        tag: None,
    }
}

fn event(id: u64) -> Event {
    let kind = EventKind::ExternalEvent { name: "e".into(), data: PAYLOAD.into() };
    Event::with_event_id(id, "i", 1, None, kind)
}

/// Runs a start, a turn with two activities and a message, the completion of one activity, and a call with an invalid token.
async fn walk(store: &dyn Provider) {
    let message = WorkItem::QueueMessage { instance: "i".into(), name: "q".into(), data: PAYLOAD.into() };
    let request = StartRequest {
        start: start("i"),
        delay: None,
        policy: StartPolicy::FailIfExists,
        messages: vec![message.clone()],
    };
    store.start_orchestration(request).await.unwrap();
    let ask = || TurnRequest {
        lock_timeout: SECOND,
        poll_timeout: Duration::ZERO,
        filter: None,
        with_history: true,
    };
    let turn = store.fetch_turn(ask()).await.unwrap().unwrap();
    assert!(store.fetch_turn(ask()).await.unwrap().is_none());
    let commit = TurnCommit {
        execution_id: 1,
        history_delta: vec![event(1), event(2), event(3)],
        worker_items: vec![activity(2), activity(3)],
        orchestrator_items: vec![message.clone()],
        ..TurnCommit::default()
    };
    store.commit_turn(&turn.lock_token, commit).await.unwrap();
    let ask = |max_items| WorkRequest {
        max_items,
        lock_timeout: SECOND,
        poll_timeout: Duration::ZERO,
        session: None,
        tag_filter: &TagFilter::Any,
    };
    let work = store.fetch_work_items(ask(1)).await.unwrap();
    let result =
        WorkItem::ActivityCompleted { instance: "i".into(), execution_id: 1, id: 2, result: PAYLOAD.into() };
    store.ack_work_item(&work[0].lock_token, Some(result.clone())).await.unwrap();
    store.enqueue_for_orchestrator(message, None).await.unwrap();
    store.read("i").await.unwrap();
    assert!(store.ack_work_item(&work[0].lock_token, Some(result)).await.is_err());
}

#[test]
fn each_operation_has_a_span_with_its_ids_counts_and_outcome() {
    let lines = Captured::during(Level::DEBUG, async {
        let store = InstrumentedProvider::new(Arc::new(MemoryProvider::new()), Some(Arc::default()));
        walk(&store).await;
    });
    let spans: Vec<&str> = lines.iter().map(String::as_str).filter(|line| !line.contains(" in ")).collect();
    let expected = [
        "DEBUG start_orchestration instance_id=i messages=1 outcome=success store=memory",
        "DEBUG fetch_orchestration_item attempt=1 events=0 execution_id=1 instance_id=i messages=2 outcome=success store=memory",
        "DEBUG fetch_orchestration_item messages=0 outcome=success store=memory",
        "DEBUG ack_orchestration_item activities=2 events=3 execution_id=1 instance_id=i messages=1 outcome=success store=memory",
        "DEBUG fetch_work_item activities=1 activity_id=2 attempt=1 execution_id=1 instance_id=i outcome=success store=memory",
        "DEBUG ack_work_item activity_id=2 execution_id=1 instance_id=i outcome=success store=memory",
        "DEBUG enqueue_orchestrator instance_id=i outcome=success store=memory",
        "DEBUG read events=3 execution_id=1 instance_id=i outcome=success store=memory",
        "DEBUG ack_work_item activity_id=2 error_type=other execution_id=1 instance_id=i outcome=error store=memory",
    ];
    assert_eq!(spans, expected);
    let events: Vec<&str> = lines.iter().map(String::as_str).filter(|line| line.contains(" in ")).collect();
    assert_eq!(events.len(), spans.len(), "one record per operation");
    assert_eq!(
        events[0],
        "DEBUG in start_orchestration: store operation ended duration_ms=f64 operation=start_orchestration"
    );
    let last = events.last().unwrap();
    let failed = "DEBUG in ack_work_item: store operation failed duration_ms=f64 error=ack_work_item: ";
    assert!(last.starts_with(failed) && last.ends_with("error_type=other operation=ack_work_item"), "{last}");
}

#[test]
fn a_wrapper_around_a_wrapper_adds_no_second_span() {
    let lines = Captured::during(Level::DEBUG, async {
        let inside: Arc<dyn Provider> =
            Arc::new(InstrumentedProvider::new(Arc::new(MemoryProvider::new()), Some(Arc::default())));
        let store = InstrumentedProvider::new(inside, Some(Arc::default()));
        store.read("i").await.unwrap();
    });
    assert_eq!(lines.len(), 2, "one record and one span: {lines:?}");
}

#[test]
fn operations_of_a_client_have_spans_too() {
    let lines = Captured::during(Level::DEBUG, async {
        let client = Client::new(Arc::new(MemoryProvider::new()));
        client.start_orchestration("i", "O", PAYLOAD).await.unwrap();
    });
    let spans: Vec<&String> = lines.iter().filter(|line| !line.contains(" in ")).collect();
    assert_eq!(spans.len(), 1, "{lines:?}");
    assert!(spans[0].contains("instance_id=i") && spans[0].contains("outcome=success"), "{spans:?}");
}

#[test]
fn only_a_permanent_error_of_the_store_is_logged_as_an_error() {
    let rows = [
        (ErrorClass::Damaged, false, 1),
        (ErrorClass::Connection, true, 0),
        (ErrorClass::Refused, false, 0),
        (ErrorClass::Other, false, 0),
    ];
    for (class, retryable, errors) in rows {
        let lines = Captured::during(Level::INFO, async {
            let failing = Witness {
                message: "broken",
                class: Some(class),
                is_retryable: retryable,
                ..Default::default()
            };
            let store = InstrumentedProvider::new(Arc::new(failing), Some(Arc::default()));
            store.read("i").await.unwrap_err();
        });
        assert_eq!(lines.len(), errors, "{class:?}: {lines:?}");
        if let [line] = lines.as_slice() {
            let expected = "ERROR in no span: store operation failed permanently duration_ms=f64 error=witness: broken error_type=damaged operation=read";
            assert_eq!(line, expected);
        }
    }
}

#[test]
fn operations_are_recorded_once_with_a_plain_and_with_an_instrumented_store() {
    for is_wrapped in [false, true] {
        let lines = crate::metrics::recorded(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                let mut store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
                if is_wrapped {
                    let metrics = Arc::new(MetricsProvider::default());
                    store = Arc::new(InstrumentedProvider::new(store, Some(metrics)));
                }
                let client = Client::new(store);
                client.start_orchestration("i", "O", "").await.unwrap();
                assert!(client.has_management_capability(), "the store is still found behind the wrapper");
            });
        });
        let timed: Vec<usize> =
            lines.iter().map(|line| line.split_once(" = ").unwrap().1.split(", ").count()).collect();
        let names: Vec<&str> = lines.iter().map(|line| line.split_once('{').unwrap().0).collect();
        assert_eq!(
            names,
            ["duroxide_provider_operation_duration_seconds", "provider.enqueue_orchestrator_duration_ms"],
            "{lines:?}"
        );
        assert_eq!(timed, [1, 1], "each once: {lines:?}");
    }
}

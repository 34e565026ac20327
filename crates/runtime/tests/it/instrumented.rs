//! `InstrumentedProvider` forwards and times every method, and classifies errors (api 9.2, 10.3).

use crate::metrics::recorded;
use async_trait::async_trait;
use outlast_memory::MemoryProvider;
use outlast_model::{Event, SystemStats, WorkItem};
use outlast_provider::{
    BoundedTurn, Clock, Completion, DispatcherCapabilityFilter, EagerStart, EnqueueOnce, ErrorClass,
    ExecutionMetadata, FetchedTurn, FetchedWork, FusedCompletion, HistoryBound, Hold, HoldKind, HoldOutcome,
    InstanceOutcome, InstanceWatch, Interest, LeasedOutcome, LoadedTurn, OrchestrationItem, Provider,
    ProviderAdmin, ProviderError, ScheduledActivityIdentifier, SessionFetchConfig, StartOutcome, StartPolicy,
    StartRequest, TagFilter, TurnAhead, TurnCommit, TurnRequest, WorkRequest, forward_provider,
};
use outlast_runtime::InstrumentedProvider;
use outlast_runtime::observability::MetricsProvider;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// A store that notes each call with its arguments, and fails.
#[derive(Default)]
pub(crate) struct Witness {
    pub(crate) calls: Mutex<Vec<String>>,
    pub(crate) message: &'static str,
    pub(crate) is_retryable: bool,
    /// Noted with each error.
    pub(crate) class: Option<ErrorClass>,
}

impl Witness {
    fn note(&self, call: String) {
        self.calls.lock().unwrap().push(call);
    }

    fn fail<T>(&self, call: String) -> Result<T, ProviderError> {
        self.note(call);
        if let Some(class) = self.class {
            class.note();
        }
        let (operation, message) = ("witness".to_string(), self.message.to_string());
        Err(ProviderError { operation, message, retryable: self.is_retryable })
    }
}

#[async_trait]
impl Provider for Witness {
    fn name(&self) -> &str {
        self.note("name".into());
        "witness"
    }

    fn version(&self) -> &str {
        self.note("version".into());
        "7.0.0"
    }

    fn fuses_outcomes(&self) -> bool {
        self.note("fuses_outcomes".into());
        true
    }

    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
        self.fail(format!("fetch_orchestration_item {lock_timeout:?} {poll_timeout:?} {}", filter.is_some()))
    }

    async fn ack_orchestration_item(
        &self,
        token: &str,
        execution_id: u64,
        delta: Vec<Event>,
        work: Vec<WorkItem>,
        messages: Vec<WorkItem>,
        metadata: ExecutionMetadata,
        cancelled: Vec<ScheduledActivityIdentifier>,
    ) -> Result<(), ProviderError> {
        let sizes = (delta.len(), work.len(), messages.len(), cancelled.len());
        self.fail(format!("ack_orchestration_item {token} {execution_id} {sizes:?} {:?}", metadata.status))
    }

    async fn abandon_orchestration_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        self.fail(format!("abandon_orchestration_item {token} {delay:?} {ignore_attempt}"))
    }

    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.fail(format!("read {instance}"))
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        self.fail(format!("read_with_execution {instance} {execution_id}"))
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        self.fail(format!("append_with_execution {instance} {execution_id} {}", events.len()))
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError> {
        self.fail(format!("enqueue_for_worker {}", item.kind_name()))
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        let owner = session.map(|session| session.owner_id.as_str());
        self.fail(format!("fetch_work_item {lock_timeout:?} {poll_timeout:?} {owner:?} {tag_filter:?}"))
    }

    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Result<(), ProviderError> {
        self.fail(format!("ack_work_item {token} {}", completion.is_some()))
    }

    async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Result<(), ProviderError> {
        self.fail(format!("renew_work_item_lock {token} {extend_for:?}"))
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        self.fail(format!("renew_session_lock {owner_ids:?} {extend_for:?} {idle_timeout:?}"))
    }

    async fn cleanup_orphaned_sessions(&self, idle_timeout: Duration) -> Result<usize, ProviderError> {
        self.fail(format!("cleanup_orphaned_sessions {idle_timeout:?}"))
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        self.fail(format!("abandon_work_item {token} {delay:?} {ignore_attempt}"))
    }

    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        self.fail(format!("renew_orchestration_item_lock {token} {extend_for:?}"))
    }

    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        self.fail(format!("enqueue_for_orchestrator {} {delay:?}", item.kind_name()))
    }

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        self.note("as_management_capability".into());
        None
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        self.fail(format!("get_custom_status {instance} {last_seen_version}"))
    }

    async fn get_kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ProviderError> {
        self.fail(format!("get_kv_value {instance} {key}"))
    }

    async fn get_kv_all_values(&self, instance: &str) -> Result<HashMap<String, String>, ProviderError> {
        self.fail(format!("get_kv_all_values {instance}"))
    }

    async fn get_instance_stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        self.fail(format!("get_instance_stats {instance}"))
    }

    async fn fetch_turn(&self, request: TurnRequest<'_>) -> Result<Option<FetchedTurn>, ProviderError> {
        self.fail(format!("fetch_turn {}", request.with_history))
    }

    async fn load_turn(&self, instance: &str, execution_id: u64) -> Result<LoadedTurn, ProviderError> {
        self.fail(format!("load_turn {instance} {execution_id}"))
    }

    async fn load_turn_within(
        &self,
        instance: &str,
        execution_id: u64,
        bound: HistoryBound,
    ) -> Result<BoundedTurn, ProviderError> {
        self.fail(format!("load_turn_within {instance} {execution_id} {bound:?}"))
    }

    async fn fetch_work_items(&self, request: WorkRequest<'_>) -> Result<Vec<FetchedWork>, ProviderError> {
        self.fail(format!("fetch_work_items {}", request.max_items))
    }

    async fn read_outcome(&self, instance: &str) -> Result<Option<InstanceOutcome>, ProviderError> {
        self.fail(format!("read_outcome {instance}"))
    }

    async fn commit_turn(&self, lock_token: &str, commit: TurnCommit) -> Result<Option<u64>, ProviderError> {
        self.fail(format!("commit_turn {lock_token} {}", commit.execution_id))
    }

    async fn complete_with_turn(
        &self,
        token: &str,
        completion: WorkItem,
        turn: TurnAhead,
    ) -> Result<Completion, ProviderError> {
        self.fail(format!("complete_with_turn {token} {} {}", completion.kind_name(), turn.after_event_id))
    }

    async fn complete_all_with_turn(
        &self,
        outcomes: Vec<LeasedOutcome>,
        turn: TurnAhead,
    ) -> Result<FusedCompletion, ProviderError> {
        self.fail(format!("complete_all_with_turn {} {}", outcomes.len(), turn.after_event_id))
    }

    async fn abandon_work_noted(
        &self,
        token: &str,
        delay: Option<Duration>,
        error: &str,
    ) -> Result<(), ProviderError> {
        self.fail(format!("abandon_work_noted {token} {delay:?} {error}"))
    }

    async fn hold_turn(&self, lock_token: &str, hold: &Hold) -> Result<HoldOutcome, ProviderError> {
        self.fail(format!("hold_turn {lock_token} {}", hold.reason))
    }

    async fn enqueue_within(&self, item: WorkItem, most_waiting: usize) -> Result<bool, ProviderError> {
        self.fail(format!("enqueue_within {} {most_waiting}", item.kind_name()))
    }

    async fn enqueue_once(
        &self,
        item: WorkItem,
        key: &str,
        most_waiting: usize,
    ) -> Result<EnqueueOnce, ProviderError> {
        self.fail(format!("enqueue_once {} {key} {most_waiting}", item.kind_name()))
    }

    async fn start_orchestration(&self, request: StartRequest) -> Result<StartOutcome, ProviderError> {
        self.fail(format!("start_orchestration {:?}", request.policy))
    }

    async fn start_with_turn(&self, start: WorkItem, turn: TurnAhead) -> Result<EagerStart, ProviderError> {
        self.fail(format!("start_with_turn {} {}", start.kind_name(), turn.after_event_id))
    }

    fn watch_instance(&self, instance: &str, interest: Interest) -> Option<InstanceWatch> {
        self.note(format!("watch_instance {instance} {interest:?}"));
        Some(Box::pin(std::future::ready(None)))
    }
}

fn message() -> WorkItem {
    WorkItem::CancelInstance { instance: "i".into(), reason: "r".into() }
}

fn event() -> Event {
    let kind = outlast_model::EventKind::OrchestrationCompleted { output: "o".into() };
    Event::with_event_id(1, "i", 1, None, kind)
}

/// Calls every method once and checks that the answer of the store arrives.
async fn call_everything(store: &dyn Provider) {
    let tags = TagFilter::tags(["t"]);
    let session = SessionFetchConfig { owner_id: "me".into(), lock_timeout: SECOND };
    let filter = DispatcherCapabilityFilter { supported_duroxide_versions: vec![] };
    let cancelled = ScheduledActivityIdentifier { instance: "i".into(), execution_id: 1, activity_id: 2 };
    let metadata = ExecutionMetadata { status: Some("Completed".into()), ..Default::default() };
    let turn = TurnRequest { lock_timeout: SECOND, poll_timeout: SECOND, filter: None, with_history: false };
    let work = WorkRequest {
        max_items: 9,
        lock_timeout: SECOND,
        poll_timeout: SECOND,
        session: None,
        tag_filter: &tags,
    };
    let start =
        StartRequest { start: message(), delay: None, policy: StartPolicy::UseExisting, messages: vec![] };
    let hold = Hold { kind: HoldKind::Paused, actor: "a".into(), reason: "r".into() };
    assert_eq!((store.name(), store.version()), ("witness", "7.0.0"));
    assert!(store.fuses_outcomes());
    assert!(store.as_management_capability().is_none());
    store.watch_instance("i", Interest::Ended).expect("forwarded").await;
    let failures = [
        store.fetch_orchestration_item(SECOND, 2 * SECOND, Some(&filter)).await.err(),
        store
            .ack_orchestration_item(
                "token",
                3,
                vec![event()],
                vec![message(); 2],
                vec![message(); 3],
                metadata,
                vec![cancelled; 4],
            )
            .await
            .err(),
        store.abandon_orchestration_item("token", Some(SECOND), true).await.err(),
        store.read("i").await.err(),
        store.read_with_execution("i", 2).await.err(),
        store.append_with_execution("i", 2, vec![event()]).await.err(),
        store.enqueue_for_worker(message()).await.err(),
        store.fetch_work_item(SECOND, 2 * SECOND, Some(&session), &tags).await.err(),
        store.ack_work_item("token", Some(message())).await.err(),
        store.renew_work_item_lock("token", SECOND).await.err(),
        store.renew_session_lock(&["a", "b"], SECOND, 2 * SECOND).await.err(),
        store.cleanup_orphaned_sessions(SECOND).await.err(),
        store.abandon_work_item("token", None, false).await.err(),
        store.renew_orchestration_item_lock("token", SECOND).await.err(),
        store.enqueue_for_orchestrator(message(), Some(SECOND)).await.err(),
        store.get_custom_status("i", 4).await.err(),
        store.get_kv_value("i", "k").await.err(),
        store.get_kv_all_values("i").await.err(),
        store.get_instance_stats("i").await.err(),
        store.fetch_turn(turn).await.err(),
        store.load_turn("i", 2).await.err(),
        store.load_turn_within("i", 2, HistoryBound { events: 3, bytes: 4 }).await.err(),
        store.fetch_work_items(work).await.err(),
        store.read_outcome("i").await.err(),
        store.commit_turn("t", TurnCommit { execution_id: 3, ..TurnCommit::default() }).await.err(),
        store
            .complete_with_turn(
                "t",
                start.start.clone(),
                TurnAhead { after_event_id: 6, ran_at_ms: 7, commit: TurnCommit::default() },
            )
            .await
            .err(),
        store
            .complete_all_with_turn(
                vec![LeasedOutcome { lock_token: "t".to_string(), completion: start.start.clone() }],
                TurnAhead { after_event_id: 8, ran_at_ms: 7, commit: TurnCommit::default() },
            )
            .await
            .err(),
        store.abandon_work_noted("token", Some(SECOND), "busy").await.err(),
        store.hold_turn("token", &hold).await.err(),
        store.enqueue_within(start.start.clone(), 7).await.err(),
        store.enqueue_once(start.start.clone(), "key", 7).await.err(),
        store.start_orchestration(start.clone()).await.err(),
        store
            .start_with_turn(
                start.start,
                TurnAhead { after_event_id: 0, ran_at_ms: 7, commit: TurnCommit::default() },
            )
            .await
            .err(),
    ];
    for failure in failures {
        assert_eq!(failure.unwrap().operation, "witness", "errors come through as they are");
    }
}

/// A wrapper that writes no method itself.
struct Forwarding(Arc<Witness>);

#[async_trait]
impl Provider for Forwarding {
    forward_provider!(Provider, |this| this.0);
}

#[tokio::test]
async fn forward_provider_calls_the_same_method_with_the_same_arguments() {
    let (direct, wrapped) = (Arc::new(Witness::default()), Arc::new(Witness::default()));
    call_everything(&*direct).await;
    call_everything(&Forwarding(wrapped.clone())).await;
    assert_eq!(*wrapped.calls.lock().unwrap(), *direct.calls.lock().unwrap());
}

#[tokio::test]
async fn instrumented_provider_calls_the_same_method_with_the_same_arguments() {
    let direct = Arc::new(Witness::default());
    call_everything(&*direct).await;
    for metrics in [None, Some(Arc::new(MetricsProvider::default()))] {
        let wrapped = Arc::new(Witness::default());
        call_everything(&InstrumentedProvider::new(wrapped.clone(), metrics)).await;
        // A span asks for the name of the store if another test of the process has enabled spans.
        let calls = |witness: &Witness| -> Vec<String> {
            let calls = witness.calls.lock().unwrap().clone();
            calls.into_iter().filter(|call| call != "name").collect()
        };
        assert_eq!(calls(&wrapped), calls(&direct));
    }
    let calls = direct.calls.lock().unwrap().clone();
    let mut called: Vec<&str> = calls.iter().filter_map(|call| call.split(' ').next()).collect();
    let mut expected = <dyn Provider>::METHODS.to_vec();
    called.sort_unstable();
    expected.sort_unstable();
    assert_eq!(called, expected, "this test calls every method");
}

/// Runs a future on a clock that stands still, and returns the recorded metrics.
fn recorded_async(run: impl Future<Output = ()>) -> Vec<String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    recorded(|| runtime.block_on(run))
}

#[test]
fn failing_calls_are_timed_and_counted_under_the_names_of_the_contract() {
    let metrics = Arc::new(MetricsProvider::default());
    let lines = recorded_async(async {
        let witness = Arc::new(Witness { message: "a connection timeout", ..Default::default() });
        call_everything(&InstrumentedProvider::new(witness, Some(metrics.clone()))).await;
    });
    let operations = [
        ("abandon_orchestration_item", 2),
        ("abandon_work_item", 2),
        ("ack_orchestration_item", 2),
        ("ack_work_item", 3),
        ("append_with_execution", 1),
        ("cleanup_orphaned_sessions", 1),
        ("enqueue_orchestrator", 3),
        ("enqueue_worker", 1),
        ("fetch_orchestration_item", 2),
        ("fetch_work_item", 2),
        ("get_custom_status", 1),
        ("get_instance_stats", 1),
        ("get_kv_all_values", 1),
        ("get_kv_value", 1),
        ("load_turn", 2),
        ("read", 1),
        ("read_outcome", 1),
        ("read_with_execution", 1),
        ("renew_orchestration_item_lock", 1),
        ("renew_session_lock", 1),
        ("renew_work_item_lock", 1),
        ("start_orchestration", 2),
    ];
    let counted = operations.map(|(operation, n)| {
        format!("duroxide_provider_errors_total{{operation={operation}, error_type=timeout}} = {n}")
    });
    let timed = operations.map(|(operation, n)| {
        let values = vec![0.0; n];
        format!(
            "duroxide_provider_operation_duration_seconds{{operation={operation}, status=error}} = {values:?}"
        )
    });
    // Under the names of api 9.2.
    let contract: Vec<&String> = lines.iter().filter(|line| line.starts_with("duroxide_")).collect();
    let expected = [counted, timed].concat();
    assert_eq!(contract, expected.iter().collect::<Vec<_>>());
    // Under the names of seed 004 7.5, where all retrieving, committing and enqueuing operations have one.
    let zeros = |count: usize| format!("{:?}", vec![0.0; count]);
    let of_seed = [
        format!("provider.ack_orchestration_item_duration_ms{{}} = {}", zeros(2)),
        format!("provider.ack_worker_duration_ms{{}} = {}", zeros(3)),
        format!("provider.dequeue_worker_duration_ms{{}} = {}", zeros(2)),
        format!("provider.enqueue_orchestrator_duration_ms{{}} = {}", zeros(5)),
        format!("provider.fetch_orchestration_item_duration_ms{{}} = {}", zeros(2)),
    ];
    let groups = [
        ("abandon_orchestration_item", 2),
        ("abandon_work_item", 2),
        ("ack_orch", 2),
        ("ack_worker", 3),
        ("append_with_execution", 1),
        ("cleanup_orphaned_sessions", 1),
        ("enqueue", 6),
        ("fetch", 4),
        ("get_custom_status", 1),
        ("get_instance_stats", 1),
        ("get_kv_all_values", 1),
        ("get_kv_value", 1),
        ("load_turn", 2),
        ("read", 1),
        ("read_outcome", 1),
        ("read_with_execution", 1),
        ("renew_orchestration_item_lock", 1),
        ("renew_session_lock", 1),
        ("renew_work_item_lock", 1),
    ];
    let failed = groups.map(|(operation, n)| {
        format!(
            "provider.infrastructure_errors{{operation={operation}, error_type=transaction_failed}} = {n}"
        )
    });
    let seed: Vec<String> = lines.iter().filter(|line| line.starts_with("provider.")).cloned().collect();
    assert_eq!(seed, [of_seed.to_vec(), failed.to_vec()].concat());
    assert_eq!(lines.len(), contract.len() + seed.len(), "nothing else is recorded: {lines:#?}");
    assert_eq!(metrics.snapshot().provider_errors, 33);
}

/// The error types of the contract's and of the seed's counter for one failed call.
fn error_types(lines: &[String]) -> (String, Option<String>) {
    let error_type = |name: &str| {
        let line = lines.iter().find(|line| line.starts_with(name))?;
        Some(line.split_once("error_type=").unwrap().1.trim_end_matches("} = 1").to_string())
    };
    (error_type("duroxide_provider_errors_total").unwrap(), error_type("provider.infrastructure_errors"))
}

#[test]
fn noted_class_of_an_error_counts_over_its_text() {
    let rows = [
        (ErrorClass::Deadlock, "deadlock", Some("deadlock")),
        (ErrorClass::Serialization, "serialization", Some("serialization_error")),
        (ErrorClass::LockTimeout, "timeout", Some("lock_timeout")),
        (ErrorClass::Timeout, "timeout", Some("transaction_failed")),
        (ErrorClass::Connection, "connection", Some("transaction_failed")),
        (ErrorClass::Refused, "refused", None),
        (ErrorClass::Other, "other", None),
    ];
    for (class, contract, seed) in rows {
        let lines = recorded_async(async move {
            let message = "a connection met a timeout in a deadlock";
            let witness = Arc::new(Witness { message, class: Some(class), ..Default::default() });
            // The wrapper around the wrapper sees the class too, and does not record it a second time.
            let inside = Arc::new(InstrumentedProvider::new(witness, Some(Arc::default())));
            let metrics = Arc::new(MetricsProvider::default());
            let store = InstrumentedProvider::new(inside, Some(metrics.clone()));
            assert!(store.read("i").await.is_err());
            assert_eq!(metrics.snapshot().provider_errors, 1);
        });
        assert_eq!(error_types(&lines), (contract.to_string(), seed.map(str::to_string)), "{class:?}");
    }
}

#[test]
fn class_of_one_error_is_not_that_of_the_next() {
    let lines = recorded_async(async {
        let classified = Witness { class: Some(ErrorClass::Deadlock), ..Default::default() };
        let classified = InstrumentedProvider::new(Arc::new(classified), Some(Arc::default()));
        assert!(classified.read("i").await.is_err());
        let silent = InstrumentedProvider::new(Arc::new(Witness::default()), Some(Arc::default()));
        assert!(silent.read_outcome("i").await.is_err());
    });
    let errors: Vec<&String> =
        lines.iter().filter(|line| line.starts_with("duroxide_provider_errors_total")).collect();
    assert_eq!(
        errors,
        [
            "duroxide_provider_errors_total{operation=read, error_type=deadlock} = 1",
            "duroxide_provider_errors_total{operation=read_outcome, error_type=other} = 1",
        ]
    );
}

#[test]
fn errors_without_a_class_are_classified_by_the_first_word_that_fits() {
    let class = |message| {
        let lines = recorded_async(async move {
            let witness = Arc::new(Witness { message, ..Default::default() });
            let store = InstrumentedProvider::new(witness, Some(Arc::default()));
            assert!(store.read("i").await.is_err());
        });
        error_types(&lines).0
    };
    let rows = [
        ("a connection met a timeout in a deadlock", "deadlock"),
        ("connection timeout", "timeout"),
        ("connection refused", "connection"),
        ("Timeout", "other"),
        ("disk full", "other"),
    ];
    for (message, expected) in rows {
        assert_eq!(class(message), expected, "{message}");
    }
}

/// Follows tokio's clock, from 0 on.
struct Following(tokio::time::Instant);

impl Clock for Following {
    fn now_ms(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap()
    }
}

#[test]
fn a_call_is_timed_by_the_clock_and_its_success_is_no_error() {
    let metrics = Arc::new(MetricsProvider::default());
    let lines = recorded_async(async {
        let memory = MemoryProvider::with_clock(Arc::new(Following(tokio::time::Instant::now())));
        let store = InstrumentedProvider::new(Arc::new(memory), Some(metrics.clone()));
        let fetched = store.fetch_work_item(SECOND, 3 * SECOND, None, &TagFilter::Any).await;
        assert_eq!(fetched, Ok(None));
        assert!(store.as_management_capability().is_some(), "of the store inside");
    });
    let operation = "duroxide_provider_operation_duration_seconds{operation=fetch_work_item, status=success}";
    let waited = lines[0].strip_prefix(operation).unwrap_or_else(|| panic!("{lines:?}"));
    assert!(waited.starts_with(" = [3.0"), "three seconds of paused time: {waited}");
    assert!(lines[1].starts_with("provider.dequeue_worker_duration_ms{} = [300"), "in ms: {lines:?}");
    assert_eq!((lines.len(), metrics.snapshot().provider_errors), (2, 0));
}

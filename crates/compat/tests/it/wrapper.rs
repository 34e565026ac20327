//! A wrapper around a store that knows the contract's methods only, as retry, logging and fault-injecting wrappers
//! do. Methods that Outlast added to the trait since must not bypass the wrapper.

use crate::first_provider::MyProvider;
use async_trait::async_trait;
use duroxide::ProviderRef;
use duroxide::providers::memory::MemoryProvider;
use duroxide::providers::{
    DispatcherCapabilityFilter, ExecutionMetadata, OrchestrationItem, Provider, ProviderAdmin, ProviderError,
    ScheduledActivityIdentifier, SessionFetchConfig, StartOutcome, StartPolicy, StartRequest, TagFilter,
    TurnRequest, WorkItem, WorkRequest,
};
use duroxide::{Event, EventKind, SystemStats};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) struct Counting {
    inner: Arc<dyn Provider>,
    calls: Mutex<Vec<&'static str>>,
    /// A damaged store: starts of successors are not stored.
    loses_successors: bool,
}

impl Counting {
    pub(crate) fn around(inner: impl Provider) -> Self {
        Self { inner: Arc::new(inner), calls: Mutex::default(), loses_successors: false }
    }

    pub(crate) fn losing_successors(self) -> Self {
        Self { loses_successors: true, ..self }
    }

    fn count(&self, call: &'static str) -> &dyn Provider {
        self.calls.lock().unwrap().push(call);
        &*self.inner
    }

    /// The calls since the last time this was asked.
    pub(crate) fn calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }
}

#[async_trait]
impl Provider for Counting {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn version(&self) -> &str {
        self.inner.version()
    }

    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
        let inner = self.count("fetch_orchestration_item");
        inner.fetch_orchestration_item(lock_timeout, poll_timeout, filter).await
    }

    async fn ack_orchestration_item(
        &self,
        lock_token: &str,
        execution_id: u64,
        history_delta: Vec<Event>,
        worker_items: Vec<WorkItem>,
        mut orchestrator_items: Vec<WorkItem>,
        metadata: ExecutionMetadata,
        cancelled_activities: Vec<ScheduledActivityIdentifier>,
    ) -> Result<(), ProviderError> {
        orchestrator_items
            .retain(|item| !(self.loses_successors && matches!(item, WorkItem::ContinueAsNew { .. })));
        let inner = self.count("ack_orchestration_item");
        inner
            .ack_orchestration_item(
                lock_token,
                execution_id,
                history_delta,
                worker_items,
                orchestrator_items,
                metadata,
                cancelled_activities,
            )
            .await
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let inner = self.count("abandon_orchestration_item");
        inner.abandon_orchestration_item(lock_token, delay, ignore_attempt).await
    }

    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.count("read").read(instance).await
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        self.count("read_with_execution").read_with_execution(instance, execution_id).await
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        let inner = self.count("append_with_execution");
        inner.append_with_execution(instance, execution_id, new_events).await
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError> {
        self.count("enqueue_for_worker").enqueue_for_worker(item).await
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        let inner = self.count("fetch_work_item");
        inner.fetch_work_item(lock_timeout, poll_timeout, session, tag_filter).await
    }

    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Result<(), ProviderError> {
        self.count("ack_work_item").ack_work_item(token, completion).await
    }

    async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Result<(), ProviderError> {
        self.count("renew_work_item_lock").renew_work_item_lock(token, extend_for).await
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        self.count("renew_session_lock").renew_session_lock(owner_ids, extend_for, idle_timeout).await
    }

    async fn cleanup_orphaned_sessions(&self, idle_timeout: Duration) -> Result<usize, ProviderError> {
        self.count("cleanup_orphaned_sessions").cleanup_orphaned_sessions(idle_timeout).await
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        self.count("abandon_work_item").abandon_work_item(token, delay, ignore_attempt).await
    }

    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        let inner = self.count("renew_orchestration_item_lock");
        inner.renew_orchestration_item_lock(token, extend_for).await
    }

    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        self.count("enqueue_for_orchestrator").enqueue_for_orchestrator(item, delay).await
    }

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        self.count("as_management_capability").as_management_capability()
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        self.count("get_custom_status").get_custom_status(instance, last_seen_version).await
    }

    async fn get_kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ProviderError> {
        self.count("get_kv_value").get_kv_value(instance, key).await
    }

    async fn get_kv_all_values(&self, instance: &str) -> Result<HashMap<String, String>, ProviderError> {
        self.count("get_kv_all_values").get_kv_all_values(instance).await
    }

    async fn get_instance_stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        self.count("get_instance_stats").get_instance_stats(instance).await
    }
}

/// The wrapper around both a store of ours, which overrides the additions, and one that has never heard of them.
fn wrapped() -> [Counting; 2] {
    [Counting::around(MemoryProvider::new()), Counting::around(MyProvider::default())]
}

const LEASE: Duration = Duration::from_secs(60);

fn turn_request() -> TurnRequest<'static> {
    TurnRequest { lock_timeout: LEASE, poll_timeout: Duration::ZERO, filter: None, with_history: false }
}

fn start(instance: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.into(),
        orchestration: "Order".into(),
        input: "{}".into(),
        version: Some("1.0.0".into()),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

fn activity(id: u64) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: "order-1".into(),
        execution_id: 1,
        id,
        name: "Ship".into(),
        input: "{}".into(),
        session_id: None,
        tag: None,
    }
}

fn start_request(policy: StartPolicy) -> StartRequest {
    let message =
        WorkItem::QueueMessage { instance: "order-1".into(), name: "inbox".into(), data: "m".into() };
    StartRequest { start: start("order-1"), delay: None, policy, messages: vec![message] }
}

/// Runs the first turn of `order-1`, which sets a custom status and completes.
async fn complete(store: &Counting) {
    let (item, token, _) =
        store.fetch_orchestration_item(LEASE, Duration::ZERO, None).await.unwrap().unwrap();
    let kinds = [
        EventKind::OrchestrationStarted {
            name: "Order".into(),
            version: "1.0.0".into(),
            input: "{}".into(),
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            carry_forward_events: None,
            initial_custom_status: None,
        },
        EventKind::CustomStatusUpdated { status: Some("packed".into()) },
        EventKind::OrchestrationCompleted { output: "shipped".into() },
    ];
    let events =
        (1..).zip(kinds).map(|(id, kind)| Event::with_event_id(id, item.instance.as_str(), 1, None, kind));
    let metadata = ExecutionMetadata {
        status: Some("Completed".into()),
        output: Some("shipped".into()),
        orchestration_name: Some("Order".into()),
        orchestration_version: Some("1.0.0".into()),
        ..ExecutionMetadata::default()
    };
    store
        .ack_orchestration_item(&token, 1, events.collect(), vec![], vec![], metadata, vec![])
        .await
        .unwrap();
    store.calls();
}

#[tokio::test]
async fn a_warm_fetch_goes_through_the_wrapper() {
    for store in wrapped() {
        store.enqueue_for_orchestrator(start("order-1"), None).await.unwrap();
        assert_eq!(store.calls(), ["enqueue_for_orchestrator"]);
        let turn = store.fetch_turn(turn_request()).await.unwrap().unwrap();
        assert_eq!(store.calls(), ["fetch_orchestration_item"], "{}", store.name());
        assert_eq!((turn.item.instance.as_str(), turn.attempt_count), ("order-1", 1));
        assert_eq!((turn.history_loaded, turn.last_event_id), (true, Some(0)));
        store.abandon_orchestration_item(&turn.lock_token, None, true).await.unwrap();
    }
}

#[tokio::test]
async fn a_batch_fetch_goes_through_the_wrapper() {
    for store in wrapped() {
        for id in [2, 3] {
            store.enqueue_for_worker(activity(id)).await.unwrap();
        }
        store.calls();
        let request = WorkRequest {
            max_items: 5,
            lock_timeout: LEASE,
            poll_timeout: Duration::ZERO,
            session: None,
            tag_filter: &TagFilter::DefaultOnly,
        };
        let fetched = store.fetch_work_items(request).await.unwrap();
        assert_eq!(
            fetched.iter().map(|work| work.item.clone()).collect::<Vec<_>>(),
            [activity(2), activity(3)]
        );
        assert_eq!(store.calls(), ["fetch_work_item"; 3], "two activities and one empty answer");
        for work in fetched {
            store.ack_work_item(&work.lock_token, None).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_start_with_a_policy_and_an_outcome_read_go_through_the_wrapper() {
    for store in wrapped() {
        let started = store.start_orchestration(start_request(StartPolicy::FailIfExists)).await.unwrap();
        assert_eq!(started, StartOutcome::Started);
        assert_eq!(store.calls(), ["read", "enqueue_for_orchestrator", "enqueue_for_orchestrator"]);
        assert_eq!(store.read_outcome("order-1").await.unwrap(), None);
        assert_eq!(store.calls(), ["read"]);

        complete(&store).await;
        let outcome = store.read_outcome("order-1").await.unwrap().unwrap();
        assert_eq!(store.calls(), ["read", "get_custom_status"]);
        assert_eq!((outcome.status.as_str(), outcome.output.as_deref()), ("Completed", Some("shipped")));
        assert_eq!((outcome.custom_status.as_deref(), outcome.custom_status_version), (Some("packed"), 1));

        let taken = StartOutcome::AlreadyExists { status: Some("Completed".into()) };
        let again = store.start_orchestration(start_request(StartPolicy::FailIfExists)).await.unwrap();
        assert_eq!((again, store.calls()), (taken.clone(), vec!["read"]));
        let later = StartRequest {
            delay: Some(Duration::from_secs(3600)),
            ..start_request(StartPolicy::UseExisting)
        };
        let again = store.start_orchestration(later).await.unwrap();
        assert_eq!((again, store.calls()), (taken, vec!["read", "enqueue_for_orchestrator"]));
        let (turn, _, _) =
            store.fetch_orchestration_item(LEASE, Duration::ZERO, None).await.unwrap().unwrap();
        assert_eq!(turn.messages.len(), 1, "the delay is the start's, and there was no start");
    }
}

/// A wrapper always delivers the history with the turn, so the runtime must not load more.
#[tokio::test]
async fn load_turn_of_a_wrapper_is_a_permanent_error() {
    for store in wrapped() {
        let error = store.load_turn("order-1", 1).await.unwrap_err();
        assert!(!error.is_retryable() && error.message.contains("order-1"), "{error}");
        assert_eq!(store.calls(), [""; 0]);
    }
}

#[tokio::test]
async fn the_management_interface_is_the_inner_stores() {
    let [ours, theirs] = wrapped();
    ours.enqueue_for_orchestrator(start("order-1"), None).await.unwrap();
    complete(&ours).await;
    let shared: ProviderRef = Arc::new(ours);
    let admin = shared.as_management_capability().unwrap();
    assert_eq!(admin.list_instances().await.unwrap(), ["order-1"]);
    assert_eq!(admin.get_instance_info("order-1").await.unwrap().status, "Completed");

    assert!(theirs.as_management_capability().is_none());
    assert_eq!(theirs.calls(), ["as_management_capability"]);
}

//! What validations are written with: messages, turns and fetches in one line each.

use outlast_provider::model::{Event, EventKind, INITIAL_EXECUTION_ID};
use outlast_provider::{
    ExecutionMetadata, OrchestrationItem, Provider, ProviderAdmin, ProviderError, ScheduledActivityIdentifier,
    SessionFetchConfig, TagFilter, WorkItem,
};
use std::time::Duration;

pub(crate) const NO_WAIT: Duration = Duration::ZERO;
/// A lease that no validation outlives.
pub(crate) const LONG: Duration = Duration::from_secs(600);

/// A start of orchestration `TestOrch`, version 1.0.0.
pub(crate) fn start_item(instance: &str) -> WorkItem {
    start_of(instance, "TestOrch", Some("1.0.0"))
}

pub(crate) fn start_of(instance: &str, orchestration: &str, version: Option<&str>) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_string(),
        orchestration: orchestration.to_string(),
        input: "{}".to_string(),
        version: version.map(str::to_string),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: INITIAL_EXECUTION_ID,
    }
}

/// An untagged activity of execution 1 without a session; `id` is its scheduling event.
pub(crate) fn activity(instance: &str, id: u64) -> WorkItem {
    activity_with(instance, id, None, None)
}

pub(crate) fn activity_with(instance: &str, id: u64, session_id: Option<&str>, tag: Option<&str>) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: instance.to_string(),
        execution_id: INITIAL_EXECUTION_ID,
        id,
        name: format!("Activity{id}"),
        input: format!("input-{id}"),
        session_id: session_id.map(str::to_string),
        tag: tag.map(str::to_string),
    }
}

/// A successful completion, in execution 1, of the activity scheduled by event `id`.
pub(crate) fn completed(instance: &str, id: u64) -> WorkItem {
    WorkItem::ActivityCompleted {
        instance: instance.to_string(),
        execution_id: INITIAL_EXECUTION_ID,
        id,
        result: format!("result-{id}"),
    }
}

pub(crate) fn raised(instance: &str, name: &str, data: &str) -> WorkItem {
    WorkItem::ExternalRaised { instance: instance.to_string(), name: name.to_string(), data: data.to_string() }
}

pub(crate) fn queue_message(instance: &str, name: &str, data: &str) -> WorkItem {
    WorkItem::QueueMessage { instance: instance.to_string(), name: name.to_string(), data: data.to_string() }
}

pub(crate) fn timer(instance: &str, id: u64, fire_at_ms: u64) -> WorkItem {
    WorkItem::TimerFired { instance: instance.to_string(), execution_id: INITIAL_EXECUTION_ID, id, fire_at_ms }
}

pub(crate) fn cancel(instance: &str) -> WorkItem {
    WorkItem::CancelInstance { instance: instance.to_string(), reason: "stop".to_string() }
}

pub(crate) fn scheduled(instance: &str, activity_id: u64) -> ScheduledActivityIdentifier {
    ScheduledActivityIdentifier {
        instance: instance.to_string(),
        execution_id: INITIAL_EXECUTION_ID,
        activity_id,
    }
}

/// An event of execution 1.
pub(crate) fn event(instance: &str, event_id: u64, kind: EventKind) -> Event {
    Event::with_event_id(event_id, instance, INITIAL_EXECUTION_ID, None, kind)
}

pub(crate) fn started_kind() -> EventKind {
    EventKind::OrchestrationStarted {
        name: "TestOrch".to_string(),
        version: "1.0.0".to_string(),
        input: "{}".to_string(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    }
}

/// Event 1 of execution 1.
pub(crate) fn started(instance: &str) -> Event {
    event(instance, 1, started_kind())
}

pub(crate) fn scheduled_kind(name: &str) -> EventKind {
    EventKind::ActivityScheduled {
        name: name.to_string(),
        input: "{}".to_string(),
        session_id: None,
        tag: None,
    }
}

/// Name and version, as a first turn sends them.
pub(crate) fn named() -> ExecutionMetadata {
    ExecutionMetadata {
        orchestration_name: Some("TestOrch".to_string()),
        orchestration_version: Some("1.0.0".to_string()),
        ..ExecutionMetadata::default()
    }
}

/// A status with its output and nothing else.
pub(crate) fn status(status: &str, output: &str) -> ExecutionMetadata {
    ExecutionMetadata {
        status: Some(status.to_string()),
        output: Some(output.to_string()),
        ..ExecutionMetadata::default()
    }
}

/// A turn to commit; starts out empty, for execution 1.
pub(crate) struct Turn<'a> {
    token: &'a str,
    execution_id: u64,
    events: Vec<Event>,
    activities: Vec<WorkItem>,
    messages: Vec<WorkItem>,
    metadata: ExecutionMetadata,
    cancelled: Vec<ScheduledActivityIdentifier>,
}

impl<'a> Turn<'a> {
    pub(crate) fn new(token: &'a str) -> Self {
        Self {
            token,
            execution_id: INITIAL_EXECUTION_ID,
            events: Vec::new(),
            activities: Vec::new(),
            messages: Vec::new(),
            metadata: ExecutionMetadata::default(),
            cancelled: Vec::new(),
        }
    }
    pub(crate) fn execution(self, execution_id: u64) -> Self {
        Self { execution_id, ..self }
    }
    pub(crate) fn event(mut self, event: Event) -> Self {
        self.events.push(event);
        self
    }
    pub(crate) fn events(mut self, events: impl IntoIterator<Item = Event>) -> Self {
        self.events.extend(events);
        self
    }
    pub(crate) fn activity(mut self, item: WorkItem) -> Self {
        self.activities.push(item);
        self
    }
    pub(crate) fn message(mut self, item: WorkItem) -> Self {
        self.messages.push(item);
        self
    }
    pub(crate) fn metadata(self, metadata: ExecutionMetadata) -> Self {
        Self { metadata, ..self }
    }
    pub(crate) fn cancels(mut self, activity: ScheduledActivityIdentifier) -> Self {
        self.cancelled.push(activity);
        self
    }
    pub(crate) async fn try_commit(self, provider: &dyn Provider) -> Result<(), ProviderError> {
        provider
            .ack_orchestration_item(
                self.token,
                self.execution_id,
                self.events,
                self.activities,
                self.messages,
                self.metadata,
                self.cancelled,
            )
            .await
    }
    pub(crate) async fn commit(self, provider: &dyn Provider) {
        self.try_commit(provider).await.expect("a turn under a live lease commits");
    }
}

pub(crate) async fn enqueue(provider: &dyn Provider, item: WorkItem) {
    provider.enqueue_for_orchestrator(item, None).await.expect("enqueue_for_orchestrator succeeds");
}

pub(crate) async fn enqueue_work(provider: &dyn Provider, item: WorkItem) {
    provider.enqueue_for_worker(item).await.expect("enqueue_for_worker succeeds");
}

/// A fetch without patience and without a filter.
pub(crate) async fn fetch(provider: &dyn Provider, lease: Duration) -> Option<(OrchestrationItem, String, u32)> {
    provider.fetch_orchestration_item(lease, NO_WAIT, None).await.expect("fetch_orchestration_item succeeds")
}

/// The turn that must be there.
pub(crate) async fn must_fetch(provider: &dyn Provider, lease: Duration) -> (OrchestrationItem, String, u32) {
    fetch(provider, lease).await.expect("a turn is ready")
}

/// A fetch of untagged work without patience and without a session.
pub(crate) async fn fetch_work(provider: &dyn Provider, lease: Duration) -> Option<(WorkItem, String, u32)> {
    fetch_work_as(provider, lease, None, &TagFilter::default()).await
}

pub(crate) async fn fetch_work_as(
    provider: &dyn Provider,
    lease: Duration,
    session: Option<&SessionFetchConfig>,
    tags: &TagFilter,
) -> Option<(WorkItem, String, u32)> {
    provider.fetch_work_item(lease, NO_WAIT, session, tags).await.expect("fetch_work_item succeeds")
}

/// The activity that must be there.
pub(crate) async fn must_fetch_work(provider: &dyn Provider, lease: Duration) -> (WorkItem, String, u32) {
    fetch_work(provider, lease).await.expect("an activity is ready")
}

/// Starts the instance and commits its first turn: history of one event, a row with name and version.
pub(crate) async fn create_instance(provider: &dyn Provider, instance: &str) {
    create_with(provider, instance, named()).await;
}

pub(crate) async fn create_instance_with_parent(provider: &dyn Provider, instance: &str, parent: &str) {
    let metadata = ExecutionMetadata { parent_instance_id: Some(parent.to_string()), ..named() };
    create_with(provider, instance, metadata).await;
}

/// Starts the instance and commits a first turn with this metadata.
pub(crate) async fn create_with(provider: &dyn Provider, instance: &str, metadata: ExecutionMetadata) {
    enqueue(provider, start_item(instance)).await;
    let (item, token, _) = must_fetch(provider, LONG).await;
    assert_eq!(item.instance, instance, "the only waiting instance is fetched");
    Turn::new(&token).event(started(instance)).metadata(metadata).commit(provider).await;
}

/// Creates the instance in one turn that also completes it, and checks that the store says so.
pub(crate) async fn create_completed(provider: &dyn Provider, instance: &str, output: &str) {
    create_with(provider, instance, ExecutionMetadata {
        status: Some("Completed".to_string()),
        output: Some(output.to_string()),
        ..named()
    })
    .await;
}

/// Delivers a message to a created instance and fetches the turn that it makes, to be committed by the caller.
pub(crate) async fn next_turn(provider: &dyn Provider, instance: &str) -> String {
    enqueue(provider, raised(instance, "poke", "")).await;
    let (item, token, _) = must_fetch(provider, LONG).await;
    assert_eq!(item.instance, instance, "the only waiting instance is fetched");
    token
}

pub(crate) fn admin(provider: &dyn Provider) -> &dyn ProviderAdmin {
    provider.as_management_capability().expect("the store has a management interface")
}

/// Waits until a lease of this length, taken before the call, is over.
pub(crate) async fn outlive(lease: Duration) {
    tokio::time::sleep(lease + Duration::from_millis(50)).await;
}

/// The error of a call that must fail and cannot be helped by trying again.
pub(crate) fn permanent<T>(result: Result<T, ProviderError>, what: &str) -> ProviderError {
    match result {
        Ok(_) => panic!("{what} must be refused"),
        Err(error) => {
            assert!(!error.is_retryable(), "{what} must be a permanent error, got: {error}");
            error
        }
    }
}

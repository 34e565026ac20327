//! A turn, put together piece by piece.

use outlast_provider::model::{Event, INITIAL_EXECUTION_ID};
use outlast_provider::{ExecutionMetadata, Provider, ProviderError, ScheduledActivityIdentifier, WorkItem};

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
    pub(crate) fn event(self, event: Event) -> Self {
        self.events([event])
    }
    pub(crate) fn events(mut self, events: impl IntoIterator<Item = Event>) -> Self {
        self.events.extend(events);
        self
    }
    pub(crate) fn activity(self, item: WorkItem) -> Self {
        self.activities([item])
    }
    pub(crate) fn activities(mut self, items: impl IntoIterator<Item = WorkItem>) -> Self {
        self.activities.extend(items);
        self
    }
    pub(crate) fn message(self, item: WorkItem) -> Self {
        self.messages([item])
    }
    pub(crate) fn messages(mut self, items: impl IntoIterator<Item = WorkItem>) -> Self {
        self.messages.extend(items);
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

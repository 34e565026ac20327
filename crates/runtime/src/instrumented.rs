//! A store whose operations are timed, counted and shown as spans.

mod subject;

use crate::observability::{MetricsProvider, Operation, Stopwatch};
use async_trait::async_trait;
use outlast_model::{Event, SystemStats, WorkItem};
use outlast_provider::{
    BoundedTurn, Completion, DispatcherCapabilityFilter, EagerStart, EnqueueOnce, ErrorClass,
    ExecutionMetadata, FetchedTurn, FetchedWork, FusedCompletion, HistoryBound, Hold, HoldOutcome,
    InstanceOutcome, LeasedOutcome, LoadedTurn, OrchestrationItem, Provider, ProviderError,
    ScheduledActivityIdentifier, SessionFetchConfig, StartOutcome, StartRequest, TagFilter, TurnAhead,
    TurnCommit, TurnRequest, WorkRequest, forward_provider,
};
use std::any::Any;
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use subject::{Found, Subject};
use tracing::Span;
use tracing::field::Empty;

/// Wraps a store and records each of its operations in the metrics, and in a span at DEBUG.
pub struct InstrumentedProvider {
    inner: Arc<dyn Provider>,
    metrics: Option<Arc<MetricsProvider>>,
    /// Whether the store inside records its operations itself. This wrapper then only counts errors for its snapshot.
    is_recorded_inside: bool,
}

/// The span of an operation. Without a subscriber for it, the call costs one check of a flag.
macro_rules! span {
    ($self:ident, $operation:ident) => {
        span!($self, $operation, Subject::default())
    };
    ($self:ident, $operation:ident, $subject:expr) => {
        match $self.metrics.is_some() && !$self.is_recorded_inside {
            true => {
                let subject: Subject<'_> = $subject;
                tracing::debug_span!(
                    target: "duroxide::providers",
                    Operation::$operation.name(),
                    store = $self.inner.name(),
                    instance_id = subject.instance,
                    execution_id = subject.execution,
                    activity_id = subject.activity,
                    events = subject.events,
                    messages = subject.messages,
                    activities = subject.activities,
                    attempt = subject.attempt,
                    outcome = Empty,
                    error_type = Empty
                )
            }
            false => Span::none(),
        }
    };
}

impl InstrumentedProvider {
    /// Wraps a store; without metrics calls are only forwarded.
    pub fn new(inner: Arc<dyn Provider>, metrics: Option<Arc<MetricsProvider>>) -> Self {
        let is_recorded_inside = is_recorded(&*inner);
        Self { inner, metrics, is_recorded_inside }
    }

    /// The store itself if its operations are recorded already, else the store in a wrapper.
    pub(crate) fn around(store: Arc<dyn Provider>) -> Arc<dyn Provider> {
        match is_recorded(&*store) {
            true => store,
            false => Arc::new(Self::new(store, Some(Arc::default()))),
        }
    }

    /// Makes a call of the store in its span, and records duration, result and error.
    async fn observed<T: Found>(
        &self,
        operation: Operation,
        span: Span,
        call: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        let Some(metrics) = &self.metrics else { return call.await };
        let stopwatch = Stopwatch::start();
        let mut call = pin!(call);
        let result = poll_fn(|cx| {
            ErrorClass::forget();
            let _inside = span.enter();
            call.as_mut().poll(cx)
        })
        .await;
        // The class belongs to this poll: no other poll ran on this thread since.
        let class = result.as_ref().err().map(ErrorClass::of);
        if let Some(class) = class {
            metrics.store_error(class.label(), operation, self.is_recorded_inside);
        }
        if !self.is_recorded_inside {
            let seconds = stopwatch.seconds();
            operation.record(seconds, class.is_none());
            if let (Some(class), Err(error)) = (class, &result) {
                operation.failed(class, error);
            }
            ended(operation, &span, seconds, class, &result);
        }
        result
    }
}

/// Whether the store is a wrapper with metrics, which records its operations.
fn is_recorded(store: &dyn Provider) -> bool {
    let store: &dyn Any = store;
    store.downcast_ref::<InstrumentedProvider>().is_some_and(|wrapper| wrapper.metrics.is_some())
}

/// Records the result of the operation in the span and in an event, because subscribers that print show no spans.
fn ended<T: Found>(
    operation: Operation,
    span: &Span,
    seconds: f64,
    class: Option<ErrorClass>,
    result: &Result<T, ProviderError>,
) {
    let (operation, duration_ms) = (operation.name(), seconds * 1000.0);
    let _inside = span.enter();
    match (result, class) {
        (Ok(found), _) if !span.is_disabled() => {
            found.subject().record(span);
            span.record("outcome", "success");
            tracing::debug!(target: "duroxide::providers", operation, duration_ms, "store operation ended");
        }
        (Err(error), Some(class)) => {
            let error_type = class.label();
            span.record("outcome", "error");
            span.record("error_type", error_type);
            // The caller handles a retryable error and an error about the call. An operator must resolve the other errors.
            match class.is_infrastructure(error) && !error.retryable {
                true => tracing::error!(
                    target: "duroxide::providers",
                    operation, duration_ms, error_type, %error, "store operation failed permanently"
                ),
                false => tracing::debug!(
                    target: "duroxide::providers",
                    operation, duration_ms, error_type, %error, "store operation failed"
                ),
            }
        }
        _ => {}
    }
}

#[async_trait]
impl Provider for InstrumentedProvider {
    forward_provider!(
        Provider,
        |this| this.inner,
        except(
            fetch_orchestration_item,
            ack_orchestration_item,
            abandon_orchestration_item,
            read,
            read_with_execution,
            append_with_execution,
            enqueue_for_worker,
            fetch_work_item,
            ack_work_item,
            renew_work_item_lock,
            renew_session_lock,
            cleanup_orphaned_sessions,
            abandon_work_item,
            renew_orchestration_item_lock,
            enqueue_for_orchestrator,
            get_custom_status,
            get_kv_value,
            get_kv_all_values,
            get_instance_stats,
            fetch_turn,
            load_turn,
            load_turn_within,
            commit_turn,
            fetch_work_items,
            complete_with_turn,
            complete_all_with_turn,
            abandon_work_noted,
            hold_turn,
            read_outcome,
            enqueue_once,
            enqueue_within,
            start_orchestration,
            start_with_turn
        )
    );

    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
        let span = span!(self, FetchOrchestrationItem);
        let call = self.inner.fetch_orchestration_item(lock_timeout, poll_timeout, filter);
        self.observed(Operation::FetchOrchestrationItem, span, call).await
    }

    async fn ack_orchestration_item(
        &self,
        lock_token: &str,
        execution_id: u64,
        history_delta: Vec<Event>,
        worker_items: Vec<WorkItem>,
        orchestrator_items: Vec<WorkItem>,
        metadata: ExecutionMetadata,
        cancelled_activities: Vec<ScheduledActivityIdentifier>,
    ) -> Result<(), ProviderError> {
        let span = span!(
            self,
            AckOrchestrationItem,
            Subject::commit(execution_id, &history_delta, &worker_items, orchestrator_items.len())
        );
        let call = self.inner.ack_orchestration_item(
            lock_token,
            execution_id,
            history_delta,
            worker_items,
            orchestrator_items,
            metadata,
            cancelled_activities,
        );
        self.observed(Operation::AckOrchestrationItem, span, call).await
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let span = span!(self, AbandonOrchestrationItem);
        let call = self.inner.abandon_orchestration_item(lock_token, delay, ignore_attempt);
        self.observed(Operation::AbandonOrchestrationItem, span, call).await
    }

    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        let span = span!(self, Read, Subject::instance(instance));
        self.observed(Operation::Read, span, self.inner.read(instance)).await
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        let span = span!(self, ReadWithExecution, Subject::execution(instance, execution_id));
        self.observed(
            Operation::ReadWithExecution,
            span,
            self.inner.read_with_execution(instance, execution_id),
        )
        .await
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        let span = span!(
            self,
            AppendWithExecution,
            Subject { events: Some(new_events.len()), ..Subject::execution(instance, execution_id) }
        );
        let call = self.inner.append_with_execution(instance, execution_id, new_events);
        self.observed(Operation::AppendWithExecution, span, call).await
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError> {
        let span = span!(self, EnqueueWorker, Subject::message(&item));
        self.observed(Operation::EnqueueWorker, span, self.inner.enqueue_for_worker(item)).await
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        let span = span!(self, FetchWorkItem);
        let call = self.inner.fetch_work_item(lock_timeout, poll_timeout, session, tag_filter);
        self.observed(Operation::FetchWorkItem, span, call).await
    }

    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Result<(), ProviderError> {
        let span = span!(self, AckWorkItem, completion.as_ref().map(Subject::message).unwrap_or_default());
        self.observed(Operation::AckWorkItem, span, self.inner.ack_work_item(token, completion)).await
    }

    async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Result<(), ProviderError> {
        let span = span!(self, RenewWorkItemLock);
        self.observed(Operation::RenewWorkItemLock, span, self.inner.renew_work_item_lock(token, extend_for))
            .await
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        let span = span!(self, RenewSessionLock);
        let call = self.inner.renew_session_lock(owner_ids, extend_for, idle_timeout);
        self.observed(Operation::RenewSessionLock, span, call).await
    }

    async fn cleanup_orphaned_sessions(&self, idle_timeout: Duration) -> Result<usize, ProviderError> {
        let span = span!(self, CleanupOrphanedSessions);
        self.observed(
            Operation::CleanupOrphanedSessions,
            span,
            self.inner.cleanup_orphaned_sessions(idle_timeout),
        )
        .await
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let span = span!(self, AbandonWorkItem);
        self.observed(
            Operation::AbandonWorkItem,
            span,
            self.inner.abandon_work_item(token, delay, ignore_attempt),
        )
        .await
    }

    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        let span = span!(self, RenewOrchestrationItemLock);
        let call = self.inner.renew_orchestration_item_lock(token, extend_for);
        self.observed(Operation::RenewOrchestrationItemLock, span, call).await
    }

    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        let span = span!(self, EnqueueOrchestrator, Subject::message(&item));
        self.observed(Operation::EnqueueOrchestrator, span, self.inner.enqueue_for_orchestrator(item, delay))
            .await
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        let span = span!(self, GetCustomStatus, Subject::instance(instance));
        self.observed(
            Operation::GetCustomStatus,
            span,
            self.inner.get_custom_status(instance, last_seen_version),
        )
        .await
    }

    async fn get_kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ProviderError> {
        let span = span!(self, GetKvValue, Subject::instance(instance));
        self.observed(Operation::GetKvValue, span, self.inner.get_kv_value(instance, key)).await
    }

    async fn get_kv_all_values(&self, instance: &str) -> Result<HashMap<String, String>, ProviderError> {
        let span = span!(self, GetKvAllValues, Subject::instance(instance));
        self.observed(Operation::GetKvAllValues, span, self.inner.get_kv_all_values(instance)).await
    }

    async fn get_instance_stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        let span = span!(self, GetInstanceStats, Subject::instance(instance));
        self.observed(Operation::GetInstanceStats, span, self.inner.get_instance_stats(instance)).await
    }

    async fn fetch_turn(&self, request: TurnRequest<'_>) -> Result<Option<FetchedTurn>, ProviderError> {
        let span = span!(self, FetchOrchestrationItem);
        self.observed(Operation::FetchOrchestrationItem, span, self.inner.fetch_turn(request)).await
    }

    async fn load_turn(&self, instance: &str, execution_id: u64) -> Result<LoadedTurn, ProviderError> {
        let span = span!(self, LoadTurn, Subject::execution(instance, execution_id));
        self.observed(Operation::LoadTurn, span, self.inner.load_turn(instance, execution_id)).await
    }

    async fn load_turn_within(
        &self,
        instance: &str,
        execution_id: u64,
        bound: HistoryBound,
    ) -> Result<BoundedTurn, ProviderError> {
        let span = span!(self, LoadTurn, Subject::execution(instance, execution_id));
        self.observed(Operation::LoadTurn, span, self.inner.load_turn_within(instance, execution_id, bound))
            .await
    }

    async fn commit_turn(&self, lock_token: &str, commit: TurnCommit) -> Result<Option<u64>, ProviderError> {
        let span = span!(self, AckOrchestrationItem, Subject::turn(&commit));
        self.observed(Operation::AckOrchestrationItem, span, self.inner.commit_turn(lock_token, commit)).await
    }

    async fn fetch_work_items(&self, request: WorkRequest<'_>) -> Result<Vec<FetchedWork>, ProviderError> {
        let span = span!(self, FetchWorkItem);
        self.observed(Operation::FetchWorkItem, span, self.inner.fetch_work_items(request)).await
    }

    async fn complete_with_turn(
        &self,
        token: &str,
        completion: WorkItem,
        turn: TurnAhead,
    ) -> Result<Completion, ProviderError> {
        let span = span!(
            self,
            AckWorkItem,
            Subject { activity: Subject::message(&completion).activity, ..Subject::turn(&turn.commit) }
        );
        self.observed(Operation::AckWorkItem, span, self.inner.complete_with_turn(token, completion, turn))
            .await
    }

    async fn complete_all_with_turn(
        &self,
        outcomes: Vec<LeasedOutcome>,
        turn: TurnAhead,
    ) -> Result<FusedCompletion, ProviderError> {
        let span = span!(self, AckWorkItem, Subject::turn(&turn.commit));
        self.observed(Operation::AckWorkItem, span, self.inner.complete_all_with_turn(outcomes, turn)).await
    }

    async fn abandon_work_noted(
        &self,
        token: &str,
        delay: Option<Duration>,
        error: &str,
    ) -> Result<(), ProviderError> {
        let span = span!(self, AbandonWorkItem);
        let call = self.inner.abandon_work_noted(token, delay, error);
        self.observed(Operation::AbandonWorkItem, span, call).await
    }

    async fn hold_turn(&self, lock_token: &str, hold: &Hold) -> Result<HoldOutcome, ProviderError> {
        let span = span!(self, AbandonOrchestrationItem);
        let call = self.inner.hold_turn(lock_token, hold);
        self.observed(Operation::AbandonOrchestrationItem, span, call).await
    }

    async fn read_outcome(&self, instance: &str) -> Result<Option<InstanceOutcome>, ProviderError> {
        let span = span!(self, ReadOutcome, Subject::instance(instance));
        self.observed(Operation::ReadOutcome, span, self.inner.read_outcome(instance)).await
    }

    async fn enqueue_once(
        &self,
        item: WorkItem,
        key: &str,
        most_waiting: usize,
    ) -> Result<EnqueueOnce, ProviderError> {
        let span = span!(self, EnqueueOrchestrator, Subject::message(&item));
        let call = self.inner.enqueue_once(item, key, most_waiting);
        self.observed(Operation::EnqueueOrchestrator, span, call).await
    }

    async fn enqueue_within(&self, item: WorkItem, most_waiting: usize) -> Result<bool, ProviderError> {
        let span = span!(self, EnqueueOrchestrator, Subject::message(&item));
        self.observed(Operation::EnqueueOrchestrator, span, self.inner.enqueue_within(item, most_waiting))
            .await
    }

    async fn start_orchestration(&self, request: StartRequest) -> Result<StartOutcome, ProviderError> {
        let span = span!(
            self,
            StartOrchestration,
            Subject { messages: Some(request.messages.len()), ..Subject::message(&request.start) }
        );
        self.observed(Operation::StartOrchestration, span, self.inner.start_orchestration(request)).await
    }

    async fn start_with_turn(&self, start: WorkItem, turn: TurnAhead) -> Result<EagerStart, ProviderError> {
        let span = span!(self, StartOrchestration, Subject::message(&start));
        self.observed(Operation::StartOrchestration, span, self.inner.start_with_turn(start, turn)).await
    }
}

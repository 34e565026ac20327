//! The storage contract.

use crate::forward::forwarded_trait;
use crate::{
    BoundedTurn, Completion, DispatcherCapabilityFilter, EagerStart, EnqueueOnce, ExecutionMetadata,
    FetchedTurn, FetchedWork, FusedCompletion, HistoryBound, Hold, HoldOutcome, InstanceOutcome,
    InstanceWatch, Interest, LeasedOutcome, LoadedTurn, OrchestrationItem, ProviderAdmin, ProviderError,
    ScheduledActivityIdentifier, SessionFetchConfig, StartOutcome, StartPolicy, StartRequest, TagFilter,
    TurnAhead, TurnCommit, TurnRequest, WorkRequest,
};
use outlast_model::{Event, SystemStats, WorkItem};
use std::any::Any;
use std::collections::HashMap;
use std::time::Duration;

forwarded_trait! {
each = __each_provider_method;

/// A store of histories and queues.
///
/// A lease is held while `locked_until > now`. `Ok(Some(_))` from a fetch means that the caller holds a lease;
/// `Err(_)` and `Ok(None)` mean that it does not. Every method may be called from many tasks and processes at once.
///
/// Cancellation safety, for every method: a dropped future has either committed everything or nothing. A fetch that
/// is dropped leaves no lease behind where the store can help it, and otherwise one that expires.
#[async_trait::async_trait]
#[allow(clippy::too_many_arguments)]
pub trait Provider: Any + Send + Sync {
    /// Name of the store, for logs.
    fn name(&self) -> &str {
        "unknown"
    }

    /// Version of the store, for logs.
    fn version(&self) -> &str {
        "0.0.0"
    }

    /// Locks the instance that has waited longest and hands out its visible messages, its history and its key-value
    /// snapshot, with the lock token and the highest delivery count among the messages.
    ///
    /// The filter is applied before anything is locked, counted or decoded. A history that cannot be decoded is
    /// reported in [`OrchestrationItem::history_error`], under a lease.
    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError>;

    /// Commits a turn atomically and releases its lease: deletes the fetched messages, appends history, enqueues
    /// work, then deletes cancelled activities, and records metadata. Refused without effect when the lease is gone.
    async fn ack_orchestration_item(
        &self,
        _lock_token: &str,
        _execution_id: u64,
        _history_delta: Vec<Event>,
        _worker_items: Vec<WorkItem>,
        _orchestrator_items: Vec<WorkItem>,
        _metadata: ExecutionMetadata,
        _cancelled_activities: Vec<ScheduledActivityIdentifier>,
    ) -> Result<(), ProviderError>;

    /// Abandons a turn. The messages that the fetch took become visible again, after `delay` if given; other messages do not
    /// change. `ignore_attempt` takes the delivery off their count.
    async fn abandon_orchestration_item(
        &self,
        _lock_token: &str,
        _delay: Option<Duration>,
        _ignore_attempt: bool,
    ) -> Result<(), ProviderError>;

    /// Events of the newest execution, by ascending id; empty for an unknown instance.
    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError>;

    /// Events of one execution, by ascending id; empty for an unknown one.
    async fn read_with_execution(
        &self,
        _instance: &str,
        _execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError>;

    /// Appends events outside of a turn, all or none, for tools and tests.
    async fn append_with_execution(
        &self,
        _instance: &str,
        _execution_id: u64,
        _new_events: Vec<Event>,
    ) -> Result<(), ProviderError>;

    /// Enqueues an activity.
    async fn enqueue_for_worker(&self, _item: WorkItem) -> Result<(), ProviderError>;

    /// Locks the oldest activity that the tag filter and the session rules admit, with its lock token and delivery
    /// count.
    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError>;

    /// Removes an activity and enqueues its completion, atomically. Refused without effect when the lease is gone.
    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Result<(), ProviderError>;

    /// Extends an activity's lease, never shortens it. Refused if the lease is lost. From the refusal a worker learns that its
    /// activity was cancelled.
    async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Result<(), ProviderError>;

    /// Extends live, recently used sessions of these owners; returns how many.
    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError>;

    /// Removes expired sessions without waiting work; returns how many.
    async fn cleanup_orphaned_sessions(&self, idle_timeout: Duration) -> Result<usize, ProviderError>;

    /// Abandons an activity. It becomes visible after `delay`; `ignore_attempt` takes the delivery off its count.
    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError>;

    /// Extends a turn's lease, never shortens it. Refused when the lease is gone.
    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError>;

    /// Enqueues a message for an instance, visible after `delay`. Never creates an instance.
    async fn enqueue_for_orchestrator(
        &self,
        _item: WorkItem,
        _delay: Option<Duration>,
    ) -> Result<(), ProviderError>;

    /// The management interface, if the store has one.
    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        None
    }

    /// Custom status and its version, if newer than the version last seen.
    async fn get_custom_status(
        &self,
        _instance: &str,
        _last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError>;

    /// One value of the live key-value view.
    async fn get_kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ProviderError>;

    /// The live key-value view.
    async fn get_kv_all_values(&self, instance: &str) -> Result<HashMap<String, String>, ProviderError>;

    /// Size statistics; `None` for an unknown instance.
    async fn get_instance_stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError>;

    // The methods below go beyond the older contract and are as stable. Every default calls the methods above, so that a
    // wrapper with only those methods still sees every call.

    /// Locks a turn for a runtime that may hold the execution in memory: with `with_history: false` a store that
    /// overrides this reads no history and no key-value rows.
    async fn fetch_turn(&self, request: TurnRequest<'_>) -> Result<Option<FetchedTurn>, ProviderError> {
        let fetched =
            self.fetch_orchestration_item(request.lock_timeout, request.poll_timeout, request.filter).await?;
        Ok(fetched.map(|(item, lock_token, attempt_count)| FetchedTurn {
            last_event_id: match item.history_error {
                Some(_) => None,
                None => Some(item.history.last().map_or(0, |event| event.event_id)),
            },
            item,
            lock_token,
            attempt_count,
            history_loaded: true,
            has_ended: None,
            created_at_ms: None,
            now_ms: None,
        }))
    }

    /// History and key-value snapshot of a turn that was fetched without them. A runtime calls this only on a store that
    /// overrides [`Provider::fetch_turn`].
    async fn load_turn(&self, instance: &str, _execution_id: u64) -> Result<LoadedTurn, ProviderError> {
        Err(ProviderError::permanent(
            "load_turn",
            format!("{} always delivers the history with the turn; instance '{instance}'", self.name()),
        ))
    }

    /// Loads a turn as [`Provider::load_turn`] does, or only an outline if the history is larger than the bound. The
    /// default reads the whole history first; a store that knows the size before it reads overrides this.
    async fn load_turn_within(
        &self,
        instance: &str,
        execution_id: u64,
        bound: HistoryBound,
    ) -> Result<BoundedTurn, ProviderError> {
        Ok(BoundedTurn::of(self.load_turn(instance, execution_id).await?, bound))
    }

    /// Commits a turn as [`Provider::ack_orchestration_item`] does, and returns the store's time of the commit, if it is
    /// known. For a turn that creates its instance, this time is [`FetchedTurn::created_at_ms`] from then on.
    async fn commit_turn(&self, lock_token: &str, commit: TurnCommit) -> Result<Option<u64>, ProviderError> {
        self.ack_orchestration_item(
            lock_token,
            commit.execution_id,
            commit.history_delta,
            commit.worker_items,
            commit.orchestrator_items,
            commit.metadata,
            commit.cancelled_activities,
        )
        .await?;
        Ok(None)
    }

    /// Locks up to `max_items` activities; waits for the first only.
    async fn fetch_work_items(&self, request: WorkRequest<'_>) -> Result<Vec<FetchedWork>, ProviderError> {
        let mut fetched: Vec<FetchedWork> = Vec::new();
        while fetched.len() < request.max_items {
            let patience = if fetched.is_empty() { request.poll_timeout } else { Duration::ZERO };
            let next = self
                .fetch_work_item(request.lock_timeout, patience, request.session, request.tag_filter)
                .await;
            match next {
                Ok(Some((item, lock_token, attempt_count))) => {
                    fetched.push(FetchedWork {
                        item,
                        lock_token,
                        attempt_count,
                        notes: None,
                        orchestration: None,
                        now_ms: None,
                    });
                }
                Ok(None) => break,
                // The caller must learn of the leases that it holds already.
                Err(_) if !fetched.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(fetched)
    }

    /// Completes an activity as [`Provider::ack_work_item`] does and, if the instance has not changed since the turn ran,
    /// commits the turn that follows from the outcome in the same step. The instance has not changed if its current execution
    /// is that of the turn, runs, and ends with [`TurnAhead::after_event_id`]; no lease on the instance exists, not even an
    /// expired one; no message for it is visible; and [`TurnAhead::is_of_now`] accepts the turn. Otherwise the outcome is
    /// queued after those messages.
    ///
    /// The default always queues the outcome.
    async fn complete_with_turn(
        &self,
        token: &str,
        completion: WorkItem,
        _turn: TurnAhead,
    ) -> Result<Completion, ProviderError> {
        self.ack_work_item(token, Some(completion)).await?;
        Ok(Completion::Queued)
    }

    /// Whether [`Provider::complete_all_with_turn`] commits anything.
    fn fuses_outcomes(&self) -> bool {
        false
    }

    /// Completes several activities of one instance and commits the turn that follows from all their outcomes in one step. The turn
    /// is committed if every lease holds and the conditions of [`Provider::complete_with_turn`] are met. Otherwise nothing is
    /// written, and the caller completes each activity with [`Provider::ack_work_item`].
    ///
    /// The outcomes are in the history of the turn; they are not enqueued. An error means that nothing was written, or that the
    /// answer was lost.
    ///
    /// The default writes nothing. A caller need not make the call unless [`Provider::fuses_outcomes`] is true.
    async fn complete_all_with_turn(
        &self,
        _outcomes: Vec<LeasedOutcome>,
        _turn: TurnAhead,
    ) -> Result<FusedCompletion, ProviderError> {
        Ok(FusedCompletion::Unchanged)
    }

    /// Gives back an activity whose handler has failed, to be delivered again after `delay`, and keeps the failure with the
    /// activity: the store adds one to [`WorkNotes::failures`](crate::WorkNotes::failures) and replaces
    /// [`WorkNotes::last_error`](crate::WorkNotes::last_error). The delivery is taken off the delivery count, so that the count
    /// holds the deliveries that reported nothing. A token is accepted as by [`Provider::abandon_work_item`].
    ///
    /// The default keeps nothing, and the delivery stays counted.
    async fn abandon_work_noted(
        &self,
        token: &str,
        delay: Option<Duration>,
        _error: &str,
    ) -> Result<(), ProviderError> {
        self.abandon_work_item(token, delay, false).await
    }

    /// Gives back a turn and holds its instance in one step, as [`ProviderAdmin::hold_instance`] does. The delivery counts of the
    /// messages of the turn become zero, so that the turn after the release is not poisoned by deliveries before the hold. Refused
    /// when the lease is gone; the lease must be live. The instance may be new: then its start is held. With [`HoldOutcome::Cancelled`] the caller keeps the lease.
    ///
    /// The default, [`HoldOutcome::Unsupported`], changes nothing: the caller still holds the lease.
    async fn hold_turn(&self, _lock_token: &str, _hold: &Hold) -> Result<HoldOutcome, ProviderError> {
        Ok(HoldOutcome::Unsupported)
    }

    /// Status and result of an instance, without its history; `None` if the store has no event of it. The default reads the
    /// history.
    async fn read_outcome(&self, instance: &str) -> Result<Option<InstanceOutcome>, ProviderError> {
        let Some(mut outcome) = InstanceOutcome::from_history(&self.read(instance).await?) else {
            return Ok(None);
        };
        if let Some((status, version)) = self.get_custom_status(instance, 0).await? {
            outcome.custom_status = status;
            outcome.custom_status_version = version;
        }
        Ok(Some(outcome))
    }

    /// Enqueues a message unless `most_waiting` messages wait for its instance; returns whether it did. The default has no
    /// bound.
    async fn enqueue_within(&self, item: WorkItem, _most_waiting: usize) -> Result<bool, ProviderError> {
        self.enqueue_for_orchestrator(item, None).await?;
        Ok(true)
    }

    /// Enqueues a message unless a message with the same key was enqueued for the same instance, in one atomic step: a caller that got
    /// no answer repeats the call. Keys belong to the instance of the message, and are deleted with it. A key has 1 to
    /// [`MAX_MESSAGE_KEY_BYTES`](outlast_model::limits::MAX_MESSAGE_KEY_BYTES) bytes.
    ///
    /// In this order: a key that is stored answers [`EnqueueOnce::Repeated`], an instance that has ended or does not exist stores
    /// nothing, and so does an instance for which `most_waiting` messages wait.
    ///
    /// The default, [`EnqueueOnce::Unsupported`], is for stores without keys.
    async fn enqueue_once(
        &self,
        _item: WorkItem,
        _key: &str,
        _most_waiting: usize,
    ) -> Result<EnqueueOnce, ProviderError> {
        Ok(EnqueueOnce::Unsupported)
    }

    /// Starts an instance unless its id is taken, in one atomic step.
    ///
    /// The default reads first and then enqueues: two concurrent callers may both get `Started`, and a start that waits in the
    /// queue does not count. A store with transactions overrides this.
    async fn start_orchestration(&self, request: StartRequest) -> Result<StartOutcome, ProviderError> {
        let instance = request.checked_instance()?;
        let existing = InstanceOutcome::from_history(&self.read(instance).await?);
        let outcome = match existing {
            Some(existing) => StartOutcome::AlreadyExists { status: Some(existing.status) },
            None => {
                self.enqueue_for_orchestrator(request.start.clone(), request.delay).await?;
                StartOutcome::Started
            }
        };
        if outcome == StartOutcome::Started || request.policy == StartPolicy::UseExisting {
            // Messages for an instance that exists are not delayed.
            let delay = request.delay.filter(|_| outcome == StartOutcome::Started);
            for message in request.messages {
                self.enqueue_for_orchestrator(message, delay).await?;
            }
        }
        Ok(outcome)
    }

    /// Starts a root instance and commits its first turn in the same step, as if the store had delivered the start. This happens if
    /// the store knows nothing of the instance: it has no row, event, message and lease of it, not even an orphan or a delayed
    /// message. [`TurnAhead::after_event_id`] must be 0, and [`TurnAhead::is_of_now`] must accept the turn. Otherwise nothing is
    /// written, and the caller enqueues the start.
    ///
    /// An item that starts no instance is a permanent error. The default writes nothing.
    async fn start_with_turn(&self, start: WorkItem, _turn: TurnAhead) -> Result<EagerStart, ProviderError> {
        let policy = StartPolicy::FailIfExists;
        StartRequest { start, delay: None, policy, messages: Vec::new() }.checked_instance()?;
        Ok(EagerStart::Unchanged)
    }

    /// Watches an instance from this call on: the future resolves after the next commit through this store object that meets
    /// the interest, once that commit is durable. It may also resolve without a commit, so the caller reads the instance again
    /// unless the future returned the outcome. A caller that watches first, then reads, then waits misses no commit.
    ///
    /// Commits of another process or of another store object on the same data may not resolve the watch, so a caller also
    /// polls. `None`, the default, means that the caller only polls.
    fn watch_instance(&self, _instance: &str, _interest: Interest) -> Option<InstanceWatch> {
        None
    }
}
}

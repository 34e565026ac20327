//! The store of one process of a simulated world.

use super::{Link, ModelledServer};
use crate::counters::Counters;
use crate::db::Db;
use crate::request::Lease;
use crate::shared::Shared;
use crate::{PostgresError, PostgresProvider, PostgresStats, ProviderConfig, lanes, listener};
use async_trait::async_trait;
use outlast_model::{Event, WorkItem};
use outlast_provider::{
    AuditEntry, Completion, DeadLetterOutcome, DispatcherCapabilityFilter, EagerStart, EnqueueOnce,
    ExecutionMetadata, FetchedTurn, FetchedWork, FusedCompletion, Hold, HoldOutcome, InstanceWatch, Interest,
    LeasedOutcome, OrchestrationItem, Provider, ProviderAdmin, ProviderError, ReleaseOutcome, ResetOutcome,
    ResetPlan, ScheduledActivityIdentifier, SessionFetchConfig, StartOutcome, StartRequest, TagFilter,
    TurnAhead, TurnCommit, TurnRequest, WorkRequest, forward_provider,
};
use outlast_provider_kit::queue::PerQueue;
use std::sync::Arc;
use std::time::Duration;

type Answer<T> = Result<T, ProviderError>;

/// The store of one process, on a modelled server. Requests and fetches go through the shipped scheduler, lanes and listener. Reads and
/// management are calls of the modelled store.
///
/// When it is dropped, the process has ended: nothing that it has not sent arrives.
pub struct ModelledStore {
    postgres: PostgresProvider,
    server: Arc<ModelledServer>,
}

impl ModelledStore {
    /// Opens the store of a process, inside of a tokio runtime. The address in the configuration is not used.
    ///
    /// # Errors
    ///
    /// If the configuration is refused.
    pub fn open(config: ProviderConfig, server: &Arc<ModelledServer>) -> Result<Self, PostgresError> {
        let mut db = Db::new(&config, Arc::new(Counters::default()))?;
        db.modelled = Some(Link::new(server));
        let shared = Shared::new(db, config);
        if let Some(link) = &shared.db.modelled {
            link.id.get_or_init(|| shared.id.clone());
        }
        lanes::start(&shared);
        listener::start(&shared);
        Ok(Self { postgres: PostgresProvider { shared }, server: Arc::clone(server) })
    }

    /// Counters since the store was opened.
    pub fn stats(&self) -> PostgresStats {
        self.postgres.stats()
    }

    fn inner(&self) -> &dyn Provider {
        self.server.store()
    }

    #[allow(clippy::expect_used, reason = "a store of `ServerRows` has a management interface")]
    fn admin(&self) -> &dyn ProviderAdmin {
        self.inner().as_management_capability().expect("a store with a management interface")
    }

    /// A change was made beside the lanes. The shipped store polls and notifies another process then.
    fn changed(&self) {
        let shared = &self.postgres.shared;
        shared.on_remote_change(PerQueue::BOTH);
        self.server.changed(&shared.id);
    }
}

impl Drop for ModelledStore {
    fn drop(&mut self) {
        if let Some(link) = &self.postgres.shared.db.modelled {
            link.end();
        }
    }
}

#[async_trait]
impl Provider for ModelledStore {
    forward_provider!(
        Provider,
        |this| this.inner(),
        except(
            as_management_capability,
            fetch_orchestration_item,
            fetch_turn,
            ack_orchestration_item,
            commit_turn,
            abandon_orchestration_item,
            append_with_execution,
            enqueue_for_worker,
            fetch_work_item,
            fetch_work_items,
            ack_work_item,
            complete_with_turn,
            complete_all_with_turn,
            renew_work_item_lock,
            abandon_work_item,
            abandon_work_noted,
            hold_turn,
            renew_orchestration_item_lock,
            enqueue_for_orchestrator,
            enqueue_within,
            enqueue_once,
            start_orchestration,
            start_with_turn,
            watch_instance
        )
    );

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }

    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Answer<Option<(OrchestrationItem, String, u32)>> {
        let request = TurnRequest { lock_timeout, poll_timeout, filter, with_history: true };
        let fetched = self.fetch_turn(request).await?;
        Ok(fetched.map(|turn| (turn.item, turn.lock_token, turn.attempt_count)))
    }

    async fn fetch_turn(&self, request: TurnRequest<'_>) -> Answer<Option<FetchedTurn>> {
        let with_history = request.with_history;
        let fetched = self.postgres.fetch_turn(TurnRequest { with_history: false, ..request }).await?;
        if !with_history {
            return Ok(fetched);
        }
        let Some(mut turn) = fetched else { return Ok(None) };
        let loaded = self.inner().load_turn(&turn.item.instance, turn.item.execution_id).await?;
        (turn.item.history, turn.item.kv_snapshot) = (loaded.history, loaded.kv_snapshot);
        (turn.item.history_error, turn.history_loaded) = (loaded.history_error, true);
        Ok(Some(turn))
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
    ) -> Answer<()> {
        let commit = TurnCommit {
            execution_id,
            history_delta,
            worker_items,
            orchestrator_items,
            metadata,
            cancelled_activities,
        };
        self.postgres.commit_turn(lock_token, commit).await.map(drop)
    }

    async fn commit_turn(&self, lock_token: &str, commit: TurnCommit) -> Answer<Option<u64>> {
        self.postgres.commit_turn(lock_token, commit).await
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Answer<()> {
        self.postgres.abandon_orchestration_item(lock_token, delay, ignore_attempt).await
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Answer<()> {
        self.inner().append_with_execution(instance, execution_id, new_events).await?;
        self.postgres.shared.watches.committed(instance, false);
        Ok(())
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Answer<()> {
        self.postgres.enqueue_for_worker(item).await
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Answer<Option<(WorkItem, String, u32)>> {
        self.postgres.fetch_work_item(lock_timeout, poll_timeout, session, tag_filter).await
    }

    async fn fetch_work_items(&self, request: WorkRequest<'_>) -> Answer<Vec<FetchedWork>> {
        self.postgres.fetch_work_items(request).await
    }

    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Answer<()> {
        self.postgres.ack_work_item(token, completion).await
    }

    async fn complete_with_turn(
        &self,
        token: &str,
        completion: WorkItem,
        turn: TurnAhead,
    ) -> Answer<Completion> {
        self.postgres.complete_with_turn(token, completion, turn).await
    }

    async fn complete_all_with_turn(
        &self,
        outcomes: Vec<LeasedOutcome>,
        turn: TurnAhead,
    ) -> Answer<FusedCompletion> {
        self.postgres.complete_all_with_turn(outcomes, turn).await
    }

    async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Answer<()> {
        self.postgres.renew_work_item_lock(token, extend_for).await
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Answer<()> {
        self.postgres.abandon_work_item(token, delay, ignore_attempt).await
    }

    async fn abandon_work_noted(&self, token: &str, delay: Option<Duration>, error: &str) -> Answer<()> {
        self.postgres.abandon_work_noted(token, delay, error).await
    }

    async fn hold_turn(&self, lock_token: &str, hold: &Hold) -> Answer<HoldOutcome> {
        let lease = Lease::of_turn("hold_turn", lock_token)?;
        let held = self.server.state().leases.get(lease.secret()).map(|held| held.token.clone());
        self.inner().hold_turn(held.as_deref().unwrap_or(lock_token), hold).await
    }

    async fn renew_orchestration_item_lock(&self, token: &str, extend_for: Duration) -> Answer<()> {
        self.postgres.renew_orchestration_item_lock(token, extend_for).await
    }

    async fn enqueue_for_orchestrator(&self, item: WorkItem, delay: Option<Duration>) -> Answer<()> {
        self.postgres.enqueue_for_orchestrator(item, delay).await
    }

    async fn enqueue_within(&self, item: WorkItem, most_waiting: usize) -> Answer<bool> {
        self.postgres.enqueue_within(item, most_waiting).await
    }

    async fn enqueue_once(&self, item: WorkItem, key: &str, most_waiting: usize) -> Answer<EnqueueOnce> {
        let stored = self.inner().enqueue_once(item, key, most_waiting).await?;
        self.changed();
        Ok(stored)
    }

    async fn start_orchestration(&self, request: StartRequest) -> Answer<StartOutcome> {
        self.postgres.start_orchestration(request).await
    }

    async fn start_with_turn(&self, start: WorkItem, turn: TurnAhead) -> Answer<EagerStart> {
        self.postgres.start_with_turn(start, turn).await
    }

    fn watch_instance(&self, instance: &str, interest: Interest) -> Option<InstanceWatch> {
        self.postgres.watch_instance(instance, interest)
    }
}

#[async_trait]
impl ProviderAdmin for ModelledStore {
    forward_provider!(
        ProviderAdmin,
        |this| this.admin(),
        except(release_instance, resume_orchestration, reset_instance, requeue_dead_letter)
    );

    async fn release_instance(&self, instance: &str) -> Answer<ReleaseOutcome> {
        let outcome = self.admin().release_instance(instance).await?;
        self.changed();
        Ok(outcome)
    }

    async fn resume_orchestration(&self, orchestration: &str) -> Answer<ReleaseOutcome> {
        let outcome = self.admin().resume_orchestration(orchestration).await?;
        self.changed();
        Ok(outcome)
    }

    async fn reset_instance(&self, plan: &ResetPlan) -> Answer<ResetOutcome> {
        let outcome = self.admin().reset_instance(plan).await?;
        self.changed();
        Ok(outcome)
    }

    async fn requeue_dead_letter(&self, id: u64, entry: &AuditEntry) -> Answer<DeadLetterOutcome> {
        let outcome = self.admin().requeue_dead_letter(id, entry).await?;
        self.changed();
        Ok(outcome)
    }
}

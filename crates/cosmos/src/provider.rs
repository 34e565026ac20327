//! The store behind the provider trait.

use crate::activity::GivenBack;
use crate::error::CosmosStoreError;
use crate::fetch::{GRACE_MS, TurnAsk};
use crate::fetch_activity::ActivityAsk;
use crate::reconcile::reconciler;
use crate::seats::Takes;
use crate::store::{Store, locked};
use crate::tally::flusher;
use crate::tasks::{Background, finished};
use crate::{CosmosDBOptions, OutboxFaultInjector, kv, open, park};
use async_trait::async_trait;
use outlast_model::{Event, SystemStats, WorkItem};
use outlast_provider::{
    Completion, DispatcherCapabilityFilter, EnqueueOnce, ExecutionMetadata, FetchedTurn, FetchedWork, Hold,
    HoldOutcome, InstanceOutcome, InstanceWatch, Interest, LoadedTurn, OrchestrationItem, Provider,
    ProviderAdmin, ProviderError, ScheduledActivityIdentifier, SessionFetchConfig, StartOutcome,
    StartRequest, TagFilter, TurnAhead, TurnCommit, TurnRequest, WorkRequest,
};
use outlast_provider_kit::CommitPlan;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub use crate::options::CosmosDBProviderConfig;

/// A store in a container of Azure Cosmos DB.
///
/// Clones share the connection. The container is created if it does not exist.
#[derive(Clone)]
pub struct CosmosDBProvider {
    pub(crate) store: Arc<Store>,
    reconciler: Arc<Background>,
    flusher: Arc<Background>,
}

impl std::fmt::Debug for CosmosDBProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CosmosDBProvider").field("config", &self.store.config).finish_non_exhaustive()
    }
}

impl CosmosDBProvider {
    /// Opens the container `duroxide` of a database.
    pub async fn new(endpoint: &str, key: &str, database: &str) -> Result<Self, ProviderError> {
        let config = CosmosDBProviderConfig {
            endpoint: endpoint.to_string(),
            key: key.to_string(),
            database: database.to_string(),
            ..CosmosDBProviderConfig::default()
        };
        Self::new_with_config(config).await
    }

    /// Opens a container of a database.
    pub async fn new_with_container(
        endpoint: &str,
        key: &str,
        database: &str,
        container: &str,
    ) -> Result<Self, ProviderError> {
        let config = CosmosDBProviderConfig {
            endpoint: endpoint.to_string(),
            key: key.to_string(),
            database: database.to_string(),
            container: container.to_string(),
            ..CosmosDBProviderConfig::default()
        };
        Self::new_with_config(config).await
    }

    /// Opens the container of a configuration.
    pub async fn new_with_config(config: CosmosDBProviderConfig) -> Result<Self, ProviderError> {
        Ok(Self::open(config, CosmosDBOptions::default()).await?)
    }

    /// Opens the container of a configuration, with further settings.
    pub async fn open(
        config: CosmosDBProviderConfig,
        options: CosmosDBOptions,
    ) -> Result<Self, CosmosStoreError> {
        let client = open::open(&config, &options).await?;
        let interval = config.reconciler_interval.max(Duration::from_millis(10));
        let store = Store::new(client, config, &options);
        match store.synchronise().await {
            // A tool may have read access only: it then uses the machine's clock.
            Err(error) if options.creates => return Err(error),
            _ => {}
        }
        let reconciler = Arc::new(Background::start(reconciler(Arc::downgrade(&store), interval)));
        let flusher = Arc::new(Background::start(flusher(Arc::downgrade(&store))));
        Ok(Self { store, reconciler, flusher })
    }

    /// Lets the next deliveries between instances fail, for tests.
    ///
    /// # Panics
    ///
    /// If the store was cloned.
    pub fn set_outbox_fault_injector(&mut self, injector: OutboxFaultInjector) {
        assert!(Arc::strong_count(&self.reconciler) == 1, "set the injector before the store is cloned");
        *locked(&self.store.outbox_faults) = Some(injector.left());
    }

    /// Stops the tasks of the store and deletes the container, with all its data.
    pub async fn cleanup(&self) -> Result<(), ProviderError> {
        self.reconciler.stop();
        self.store.stop_seeking();
        self.flusher.stop();
        let deleted = self.store.client.container().delete(None).await;
        deleted.map(drop).map_err(|error| crate::error::failed("cleanup", &error))
    }

    async fn fetch(&self, request: TurnRequest<'_>) -> Result<Option<FetchedTurn>, ProviderError> {
        let (lock_timeout, with_history) = (request.lock_timeout, request.with_history);
        let filter = request.filter.cloned();
        let (store, patience) = (Arc::clone(&self.store), request.poll_timeout);
        let fetch = move |is_gone: park::IsGone| async move {
            let refused = Mutex::default();
            // A fetch that does not wait takes known work of every slot.
            let grace_ms = if patience.is_zero() { 0 } else { GRACE_MS };
            let ask =
                TurnAsk { lock_timeout, filter, with_history, grace_ms, is_gone: is_gone.clone(), refused };
            store.park(patience, Takes::Turns, &is_gone, || store.fetch_turn(&ask)).await
        };
        park::guarded(&self.store, fetch).await
    }

    async fn fetch_activities(&self, request: WorkRequest<'_>) -> Result<Vec<FetchedWork>, ProviderError> {
        if *request.tag_filter == TagFilter::None || request.max_items == 0 {
            return Ok(Vec::new());
        }
        let (max_items, lock_timeout) = (request.max_items, request.lock_timeout);
        let (session, tags) = (request.session.cloned(), request.tag_filter.clone());
        let (store, patience) = (Arc::clone(&self.store), request.poll_timeout);
        let fetch = move |is_gone: park::IsGone| async move {
            let takes = Takes::Activities(tags.clone());
            let ask = ActivityAsk { is_gone: is_gone.clone(), max_items, lock_timeout, session, tags };
            store.park(patience, takes, &is_gone, || store.fetch_activity(&ask)).await
        };
        Ok(park::guarded(&self.store, fetch).await?.unwrap_or_default())
    }

    async fn commit(&self, lock_token: &str, plan: CommitPlan) -> Result<u64, ProviderError> {
        let (store, token) = (Arc::clone(&self.store), lock_token.to_string());
        finished(crate::commit::ACK, async move { store.under(&token, store.commit(&token, &plan)).await })
            .await
    }
}

#[async_trait]
impl Provider for CosmosDBProvider {
    fn name(&self) -> &str {
        "cosmos"
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
        let request = TurnRequest { lock_timeout, poll_timeout, filter, with_history: true };
        let fetched = self.fetch(request).await?;
        Ok(fetched.map(|turn| (turn.item, turn.lock_token, turn.attempt_count)))
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
        let plan = CommitPlan::new(
            execution_id,
            &history_delta,
            &worker_items,
            &orchestrator_items,
            metadata,
            cancelled_activities,
        )?;
        self.commit(lock_token, plan).await.map(drop)
    }

    async fn commit_turn(&self, lock_token: &str, commit: TurnCommit) -> Result<Option<u64>, ProviderError> {
        self.commit(lock_token, CommitPlan::of(commit)?).await.map(Some)
    }

    async fn complete_with_turn(
        &self,
        token: &str,
        completion: WorkItem,
        turn: TurnAhead,
    ) -> Result<Completion, ProviderError> {
        let (store, token) = (Arc::clone(&self.store), token.to_string());
        let call =
            async move { store.under(&token, store.complete_with_turn(&token, completion, turn)).await };
        finished(crate::activity::ACK, call).await
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let call = self.store.abandon_turn(lock_token, delay, ignore_attempt);
        self.store.under(lock_token, call).await
    }

    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.store.read_events("read", instance, None).await
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        self.store.read_events("read_with_execution", instance, Some(execution_id)).await
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        self.store.append(instance, execution_id, &new_events).await
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError> {
        self.store.enqueue_activity(&item).await
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        let request = WorkRequest { max_items: 1, lock_timeout, poll_timeout, session, tag_filter };
        let fetched = self.fetch_activities(request).await?;
        let first = fetched.into_iter().next();
        Ok(first.map(|fetched| (fetched.item, fetched.lock_token, fetched.attempt_count)))
    }

    async fn fetch_work_items(&self, request: WorkRequest<'_>) -> Result<Vec<FetchedWork>, ProviderError> {
        self.fetch_activities(request).await
    }

    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Result<(), ProviderError> {
        let (store, token) = (Arc::clone(&self.store), token.to_string());
        let call = async move { store.under(&token, store.ack_activity(&token, completion)).await };
        finished(crate::activity::ACK, call).await
    }

    async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Result<(), ProviderError> {
        self.store.under(token, self.store.renew_activity(token, extend_for)).await
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        let renewed = self.store.renew_sessions(owner_ids, extend_for, idle_timeout);
        self.store.within_lease(extend_for, renewed).await
    }

    async fn cleanup_orphaned_sessions(&self, _idle_timeout: Duration) -> Result<usize, ProviderError> {
        self.store.clean_up_sessions().await
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let given = if ignore_attempt { GivenBack::Uncounted } else { GivenBack::Counted };
        self.store.under(token, self.store.abandon_activity(token, delay, given)).await
    }

    async fn abandon_work_noted(
        &self,
        token: &str,
        delay: Option<Duration>,
        error: &str,
    ) -> Result<(), ProviderError> {
        let call = self.store.abandon_activity(token, delay, GivenBack::Failed(error));
        self.store.under(token, call).await
    }

    async fn hold_turn(&self, lock_token: &str, hold: &Hold) -> Result<HoldOutcome, ProviderError> {
        self.store.under(lock_token, self.store.give_back_for_hold(lock_token, hold)).await
    }

    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        self.store.under(token, self.store.renew_turn(token, extend_for)).await
    }

    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        self.store.enqueue("enqueue_for_orchestrator", &item, delay).await
    }

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        self.store.custom_status(instance, last_seen_version).await
    }

    async fn get_kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ProviderError> {
        let address = crate::document::Address::of(instance);
        self.store.live_value("get_kv_value", &address, key).await
    }

    async fn get_kv_all_values(&self, instance: &str) -> Result<HashMap<String, String>, ProviderError> {
        let address = crate::document::Address::of(instance);
        let keys = self.store.current_keys("get_kv_all_values", &address).await?;
        Ok(keys.into_iter().filter_map(|(key, state)| Some((key, kv::State::live(state)?))).collect())
    }

    async fn get_instance_stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        self.store.stats(instance).await
    }

    async fn fetch_turn(&self, request: TurnRequest<'_>) -> Result<Option<FetchedTurn>, ProviderError> {
        self.fetch(request).await
    }

    async fn load_turn(&self, instance: &str, execution_id: u64) -> Result<LoadedTurn, ProviderError> {
        self.store.load(instance, execution_id).await
    }

    async fn read_outcome(&self, instance: &str) -> Result<Option<InstanceOutcome>, ProviderError> {
        self.store.outcome(instance).await
    }

    async fn enqueue_within(&self, item: WorkItem, most_waiting: usize) -> Result<bool, ProviderError> {
        self.store.enqueue_within(&item, most_waiting).await
    }

    async fn enqueue_once(
        &self,
        item: WorkItem,
        key: &str,
        most_waiting: usize,
    ) -> Result<EnqueueOnce, ProviderError> {
        self.store.enqueue_once(&item, key, most_waiting).await
    }

    async fn start_orchestration(&self, request: StartRequest) -> Result<StartOutcome, ProviderError> {
        self.store.start(&request).await
    }

    fn watch_instance(&self, instance: &str, interest: Interest) -> Option<InstanceWatch> {
        Some(self.store.watches.watch(instance, interest))
    }
}

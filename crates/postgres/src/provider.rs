//! Implements the provider trait.

use crate::activity::Gathered;
use crate::ask::{ActivityAsk, TurnAsk};
use crate::counters::{Counters, PostgresStats};
use crate::db::{Db, Param, cell, column, unsigned};
use crate::reply::Reply;
use crate::request::{
    Abandon, Activity, Answer, Attempts, Commit, Committed, Lease, Message, Renew, Request, Start,
    refused_token,
};
use crate::shared::Shared;
use crate::text::owned;
use crate::{
    MigrationPolicy, PostgresError, ProviderConfig, fetch, history, hold, kv, lanes, listener, schema,
    session,
};
use async_trait::async_trait;
use outlast_model::{Event, SystemStats, WorkItem};
use outlast_provider::{
    BoundedTurn, Completion, DispatcherCapabilityFilter, EagerStart, EnqueueOnce, ExecutionMetadata,
    FetchedTurn, FetchedWork, FusedCompletion, HistoryBound, Hold, HoldOutcome, InstanceOutcome,
    InstanceWatch, Interest, LeasedOutcome, LoadedTurn, OrchestrationItem, Provider, ProviderAdmin,
    ScheduledActivityIdentifier, SessionFetchConfig, StartOutcome, StartRequest, TagFilter, TurnAhead,
    TurnCommit, TurnRequest, WorkRequest, saturating_ms,
};
use outlast_provider_kit::migrations::SchemaState;
use outlast_provider_kit::plan::{activity_row, checked_id, checked_key, history_rows, message_row};
use outlast_provider_kit::queue::PerQueue;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_postgres::types::Type;

/// A store in a schema of a PostgreSQL database, which any number of processes share.
///
/// The store is opened inside of a tokio runtime, where the tasks of the store run until the store is dropped. All methods are
/// cancellation safe: a call whose future is dropped is either stored completely or not at all, and a dropped fetch gives back its
/// leases without counting their deliveries.
pub struct PostgresProvider {
    pub(crate) shared: Arc<Shared>,
}

impl fmt::Debug for PostgresProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresProvider").field("config", &self.shared.config).finish_non_exhaustive()
    }
}

impl Drop for PostgresProvider {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl PostgresProvider {
    /// Opens the store in the schema `public`, and applies due migrations.
    pub async fn new(database_url: &str) -> Result<Self, PostgresError> {
        Self::new_with_schema(database_url, None).await
    }

    /// Opens the store in this schema, which is created if it is missing.
    pub async fn new_with_schema(
        database_url: &str,
        schema_name: Option<&str>,
    ) -> Result<Self, PostgresError> {
        let mut config = ProviderConfig::url(database_url);
        config.schema_name = schema_name.map(str::to_string);
        Self::new_with_config(config).await
    }

    /// Opens the store with full configuration.
    pub async fn new_with_config(config: ProviderConfig) -> Result<Self, PostgresError> {
        let db = Db::new(&config, Arc::new(Counters::default()))?;
        schema::prepare(&db, config.migration_policy).await?;
        let listens = config.listen;
        let shared = Shared::new(db, config);
        lanes::start(&shared);
        if listens {
            listener::start(&shared);
        }
        Ok(Self { shared })
    }

    /// The schema of the store beside that of this release, without applying migrations and without writing. Version 0 is a schema
    /// without a store, or one that does not exist.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached, the schema has tables of another program, or a newer release wrote the store.
    pub async fn schema_state(config: ProviderConfig) -> Result<SchemaState, PostgresError> {
        schema::state(&Db::new(&config, Arc::new(Counters::default()))?).await
    }

    /// The schema of the store.
    pub fn schema_name(&self) -> &str {
        self.shared.db.schema.as_str()
    }

    /// Brings the schema up to date, as opening does with [`MigrationPolicy::ApplyAll`].
    pub async fn initialize_schema(&self) -> Result<(), PostgresError> {
        schema::prepare(&self.shared.db, MigrationPolicy::ApplyAll).await
    }

    /// Removes the store with all its rows, and also the schema unless it is `public`. For tests.
    pub async fn cleanup_schema(&self) -> Result<(), PostgresError> {
        schema::cleanup(&self.shared.db).await
    }

    /// Counters since the store was opened.
    pub fn stats(&self) -> PostgresStats {
        self.shared.db.counters.read()
    }

    /// The free room for client requests, for holders of leases and for questions about outcomes, for tests.
    #[cfg(feature = "test-hooks")]
    #[doc(hidden)]
    pub fn free_room(&self) -> [usize; 3] {
        let [client_requests, holders] = self.shared.room.free();
        [client_requests, holders, self.shared.outcomes.free()]
    }

    async fn enqueue(
        &self,
        operation: &'static str,
        item: &WorkItem,
        delay: Option<Duration>,
        most: Option<usize>,
    ) -> Answer<bool> {
        let row = message_row(operation, item)?;
        let (delay_ms, begins) = (delay.map_or(0, saturating_ms), row.begins);
        let (reply, is_stored) = Reply::channel(operation);
        let message = Message { row, begins, delay_ms, most, reply };
        self.shared.ask(Request::Message(message), is_stored).await
    }

    async fn renew(&self, operation: &'static str, lease: Lease, extend_for: Duration) -> Answer<()> {
        let (reply, renewed) = Reply::channel(operation);
        let (extend_ms, attempts) = (saturating_ms(extend_for), Attempts::default());
        self.shared.ask(Request::Renew(Renew { lease, extend_ms, reply, attempts }), renewed).await
    }

    /// Gives a lease back. `note` is the failure that the handler of an activity reported.
    async fn abandon(
        &self,
        operation: &'static str,
        lease: Lease,
        delay: Option<Duration>,
        ignore_attempt: bool,
        note: Option<String>,
    ) -> Answer<()> {
        let (reply, abandoned) = Reply::channel(operation);
        let (delay_ms, attempts) = (delay.map(saturating_ms), Attempts::default());
        let abandon = Abandon { lease, delay_ms, ignore_attempt, note, reply, attempts };
        self.shared.ask(Request::Abandon(abandon), abandoned).await
    }
}

#[async_trait]
impl Provider for PostgresProvider {
    fn name(&self) -> &str {
        "postgres"
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
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
        self.commit_turn(lock_token, commit).await.map(drop)
    }

    async fn commit_turn(&self, lock_token: &str, commit: TurnCommit) -> Answer<Option<u64>> {
        let (reply, committed) = Reply::channel("ack_orchestration_item");
        let commit = Commit::of_turn(reply, lock_token, commit)?;
        match self.shared.ask(Request::Commit(Box::new(commit)), committed).await? {
            Committed::WithTurn { at_ms } => Ok(Some(at_ms)),
            Committed::Queued | Committed::Unchanged => Ok(None),
        }
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Answer<()> {
        const ABANDON: &str = "abandon_orchestration_item";
        let lease = Lease::of_turn(ABANDON, lock_token)?;
        self.abandon(ABANDON, lease, delay, ignore_attempt, None).await
    }

    async fn read(&self, instance: &str) -> Answer<Vec<Event>> {
        let read = history::read(&self.shared.db, instance, None).await;
        read.map_err(|error| error.during("read"))
    }

    async fn read_with_execution(&self, instance: &str, execution_id: u64) -> Answer<Vec<Event>> {
        let read = history::read(&self.shared.db, instance, Some(execution_id)).await;
        read.map_err(|error| error.during("read_with_execution"))
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Answer<()> {
        const APPEND: &str = "append_with_execution";
        checked_id(APPEND, instance)?;
        let events = history_rows(APPEND, &new_events)?;
        let appended = history::append(&self.shared.db, instance, execution_id, &events).await;
        appended.map_err(|error| error.during(APPEND))?;
        self.shared.watches.committed(instance, false);
        Ok(())
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Answer<()> {
        const ENQUEUE: &str = "enqueue_for_worker";
        let row = activity_row(ENQUEUE, &item)?;
        let (reply, stored) = Reply::channel(ENQUEUE);
        self.shared.ask(Request::Activity(Activity { row, reply }), stored).await
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Answer<Option<(WorkItem, String, u32)>> {
        let request = WorkRequest { max_items: 1, lock_timeout, poll_timeout, session, tag_filter };
        let fetched = self.fetch_work_items(request).await?;
        Ok(fetched
            .into_iter()
            .next()
            .map(|activities| (activities.item, activities.lock_token, activities.attempt_count)))
    }

    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Answer<()> {
        let (reply, committed) = Reply::channel("ack_work_item");
        let commit = Commit::of_activity(reply, token, completion.as_ref(), None)?;
        self.shared.ask(Request::Commit(Box::new(commit)), committed).await.map(drop)
    }

    async fn complete_with_turn(
        &self,
        token: &str,
        completion: WorkItem,
        turn: TurnAhead,
    ) -> Answer<Completion> {
        let (reply, committed) = Reply::channel("ack_work_item");
        let commit = Commit::of_activity(reply, token, Some(&completion), Some(turn))?;
        self.shared.ask(Request::Commit(Box::new(commit)), committed).await.map(Completion::from)
    }

    fn fuses_outcomes(&self) -> bool {
        true
    }

    async fn complete_all_with_turn(
        &self,
        outcomes: Vec<LeasedOutcome>,
        turn: TurnAhead,
    ) -> Answer<FusedCompletion> {
        let (reply, committed) = Reply::channel("ack_work_item");
        let Some(commit) = Commit::of_outcomes(reply, &outcomes, turn)? else {
            return Ok(FusedCompletion::Unchanged);
        };
        self.shared.ask(Request::Commit(Box::new(commit)), committed).await.map(FusedCompletion::from)
    }

    async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Answer<()> {
        const RENEW: &str = "renew_work_item_lock";
        let lease = Lease::of_activity(RENEW, token)?;
        self.renew(RENEW, lease, extend_for).await
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Answer<usize> {
        if owner_ids.is_empty() {
            return Ok(0);
        }
        let renewed =
            session::renew(&self.shared.db, owner_ids, extend_for, idle_timeout, self.shared.secrets.owner())
                .await;
        renewed.map_err(|error| error.during("renew_session_lock"))
    }

    async fn cleanup_orphaned_sessions(&self, _idle_timeout: Duration) -> Answer<usize> {
        let removed = session::cleanup(&self.shared.db).await;
        removed.map_err(|error| error.during("cleanup_orphaned_sessions"))
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Answer<()> {
        const ABANDON: &str = "abandon_work_item";
        let lease = Lease::of_activity(ABANDON, token)?;
        self.abandon(ABANDON, lease, delay, ignore_attempt, None).await
    }

    async fn abandon_work_noted(&self, token: &str, delay: Option<Duration>, error: &str) -> Answer<()> {
        const NOTE: &str = "abandon_work_noted";
        let lease = Lease::of_activity(NOTE, token)?;
        self.abandon(NOTE, lease, delay, true, Some(error.to_string())).await
    }

    async fn hold_turn(&self, lock_token: &str, hold: &Hold) -> Answer<HoldOutcome> {
        const HOLD: &str = "hold_turn";
        let lease = Lease::of_turn(HOLD, lock_token)?;
        let (secret, instance) = (lease.secret(), lease.subject());
        match hold::turn(&self.shared.db, &instance, secret, hold).await {
            Ok(Some(outcome)) => Ok(outcome),
            Ok(None) => Err(refused_token(HOLD, lock_token)),
            Err(error) => Err(error.during(HOLD)),
        }
    }

    async fn renew_orchestration_item_lock(&self, token: &str, extend_for: Duration) -> Answer<()> {
        const RENEW: &str = "renew_orchestration_item_lock";
        let lease = Lease::of_turn(RENEW, token)?;
        self.renew(RENEW, lease, extend_for).await
    }

    async fn enqueue_for_orchestrator(&self, item: WorkItem, delay: Option<Duration>) -> Answer<()> {
        self.enqueue("enqueue_for_orchestrator", &item, delay, None).await.map(drop)
    }

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Answer<Option<(Option<String>, u64)>> {
        let db = &self.shared.db;
        let (instance, seen) = (owned(instance), column(last_seen_version));
        let wanted: [Param<'_>; 2] = [(&instance, Type::TEXT), (&seen, Type::INT8)];
        let read = async {
            match db.one(&db.statements.custom_status, &wanted).await? {
                Some(row) => Ok(Some((
                    cell::<Option<String>>(&row, "custom_status")?.map(crate::text::read),
                    unsigned(&row, "custom_status_version")?,
                ))),
                None => Ok(None),
            }
        };
        read.await.map_err(|error: PostgresError| error.during("get_custom_status"))
    }

    async fn get_kv_value(&self, instance: &str, key: &str) -> Answer<Option<String>> {
        kv::value(&self.shared.db, instance, key).await.map_err(|error| error.during("get_kv_value"))
    }

    async fn get_kv_all_values(&self, instance: &str) -> Answer<HashMap<String, String>> {
        kv::view(&self.shared.db, instance).await.map_err(|error| error.during("get_kv_all_values"))
    }

    async fn get_instance_stats(&self, instance: &str) -> Answer<Option<SystemStats>> {
        history::stats(&self.shared.db, instance).await.map_err(|error| error.during("get_instance_stats"))
    }

    async fn fetch_turn(&self, request: TurnRequest<'_>) -> Answer<Option<FetchedTurn>> {
        let accepts_no_version =
            request.filter.is_some_and(|filter| filter.supported_duroxide_versions.is_empty());
        if accepts_no_version {
            tokio::time::sleep(request.poll_timeout).await;
            return Ok(None);
        }
        let begun = Instant::now();
        loop {
            let patience = request.poll_timeout.saturating_sub(begun.elapsed());
            let ask = TurnAsk {
                lock_ms: saturating_ms(request.lock_timeout),
                filter: request.filter.cloned(),
                bound: self.shared.config.message_bound,
            };
            let Some(leased) = self.shared.fetch_turn(ask, patience).await? else { return Ok(None) };
            if let Some(turn) = fetch::hand_out(&self.shared, leased, request.with_history).await? {
                return Ok(Some(turn));
            }
        }
    }

    async fn load_turn(&self, instance: &str, execution_id: u64) -> Answer<LoadedTurn> {
        let loaded = history::load_turn(&self.shared.db, instance, execution_id).await;
        loaded.map_err(|error| error.during("load_turn"))
    }

    async fn load_turn_within(
        &self,
        instance: &str,
        execution_id: u64,
        bound: HistoryBound,
    ) -> Answer<BoundedTurn> {
        let loaded = history::load_turn_within(&self.shared.db, instance, execution_id, bound).await;
        loaded.map_err(|error| error.during("load_turn"))
    }

    async fn fetch_work_items(&self, request: WorkRequest<'_>) -> Answer<Vec<FetchedWork>> {
        if *request.tag_filter == TagFilter::None || request.max_items == 0 {
            return Ok(Vec::new());
        }
        let begun = Instant::now();
        let mut gathered = Gathered::new(request.max_items);
        loop {
            // The fetch waits for the first activity, and not for `max_items` activities.
            let patience = match gathered.is_empty() {
                true => request.poll_timeout.saturating_sub(begun.elapsed()),
                false => Duration::ZERO,
            };
            let ask = ActivityAsk {
                max_items: gathered.missing(),
                lock_ms: saturating_ms(request.lock_timeout),
                session: request.session.cloned(),
                tags: request.tag_filter.clone(),
            };
            let leased = self.shared.fetch_activities(ask, patience).await;
            if !gathered.add(&self.shared.db, leased).await? {
                return Ok(gathered.take());
            }
        }
    }

    async fn read_outcome(&self, instance: &str) -> Answer<Option<InstanceOutcome>> {
        let (reply, outcome) = Reply::channel("read_outcome");
        self.shared.outcomes.ask(instance, reply).await;
        let outcome = outcome.receive().await;
        Ok(outcome.unwrap_or_else(|operation| Err(self.shared.dropped(instance).classified(operation)))?)
    }

    async fn enqueue_within(&self, item: WorkItem, most_waiting: usize) -> Answer<bool> {
        self.enqueue("enqueue_within", &item, None, Some(most_waiting)).await
    }

    async fn enqueue_once(&self, item: WorkItem, key: &str, most_waiting: usize) -> Answer<EnqueueOnce> {
        const ENQUEUE: &str = "enqueue_once";
        let row = message_row(ENQUEUE, &item)?;
        checked_key(ENQUEUE, key)?;
        let stored = crate::once::enqueue(&self.shared.db, &row, key, most_waiting).await;
        let stored = stored.map_err(|error| error.during(ENQUEUE))?;
        if stored == EnqueueOnce::Stored {
            self.shared.on_remote_change(PerQueue { turns: true, activities: false });
            // The message is stored. Without the notification another process finds it at its next poll.
            let _ = hold::notify(&self.shared, false).await;
        }
        Ok(stored)
    }

    async fn start_orchestration(&self, request: StartRequest) -> Answer<StartOutcome> {
        const START: &str = "start_orchestration";
        request.checked_instance()?;
        let start = message_row(START, &request.start)?;
        let messages = request.messages.iter().map(|item| message_row(START, item)).collect::<Answer<_>>()?;
        let delay_ms = request.delay.map_or(0, saturating_ms);
        let policy = request.policy;
        let (reply, outcome) = Reply::channel(START);
        let start = Start { start, messages, delay_ms, policy, reply };
        self.shared.ask(Request::Start(start), outcome).await
    }

    async fn start_with_turn(&self, start: WorkItem, turn: TurnAhead) -> Answer<EagerStart> {
        let (reply, committed) = Reply::channel("start_with_turn");
        let commit = Commit::of_start(reply, &start, turn)?;
        self.shared.ask(Request::Commit(Box::new(commit)), committed).await.map(EagerStart::from)
    }

    fn watch_instance(&self, instance: &str, interest: Interest) -> Option<InstanceWatch> {
        let watch = self.shared.watches.watch(instance, interest);
        self.shared.wake_listener();
        Some(watch)
    }
}

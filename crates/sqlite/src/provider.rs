//! The store behind its trait.

use crate::command::{Body, Command, Cx, Health};
use crate::contain::{self, contain};
use crate::counters::{Counters, SqliteStats};
use crate::db::{Db, Result};
use crate::handle::{Handle, Inline};
use crate::share::LARGE_BYTES;
use crate::start::StartPlan;
use crate::store::Store;
use crate::threads::{Threads, units};
use crate::url::{self, Location};
use crate::waiting::{Guarded, Leases, RawTurn, TurnAsk, Waiter, WorkAsk};
use crate::{SqliteError, SqliteOptions, history, kv, session, sql, start, work, write};
use async_trait::async_trait;
use outlast_model::{Event, SystemStats, WorkItem};
use outlast_provider::{
    BoundedTurn, ClassifiedError, Completion, DispatcherCapabilityFilter, ExecutionMetadata, FetchedTurn,
    FetchedWork, HistoryBound, InstanceOutcome, InstanceWatch, Interest, LoadedTurn, OrchestrationItem,
    Provider, ProviderAdmin, ProviderError, ScheduledActivityIdentifier, SessionFetchConfig, StartOutcome,
    StartRequest, TagFilter, TurnAhead, TurnCommit, TurnRequest, WorkRequest, saturating_ms,
};
use outlast_provider_kit::plan::{activity_row, checked_id, completion_row, history_rows, message_row};
use outlast_provider_kit::{CommitPlan, MessageRow, Watches, rows};
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

type Answer<T> = std::result::Result<T, ProviderError>;

/// A store in one SQLite file, or in memory.
///
/// All methods are cancellation safe: a call whose future is dropped is either stored completely or not at all, and a
/// dropped fetch gives back what it was about to get, without counting the delivery. Methods that wait need a tokio
/// runtime with its timer enabled.
pub struct SqliteProvider {
    engine: Engine,
    pub(crate) location: Location,
    pub(crate) options: SqliteOptions,
    counters: Arc<Counters>,
    watches: Arc<Watches>,
}

enum Engine {
    Threaded(Threads),
    Inline(Arc<Inline>),
}

impl SqliteProvider {
    /// Opens a store: `sqlite:PATH` (created if it is missing), `sqlite:PATH?mode=rw` (must exist),
    /// `sqlite:PATH?mode=ro` (read only, for tools), or `sqlite::memory:` (private to this provider).
    pub async fn new(
        database_url: &str,
        options: Option<SqliteOptions>,
    ) -> std::result::Result<Self, SqliteError> {
        let location = url::parse(database_url)?;
        let options = options.unwrap_or_default();
        let counters = Arc::new(Counters::default());
        let engine = match options.inline {
            true => {
                let store = Store::open(location.clone(), options.clone(), Arc::clone(&counters))?;
                Engine::Inline(Arc::new(Inline::new(store)))
            }
            false => {
                let threads = Threads::start(location.clone(), options.clone(), Arc::clone(&counters));
                Engine::Threaded(threads.await?)
            }
        };
        Ok(Self { engine, location, options, counters, watches: Arc::default() })
    }

    /// A store in memory, private to this provider and gone with it.
    pub async fn new_in_memory() -> std::result::Result<Self, SqliteError> {
        Self::new_in_memory_with_options(None).await
    }

    /// [`SqliteProvider::new_in_memory`] with options.
    pub async fn new_in_memory_with_options(
        options: Option<SqliteOptions>,
    ) -> std::result::Result<Self, SqliteError> {
        Self::new("sqlite::memory:", options).await
    }

    /// Figures since the store was opened.
    pub fn stats(&self) -> SqliteStats {
        self.counters.read()
    }

    pub(crate) fn watches(&self) -> Arc<Watches> {
        Arc::clone(&self.watches)
    }

    pub(crate) fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    fn handle(&self) -> Handle {
        match &self.engine {
            Engine::Threaded(threads) => Handle::Threaded(threads.commands.clone()),
            Engine::Inline(inline) => Handle::Inline(Arc::downgrade(inline)),
        }
    }

    fn submit(&self, command: Command) {
        match &self.engine {
            // A writer that is gone drops the command, and the caller sees that.
            Engine::Threaded(threads) => drop(threads.commands.send(command)),
            Engine::Inline(_) => self.handle().submit(command),
        }
    }

    /// Waits for room on the way to the writer, for a call that carries this many bytes. Inline mode needs none: the caller
    /// does the work itself.
    async fn room(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let Engine::Threaded(threads) = &self.engine else { return None };
        // Nothing closes it while the store is there.
        let room = if bytes >= LARGE_BYTES { &threads.large_room } else { &threads.room };
        Arc::clone(room).acquire_many_owned(units(bytes)).await.ok()
    }

    /// How much of the room for small and for large calls is free, for tests.
    #[cfg(feature = "test-hooks")]
    #[doc(hidden)]
    pub fn free_room(&self) -> Option<[usize; 2]> {
        match &self.engine {
            Engine::Threaded(threads) => {
                Some([threads.room.available_permits(), threads.large_room.available_permits()])
            }
            Engine::Inline(_) => None,
        }
    }

    /// Runs a call in the writer's next transaction; returns when that is durable.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        about: About,
        body: impl FnMut(&mut Cx<'_>) -> Result<T> + Send + 'static,
    ) -> Answer<T> {
        self.write_then(about, body, |_| {}).await
    }

    /// The same; `then` runs when the call is durable, whether or not this future is still there.
    pub(crate) async fn write_then<T: Send + 'static>(
        &self,
        about: About,
        body: impl FnMut(&mut Cx<'_>) -> Result<T> + Send + 'static,
        then: impl FnOnce(&T) + Send + 'static,
    ) -> Answer<T> {
        let About { operation, instance, bytes } = about;
        let room = self.room(bytes).await;
        let (reply, answer) = oneshot::channel();
        let call = Body { operation, instance, bytes, body, then, outcome: None, reply, room };
        self.submit(Command::Call(Box::new(call)));
        Ok(answer.await.unwrap_or_else(|_| Err(SqliteError::Closed.classified(operation)))?)
    }

    /// Runs a read on a connection of its own, where there is one.
    pub(crate) async fn read_with<T: Send + 'static>(
        &self,
        operation: &'static str,
        mut body: impl FnMut(&Db) -> Result<T> + Send + 'static,
    ) -> Answer<T> {
        match &self.engine {
            Engine::Threaded(Threads { reads: Some(reads), read_room, .. }) => {
                // Nothing closes it while the store is there.
                let room = Arc::clone(read_room).acquire_owned().await.ok();
                let (reply, answer) = oneshot::channel();
                let job = move |db: Result<&Db>| {
                    let (read, health) = guarded(operation, || body(db?));
                    drop((reply.send(read), room));
                    health
                };
                if reads.send(Box::new(job)).is_err() {
                    return Err(SqliteError::Closed.during(operation));
                }
                let read = answer.await.unwrap_or(Err(SqliteError::Closed));
                read.map_err(|error| error.during(operation))
            }
            Engine::Threaded(_) => self.write(About::of(operation), move |cx| body(cx.db)).await,
            Engine::Inline(inline) => {
                inline.store().read(operation, body).map_err(|error| error.during(operation))
            }
        }
    }

    /// Runs a job beside everything else, on a connection that it opens itself.
    pub(crate) async fn apart<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let Engine::Threaded(threads) = &self.engine else { return guarded("maintenance", job).0 };
        let (reply, answer) = oneshot::channel();
        threads.run_apart(move || drop(reply.send(guarded("maintenance", job).0)))?;
        answer.await.unwrap_or(Err(SqliteError::Closed))
    }

    /// Runs a job on the writer's connection, between two transactions.
    pub(crate) async fn between<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Db) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let job = move |db: &Db| {
            let (done, health) = guarded("maintenance", || job(db));
            drop(reply.send(done));
            health
        };
        self.submit(Command::Between(Box::new(job)));
        answer.await.unwrap_or(Err(SqliteError::Closed))
    }

    /// Waits for what a fetch is given. A fetch that gives up while its answer is on the way hands it back.
    async fn wait<L: Leases>(
        &self,
        mut answer: oneshot::Receiver<std::result::Result<Option<Guarded<L>>, ClassifiedError>>,
        patience: Duration,
        operation: &'static str,
    ) -> Answer<Option<L>> {
        let answered = match &self.engine {
            _ if patience.is_zero() => Some(answer.await),
            Engine::Threaded(_) => tokio::time::timeout(patience, answer).await.ok(),
            Engine::Inline(inline) => self.wait_inline(inline, &mut answer, patience).await,
        };
        match answered {
            None => Ok(None),
            Some(Ok(given)) => Ok(given?.and_then(Guarded::take)),
            Some(Err(_)) => Err(SqliteError::Closed.during(operation)),
        }
    }

    /// Without a writer thread, the waiting task itself looks again when something becomes available.
    async fn wait_inline<T>(
        &self,
        inline: &Inline,
        answer: &mut oneshot::Receiver<T>,
        patience: Duration,
    ) -> Option<std::result::Result<T, oneshot::error::RecvError>> {
        let give_up_at = self.options.clock.now_ms().saturating_add(saturating_ms(patience));
        loop {
            let mut changed = pin!(inline.changed.notified());
            changed.as_mut().enable();
            let now = self.options.clock.now_ms();
            let wake_at = inline.store().wake_at().unwrap_or(u64::MAX);
            if wake_at <= now {
                inline.store().process(Vec::new(), true, &self.handle());
            }
            let pause = Duration::from_millis(wake_at.min(give_up_at).saturating_sub(now));
            let mut answered = pin!(&mut *answer);
            let news = poll_fn(|cx| match answered.as_mut().poll(cx) {
                Poll::Ready(given) => Poll::Ready(Some(given)),
                Poll::Pending => changed.as_mut().poll(cx).map(|()| None),
            });
            match tokio::time::timeout(pause, news).await {
                Ok(Some(given)) => return Some(given),
                Err(_) if self.options.clock.now_ms() >= give_up_at => return None,
                Ok(None) | Err(_) => {}
            }
        }
    }

    async fn fetch_raw(&self, request: &TurnRequest<'_>) -> Answer<Option<RawTurn>> {
        let (reply, answer) = oneshot::channel();
        let ask = TurnAsk {
            lock_ms: saturating_ms(request.lock_timeout),
            filter: request.filter.cloned(),
            with_history: request.with_history,
            orphan_life_ms: saturating_ms(self.options.orphan_life),
            bound: self.options.message_bound,
        };
        let parks = !request.poll_timeout.is_zero();
        let room = self.room(0).await;
        self.submit(Command::FetchTurn(Waiter { ask, parks, fresh: true, reply }, room));
        self.wait(answer, request.poll_timeout, "fetch_orchestration_item").await
    }

    async fn fetch_work(&self, request: &WorkRequest<'_>) -> Answer<Vec<FetchedWork>> {
        if *request.tag_filter == TagFilter::None || request.max_items == 0 {
            return Ok(Vec::new());
        }
        let (reply, answer) = oneshot::channel();
        let ask = WorkAsk {
            max_items: request.max_items,
            lock_ms: saturating_ms(request.lock_timeout),
            session: request.session.cloned(),
            tags: request.tag_filter.clone(),
        };
        let parks = !request.poll_timeout.is_zero();
        let room = self.room(0).await;
        self.submit(Command::FetchWork(Waiter { ask, parks, fresh: true, reply }, room));
        Ok(self.wait(answer, request.poll_timeout, "fetch_work_item").await?.unwrap_or_default())
    }
}

/// What a call is about: for its errors, and for the room that it takes.
pub(crate) struct About {
    operation: &'static str,
    instance: Option<Box<str>>,
    bytes: usize,
}

impl About {
    pub(crate) fn of(operation: &'static str) -> Self {
        Self { operation, instance: None, bytes: 0 }
    }

    pub(crate) fn instance(self, instance: &str) -> Self {
        Self { instance: Some(instance.into()), ..self }
    }

    /// With this many bytes on their way to the writer.
    pub(crate) fn bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }

    fn message(operation: &'static str, row: &MessageRow) -> Self {
        Self::of(operation).instance(&row.instance_id).bytes(row.work_item.len())
    }

    fn turn(operation: &'static str, token: &str) -> Self {
        match write::instance_of(token) {
            Some(instance) => Self::of(operation).instance(instance),
            None => Self::of(operation),
        }
    }
}

/// A job with what is left of its connection; a panic becomes an error.
fn guarded<T>(operation: &'static str, job: impl FnOnce() -> Result<T>) -> (Result<T>, Health) {
    match contain(job) {
        Some(done) => (done, Health::Good),
        None => {
            contain::report(operation, None);
            (Err(SqliteError::Panicked { operation, instance: None }), Health::Panicked)
        }
    }
}

/// Decodes what the writer left as text.
fn turn(raw: RawTurn) -> FetchedTurn {
    let history_loaded = raw.replay.is_some();
    let (texts, kv_snapshot) = raw.replay.unwrap_or_default();
    let decoded = rows::decode_history(&raw.instance, raw.execution_id, texts.iter().map(String::as_str));
    let (history, history_error) = match decoded {
        Ok(history) => (history, raw.damage),
        Err(reason) => (Vec::new(), Some(reason)),
    };
    FetchedTurn {
        item: OrchestrationItem {
            instance: raw.instance,
            orchestration_name: raw.orchestration_name,
            execution_id: raw.execution_id,
            version: raw.version,
            history,
            messages: raw.messages,
            history_error,
            kv_snapshot,
        },
        lock_token: raw.lock_token,
        attempt_count: raw.attempt_count,
        last_event_id: Some(raw.last_event_id),
        history_loaded,
        has_ended: Some(raw.has_ended),
        created_at_ms: raw.created_at,
        now_ms: Some(raw.now),
    }
}

#[async_trait]
impl Provider for SqliteProvider {
    fn name(&self) -> &str {
        "sqlite"
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
        let fetched = self.fetch_raw(&request).await?.map(turn);
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
        let plan = CommitPlan::of(commit)?;
        let ended = plan.ends_instance();
        let bytes = plan.bytes().saturating_add(write::bytes_to_delete(lock_token));
        let about = About::turn("ack_orchestration_item", lock_token).bytes(bytes);
        let token: Arc<str> = lock_token.into();
        let (watches, locked) = (self.watches(), Arc::clone(&token));
        let tell = move |_: &Option<u64>| {
            if watches.is_watched()
                && let Some(instance) = write::instance_of(&locked)
            {
                watches.committed(instance, ended);
            }
        };
        let commit = move |cx: &mut Cx<'_>| write::commit(cx, &token, &plan).map(|()| Some(cx.now));
        self.write_then(about, commit, tell).await
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Answer<()> {
        let token = lock_token.to_string();
        let about = About::turn("abandon_orchestration_item", lock_token);
        self.write(about, move |cx| write::abandon(cx, &token, delay, ignore_attempt)).await
    }

    async fn read(&self, instance: &str) -> Answer<Vec<Event>> {
        let instance = instance.to_string();
        self.read_with("read", move |db| history::read(db, &instance, None)).await
    }

    async fn read_with_execution(&self, instance: &str, execution_id: u64) -> Answer<Vec<Event>> {
        let instance = instance.to_string();
        self.read_with("read_with_execution", move |db| history::read(db, &instance, Some(execution_id)))
            .await
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
        let bytes = events.iter().map(|event| event.event_data.len()).sum();
        let about = About::of(APPEND).instance(instance).bytes(bytes);
        let instance: Arc<str> = instance.into();
        let (watches, appended) = (self.watches(), Arc::clone(&instance));
        let append = move |cx: &mut Cx<'_>| history::append(cx, &instance, execution_id, &events);
        self.write_then(about, append, move |()| watches.committed(&appended, false)).await
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Answer<()> {
        let row = activity_row("enqueue_for_worker", &item)?;
        let about = About::of("enqueue_for_worker").instance(&row.instance_id).bytes(row.work_item.len());
        self.write(about, move |cx| write::enqueue_work(cx, &row)).await
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Answer<Option<(WorkItem, String, u32)>> {
        let request = WorkRequest { max_items: 1, lock_timeout, poll_timeout, session, tag_filter };
        let fetched = self.fetch_work(&request).await?;
        Ok(fetched.into_iter().next().map(|work| (work.item, work.lock_token, work.attempt_count)))
    }

    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Answer<()> {
        const ACK: &str = "ack_work_item";
        let row = completion.as_ref().map(|item| completion_row(ACK, item)).transpose()?;
        let about = row.as_ref().map_or(About::of(ACK), |row| About::message(ACK, row));
        let token = token.to_string();
        self.write(about, move |cx| work::ack(cx, &token, row.as_ref())).await
    }

    async fn complete_with_turn(
        &self,
        token: &str,
        completion: WorkItem,
        mut turn: TurnAhead,
    ) -> Answer<Completion> {
        const ACK: &str = "ack_work_item";
        let row = completion_row(ACK, &completion)?;
        let plan = CommitPlan::of(std::mem::take(&mut turn.commit))?;
        let ended = plan.ends_instance();
        let (watches, instance) = (self.watches(), row.instance_id.clone());
        let tell = move |completed: &Completion| {
            if matches!(completed, Completion::WithTurn { .. }) {
                watches.committed(&instance, ended);
            }
        };
        let about = About::message(ACK, &row).bytes(row.work_item.len() + plan.bytes());
        let token = token.to_string();
        let complete = move |cx: &mut Cx<'_>| write::complete_with_turn(cx, &token, &row, &turn, &plan);
        self.write_then(about, complete, tell).await
    }

    async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Answer<()> {
        let token = token.to_string();
        self.write(About::of("renew_work_item_lock"), move |cx| work::renew(cx, &token, extend_for)).await
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
        // A name that comes twice is still one owner.
        let mut owners: Vec<String> = owner_ids.iter().map(ToString::to_string).collect();
        owners.sort_unstable();
        owners.dedup();
        let about = About::of("renew_session_lock");
        self.write(about, move |cx| session::renew(cx, &owners, extend_for, idle_timeout)).await
    }

    async fn cleanup_orphaned_sessions(&self, _idle_timeout: Duration) -> Answer<usize> {
        self.write(About::of("cleanup_orphaned_sessions"), session::cleanup).await
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Answer<()> {
        let token = token.to_string();
        let about = About::of("abandon_work_item");
        self.write(about, move |cx| work::abandon(cx, &token, delay, ignore_attempt)).await
    }

    async fn renew_orchestration_item_lock(&self, token: &str, extend_for: Duration) -> Answer<()> {
        let token = token.to_string();
        let about = About::turn("renew_orchestration_item_lock", &token);
        self.write(about, move |cx| write::renew(cx, &token, extend_for)).await
    }

    async fn enqueue_for_orchestrator(&self, item: WorkItem, delay: Option<Duration>) -> Answer<()> {
        let row = message_row("enqueue_for_orchestrator", &item)?;
        let about = About::message("enqueue_for_orchestrator", &row);
        self.write(about, move |cx| write::enqueue_message(cx, &row, delay)).await
    }

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Answer<Option<(Option<String>, u64)>> {
        let instance = instance.to_string();
        self.read_with("get_custom_status", move |db| {
            let seen = crate::db::column(last_seen_version);
            db.one(sql::CUSTOM_STATUS, (&instance, seen), |row| {
                Ok((row.get(0)?, crate::db::unsigned(row, 1)?))
            })
        })
        .await
    }

    async fn get_kv_value(&self, instance: &str, key: &str) -> Answer<Option<String>> {
        let (instance, key) = (instance.to_string(), key.to_string());
        self.read_with("get_kv_value", move |db| kv::value(db, &instance, &key)).await
    }

    async fn get_kv_all_values(&self, instance: &str) -> Answer<HashMap<String, String>> {
        let instance = instance.to_string();
        self.read_with("get_kv_all_values", move |db| kv::view(db, &instance)).await
    }

    async fn get_instance_stats(&self, instance: &str) -> Answer<Option<SystemStats>> {
        let instance = instance.to_string();
        self.read_with("get_instance_stats", move |db| history::stats(db, &instance)).await
    }

    async fn fetch_turn(&self, request: TurnRequest<'_>) -> Answer<Option<FetchedTurn>> {
        Ok(self.fetch_raw(&request).await?.map(turn))
    }

    async fn load_turn(&self, instance: &str, execution_id: u64) -> Answer<LoadedTurn> {
        let instance = instance.to_string();
        self.read_with("load_turn", move |db| history::load_turn(db, &instance, execution_id)).await
    }

    async fn load_turn_within(
        &self,
        instance: &str,
        execution_id: u64,
        bound: HistoryBound,
    ) -> Answer<BoundedTurn> {
        let instance = instance.to_string();
        let load = move |db: &Db| history::load_turn_within(db, &instance, execution_id, bound);
        self.read_with("load_turn", load).await
    }

    async fn fetch_work_items(&self, request: WorkRequest<'_>) -> Answer<Vec<FetchedWork>> {
        self.fetch_work(&request).await
    }

    async fn read_outcome(&self, instance: &str) -> Answer<Option<InstanceOutcome>> {
        let instance = instance.to_string();
        self.read_with("read_outcome", move |db| history::outcome(db, &instance)).await
    }

    async fn enqueue_within(&self, item: WorkItem, most_waiting: usize) -> Answer<bool> {
        let row = message_row("enqueue_within", &item)?;
        let about = About::message("enqueue_within", &row);
        self.write(about, move |cx| write::enqueue_within(cx, &row, most_waiting)).await
    }

    async fn start_orchestration(&self, request: StartRequest) -> Answer<StartOutcome> {
        const START: &str = "start_orchestration";
        request.checked_instance()?;
        let plan = StartPlan {
            start: message_row(START, &request.start)?,
            messages: request.messages.iter().map(|item| message_row(START, item)).collect::<Answer<_>>()?,
            delay: request.delay,
            policy: request.policy,
        };
        let bytes = plan.messages.iter().chain([&plan.start]).map(|row| row.work_item.len()).sum();
        let about = About::message(START, &plan.start).bytes(bytes);
        self.write(about, move |cx| start::start(cx, &plan)).await
    }

    fn watch_instance(&self, instance: &str, interest: Interest) -> Option<InstanceWatch> {
        Some(self.watches.watch(instance, interest))
    }
}

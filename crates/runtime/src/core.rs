//! The state that all tasks of a runtime share.

use crate::builtins::builtins;
use crate::dispatch::eager::EagerBackoff;
use crate::dispatch::further_slots::FurtherSlots;
use crate::dispatch::gather::Gathering;
use crate::dispatch::lease::{Kind, Leases};
use crate::dispatch::older_code::OlderCode;
use crate::dispatch::paused::PausedOrchestrations;
use crate::dispatch::permits::Permits;
use crate::dispatch::retries::Retries;
use crate::dispatch::run_ahead_backoff::RunAheadBackoff;
use crate::dispatch::running::RunningActivities;
use crate::dispatch::session::Sessions;
use crate::dispatch::start::Gate;
use crate::dispatch::store_time::StoreTime;
use crate::dispatch::unregistered_pause::UnregisteredPause;
use crate::dispatch::warm::WarmCache;
use crate::instrumented::InstrumentedProvider;
use crate::observability::MetricsProvider;
use crate::observer::CommitObserver;
use crate::options::RuntimeOptions;
use crate::registry::{ActivityRegistry, OrchestrationRegistry};
use crate::uncounted::{StoreId, UncountedCommits};
use outlast_model::limits::Limits;
use outlast_provider::{DispatcherCapabilityFilter, Provider, saturating_ms};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) struct Core {
    pub(crate) store: Arc<dyn Provider>,
    pub(crate) activities: ActivityRegistry,
    pub(crate) orchestrations: OrchestrationRegistry,
    pub(crate) options: RuntimeOptions,
    pub(crate) limits: Arc<Limits>,
    pub(crate) filter: DispatcherCapabilityFilter,
    pub(crate) metrics: Arc<MetricsProvider>,
    pub(crate) observer: Option<Arc<dyn CommitObserver>>,
    /// 128 random bits that identify this runtime.
    pub(crate) runtime_id: String,
    pub(crate) leases: Arc<Leases>,
    pub(crate) warm: WarmCache,
    pub(crate) run_ahead_backoff: RunAheadBackoff,
    /// Commits in progress whose turns the metrics do not count yet.
    pub(crate) uncounted: Arc<UncountedCommits>,
    pub(crate) retries: Retries,
    /// Permits for small commits in progress.
    small_commits: Arc<Semaphore>,
    /// Permits for large commits in progress. A store may delay large commits, and small commits do not wait behind them.
    large_commits: Arc<Semaphore>,
    turn_permits: Permits,
    activity_permits: Permits,
    turn_slots: FurtherSlots,
    activity_slots: FurtherSlots,
    /// The leased items that have not started.
    pub(crate) gate: Gate,
    /// The permit of the one turn that was delivered before and is not committed yet.
    pub(crate) redelivered_turn: Arc<Semaphore>,
    pub(crate) store_time: StoreTime,
    pub(crate) eager_backoff: EagerBackoff,
    /// `None` if the store does not commit several outcomes with a turn, or if this runtime runs no turns.
    pub(crate) gathering: Option<Arc<Gathering>>,
    pub(crate) paused: PausedOrchestrations,
    pub(crate) running: RunningActivities,
    pub(crate) sessions: Sessions,
    /// Whether a report of this node may be stored.
    pub(crate) has_announced: AtomicBool,
    /// Notified when a commit of this runtime has enqueued messages, for stores whose fetch does not wait.
    pub(crate) turns_waiting: Notify,
    /// Notified when a commit of this runtime has enqueued activities, for stores whose fetch does not wait.
    pub(crate) activities_waiting: Notify,
    pub(crate) turn_backoff: UnregisteredPause,
    pub(crate) older_code: OlderCode,
    pub(crate) activity_backoff: UnregisteredPause,
    /// The number of rejected commits in a row, by instance.
    pub(crate) refused: Mutex<BTreeMap<Arc<str>, u32>>,
    /// Slots fetch no more.
    pub(crate) stopping: CancellationToken,
    /// All slots have ended: helper tasks end.
    pub(crate) drained: CancellationToken,
    /// Slots and activities end at their next await.
    pub(crate) aborted: CancellationToken,
    /// Slots, the tasks of their commits, and the activities they run.
    pub(crate) slots: TaskTracker,
    /// Tasks that outlive the slots: renewals, sessions, gauges, the heartbeat.
    pub(crate) helpers: TaskTracker,
}

/// The most small commits in progress, and the most large ones, each under a lease.
const MAX_COMMITS: usize = 64;

/// A commit with this many bytes of payloads is large. A store delays calls of 1 MiB; JSON escapes and the second copy of an
/// output make a call several times as large as its payload.
const LARGE_COMMIT_BYTES: usize = 128 << 10;

impl Core {
    /// The state of a runtime that has started no task.
    pub(crate) fn new(
        store: Arc<dyn Provider>,
        activities: ActivityRegistry,
        orchestrations: OrchestrationRegistry,
        options: RuntimeOptions,
        metrics: Arc<MetricsProvider>,
    ) -> Self {
        let filter = match &options.supported_replay_versions {
            Some(range) => DispatcherCapabilityFilter { supported_duroxide_versions: vec![range.clone()] },
            None => DispatcherCapabilityFilter::default_for_current_build(),
        };
        let uncounted = UncountedCommits::of_runtime_on(StoreId::of(&store));
        let gathers = store.fuses_outcomes() && options.orchestration_concurrency > 0;
        let gathering = gathers.then(Arc::default);
        let store: Arc<dyn Provider> = Arc::new(InstrumentedProvider::new(store, Some(Arc::clone(&metrics))));
        let observer = options.observer.as_ref().map(|observe| observe.observer(Arc::clone(&store)));
        Self {
            store,
            observer,
            activities: activities
                .with_builtins(builtins(Arc::clone(&options.clock), Arc::clone(&options.entropy))),
            orchestrations,
            limits: Arc::new(options.limits.clone()),
            filter,
            metrics,
            runtime_id: format!("{:032x}", options.entropy.next_u128()),
            leases: Arc::new(Leases::default()),
            run_ahead_backoff: RunAheadBackoff::default(),
            uncounted,
            retries: Retries::default(),
            small_commits: Arc::new(Semaphore::new(MAX_COMMITS)),
            large_commits: Arc::new(Semaphore::new(MAX_COMMITS)),
            turn_permits: Permits::new(options.orchestration_concurrency),
            activity_permits: Permits::new(options.worker_concurrency),
            turn_slots: FurtherSlots::new(options.orchestration_concurrency, options.max_attempts),
            activity_slots: FurtherSlots::new(options.worker_concurrency, options.max_attempts),
            gate: Gate::default(),
            redelivered_turn: Arc::new(Semaphore::new(1)),
            warm: WarmCache::new(options.warm_executions, options.warm_bytes),
            store_time: StoreTime::default(),
            eager_backoff: EagerBackoff::default(),
            gathering,
            paused: PausedOrchestrations::default(),
            running: RunningActivities::default(),
            sessions: Sessions::new(options.max_sessions_per_runtime),
            has_announced: AtomicBool::new(false),
            turns_waiting: Notify::new(),
            activities_waiting: Notify::new(),
            turn_backoff: UnregisteredPause::default(),
            older_code: OlderCode::default(),
            activity_backoff: UnregisteredPause::default(),
            refused: Mutex::default(),
            stopping: CancellationToken::new(),
            drained: CancellationToken::new(),
            aborted: CancellationToken::new(),
            slots: TaskTracker::new(),
            helpers: TaskTracker::new(),
            options,
        }
    }

    /// Sets both concurrency options of a core without tasks.
    #[cfg(test)]
    pub(crate) fn set_concurrency(&mut self, permits: usize) {
        (self.turn_permits, self.activity_permits) = (Permits::new(permits), Permits::new(permits));
        (self.turn_slots, self.activity_slots) =
            (FurtherSlots::new(permits, 10), FurtherSlots::new(permits, 10));
    }

    /// The permits to run turns or activities.
    pub(crate) fn permits(&self, kind: Kind) -> &Permits {
        match kind {
            Kind::Turn => &self.turn_permits,
            Kind::Activity => &self.activity_permits,
        }
    }

    /// The slots that lease turns or activities.
    pub(crate) fn further_slots(&self, kind: Kind) -> &FurtherSlots {
        match kind {
            Kind::Turn => &self.turn_slots,
            Kind::Activity => &self.activity_slots,
        }
    }

    /// The permits for commits with this many bytes of payloads.
    pub(crate) fn commit_permits(&self, bytes: usize) -> Arc<Semaphore> {
        Arc::clone(if bytes < LARGE_COMMIT_BYTES { &self.small_commits } else { &self.large_commits })
    }

    /// Spawns a slot or the task of a commit, which ends when the runtime is aborted.
    pub(crate) fn spawn_slot(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.slots.spawn(until(self.aborted.clone(), self.paced(task)));
    }

    /// Spawns a task that the slots need until they have ended. The task ends with the slots, even while it waits for the store.
    pub(crate) fn spawn_helper(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.helpers.spawn(until(self.drained.clone(), self.paced(task)));
    }

    /// Runs a task that ends by itself when the runtime has drained, or when it is aborted.
    pub(crate) fn spawn_draining(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.helpers.spawn(until(self.aborted.clone(), self.paced(task)));
    }

    /// The task, polled only when the test's pulse allows it.
    #[cfg(feature = "test-hooks")]
    pub(crate) fn paced<F: Future + Send + 'static>(&self, task: F) -> crate::test_hooks::Paced<F::Output> {
        crate::test_hooks::Paced::new(self.options.pulse.clone(), task)
    }

    /// The task itself, without test hooks.
    #[cfg(not(feature = "test-hooks"))]
    pub(crate) fn paced<F: Future>(&self, task: F) -> F {
        task
    }

    /// Gives a leased turn or activity back. If the store returns an error, the lease expires and the store redelivers.
    pub(crate) async fn give_back(
        &self,
        kind: Kind,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) {
        let given = match kind {
            Kind::Turn => self.store.abandon_orchestration_item(token, delay, ignore_attempt).await,
            Kind::Activity => self.store.abandon_work_item(token, delay, ignore_attempt).await,
        };
        if let Err(error) = given {
            tracing::debug!(target: "duroxide::runtime", kind = kind.name(), %error, "could not give a lease back; it expires");
        }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.options.clock.now_ms()
    }

    /// The length of a lease, and the interval of its renewals.
    pub(crate) fn lease_times(&self, kind: Kind) -> (Duration, Duration) {
        match kind {
            Kind::Turn => (self.options.orchestrator_lock_timeout, self.options.turn_renewal_interval()),
            Kind::Activity => (self.options.worker_lock_timeout, self.options.activity_renewal_interval()),
        }
    }

    pub(crate) fn deadline_ms(&self, lease: Duration) -> u64 {
        self.now_ms().saturating_add(saturating_ms(lease))
    }

    /// The name of an activity slot, which activity contexts report.
    pub(crate) fn worker_id(&self, slot: usize) -> String {
        let node = self.options.worker_node_id.as_deref().unwrap_or(&self.runtime_id);
        format!("work-{slot}-{node}")
    }

    /// The id of this node in its reports: its name, or the first digits of its random id.
    pub(crate) fn node_id(&self) -> String {
        const DIGITS: usize = 12;
        let random = || self.runtime_id.chars().take(DIGITS).collect();
        self.options.worker_node_id.clone().unwrap_or_else(random)
    }

    /// The owner of the sessions of an activity slot: the node if it has a name, else the slot.
    pub(crate) fn session_owner(&self, slot: usize) -> String {
        self.options.worker_node_id.clone().unwrap_or_else(|| self.worker_id(slot))
    }
}

/// Runs a task until it ends or the token fires.
async fn until(end: CancellationToken, task: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        () = end.cancelled() => {}
        () = task => {}
    }
}

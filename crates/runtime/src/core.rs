//! What all tasks of a runtime share.

use crate::builtins::builtins;
use crate::dispatch::ahead::Crowded;
use crate::dispatch::aside::Aside;
use crate::dispatch::lease::{Kind, Leases};
use crate::dispatch::retries::Retries;
use crate::dispatch::running::Running;
use crate::dispatch::session::Sessions;
use crate::dispatch::warm::Warm;
use crate::instrumented::InstrumentedProvider;
use crate::observability::MetricsProvider;
use crate::options::RuntimeOptions;
use crate::registry::{ActivityRegistry, OrchestrationRegistry};
use crate::uncounted::{StoreId, Uncounted};
use outlast_model::limits::Limits;
use outlast_provider::{DispatcherCapabilityFilter, Provider, saturating_ms};
use std::collections::BTreeMap;
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
    /// 128 random bits: no two runtimes share one.
    pub(crate) runtime_id: String,
    pub(crate) leases: Arc<Leases>,
    pub(crate) warm: Warm,
    pub(crate) crowded: Crowded,
    /// Turns that the store may show and that are not counted yet.
    pub(crate) uncounted: Arc<Uncounted>,
    /// Which attempts of their policies activities are that this runtime has scheduled once more.
    pub(crate) retries: Retries,
    /// Permits for commits that are on their way.
    pub(crate) commits: Arc<Semaphore>,
    pub(crate) running: Running,
    pub(crate) sessions: Sessions,
    /// There may be work, for stores whose fetch does not wait.
    pub(crate) turns_waiting: Notify,
    pub(crate) work_waiting: Notify,
    /// When to leave work to nodes that know its handler.
    pub(crate) turns_aside: Aside,
    pub(crate) work_aside: Aside,
    /// Instances whose commits the store refuses, and how often in a row.
    pub(crate) refused: Mutex<BTreeMap<Arc<str>, u32>>,
    /// No more fetches.
    pub(crate) stopping: CancellationToken,
    /// All slots have ended: helpers may go too.
    pub(crate) drained: CancellationToken,
    /// Everything ends at its next await.
    pub(crate) aborted: CancellationToken,
    /// Slots, and the activities that they run.
    pub(crate) slots: TaskTracker,
    /// Everything else.
    pub(crate) helpers: TaskTracker,
}

/// How many commits are on their way at most, each with a lease.
const MOST_COMMITS: usize = 64;

impl Core {
    /// With nothing running yet.
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
        let uncounted = Uncounted::of_runtime_on(StoreId::of(&store));
        Self {
            store: Arc::new(InstrumentedProvider::new(store, Some(Arc::clone(&metrics)))),
            activities: activities
                .with_builtins(builtins(Arc::clone(&options.clock), Arc::clone(&options.entropy))),
            orchestrations,
            limits: Arc::new(options.limits.clone()),
            filter,
            metrics,
            runtime_id: format!("{:032x}", options.entropy.next_u128()),
            leases: Arc::new(Leases::default()),
            crowded: Crowded::default(),
            uncounted,
            retries: Retries::default(),
            commits: Arc::new(Semaphore::new(MOST_COMMITS)),
            warm: Warm::new(options.warm_executions, options.warm_bytes),
            running: Running::default(),
            sessions: Sessions::new(options.max_sessions_per_runtime),
            turns_waiting: Notify::new(),
            work_waiting: Notify::new(),
            turns_aside: Aside::default(),
            work_aside: Aside::default(),
            refused: Mutex::default(),
            stopping: CancellationToken::new(),
            drained: CancellationToken::new(),
            aborted: CancellationToken::new(),
            slots: TaskTracker::new(),
            helpers: TaskTracker::new(),
            options,
        }
    }

    /// Starts a slot.
    pub(crate) fn spawn_slot(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.slots.spawn(until(self.aborted.clone(), self.paced(task)));
    }

    /// Starts a task that outlives the slots, because they need it to finish.
    pub(crate) fn spawn_helper(&self, task: impl Future<Output = ()> + Send + 'static) {
        // A store that does not answer must not hold up the end: once the slots have ended, nobody needs the answer.
        self.helpers.spawn(until(self.drained.clone(), self.paced(task)));
    }

    /// The task, polled only when a test allows it.
    #[cfg(feature = "test-hooks")]
    pub(crate) fn paced<F: Future + Send + 'static>(&self, task: F) -> crate::test_hooks::Paced<F::Output> {
        crate::test_hooks::Paced::new(self.options.pulse.clone(), task)
    }

    /// The task itself: nobody but a test has a say in when it is polled.
    #[cfg(not(feature = "test-hooks"))]
    pub(crate) fn paced<F: Future>(&self, task: F) -> F {
        task
    }

    /// Gives leased work back. If that fails too, the lease runs out by itself.
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
            tracing::debug!(target: "duroxide::runtime", kind = kind.name(), %error, "could not give work back");
        }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.options.clock.now_ms()
    }

    /// How long a lease lasts, and how often it is renewed.
    pub(crate) fn lease_times(&self, kind: Kind) -> (Duration, Duration) {
        match kind {
            Kind::Turn => (self.options.orchestrator_lock_timeout, self.options.turn_renewal_interval()),
            Kind::Activity => (self.options.worker_lock_timeout, self.options.activity_renewal_interval()),
        }
    }

    pub(crate) fn deadline_ms(&self, lease: Duration) -> u64 {
        self.now_ms().saturating_add(saturating_ms(lease))
    }

    /// Who a worker slot is.
    pub(crate) fn worker_id(&self, slot: usize) -> String {
        let node = self.options.worker_node_id.as_deref().unwrap_or(&self.runtime_id);
        format!("work-{slot}-{node}")
    }

    /// Who owns the sessions of a worker slot.
    pub(crate) fn session_owner(&self, slot: usize) -> String {
        self.options.worker_node_id.clone().unwrap_or_else(|| self.worker_id(slot))
    }
}

async fn until(end: CancellationToken, task: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        () = end.cancelled() => {}
        () = task => {}
    }
}

//! Starting and stopping a runtime.

use crate::check::{Build, answer_and_exit};
use crate::core::Core;
use crate::dispatch::lease::renew_leases;
use crate::dispatch::park_instance::release_parked;
use crate::dispatch::session::manage_sessions;
use crate::dispatch::{ActivityQueue, TurnQueue, run_slots};
use crate::gauges::poll_gauges;
use crate::heartbeat;
use crate::local;
use crate::observability::{MetricsSnapshot, ObservabilityHandle};
use crate::options::{OnMisfit, RuntimeOptions};
use crate::registry::{ActivityRegistry, OrchestrationRegistry};
use crate::retention::apply_regularly;
use crate::uncounted::StoreId;
use outlast_model::{EventKind, WorkItem};
use outlast_provider::Provider;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Runs orchestrations and activities on a store. Several runtimes can share one store, in one process or in many.
///
/// Dropping a runtime does not stop it: its tasks run until [`Runtime::shutdown`], or until the tokio runtime that it was started on
/// ends.
pub struct Runtime {
    /// `None` after shutdown, which drops the store.
    core: Mutex<Option<Arc<Core>>>,
    observability: ObservabilityHandle,
    stopping: CancellationToken,
    aborted: CancellationToken,
    slots: TaskTracker,
    helpers: TaskTracker,
}

/// Name, version and parent of an instance's newest execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrchestrationDescriptor {
    /// Name of the orchestration.
    pub name: String,
    /// Version of the registered function.
    pub version: String,
    /// The parent, for children.
    pub parent_instance: Option<String>,
    /// The parent's scheduling event.
    pub parent_id: Option<u64>,
}

/// The name of a work item's variant in the contract's tools.
pub fn kind_of(msg: &WorkItem) -> &'static str {
    match msg {
        WorkItem::QueueMessage { .. } => "ExternalRaisedPersistent",
        other => other.kind_name(),
    }
}

impl Runtime {
    /// Starts a runtime on a store in memory.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    #[cfg(feature = "memory")]
    pub async fn start(
        activity_registry: ActivityRegistry,
        orchestration_registry: OrchestrationRegistry,
    ) -> Arc<Self> {
        let store = Arc::new(outlast_memory::MemoryProvider::new());
        Self::start_with_store(store, activity_registry, orchestration_registry).await
    }

    /// Starts a runtime with default options.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub async fn start_with_store(
        history_store: Arc<dyn Provider>,
        activity_registry: ActivityRegistry,
        orchestration_registry: OrchestrationRegistry,
    ) -> Arc<Self> {
        let options = RuntimeOptions::default();
        Self::start_with_options(history_store, activity_registry, orchestration_registry, options).await
    }

    /// Starts a runtime. [`Runtime::builder`] returns an error for invalid options instead of panicking.
    ///
    /// # Panics
    ///
    /// If `session_idle_timeout` is shorter than the interval at which activity leases are renewed, and outside of a tokio runtime.
    pub async fn start_with_options(
        history_store: Arc<dyn Provider>,
        activity_registry: ActivityRegistry,
        orchestration_registry: OrchestrationRegistry,
        options: RuntimeOptions,
    ) -> Arc<Self> {
        if let Some(problem) = options.session_idle_problem() {
            panic!("{problem}");
        }
        Self::launch(history_store, activity_registry, orchestration_registry, options).await
    }

    /// Starts a runtime whose options are valid: registers it for clients of this process, and starts its tasks.
    pub(crate) async fn launch(
        store: Arc<dyn Provider>,
        activities: ActivityRegistry,
        orchestrations: OrchestrationRegistry,
        options: RuntimeOptions,
    ) -> Arc<Self> {
        answer_and_exit(|| Some(Build::new(orchestrations.clone(), &options)));
        let observability = ObservabilityHandle::without_logging();
        let metrics = Arc::clone(observability.metrics_provider());
        metrics.export_poison();
        tracing::info!(
            target: "duroxide::runtime",
            "duroxide runtime ({}) starting with provider {} ({})",
            outlast_model::CONTRACT_VERSION, store.name(), store.version()
        );
        let store_id = StoreId::of(&store);
        let core = Arc::new(Core::new(store, activities, orchestrations, options, metrics));
        tracing::info!(
            target: "duroxide::runtime",
            supported_range = ?core.filter.supported_duroxide_versions,
            "capability filter: executions started under these versions of the contract are run"
        );
        Self::spawn(&core);
        local::register(store_id, &core);
        Arc::new(Self {
            stopping: core.stopping.clone(),
            aborted: core.aborted.clone(),
            slots: core.slots.clone(),
            helpers: core.helpers.clone(),
            core: Mutex::new(Some(core)),
            observability,
        })
    }

    fn spawn(core: &Arc<Core>) {
        run_slots(core, TurnQueue, core.options.orchestration_concurrency);
        run_slots(core, ActivityQueue, core.options.worker_concurrency);
        core.spawn_helper(renew_leases(Arc::clone(core)));
        core.spawn_helper(manage_sessions(Arc::clone(core)));
        core.spawn_helper(poll_gauges(Arc::clone(core)));
        if let Some(every) = core.options.node_heartbeat {
            // The heartbeat waits for a beat that is under way, because the removal of the report must not overtake it.
            core.spawn_draining(heartbeat::beat(Arc::clone(core), every));
        }
        if core.options.on_misfit == OnMisfit::Park {
            core.spawn_helper(release_parked(Arc::clone(core)));
        }
        if let Some(policy) = core.options.retention.clone().filter(|policy| policy.problem().is_none()) {
            core.spawn_helper(apply_regularly(Arc::clone(core), policy));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Core>>> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops the runtime, which fetches no more. Turns and activities may finish within the grace period (`None`: one second);
    /// those that still run are aborted and given back without counting a delivery. Returns when no task runs any more; code that
    /// does not yield delays the return. `Some(0)` aborts immediately and gives no lease back, like a crash.
    ///
    /// Cancellation safety: a dropped call can be repeated. Concurrent calls all wait; the shortest grace period applies.
    pub async fn shutdown(self: Arc<Self>, timeout_ms: Option<u64>) {
        let grace = Duration::from_millis(timeout_ms.unwrap_or(DEFAULT_GRACE_MS));
        self.stopping.cancel();
        self.slots.close();
        if grace.is_zero() {
            self.aborted.cancel();
        } else if tokio::time::timeout(grace, self.slots.wait()).await.is_err() {
            tracing::warn!(target: "duroxide::runtime", ?grace, "turns or activities did not finish in the grace period and are aborted");
            self.aborted.cancel();
        }
        self.slots.wait().await;
        let Some(core) = self.lock().clone() else { return };
        core.drained.cancel();
        self.helpers.close();
        self.helpers.wait().await;
        if !grace.is_zero() {
            heartbeat::remove(&core).await;
            let bound = grace.min(LONGEST_GIVE_BACK);
            if tokio::time::timeout(bound, give_back_dropped(&core)).await.is_err() {
                tracing::warn!(target: "duroxide::runtime", "leases were not given back in time; they expire");
            }
        }
        core.warm.clear();
        drop(core);
        drop(self.lock().take());
    }

    /// The counters; never `None`. A turn is counted when the store has answered its commit. A wait of a client in this process that
    /// shares the store object with the runtime returns after the turn is counted.
    pub fn metrics_snapshot(&self) -> Option<MetricsSnapshot> {
        Some(self.observability.metrics_snapshot())
    }

    /// The metrics of this runtime; never `None`.
    pub fn observability_handle(&self) -> Option<&ObservabilityHandle> {
        Some(&self.observability)
    }

    /// Name, version and parent of an instance's newest execution; `None` if there is no such instance, its history cannot be read,
    /// or the runtime was shut down.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn get_orchestration_descriptor(&self, instance: &str) -> Option<OrchestrationDescriptor> {
        let store = Arc::clone(&self.lock().as_ref()?.store);
        let history = store.read(instance).await.ok()?;
        history.into_iter().rev().find_map(|event| match event.kind {
            EventKind::OrchestrationStarted { name, version, parent_instance, parent_id, .. } => {
                Some(OrchestrationDescriptor { name, version, parent_instance, parent_id })
            }
            _ => None,
        })
    }
}

const DEFAULT_GRACE_MS: u64 = 1_000;
const LONGEST_GIVE_BACK: Duration = Duration::from_millis(250);

/// Gives back the leases of aborted turns and activities, so that the store redelivers them before the leases expire. The calls
/// run concurrently: the store can commit them in one transaction.
async fn give_back_dropped(core: &Arc<Core>) {
    let mut answers = JoinSet::new();
    for (kind, token) in core.leases.dropped() {
        let core = Arc::clone(core);
        answers.spawn(async move {
            core.give_back(kind, &token, None, true).await;
            core.leases.remove_dropped(&token);
        });
    }
    while answers.join_next().await.is_some() {}
}

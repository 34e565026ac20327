//! The state that all tasks of a world share: the plan, the store, random numbers, the trace, counts and recorded
//! observations.

use crate::backend::Backend;
use crate::bug::Bug;
use crate::call::Caller;
use crate::check::ClientAnswers;
use crate::clock::{EPOCH_MS, SkewedClock};
use crate::effects::Effects;
use crate::fault::Fault;
use crate::life::Lives;
use crate::performed::Performed;
use crate::plan::Plan;
use crate::tally::Tally;
use crate::trace::Trace;
use crate::world::Settings;
use outlast_conformance::TokioClock;
use outlast_provider::{Clock, Provider};
use outlast_runtime::registry::OrchestrationRegistry;
use outlast_testkit::rng::Rng;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

pub(crate) struct Shared {
    pub(crate) plan: Plan,
    /// The defect of this world, for tests of the simulator itself.
    pub(crate) bug: Option<Bug>,
    pub(crate) backend: Backend,
    /// Virtual time.
    pub(crate) true_clock: Arc<TokioClock>,
    /// The store's clock.
    pub(crate) clock: Arc<SkewedClock>,
    /// The newest orchestrations of the nodes, for the simulator's own replays.
    pub(crate) orchestrations: OrchestrationRegistry,
    /// The orchestrations of nodes of the older deployment.
    pub(crate) old_orchestrations: OrchestrationRegistry,
    /// Notified when a fault of a call crashes this node.
    pub(crate) kill: Vec<Notify>,
    nodes: Vec<Node>,
    /// The processes that local clients live in.
    pub(crate) lives: Lives,
    /// Disturbances of all nodes at once.
    disturbances: AtomicU64,
    healed: AtomicBool,
    healed_at_ms: AtomicU64,
    healing: Notify,
    /// Notified when an invariant is broken.
    pub(crate) failed: Notify,
    /// The world is being torn down; calls and failures no longer count.
    pub(crate) is_torn_down: AtomicBool,
    calls: AtomicU64,
    rng: Mutex<Rng>,
    trace: Mutex<Trace>,
    tally: Mutex<Tally>,
    performed: Mutex<Performed>,
    effects: Mutex<Effects>,
    client_answers: Mutex<ClientAnswers>,
    failures: Mutex<Vec<String>>,
}

/// The state of a node that other tasks read.
#[derive(Default)]
struct Node {
    /// Number of events at this node that excuse a lost lease.
    disturbances: AtomicU64,
    is_draining: AtomicBool,
}

/// Limit of calls to the store in one world. Virtual time does not advance in a loop that never waits; this limit ends
/// such a loop.
const MOST_CALLS: u64 = 100_000;

impl Shared {
    pub(crate) async fn new(plan: Plan, settings: &Settings) -> Arc<Self> {
        let bug = settings.bug;
        let true_clock = Arc::new(TokioClock::start_at(EPOCH_MS));
        let clock = SkewedClock::new(&true_clock, 0);
        let shared = Self {
            bug,
            backend: Backend::open(&plan, bug, &clock).await,
            true_clock,
            clock,
            orchestrations: crate::program::orchestrations(false),
            old_orchestrations: crate::program::orchestrations(true),
            kill: (0..plan.nodes).map(|_| Notify::new()).collect(),
            nodes: (0..plan.nodes).map(|_| Node::default()).collect(),
            lives: Lives::default(),
            disturbances: AtomicU64::new(0),
            healed: AtomicBool::new(false),
            healed_at_ms: AtomicU64::new(0),
            healing: Notify::new(),
            failed: Notify::new(),
            is_torn_down: AtomicBool::new(false),
            calls: AtomicU64::new(0),
            // Another label would draw another world from the same seed.
            rng: Mutex::new(Rng::stream(plan.seed, "dice")),
            trace: Mutex::new(Trace::new(settings.keep_lines)),
            tally: Mutex::default(),
            performed: Mutex::default(),
            effects: Mutex::default(),
            client_answers: Mutex::default(),
            failures: Mutex::default(),
            plan,
        };
        shared.backend.statements.arm(true);
        Arc::new(shared)
    }

    pub(crate) fn rng(&self) -> MutexGuard<'_, Rng> {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn trace(&self) -> MutexGuard<'_, Trace> {
        self.trace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The calls that the store performed, also those whose answer was lost.
    pub(crate) fn performed(&self) -> MutexGuard<'_, Performed> {
        self.performed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn effects(&self) -> MutexGuard<'_, Effects> {
        self.effects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn client_answers(&self) -> MutexGuard<'_, ClientAnswers> {
        self.client_answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn store(&self) -> &dyn Provider {
        self.backend.provider()
    }

    /// Virtual time since the world began.
    pub(crate) fn now_ms(&self) -> u64 {
        self.true_clock.now_ms().saturating_sub(EPOCH_MS)
    }

    pub(crate) fn note(&self, source: &str, text: &str) {
        if !self.is_torn_down.load(Relaxed) {
            self.trace().note(self.now_ms(), source, text);
        }
    }

    /// Records a broken invariant and ends the world. Later failures follow from the first.
    pub(crate) fn fail(&self, failure: String) {
        if self.is_torn_down.load(Relaxed) {
            return;
        }
        self.note("CHECK", &failure);
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
        self.failed.notify_one();
    }

    /// Records a failed check.
    pub(crate) fn require(&self, check: Result<(), String>) {
        if let Err(failure) = check {
            self.fail(failure);
        }
    }

    pub(crate) fn failures(&self) -> Vec<String> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the world has this defect.
    pub(crate) fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    /// Whether the world has this defect and it shows now: one time in ten.
    pub(crate) fn has_sometimes(&self, bug: Bug) -> bool {
        self.has(bug) && self.rng().per_mille(100)
    }

    pub(crate) fn has_faults(&self) -> bool {
        !self.healed.load(Relaxed)
    }

    /// Ends all faults.
    pub(crate) fn heal(&self) {
        self.note("WORLD", "healed");
        self.healed.store(true, Relaxed);
        self.healed_at_ms.store(self.now_ms(), Relaxed);
        self.backend.heal(self.plan.probe.is_some());
        self.healing.notify_waiters();
    }

    /// Waits for the end of all faults. A tokio `watch` would wake its receivers in random order.
    pub(crate) async fn healing(&self) {
        if self.has_faults() {
            self.healing.notified().await;
        }
    }

    /// When all faults ended.
    pub(crate) fn healed_at_ms(&self) -> u64 {
        self.healed_at_ms.load(Relaxed)
    }

    /// Whether a node with all handlers runs. Other nodes than the first may be of an older build.
    pub(crate) fn has_serving_node(&self) -> bool {
        let is_draining = |node: usize| self.nodes[node].is_draining.load(Relaxed);
        self.lives
            .nodes_up()
            .into_iter()
            .any(|node| !is_draining(node) && (node == 0 || !self.plan.old_builds))
    }

    /// Counts an event at a node that excuses the loss of its leases.
    pub(crate) fn disturb(&self, node: usize) {
        self.nodes[node].disturbances.fetch_add(1, Relaxed);
    }

    /// Counts such an event for all nodes.
    pub(crate) fn disturb_all(&self) {
        self.disturbances.fetch_add(1, Relaxed);
    }

    /// Number of disturbances of a node so far. Every failing statement disturbs all nodes.
    pub(crate) fn disturbances(&self, node: usize) -> u64 {
        let of_all_nodes = self.disturbances.load(Relaxed) + self.backend.fault_count();
        self.nodes[node].disturbances.load(Relaxed) + of_all_nodes
    }

    /// Sets whether a node is shutting down.
    pub(crate) fn drain(&self, node: usize, is_draining: bool) {
        self.nodes[node].is_draining.store(is_draining, Relaxed);
    }

    pub(crate) fn is_draining(&self, caller: &Caller) -> bool {
        caller.node.is_some_and(|node| self.is_draining_node(node))
    }

    pub(crate) fn is_draining_node(&self, node: usize) -> bool {
        self.nodes[node].is_draining.load(Relaxed)
    }

    /// Counts a call. Returns `true` if the world makes too many calls.
    pub(crate) fn is_runaway(&self) -> bool {
        self.calls.fetch_add(1, Relaxed) > MOST_CALLS
    }

    /// Draws the fault of the next call, if it has one.
    pub(crate) fn draw_fault(&self, op: &str, caller: &Caller) -> Option<Fault> {
        if let Some(probe) = &self.plan.probe {
            return probe.on_call(caller.node);
        }
        if !self.has_faults() {
            return None;
        }
        let mut rng = self.rng();
        let applies = |fault: Fault| fault.applies_to(op) && (caller.node.is_some() || !fault.is_crash());
        let call_fault_rates: Vec<(Fault, u64)> = self
            .plan
            .call_fault_rates
            .iter()
            .map(|(fault, rate)| (*fault, *rate))
            .filter(|(fault, _)| applies(*fault))
            .collect();
        // Faults are tried from a random position, so that no fault is always tried first.
        let first = rng.below(call_fault_rates.len() as u64);
        let rotated = call_fault_rates
            .iter()
            .cycle()
            .skip(usize::try_from(first).unwrap_or(0))
            .take(call_fault_rates.len());
        let mut drawn = rotated.filter(|(fault, rate)| rng.per_mille(rate * fault.weight(op)));
        drawn.next().map(|(fault, _)| *fault)
    }

    /// Draws the latency of a call without a fault, for one direction.
    pub(crate) fn draw_latency_ms(&self) -> u64 {
        match self.plan.latency_ms {
            0 => 0,
            most => self.rng().below(most + 1),
        }
    }

    /// Draws a stall longer than a lease.
    pub(crate) fn draw_stall_ms(&self) -> u64 {
        let lease = self.plan.lease_ms;
        self.rng().between(lease, 3 * lease)
    }
}

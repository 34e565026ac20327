//! What everybody in a world can reach: chance, the trace, the counts, and what must be true.

use crate::backend::Backend;
use crate::bug::Bug;
use crate::call::Caller;
use crate::check::Control;
use crate::clock::{EPOCH_MS, OffClock};
use crate::fault::Fault;
use crate::plan::Plan;
use crate::tally::Tally;
use crate::trace::Trace;
use crate::witness::{Effects, Witness};
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
    /// The defect that this world has, for tests of the simulator itself.
    pub(crate) bug: Option<Bug>,
    pub(crate) backend: Backend,
    /// Virtual time.
    pub(crate) truth: Arc<TokioClock>,
    /// What the store takes for the time.
    pub(crate) clock: Arc<OffClock>,
    /// The newest code that the nodes run, for replays of our own.
    pub(crate) orchestrations: OrchestrationRegistry,
    /// The same of nodes of the older deployment.
    pub(crate) old_orchestrations: OrchestrationRegistry,
    /// Somebody must kill this node now.
    pub(crate) kill: Vec<Notify>,
    nodes: Vec<Node>,
    /// Troubles of all nodes at once.
    troubles: AtomicU64,
    healed: AtomicBool,
    healing: Notify,
    /// A failure was found.
    pub(crate) failed: Notify,
    /// Nothing that happens now counts: the world is being torn down.
    pub(crate) over: AtomicBool,
    calls: AtomicU64,
    dice: Mutex<Rng>,
    trace: Mutex<Trace>,
    tally: Mutex<Tally>,
    witness: Mutex<Witness>,
    effects: Mutex<Effects>,
    control: Mutex<Control>,
    failures: Mutex<Vec<String>>,
}

/// What others know of a process.
#[derive(Default)]
struct Node {
    /// How often something happened to it that excuses a lost lease.
    troubles: AtomicU64,
    is_draining: AtomicBool,
}

/// Calls to the store in one world. Virtual time stands still in a loop that never waits; this ends it.
const MOST_CALLS: u64 = 100_000;

impl Shared {
    pub(crate) async fn new(plan: Plan, settings: &Settings) -> Arc<Self> {
        let bug = settings.bug;
        let truth = Arc::new(TokioClock::start_at(EPOCH_MS));
        let clock = OffClock::new(&truth, 0);
        let shared = Self {
            bug,
            backend: Backend::open(&plan, bug, &clock).await,
            truth,
            clock,
            orchestrations: crate::program::orchestrations(false),
            old_orchestrations: crate::program::orchestrations(true),
            kill: (0..plan.nodes).map(|_| Notify::new()).collect(),
            nodes: (0..plan.nodes).map(|_| Node::default()).collect(),
            troubles: AtomicU64::new(0),
            healed: AtomicBool::new(false),
            healing: Notify::new(),
            failed: Notify::new(),
            over: AtomicBool::new(false),
            calls: AtomicU64::new(0),
            dice: Mutex::new(Rng::stream(plan.seed, "dice")),
            trace: Mutex::new(Trace::new(settings.keep_lines)),
            tally: Mutex::default(),
            witness: Mutex::default(),
            effects: Mutex::default(),
            control: Mutex::default(),
            failures: Mutex::default(),
            plan,
        };
        shared.backend.statements.arm(true);
        Arc::new(shared)
    }

    pub(crate) fn dice(&self) -> MutexGuard<'_, Rng> {
        self.dice.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn trace(&self) -> MutexGuard<'_, Trace> {
        self.trace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn witness(&self) -> MutexGuard<'_, Witness> {
        self.witness.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn effects(&self) -> MutexGuard<'_, Effects> {
        self.effects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn store(&self) -> &dyn Provider {
        self.backend.provider()
    }

    /// Virtual time since the beginning of the world.
    pub(crate) fn now_ms(&self) -> u64 {
        self.truth.now_ms().saturating_sub(EPOCH_MS)
    }

    pub(crate) fn note(&self, who: &str, text: &str) {
        if !self.over.load(Relaxed) {
            self.trace().note(self.now_ms(), who, text);
        }
    }

    /// An invariant is broken. Only the first failure counts: the rest follows from it.
    pub(crate) fn fail(&self, failure: String) {
        if self.over.load(Relaxed) {
            return;
        }
        self.note("CHECK", &failure);
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
        self.failed.notify_one();
    }

    pub(crate) fn must(&self, hold: Result<(), String>) {
        if let Err(failure) = hold {
            self.fail(failure);
        }
    }

    pub(crate) fn failures(&self) -> Vec<String> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    /// The same, one time in ten.
    pub(crate) fn now_and_then_has(&self, bug: Bug) -> bool {
        self.has(bug) && self.dice().per_mille(100)
    }

    pub(crate) fn is_faulty(&self) -> bool {
        !self.healed.load(Relaxed)
    }

    /// From now on nothing goes wrong.
    pub(crate) fn heal(&self) {
        self.note("WORLD", "healed");
        self.healed.store(true, Relaxed);
        self.backend.statements.arm(self.plan.aim.is_some());
        self.healing.notify_waiters();
    }

    /// Waits for the end of the faults. Not with tokio's `watch`, which wakes its receivers in random order.
    pub(crate) async fn healing(&self) {
        if self.is_faulty() {
            self.healing.notified().await;
        }
    }

    /// Something happened to a node that excuses it if it loses its leases.
    pub(crate) fn trouble(&self, node: usize) {
        self.nodes[node].troubles.fetch_add(1, Relaxed);
    }

    /// The same for all of them.
    pub(crate) fn trouble_everybody(&self) {
        self.troubles.fetch_add(1, Relaxed);
    }

    pub(crate) fn troubles(&self, node: usize) -> u64 {
        let everybody = self.troubles.load(Relaxed) + self.backend.statements.count();
        self.nodes[node].troubles.load(Relaxed) + everybody
    }

    /// Whether a node is being asked to stop.
    pub(crate) fn drain(&self, node: usize, is_draining: bool) {
        self.nodes[node].is_draining.store(is_draining, Relaxed);
    }

    pub(crate) fn is_draining(&self, caller: &Caller) -> bool {
        caller.node.is_some_and(|node| self.nodes[node].is_draining.load(Relaxed))
    }

    /// Counts a call. Says whether there were too many.
    pub(crate) fn is_runaway(&self) -> bool {
        self.calls.fetch_add(1, Relaxed) > MOST_CALLS
    }

    /// The fault of the next call, if it has one.
    pub(crate) fn draw_fault(&self, op: &str, caller: &Caller) -> Option<Fault> {
        if let Some(aim) = &self.plan.aim {
            return aim.call(caller.node);
        }
        if !self.is_faulty() {
            return None;
        }
        let mut dice = self.dice();
        let applies = |fault: Fault| fault.applies_to(op) && (caller.node.is_some() || !fault.is_crash());
        let rates: Vec<(Fault, u64)> = self
            .plan
            .rates
            .iter()
            .map(|(fault, rate)| (*fault, *rate))
            .filter(|(fault, _)| applies(*fault))
            .collect();
        // None of them is always asked first.
        let first = dice.below(rates.len() as u64);
        let turned = rates.iter().cycle().skip(usize::try_from(first).unwrap_or(0)).take(rates.len());
        let mut drawn =
            turned.filter(|(fault, rate)| dice.per_mille(rate * crate::tally::weight(op, *fault)));
        drawn.next().map(|(fault, _)| *fault)
    }

    /// How long an ordinary call takes, each way.
    pub(crate) fn draw_latency_ms(&self) -> u64 {
        match self.plan.latency_ms {
            0 => 0,
            most => self.dice().below(most + 1),
        }
    }

    /// Longer than a lease.
    pub(crate) fn draw_stall_ms(&self) -> u64 {
        let lease = self.plan.lease_ms;
        self.dice().between(lease, 3 * lease)
    }
}

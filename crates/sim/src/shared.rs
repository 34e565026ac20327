//! What everybody in a world can reach: chance, the trace, the counts, and what must be true.

use crate::bug::Bug;
use crate::plan::{Fault, NODES, Plan};
use crate::program::Task;
use crate::rng::{Rng, Seeded};
use crate::tally::Tally;
use crate::trace::Trace;
use crate::witness::{Effects, Witness};
use crate::world::Settings;
use outlast_conformance::TokioClock;
use outlast_memory::{MemoryProvider, Rules};
use outlast_provider::Clock;
use outlast_runtime::ActivityContext;
use outlast_runtime::registry::OrchestrationRegistry;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

pub(crate) struct Shared {
    pub(crate) plan: Plan,
    /// The defect that this world has, for tests of the simulator itself.
    pub(crate) bug: Option<Bug>,
    pub(crate) store: Arc<MemoryProvider>,
    pub(crate) clock: Arc<TokioClock>,
    /// The same code that the nodes run, for replays of our own.
    pub(crate) orchestrations: OrchestrationRegistry,
    /// Somebody must kill this node now.
    pub(crate) kill: [Notify; NODES],
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
    failures: Mutex<Vec<String>>,
}

/// When worlds begin.
const EPOCH_MS: u64 = 1_700_000_000_000;
/// Calls to the store in one world. Virtual time stands still in a loop that never waits; this ends it.
const MOST_CALLS: u64 = 100_000;

impl Shared {
    pub(crate) fn new(plan: Plan, settings: Settings) -> Arc<Self> {
        let bug = settings.bug;
        let clock = Arc::new(TokioClock::start_at(EPOCH_MS));
        let rules = Rules { defect: bug.and_then(Bug::defect) };
        let store_clock: Arc<dyn Clock> = Arc::<TokioClock>::clone(&clock);
        let entropy = Arc::new(Seeded::new(plan.seed, "store"));
        Arc::new(Self {
            bug,
            store: Arc::new(MemoryProvider::with_parts(store_clock, entropy, rules)),
            clock,
            orchestrations: crate::program::orchestrations(),
            kill: Default::default(),
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
            failures: Mutex::default(),
            plan,
        })
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

    /// Virtual time since the beginning of the world.
    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.now_ms().saturating_sub(EPOCH_MS)
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

    pub(crate) fn failures(&self) -> Vec<String> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    pub(crate) fn is_faulty(&self) -> bool {
        !self.healed.load(Relaxed)
    }

    /// From now on nothing goes wrong.
    pub(crate) fn heal(&self) {
        self.note("WORLD", "healed");
        self.healed.store(true, Relaxed);
        self.healing.notify_waiters();
    }

    /// Waits for the end of the faults. Not with tokio's `watch`, which wakes its receivers in random order.
    pub(crate) async fn healing(&self) {
        if self.is_faulty() {
            self.healing.notified().await;
        }
    }

    /// Counts a call. Says whether there were too many.
    pub(crate) fn is_runaway(&self) -> bool {
        self.calls.fetch_add(1, Relaxed) > MOST_CALLS
    }

    /// The fault of the next call, if it has one.
    pub(crate) fn draw_fault(&self) -> Option<Fault> {
        if !self.is_faulty() {
            return None;
        }
        let mut dice = self.dice();
        let drawn = self.plan.rates.iter().find(|(_, rate)| dice.per_mille(**rate));
        drawn.map(|(fault, _)| *fault)
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

impl Effects {
    /// An activity's body begins. Says how often it did so far, this time included.
    pub(crate) fn ran(&mut self, context: &ActivityContext, task: &Task) -> u64 {
        self.began(context.idempotency_key());
        self.count(context.instance_id(), context.execution_id(), task.id)
    }
}

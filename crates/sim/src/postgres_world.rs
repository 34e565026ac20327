//! A PostgreSQL store that all processes of a world share: the shipped scheduler, lanes and listener of each process, on a model of the
//! server. The rows of the model are those of the memory store.

use crate::clock::SkewedClock;
use crate::fault::Fault;
use crate::plan::Plan;
use outlast_memory::MemoryProvider;
use outlast_postgres::{
    Faults, LinkFault, LinkFaults, ModelledServer, ModelledStore, ProviderConfig, ServerRows, Step,
};
use outlast_provider::{Clock, Provider};
use outlast_testkit::counts::Counts;
use outlast_testkit::entropy::SeededEntropy;
use outlast_testkit::rng::Rng;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// The faults of connections, with their usual rate in thousandths of the transactions, or of the notifications.
pub(crate) const LINK_FAULTS: &[(Fault, u64)] = &[
    (Fault::LinkUnreachable, 10),
    (Fault::LinkConflict, 20),
    (Fault::LinkLostBefore, 10),
    (Fault::LinkLostAfter, 15),
    (Fault::ListenerLost, 15),
];

pub(crate) struct PostgresWorld {
    seed: u64,
    config: ProviderConfig,
    rows: Arc<MemoryProvider>,
    server: Arc<ModelledServer>,
    /// The store of clients and operators.
    outside: Arc<ModelledStore>,
    links: Arc<Links>,
}

/// The rows of the server, on its clock.
struct Rows {
    store: Arc<MemoryProvider>,
    clock: Arc<SkewedClock>,
}

impl ServerRows for Rows {
    fn store(&self) -> &dyn Provider {
        self.store.as_ref()
    }

    fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    fn next_due_ms(&self) -> Option<u64> {
        self.store.next_due_ms()
    }

    fn has_due_messages(&self, instance: &str) -> bool {
        self.store.has_visible_messages(instance)
    }
}

impl PostgresWorld {
    #[allow(clippy::expect_used, reason = "without a store no world can begin")]
    pub(crate) fn open(plan: &Plan, clock: &Arc<SkewedClock>) -> Self {
        let shared_clock: Arc<dyn Clock> = Arc::<SkewedClock>::clone(clock);
        let entropy = Arc::new(SeededEntropy::new(plan.seed, "store"));
        let store = Arc::new(MemoryProvider::with_parts(shared_clock, entropy));
        let rows = Rows { store: Arc::clone(&store), clock: Arc::clone(clock) };
        let links = Arc::new(Links::of(plan));
        let faults: Arc<dyn LinkFaults> = Arc::<Links>::clone(&links);
        let server = ModelledServer::new(Arc::new(rows), faults);
        let mut config = ProviderConfig::url("postgres://localhost/modelled?sslmode=disable");
        config.pool_size = Some(10);
        let mut rng = Rng::stream(plan.seed, "postgres options");
        config.lanes = rng.pick(&[1, 1, 2, 3]);
        config.poll_interval = plan.foreign_poll;
        config.idle_poll_interval = plan.idle_poll();
        let asked = Arc::clone(&links);
        config.faults = Some(Faults::new(move |step, _| {
            if step == Step::Take {
                asked.lane_asks();
            }
        }));
        let open = |process| open(&config, &server, plan.seed, process);
        let outside = Arc::new(open("outside").expect("a modelled store opens"));
        Self { seed: plan.seed, config, rows: store, server, outside, links }
    }

    pub(crate) fn outside(&self) -> Arc<dyn Provider> {
        Arc::<ModelledStore>::clone(&self.outside)
    }

    /// The rows of the server.
    pub(crate) fn rows(&self) -> &MemoryProvider {
        &self.rows
    }

    pub(crate) fn links(&self) -> &Links {
        &self.links
    }

    /// Opens the store for a process.
    pub(crate) fn open_for(&self, process: &str) -> Result<Arc<dyn Provider>, String> {
        let opened = open(&self.config, &self.server, self.seed, process);
        Ok(Arc::new(opened.map_err(|error| error.to_string())?))
    }
}

fn open(
    config: &ProviderConfig,
    server: &Arc<ModelledServer>,
    seed: u64,
    process: &str,
) -> Result<ModelledStore, outlast_postgres::PostgresError> {
    // Two processes must not draw the same tokens.
    let mut config = config.clone();
    config.entropy = Arc::new(SeededEntropy::new(seed, &format!("store of {process}")));
    ModelledStore::open(config, server)
}

/// The connections of all processes, with their faults while the world has faults.
pub(crate) struct Links {
    rates: BTreeMap<Fault, u64>,
    longest_delay_ms: u64,
    has_faults: AtomicBool,
    /// How often lanes have asked for a transaction.
    asked: AtomicU64,
    runaway: Notify,
    state: Mutex<LinkState>,
}

/// Limit of the questions of all lanes in one world. Virtual time does not advance while a lane asks again and again; this limit ends such a
/// world.
const MOST_QUESTIONS: u64 = 500_000;

struct LinkState {
    rng: Rng,
    happened: Counts<Fault>,
}

impl Links {
    fn of(plan: &Plan) -> Self {
        let state = LinkState { rng: Rng::stream(plan.seed, "links"), happened: Counts::default() };
        Self {
            rates: plan.link_fault_rates.clone(),
            // Short beside a lease, which a renewal in time must keep.
            longest_delay_ms: Rng::stream(plan.seed, "link delays").pick(&[0, 5, 10, 15]),
            has_faults: AtomicBool::new(true),
            asked: AtomicU64::new(0),
            runaway: Notify::new(),
            state: Mutex::new(state),
        }
    }

    fn state(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lane_asks(&self) {
        if self.asked.fetch_add(1, Relaxed) == MOST_QUESTIONS {
            self.runaway.notify_one();
        }
    }

    /// Waits until a lane asks for transactions without end.
    pub(crate) async fn runaway(&self) {
        self.runaway.notified().await;
    }

    pub(crate) fn heal(&self) {
        self.has_faults.store(false, Relaxed);
    }

    /// Whether a call that returned an error may have been committed.
    pub(crate) fn may_hide_commits(&self) -> bool {
        !self.rates.is_empty()
    }

    pub(crate) fn happened(&self) -> Counts<Fault> {
        self.state().happened.clone()
    }

    pub(crate) fn count(&self) -> u64 {
        self.state().happened.total()
    }

    /// Draws one of these faults.
    fn draw(&self, faults: &[Fault]) -> Option<Fault> {
        if !self.has_faults.load(Relaxed) {
            return None;
        }
        let mut state = self.state();
        let mut drawn = faults.iter().copied();
        let fault = drawn.find(|fault| {
            let rate = self.rates.get(fault).copied().unwrap_or(0);
            rate > 0 && state.rng.per_mille(rate)
        })?;
        state.happened.increment(fault);
        Some(fault)
    }
}

impl LinkFaults for Links {
    fn delay(&self) -> Duration {
        match self.longest_delay_ms {
            0 => Duration::ZERO,
            most => Duration::from_millis(self.state().rng.below(most + 1)),
        }
    }

    fn of_transaction(&self) -> Option<LinkFault> {
        let of_transactions =
            [Fault::LinkUnreachable, Fault::LinkConflict, Fault::LinkLostBefore, Fault::LinkLostAfter];
        Some(match self.draw(&of_transactions)? {
            Fault::LinkUnreachable => LinkFault::Unreachable,
            Fault::LinkConflict => LinkFault::Conflict,
            Fault::LinkLostBefore => LinkFault::LostBefore,
            _ => LinkFault::LostAfter,
        })
    }

    fn loses_listener(&self) -> bool {
        self.draw(&[Fault::ListenerLost]).is_some()
    }

    fn choose(&self, count: usize) -> usize {
        self.state().rng.index(count)
    }
}

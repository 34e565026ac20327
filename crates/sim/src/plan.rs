//! What a seed decides before its world begins: which faults, how often, how the nodes are set up, what is started.

use crate::fault::Fault;
use crate::program::{self, act::root};
use crate::sweep::{self, Aim};
use crate::world::Cut;
use outlast_provider::{Clock, TagFilter};
use outlast_runtime::{RuntimeOptions, UnregisteredBackoffConfig};
use outlast_testkit::entropy::SeededEntropy;
use outlast_testkit::rng::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Which store a world has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreKind {
    Memory,
    /// In memory.
    Sqlite,
    SqliteFile,
    /// In memory, with the memory store beside it.
    SqliteMirrored,
}

pub(crate) use crate::program::act::{Act, Root};

pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) store: StoreKind,
    /// How many processes there are.
    pub(crate) nodes: usize,
    /// Call faults that this world has, with their rates in thousandths.
    pub(crate) rates: BTreeMap<Fault, u64>,
    /// Longest ordinary latency of a call.
    pub(crate) latency_ms: u64,
    /// Faulty statements, in ten thousandths.
    pub(crate) statement_faults: u64,
    /// Mean times between such events in one process; none of those that are not here.
    pub(crate) every_ms: BTreeMap<Fault, u64>,
    /// Longest time that a process stays down. When it is long, nobody takes over what the other one stalls on; when it
    /// is endless, a dead process stays dead until the world is healed.
    pub(crate) downtime_ms: u64,
    pub(crate) loses_wake_ups: bool,
    /// Whether clocks of processes differ from the store's.
    pub(crate) skewed: bool,
    /// Whether all processes but the first are of an older build.
    pub(crate) old_builds: bool,
    /// How long faults go on.
    pub(crate) safety_ms: u64,
    pub(crate) lease_ms: u64,
    /// Few deliveries make poison, which a world with crashes must then tolerate.
    pub(crate) max_attempts: u32,
    /// Messages for instances that nobody ever starts, with their times.
    pub(crate) strays: Vec<u64>,
    pub(crate) roots: Vec<Root>,
    /// One fault at one moment instead of all the others, in a sweep.
    pub(crate) aim: Option<Arc<Aim>>,
}

/// Enough that no number of crashes reaches it.
pub(crate) const NEVER_POISON: u32 = 100_000;

/// A process stays dead until the world is healed.
pub(crate) const FOR_EVER: u64 = u64::MAX;

impl Plan {
    pub(crate) fn of(seed: u64) -> Self {
        let mut rng = Rng::stream(seed, "plan");
        let intensity = rng.between(1, 3);
        // Swarm testing: a random half of the faults at a time reaches states that all of them together hide.
        let mut rates = BTreeMap::new();
        for (fault, rate) in Fault::OF_CALLS {
            if rng.per_mille(450) {
                rates.insert(*fault, rate * intensity);
            }
        }
        // A world without a lost lease or a commit in doubt proves nothing.
        if !rates.keys().any(|fault| fault.hides_the_answer()) {
            rates.insert(Fault::LostAnswer, 30);
        }
        let mut every_ms = BTreeMap::new();
        for (fault, chances, low, high) in [
            (Fault::Crash, 400, 1_000, 6_000),
            (Fault::Shutdown, 400, 2_000, 10_000),
            (Fault::CrashAtPoll, 300, 1_000, 5_000),
            (Fault::Stalled, 250, 4_000, 20_000),
            (Fault::ClockJump, 200, 3_000, 10_000),
            (Fault::StoreClockJump, 150, 5_000, 20_000),
        ] {
            let mean = rng.between(low, high);
            if rng.per_mille(chances) {
                every_ms.insert(fault, mean);
            }
        }
        let safety_ms = rng.between(10_000, 30_000);
        let store = match rng.below(10) {
            0..=5 => StoreKind::Memory,
            6..=7 => StoreKind::Sqlite,
            8 => StoreKind::SqliteMirrored,
            _ => StoreKind::SqliteFile,
        };
        let statement_faults = rng.pick(&[0, 10, 40]);
        Self {
            seed,
            store,
            nodes: rng.pick(&[1, 2, 2, 2, 3, 4]),
            rates,
            latency_ms: if rng.per_mille(600) { rng.between(1, 20) } else { 0 },
            statement_faults: match store {
                StoreKind::Sqlite | StoreKind::SqliteFile => statement_faults,
                StoreKind::Memory | StoreKind::SqliteMirrored => 0,
            },
            every_ms,
            downtime_ms: rng.pick(&[500, 2_000, 15_000, FOR_EVER]),
            loses_wake_ups: rng.per_mille(300),
            skewed: rng.per_mille(400),
            old_builds: rng.per_mille(200),
            safety_ms,
            lease_ms: rng.pick(&[300, 1_000, 2_000, 5_000]),
            max_attempts: if rng.per_mille(150) { 10 } else { NEVER_POISON },
            strays: (0..rng.below(3)).map(|_| rng.below(safety_ms)).collect(),
            roots: (0..rng.between(3, 6)).map(|nth| root(&mut rng, nth, safety_ms)).collect(),
            aim: None,
        }
    }

    /// The same with less in it.
    pub(crate) fn without(mut self, cut: &Cut) -> Self {
        self.rates.retain(|fault, _| !cut.faults.contains(fault));
        self.every_ms.retain(|fault, _| !cut.faults.contains(fault));
        if cut.faults.contains(&Fault::Statement) {
            self.statement_faults = 0;
        }
        self.loses_wake_ups &= !cut.faults.contains(&Fault::LostWakeUp);
        self.old_builds &= !cut.faults.contains(&Fault::OldBuild);
        self.roots.retain(|root| !cut.roots.contains(&root.instance));
        self
    }

    /// Everything that goes wrong here.
    pub(crate) fn faults(&self) -> Vec<Fault> {
        let mut all: Vec<Fault> = self.rates.keys().chain(self.every_ms.keys()).copied().collect();
        all.extend((self.statement_faults > 0).then_some(Fault::Statement));
        all.extend(self.loses_wake_ups.then_some(Fault::LostWakeUp));
        all.extend(self.old_builds.then_some(Fault::OldBuild));
        all
    }

    /// The same for people.
    pub(crate) fn describe(&self) -> String {
        let rates = self.rates.iter().map(|(fault, rate)| format!("{} {rate}/1000", fault.name()));
        let every = self.every_ms.iter().map(|(fault, mean)| format!("{} every {mean} ms", fault.name()));
        let faults: Vec<String> = rates.chain(every).collect();
        format!(
            "{:?}, {} nodes, faults: [{}], statements {}/10000, latency <= {} ms, lease {} ms, {} roots, attempts {}",
            self.store,
            self.nodes,
            faults.join(", "),
            self.statement_faults,
            self.latency_ms,
            self.lease_ms,
            self.roots.len(),
            self.max_attempts
        )
    }

    /// Whether so many deliveries can happen here that something is given up as poison.
    pub(crate) fn may_poison(&self) -> bool {
        self.max_attempts < NEVER_POISON
    }

    /// How far the clock of a process is off when it begins.
    pub(crate) fn skew_ms(&self, node: usize) -> i64 {
        let mut rng = Rng::stream(self.seed, &format!("skew {node}"));
        let most = i64::try_from(self.lease_ms).unwrap_or(0);
        let off = i64::try_from(rng.below(2 * self.lease_ms)).unwrap_or(0) - most;
        if self.skewed { off } else { 0 }
    }

    /// How a node runs. Each life of it draws its own.
    pub(crate) fn options(&self, node: usize, life: u64, clock: Arc<dyn Clock>) -> RuntimeOptions {
        let label = format!("node {node} life {life}");
        let mut rng = Rng::stream(self.seed, &label);
        let lease = Duration::from_millis(self.lease_ms);
        let options = RuntimeOptions {
            dispatcher_long_poll_timeout: Duration::from_millis(rng.pick(&[100, 2_000, 30_000])),
            orchestration_concurrency: rng.pick(&[1, 1, 2, 3]),
            worker_concurrency: rng.pick(&[1, 1, 2, 3]),
            orchestrator_lock_timeout: lease,
            orchestrator_lock_renewal_buffer: lease / 4,
            worker_lock_timeout: lease,
            worker_lock_renewal_buffer: lease / 4,
            max_attempts: self.max_attempts,
            activity_cancellation_grace_period: Duration::from_millis(rng.pick(&[0, 200, 2_000])),
            session_lock_timeout: lease,
            session_lock_renewal_buffer: lease / 4,
            session_idle_timeout: lease * 3,
            session_cleanup_interval: Duration::from_secs(7),
            max_sessions_per_runtime: rng.pick(&[1, 10]),
            worker_node_id: rng.per_mille(500).then(|| format!("node-{node}")),
            warm_executions: rng.pick(&[0, 1, 10_000, 10_000]),
            worker_tag_filter: TagFilter::default_and(program::TAGS.iter().copied()),
            codec: program::codec(self.seed),
            unregistered_backoff: soon(),
            clock,
            entropy: Arc::new(SeededEntropy::new(self.seed, &label)),
            ..RuntimeOptions::default()
        };
        if self.aim.is_some() { sweep::settled(options) } else { options }
    }
}

/// How long work waits whose code a node does not know. Worlds are short.
fn soon() -> UnregisteredBackoffConfig {
    UnregisteredBackoffConfig { base_delay: Duration::from_millis(100), max_delay: Duration::from_secs(2) }
}

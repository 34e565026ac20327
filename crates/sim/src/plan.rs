//! The plan that a seed draws before its world begins: the faults and their rates, the options of the nodes, the roots.

use crate::fault::Fault;
use crate::postgres_world::LINK_FAULTS;
use crate::program::{self, action::root};
use crate::sweep::{self, SweepProbe};
use crate::world::Cut;
use outlast_provider::{Clock, TagFilter};
use outlast_runtime::{RuntimeOptions, UnregisteredBackoffConfig};
use outlast_testkit::entropy::SeededEntropy;
use outlast_testkit::rng::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// The store of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreKind {
    Memory,
    /// In memory; only in sweeps.
    Sqlite,
    /// A file, which every process opens for itself.
    SqliteFile,
    /// In memory; the memory store receives the same calls and must give the same answers.
    SqliteMirrored,
    /// The shipped scheduler of each process, on a model of the server.
    Postgres,
}

impl StoreKind {
    /// The name in the figures.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sqlite => "SQLite in memory",
            Self::SqliteFile => "SQLite file",
            Self::SqliteMirrored => "SQLite mirrored",
            Self::Postgres => "PostgreSQL scheduler",
        }
    }
}

pub(crate) use crate::program::action::{Action, Root};

pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) store: StoreKind,
    /// Number of nodes.
    pub(crate) nodes: usize,
    /// Faults of single calls that this world has, with their rates in thousandths.
    pub(crate) call_fault_rates: BTreeMap<Fault, u64>,
    /// Longest latency of a call without a fault.
    pub(crate) latency_ms: u64,
    /// The interval at which a process looks for commits of other processes.
    pub(crate) foreign_poll: Duration,
    /// Whether fetches wait in a mirrored store. A waiting fetch that finds only messages without an instance delays them, and the
    /// memory store does not know when: such a world has no such messages.
    pub(crate) mirror_waits: bool,
    /// Rate of failing statements, in ten thousandths.
    pub(crate) statement_faults: u64,
    /// Faults of connections to the PostgreSQL server, with their rates in thousandths.
    pub(crate) link_fault_rates: BTreeMap<Fault, u64>,
    /// Mean time between two faults of this kind in one node. A fault that is missing here does not happen.
    pub(crate) process_fault_means_ms: BTreeMap<Fault, u64>,
    /// Whether calls that write wait until a busy file is free, as for a process that holds the lock for less than a minute. Otherwise the
    /// store refuses them at once, as it does after a minute.
    pub(crate) waits_for_lock: bool,
    /// Longest time that a node stays down. With a long downtime, often no other node is up to take over from a stalled node. With
    /// [`UNTIL_HEALED`] a crashed node stays down until the world is healed.
    pub(crate) downtime_ms: u64,
    pub(crate) loses_wake_ups: bool,
    /// Whether the clocks of nodes differ from the store's clock.
    pub(crate) skewed: bool,
    /// Whether all nodes but the first run an older build.
    pub(crate) old_builds: bool,
    /// The roots that broken builds do not fit, and park. A world without such roots has no broken build.
    pub(crate) misfits: BTreeSet<String>,
    /// Whether the leases of a crashed node end at once.
    pub(crate) takes_over: bool,
    /// The time for which faults happen.
    pub(crate) safety_ms: u64,
    pub(crate) lease_ms: u64,
    /// The poison limit. With a low limit, crashes can poison an instance, and the checks allow that.
    pub(crate) max_attempts: u32,
    /// Times at which messages are sent to instances that are never started.
    pub(crate) stray_times_ms: Vec<u64>,
    /// Whether most roots are started by local clients. Such a client starts an instance with its first turn where it can.
    pub(crate) has_local_clients: bool,
    /// Whether activities take no time, and nodes have workers for all activities of a fan-out: their outcomes return together.
    pub(crate) has_quick_work: bool,
    pub(crate) roots: Vec<Root>,
    /// When an operator pauses all orchestrations, and for how long.
    pub(crate) pause: Option<(u64, u64)>,
    /// In a sweep: the one fault of this run, in place of all other faults.
    pub(crate) probe: Option<Arc<SweepProbe>>,
}

/// A poison limit that no number of crashes reaches.
pub(crate) const NEVER_POISON: u32 = 100_000;

/// A node stays down until the world is healed.
pub(crate) const UNTIL_HEALED: u64 = u64::MAX;

impl Plan {
    pub(crate) fn of(seed: u64) -> Self {
        let mut rng = Rng::stream(seed, "plan");
        let intensity = rng.between(1, 3);
        // Swarm testing: each world has about half of the faults, because all faults together hide some states.
        let mut call_fault_rates = BTreeMap::new();
        for (fault, rate) in Fault::OF_CALLS {
            if rng.per_mille(450) {
                call_fault_rates.insert(*fault, rate * intensity);
            }
        }
        // At least one fault hides an answer, so that every world has a lost lease or a commit in doubt.
        if !call_fault_rates.keys().any(|fault| fault.hides_answer()) {
            call_fault_rates.insert(Fault::LostAnswer, 30);
        }
        let mut process_fault_means_ms = BTreeMap::new();
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
                process_fault_means_ms.insert(fault, mean);
            }
        }
        let safety_ms = rng.between(10_000, 30_000);
        let store = match rng.below(10) {
            0..=1 => StoreKind::Memory,
            2 => StoreKind::SqliteMirrored,
            _ => StoreKind::SqliteFile,
        };
        let statement_faults = rng.pick(&[0, 10, 40]);
        // A stream of its own, so that worlds without a busy file stay as they were.
        let mut busy = Rng::stream(seed, "busy file");
        if store == StoreKind::SqliteFile && busy.per_mille(300) {
            process_fault_means_ms.insert(Fault::BusyFile, busy.between(2_000, 8_000));
        }
        let waits_for_lock = busy.per_mille(500);
        // A stream of its own, so that earlier seeds keep their worlds.
        let mut local = Rng::stream(seed, "local clients");
        let has_local_clients = local.per_mille(400);
        let mut quick = Rng::stream(seed, "quick work");
        let has_quick_work = quick.per_mille(300);
        let mut plan = Self {
            seed,
            store,
            nodes: rng.pick(&[1, 2, 2, 2, 3, 4]),
            call_fault_rates,
            foreign_poll: Duration::from_millis(Rng::stream(seed, "foreign poll").pick(&[45, 200, 1_000])),
            mirror_waits: false,
            latency_ms: if rng.per_mille(600) { rng.between(1, 20) } else { 0 },
            statement_faults: match store {
                StoreKind::Sqlite | StoreKind::SqliteFile => statement_faults,
                StoreKind::Memory | StoreKind::SqliteMirrored | StoreKind::Postgres => 0,
            },
            link_fault_rates: BTreeMap::new(),
            process_fault_means_ms,
            waits_for_lock,
            downtime_ms: rng.pick(&[500, 2_000, 15_000, UNTIL_HEALED]),
            loses_wake_ups: rng.per_mille(300),
            skewed: rng.per_mille(400),
            old_builds: rng.per_mille(200),
            misfits: BTreeSet::new(),
            // A stream of its own leaves the other draws as they were.
            takes_over: Rng::stream(seed, "takeover").per_mille(250),
            safety_ms,
            lease_ms: rng.pick(&[300, 1_000, 2_000, 5_000]),
            max_attempts: if rng.per_mille(150) { 10 } else { NEVER_POISON },
            stray_times_ms: (0..rng.below(3)).map(|_| rng.below(safety_ms)).collect(),
            has_local_clients,
            has_quick_work,
            roots: (0..rng.between(3, 6)).map(|nth| root(&mut rng, nth, safety_ms)).collect(),
            pause: None,
            probe: None,
        };
        if has_quick_work {
            // Outcomes gather if one node has all activities of an instance.
            plan.nodes = if quick.per_mille(500) { 1 } else { plan.nodes };
            plan.latency_ms = 0;
        }
        if store == StoreKind::SqliteMirrored && Rng::stream(seed, "waiting mirror").per_mille(600) {
            plan.mirror_waits = true;
            plan.stray_times_ms.clear();
            plan.roots.iter_mut().for_each(Root::send_nothing_early);
            // An old build gives a start back with a delay: the messages behind it have no instance until then.
            plan.old_builds = false;
        }
        // Streams of their own, so that other seeds keep their worlds.
        let mut operator = Rng::stream(seed, "operator");
        if operator.per_mille(200) {
            plan.roots.extend(program::branch::roots(&mut operator, safety_ms));
        }
        if operator.per_mille(100) {
            plan.pause = Some((operator.below(safety_ms), operator.below(8_000)));
        }
        let mut broken = Rng::stream(seed, "broken builds");
        if broken.per_mille(150) && !plan.old_builds {
            plan.misfits = plan.parkable();
        }
        if has_local_clients {
            for root in plan.roots.iter_mut().filter(|_| local.per_mille(500)) {
                root.start_twice();
            }
        }
        // Half of the worlds that had the memory store.
        let is_on_postgres = store == StoreKind::Memory && Rng::stream(seed, "postgres").per_mille(500);
        if is_on_postgres { plan.on_postgres() } else { plan }
    }

    /// This plan with the PostgreSQL store. Each world has about half of the faults of connections.
    pub(crate) fn on_postgres(mut self) -> Self {
        let mut rng = Rng::stream(self.seed, "link faults");
        let intensity = rng.between(1, 3);
        self.store = StoreKind::Postgres;
        self.statement_faults = 0;
        self.mirror_waits = false;
        self.process_fault_means_ms.remove(&Fault::BusyFile);
        self.link_fault_rates.clear();
        for (fault, rate) in LINK_FAULTS {
            if rng.per_mille(450) {
                self.link_fault_rates.insert(*fault, rate * intensity);
            }
        }
        self
    }

    /// The interval at which processes of the PostgreSQL store poll although they receive notifications. It is so long that a lost wake-up
    /// breaks the promise, unless the world needs these polls: no process learns that the server's clock has jumped, or that a client has
    /// stored a message with a delay.
    pub(crate) fn idle_poll(&self) -> Duration {
        let jumps = self.process_fault_means_ms.contains_key(&Fault::StoreClockJump);
        let is_delayed =
            |root: &Root| root.actions.iter().any(|(_, action)| matches!(action, Action::StartOrSend(..)));
        match jumps || self.roots.iter().any(is_delayed) {
            true => Duration::from_secs(1),
            false => Duration::from_secs(60),
        }
    }

    /// The roots that a build may park. A request to cancel a parked instance lets it fail if its code does not fit, and a broken build
    /// does not notice that it does not fit a copied history without decisions.
    fn parkable(&self) -> BTreeSet<String> {
        let is_cancelled = |root: &&Root| root.actions.iter().any(|(_, action)| *action == Action::Cancel);
        let kept = self.roots.iter().filter(|root| !is_cancelled(root));
        let kept = kept.filter(|root| self.source_of(&root.instance).is_none());
        kept.map(|root| root.instance.clone()).collect()
    }

    /// Whether a life of a node is of a broken build.
    pub(crate) fn is_broken(&self, node: usize, life: u64) -> bool {
        let label = format!("broken node {node} life {life}");
        !self.misfits.is_empty() && Rng::stream(self.seed, &label).per_mille(500)
    }

    /// This plan without the faults and roots of `cut`.
    pub(crate) fn without(mut self, cut: &Cut) -> Self {
        self.call_fault_rates.retain(|fault, _| !cut.faults.contains(fault));
        self.process_fault_means_ms.retain(|fault, _| !cut.faults.contains(fault));
        self.link_fault_rates.retain(|fault, _| !cut.faults.contains(fault));
        if cut.faults.contains(&Fault::Statement) {
            self.statement_faults = 0;
        }
        self.loses_wake_ups &= !cut.faults.contains(&Fault::LostWakeUp);
        self.old_builds &= !cut.faults.contains(&Fault::OldBuild);
        if cut.faults.contains(&Fault::BrokenBuild) {
            self.misfits.clear();
        }
        self.takes_over &= !cut.faults.contains(&Fault::Takeover);
        self.roots.retain(|root| !cut.roots.contains(&root.instance));
        self
    }

    /// All faults of this plan.
    pub(crate) fn faults(&self) -> Vec<Fault> {
        let mut all: Vec<Fault> =
            self.call_fault_rates.keys().chain(self.process_fault_means_ms.keys()).copied().collect();
        all.extend(self.link_fault_rates.keys());
        all.extend((self.statement_faults > 0).then_some(Fault::Statement));
        all.extend(self.loses_wake_ups.then_some(Fault::LostWakeUp));
        all.extend(self.old_builds.then_some(Fault::OldBuild));
        all.extend((!self.misfits.is_empty()).then_some(Fault::BrokenBuild));
        all.extend(self.takes_over.then_some(Fault::Takeover));
        all
    }

    /// This plan as one line of text.
    pub(crate) fn describe(&self) -> String {
        let call_fault_rates =
            self.call_fault_rates.iter().map(|(fault, rate)| format!("{} {rate}/1000", fault.name()));
        let every = self
            .process_fault_means_ms
            .iter()
            .map(|(fault, mean)| format!("{} every {mean} ms", fault.name()));
        let links = self.link_fault_rates.iter();
        let links = links.map(|(fault, rate)| format!("{} {rate}/1000", fault.name()));
        let faults: Vec<String> = call_fault_rates.chain(every).chain(links).collect();
        format!(
            "{:?}, {} nodes, faults: [{}], statements {}/10000, latency <= {} ms, lease {} ms, {} roots{}, attempts {}",
            self.store,
            self.nodes,
            faults.join(", "),
            self.statement_faults,
            self.latency_ms,
            self.lease_ms,
            self.roots.len(),
            match (self.has_local_clients, self.has_quick_work) {
                (true, true) => " of local clients, quick work",
                (true, false) => " of local clients",
                (false, true) => ", quick work",
                (false, false) => "",
            },
            self.max_attempts
        )
    }

    /// The instance whose events an operator may copy into this one; `None` for instances that are neither reset nor forks.
    pub(crate) fn source_of(&self, instance: &str) -> Option<&str> {
        let branches = |root| -> Option<&str> {
            let root: &Root = root;
            let mut all = root.actions.iter().filter_map(|(_, action)| action.branches(root));
            all.find(|(_, target)| *target == instance).map(|(source, _)| source)
        };
        self.roots.iter().find_map(branches)
    }

    /// Whether the start of this instance, and the message with the start, are delayed.
    pub(crate) fn starts_with_delay(&self, instance: &str) -> bool {
        let root = self.roots.iter().find(|root| root.instance == instance);
        root.is_some_and(|root| {
            root.actions.iter().any(|(_, action)| matches!(action, Action::StartOrSend(..)))
        })
    }

    /// When the last client begins its last action.
    pub(crate) fn last_action_ms(&self) -> u64 {
        let times = self.roots.iter().flat_map(|root| root.actions.iter().map(|(at, _)| *at));
        let pause_ends = self.pause.map_or(0, |(at, ms)| at + ms);
        times.max().unwrap_or(0).max(pause_ends)
    }

    /// Whether crashes can poison an instance or an activity of this world.
    pub(crate) fn may_poison(&self) -> bool {
        self.max_attempts < NEVER_POISON
    }

    /// The skew of the clock of a node when the world begins.
    pub(crate) fn skew_ms(&self, node: usize) -> i64 {
        let mut rng = Rng::stream(self.seed, &format!("skew {node}"));
        let most = i64::try_from(self.lease_ms).unwrap_or(0);
        let off = i64::try_from(rng.below(2 * self.lease_ms)).unwrap_or(0) - most;
        if self.skewed { off } else { 0 }
    }

    /// The heartbeat of a node: a quarter of the nodes report, so that failing and late reports meet all other faults.
    /// The draws have a stream of their own, so that they change no other draw.
    fn heartbeat(&self, node: usize) -> Option<Duration> {
        let mut rng = Rng::stream(self.seed, &format!("heartbeat {node}"));
        rng.per_mille(250).then(|| Duration::from_millis(rng.pick(&[500, 2_000, 5_000])))
    }

    /// The options of one life of a node. Every life draws its own.
    pub(crate) fn options(&self, node: usize, life: u64, clock: Arc<dyn Clock>) -> RuntimeOptions {
        let label = format!("node {node} life {life}");
        let mut rng = Rng::stream(self.seed, &label);
        let lease = Duration::from_millis(self.lease_ms);
        let options = RuntimeOptions {
            dispatcher_long_poll_timeout: Duration::from_millis(rng.pick(&[1_000, 5_000, 30_000])),
            orchestration_concurrency: rng.pick(&[1, 1, 2, 3]),
            worker_concurrency: rng.pick(&[1, 1, 2, 3]) + if self.has_quick_work { 5 } else { 0 },
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
            unregistered_backoff: short_backoff(),
            node_heartbeat: self.heartbeat(node),
            clock,
            entropy: Arc::new(SeededEntropy::new(self.seed, &label)),
            ..RuntimeOptions::default()
        };
        if self.probe.is_some() { sweep::fixed_options(options) } else { options }
    }
}

/// The backoff of turns and activities whose code a node does not have. It is short, because worlds are short.
fn short_backoff() -> UnregisteredBackoffConfig {
    UnregisteredBackoffConfig { base_delay: Duration::from_millis(100), max_delay: Duration::from_secs(2) }
}

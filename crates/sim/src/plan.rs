//! What a seed decides before its world begins: which faults, how often, how the nodes are set up, what is started.

use crate::program::{Program, generate};
use crate::rng::{Rng, Seeded};
use outlast_provider::Clock;
use outlast_runtime::RuntimeOptions;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What can go wrong. The first group happens to single calls, the second to whole processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The call does nothing and returns a passing error.
    ErrorBefore,
    /// The call is made and returns a passing error: a lost acknowledgement, or a fetched lease that nobody knows of.
    LostAnswer,
    /// The call takes longer than a lease before it is made.
    StallBefore,
    /// The answer takes longer than a lease.
    StallAfter,
    /// The process dies instead of making the call.
    CrashBefore,
    /// The process dies instead of learning the answer.
    CrashAfter,
    /// The process dies, or drops the call, while it waits: before the call was made.
    CutBefore,
    /// The same after it was made.
    CutAfter,
    /// A watch on an instance never fires.
    LostWakeUp,
    /// Calls take some milliseconds instead of none.
    Latency,
    /// A process dies at a random moment.
    Crash,
    /// A process is asked to stop at a random moment.
    Shutdown,
}

impl Fault {
    /// For tables and traces.
    pub fn name(self) -> &'static str {
        match self {
            Self::ErrorBefore => "error before",
            Self::LostAnswer => "lost answer",
            Self::StallBefore => "stall before",
            Self::StallAfter => "stall after",
            Self::CrashBefore => "crash before",
            Self::CrashAfter => "crash after",
            Self::CutBefore => "cut before",
            Self::CutAfter => "cut after",
            Self::LostWakeUp => "lost wake-up",
            Self::Latency => "latency",
            Self::Crash => "crash",
            Self::Shutdown => "shutdown",
        }
    }
}

/// Faults of single calls, with their usual rate in thousandths.
const CALL_FAULTS: &[(Fault, u64)] = &[
    (Fault::ErrorBefore, 25),
    (Fault::LostAnswer, 25),
    (Fault::StallBefore, 12),
    (Fault::StallAfter, 12),
    (Fault::CrashBefore, 6),
    (Fault::CrashAfter, 9),
];

/// A workload that a client drives.
#[derive(Debug, Clone)]
pub(crate) struct Root {
    pub(crate) instance: String,
    pub(crate) program: Program,
    /// What the client does, in order of time.
    pub(crate) acts: Vec<(u64, Act)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    Start,
    /// Start by the additive call, which leaves an id alone that is taken; perhaps with a first message.
    StartOnce(Option<String>),
    Enqueue(String),
    Raise(String),
    Cancel,
}

pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// Call faults that this world has, with their rates in thousandths.
    pub(crate) rates: BTreeMap<Fault, u64>,
    /// Longest ordinary latency of a call.
    pub(crate) latency_ms: u64,
    /// Mean time between deaths of one process; 0: none.
    pub(crate) crash_every_ms: u64,
    /// Mean time between orderly restarts of one process; 0: none.
    pub(crate) shutdown_every_ms: u64,
    /// Longest time that a process stays down. When it is long, nobody takes over what the other one stalls on.
    pub(crate) downtime_ms: u64,
    pub(crate) loses_wake_ups: bool,
    /// How long faults go on.
    pub(crate) safety_ms: u64,
    pub(crate) lease_ms: u64,
    /// Few deliveries make poison, which a world with crashes must then tolerate.
    pub(crate) max_attempts: u32,
    pub(crate) roots: Vec<Root>,
}

/// Enough that no number of crashes reaches it.
pub(crate) const NEVER_POISON: u32 = 100_000;

/// Nodes of a world.
pub(crate) const NODES: usize = 2;

impl Plan {
    pub(crate) fn of(seed: u64) -> Self {
        let mut rng = Rng::stream(seed, "plan");
        let intensity = rng.between(1, 3);
        // Swarm testing: a random half of the faults at a time reaches states that all of them together hide.
        let mut rates = BTreeMap::new();
        for (fault, rate) in CALL_FAULTS {
            if rng.per_mille(500) {
                rates.insert(*fault, rate * intensity);
            }
        }
        let safety_ms = rng.between(10_000, 30_000);
        Self {
            seed,
            rates,
            latency_ms: if rng.per_mille(600) { rng.between(1, 20) } else { 0 },
            crash_every_ms: if rng.per_mille(500) { rng.between(1_000, 6_000) } else { 0 },
            shutdown_every_ms: if rng.per_mille(400) { rng.between(2_000, 10_000) } else { 0 },
            downtime_ms: rng.pick(&[500, 2_000, 15_000]),
            loses_wake_ups: rng.per_mille(300),
            safety_ms,
            lease_ms: rng.pick(&[300, 1_000, 2_000, 5_000]),
            max_attempts: if rng.per_mille(150) { 10 } else { NEVER_POISON },
            roots: (0..rng.between(3, 6)).map(|nth| root(&mut rng, nth, safety_ms)).collect(),
        }
    }

    /// Everything that goes wrong here, for people.
    pub(crate) fn describe(&self) -> String {
        let faults: Vec<String> =
            self.rates.iter().map(|(fault, rate)| format!("{} {rate}/1000", fault.name())).collect();
        format!(
            "faults: [{}], latency <= {} ms, crash every {} ms, shutdown every {} ms, lease {} ms, {} roots, attempts {}",
            faults.join(", "),
            self.latency_ms,
            self.crash_every_ms,
            self.shutdown_every_ms,
            self.lease_ms,
            self.roots.len(),
            self.max_attempts
        )
    }

    /// Whether so many deliveries can happen here that something is given up as poison.
    pub(crate) fn may_poison(&self) -> bool {
        self.max_attempts < NEVER_POISON
    }

    /// How a node runs. Each life of it draws its own.
    pub(crate) fn options(&self, node: usize, life: u64, clock: Arc<dyn Clock>) -> RuntimeOptions {
        let label = format!("node {node} life {life}");
        let mut rng = Rng::stream(self.seed, &label);
        let lease = Duration::from_millis(self.lease_ms);
        RuntimeOptions {
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
            clock,
            entropy: Arc::new(Seeded::new(self.seed, &label)),
            ..RuntimeOptions::default()
        }
    }
}

fn root(rng: &mut Rng, nth: u64, safety_ms: u64) -> Root {
    let instance = format!("i{nth}");
    let program = generate::program(rng, &instance);
    let mut now = rng.below(safety_ms / 2);
    let mut queues = program.messages_needed();
    let start = match rng.below(3) {
        0 => Act::Start,
        1 => Act::StartOnce(None),
        _ => Act::StartOnce(queues.pop()),
    };
    let mut acts = vec![(now, start)];
    for queue in queues {
        now += rng.below(1_500);
        acts.push((now, Act::Enqueue(queue)));
    }
    for signal in program.signals_awaited() {
        now += rng.below(1_000);
        acts.push((now, Act::Raise(signal)));
    }
    if rng.per_mille(120) {
        acts.push((acts[0].0 + rng.below(10_000), Act::Cancel));
    }
    acts.sort_by_key(|(at, _)| *at);
    Root { instance, program, acts }
}

//! One world: built from its seed, left to its faults, healed, and judged.

use crate::bug::Bug;
use crate::check::{self, Recorder, Snapshot};
use crate::client;
use crate::fault::Fault;
use crate::node;
use crate::plan::{Plan, Root, StoreKind};
use crate::shared::Shared;
use crate::sweep;
use crate::tally::Tally;
use outlast_provider::Clock;
use outlast_runtime::OrchestrationStatus;
use outlast_testkit::{panics, virtual_time};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::task::JoinSet;

/// How a world is run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// A defect to find.
    pub bug: Option<Bug>,
    /// How many lines of the trace are kept.
    pub keep_lines: usize,
    /// What is left out of the world that the seed draws.
    pub cut: Cut,
}

impl Default for Settings {
    fn default() -> Self {
        Self { bug: None, keep_lines: 60, cut: Cut::default() }
    }
}

/// What a smaller world does without.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cut {
    /// These do not happen.
    pub faults: BTreeSet<Fault>,
    /// These instances are not started.
    pub roots: BTreeSet<String>,
}

/// What became of a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// What was found, first things first.
    pub failures: Vec<String>,
    /// Digest of the whole trace.
    pub digest: u64,
    /// The end of the trace.
    pub lines: Vec<String>,
    /// The faults that the seed chose.
    pub setting: String,
    /// What happened.
    pub tally: Tally,
}

/// Runs a world to its end.
pub fn run(seed: u64, settings: &Settings) -> Outcome {
    run_plan(Plan::of(seed).without(&settings.cut), settings)
}

/// Runs the world of a plan.
pub(crate) fn run_plan(plan: Plan, settings: &Settings) -> Outcome {
    let seed = plan.seed;
    let (ran, panics) = panics::collect(|| virtual_time::run(run_world(plan, settings)));
    let mut outcome = ran.unwrap_or_else(|| Outcome {
        seed,
        failures: Vec::new(),
        digest: 0,
        lines: Vec::new(),
        setting: String::new(),
        tally: Tally::default(),
    });
    // The runtime survives a panic, which is no reason to have one.
    outcome.failures.extend(panics.into_iter().map(|panic| format!("P1: {panic}")));
    outcome
}

async fn run_world(plan: Plan, settings: &Settings) -> Outcome {
    let seed = plan.seed;
    let shared = Shared::new(plan, settings).await;
    World { shared: Arc::clone(&shared), recorder: Recorder::default() }.live().await;
    shared.over.store(true, Relaxed);
    let mut trace = shared.trace();
    let (digest, lines) = (trace.digest(), trace.take_lines());
    let setting = shared.plan.describe();
    shared.tally().statements(&shared.backend.statements.struck());
    let tally = shared.tally().clone();
    Outcome { seed, failures: shared.failures(), digest, lines, setting, tally }
}

/// How long a healed world may take to finish, in virtual time. Longer than the longest pause of a dispatcher, twice.
const MOST_LIVENESS_MS: u64 = 300_000;

struct World {
    shared: Arc<Shared>,
    recorder: Recorder,
}

type Clients = JoinSet<(Root, OrchestrationStatus)>;

impl World {
    async fn live(mut self) {
        let shared = Arc::clone(&self.shared);
        let mut nodes = JoinSet::new();
        for node in 0..shared.plan.nodes {
            nodes.spawn(node::run(Arc::clone(&shared), node));
        }
        match &shared.plan.aim {
            Some(aim) => drop(nodes.spawn(Arc::clone(aim).revive())),
            None => {
                nodes.spawn(weather(Arc::clone(&shared)));
                nodes.spawn(client::look(Arc::clone(&shared)));
            }
        }
        for (nth, at) in shared.plan.strays.iter().enumerate() {
            nodes.spawn(client::stray(Arc::clone(&shared), nth, *at));
        }
        let mut clients = Clients::new();
        for root in shared.plan.roots.clone() {
            if shared.plan.aim.is_none() {
                nodes.spawn(client::rival(Arc::clone(&shared), root.clone()));
            }
            clients.spawn(client::drive(Arc::clone(&shared), root));
        }
        let lived = tokio::select! {
            biased;
            () = shared.failed.notified() => Ok(()),
            lived = self.phases(&mut clients) => lived,
        };
        if let Err(failure) = lived {
            shared.fail(failure);
        }
        shared.tally().virtual_ms = shared.now_ms();
    }

    async fn phases(&mut self, clients: &mut Clients) -> Result<(), String> {
        let shared = Arc::clone(&self.shared);
        // Safety: whatever goes wrong, nothing is lost.
        while shared.now_ms() < shared.plan.safety_ms {
            let pause = shared.dice().between(200, 3_000);
            tokio::time::sleep(Duration::from_millis(pause)).await;
            check::everything(&shared, &mut self.recorder).await?;
        }
        shared.heal();
        // Liveness: everything comes to its end.
        let told = self.finish(clients).await?;
        let snapshot = self.drained().await?;
        shared.tally().instances = snapshot.instances.len() as u64;
        shared.tally().orphans = check::queues::orphans(&snapshot) as u64;
        for (root, status) in &told {
            check::ending::outcome(&shared, root, status)?;
            check::ending::detached(&shared, &snapshot, root)?;
        }
        if let Some(aim) = &shared.plan.aim {
            sweep::endings(aim, &snapshot);
        }
        Ok(())
    }

    async fn finish(&mut self, clients: &mut Clients) -> Result<Vec<(Root, OrchestrationStatus)>, String> {
        let shared = Arc::clone(&self.shared);
        let give_up_at = shared.now_ms() + MOST_LIVENESS_MS;
        let mut told = Vec::new();
        loop {
            while let Some(joined) = clients.try_join_next() {
                told.push(joined.map_err(|error| format!("a client panicked: {error}"))?);
            }
            let snapshot = check::everything(&shared, &mut self.recorder).await?;
            if clients.is_empty() && check::ending::running(&snapshot).is_empty() {
                return Ok(told);
            }
            if shared.now_ms() >= give_up_at {
                return Err(check::ending::stuck(&shared, &snapshot));
            }
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
    }

    /// I10: after the last instance has ended, what is left over goes too.
    async fn drained(&mut self) -> Result<Snapshot, String> {
        let shared = Arc::clone(&self.shared);
        let give_up_at = shared.now_ms() + MOST_LIVENESS_MS;
        loop {
            let snapshot = check::everything(&shared, &mut self.recorder).await?;
            let left = check::queues::left_over(&shared, &snapshot);
            if left.is_empty() {
                return Ok(snapshot);
            }
            if shared.now_ms() >= give_up_at {
                return Err(format!("I10: all instances have ended, and there is still {}", left.join(", ")));
            }
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
    }
}

/// The clock of the store jumps now and then. Back only a little: leases then last longer, which is not what is tested.
async fn weather(shared: Arc<Shared>) {
    const HOUR_MS: u64 = 3_600_000;
    let Some(mean) = shared.plan.every_ms.get(&Fault::StoreClockJump).copied() else { return };
    while shared.is_faulty() {
        let pause = shared.dice().below(2 * mean);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        if !shared.is_faulty() {
            return;
        }
        let ms = {
            let mut dice = shared.dice();
            // Which of two times is the later one is not a question that two stores must answer alike.
            let back = dice.per_mille(300) && shared.plan.store != StoreKind::SqliteMirrored;
            let ms = dice.below(if back { 2 * shared.plan.lease_ms } else { HOUR_MS });
            i64::try_from(ms).unwrap_or(0) * if back { -1 } else { 1 }
        };
        shared.note("WORLD", &format!("the store's clock jumps by {ms} ms"));
        shared.tally().happened(Fault::StoreClockJump);
        shared.trouble_everybody();
        if ms < 0 {
            shared.witness().leases.clock_is_set_back(shared.clock.now_ms());
        }
        shared.clock.jump(ms);
    }
}

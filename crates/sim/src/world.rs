//! One world: built from its plan, run with faults, healed, and checked.

use crate::bug::Bug;
use crate::check::liveness::{self, Liveness};
use crate::check::{self, Recorder, Snapshot};
use crate::client;
use crate::fault::Fault;
use crate::node;
use crate::plan::{Plan, Root, StoreKind};
use crate::shared::Shared;
use crate::sweep;
use crate::tally::Tally;
use outlast_model::defect;
use outlast_provider::Clock;
use outlast_runtime::OrchestrationStatus;
use outlast_testkit::{panics, virtual_time};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::task::JoinSet;

/// How to run a world.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The defect of the world, if any.
    pub bug: Option<Bug>,
    /// Number of trace lines to keep.
    pub keep_lines: usize,
    /// Faults and roots to leave out.
    pub cut: Cut,
    /// Whether the world has the PostgreSQL store, whatever its plan says.
    pub postgres: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { bug: None, keep_lines: 60, cut: Cut::default(), postgres: false }
    }
}

/// Faults and roots that are left out of a world.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cut {
    /// Faults that do not happen.
    pub faults: BTreeSet<Fault>,
    /// Roots that are not started.
    pub roots: BTreeSet<String>,
}

/// The result of a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// Broken invariants, in the order in which they were found.
    pub failures: Vec<String>,
    /// Digest of the whole trace.
    pub digest: u64,
    /// The end of the trace.
    pub lines: Vec<String>,
    /// The plan, as text.
    pub setting: String,
    /// Counts of calls and faults.
    pub tally: Tally,
}

/// Runs the world of a seed.
pub fn run(seed: u64, settings: &Settings) -> Outcome {
    let mut plan = Plan::of(seed);
    if settings.postgres || settings.bug.is_some_and(Bug::is_of_postgres) {
        plan = plan.on_postgres();
    }
    run_plan(plan.without(&settings.cut), settings)
}

/// Runs the world of a plan.
pub(crate) fn run_plan(plan: Plan, settings: &Settings) -> Outcome {
    let seed = plan.seed;
    let _defect = settings.bug.and_then(Bug::shipped).map(defect::activate);
    let (ran, panics) = panics::collect(|| virtual_time::run(run_world(plan, settings)));
    let mut outcome = ran.unwrap_or_else(|| Outcome {
        seed,
        failures: Vec::new(),
        digest: 0,
        lines: Vec::new(),
        setting: String::new(),
        tally: Tally::default(),
    });
    // The runtime survives a panic, but every panic that no program planned is a defect.
    outcome.failures.extend(panics.into_iter().map(|panic| format!("P1: {panic}")));
    outcome
}

async fn run_world(plan: Plan, settings: &Settings) -> Outcome {
    let shared = Shared::new(plan, settings).await;
    run_shared(&shared).await
}

async fn run_shared(shared: &Arc<Shared>) -> Outcome {
    let seed = shared.plan.seed;
    World { shared: Arc::clone(shared), recorder: Recorder::default() }.run().await;
    shared.is_torn_down.store(true, Relaxed);
    // A life owns the store of its process, which owns the world: the world and its files would stay forever.
    shared.lives.end_all();
    let mut trace = shared.trace();
    let (digest, lines) = (trace.digest(), trace.take_lines());
    let setting = shared.plan.describe();
    shared.tally().statements(&shared.backend.statements.injected());
    shared.tally().links(&shared.backend.link_faults());
    shared.tally().worlds.increment(shared.plan.store.name());
    shared.tally().recoveries = shared.backend.recoveries();
    shared.tally().rows_ahead_of_clock = shared.backend.rows_ahead_of_clock();
    let tally = shared.tally().clone();
    Outcome { seed, failures: shared.failures(), digest, lines, setting, tally }
}

/// The longest time of a healed world in which new events are in time. A world that needs longer repeats its turns without an end.
const MOST_LIVENESS_MS: u64 = 300_000;
/// The time between two checks of a healed world.
const CHECK_EVERY: Duration = Duration::from_secs(2);

struct World {
    shared: Arc<Shared>,
    recorder: Recorder,
}

type Clients = JoinSet<(Root, OrchestrationStatus)>;

impl World {
    async fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let mut nodes = JoinSet::new();
        for node in 0..shared.plan.nodes {
            nodes.spawn(node::run(Arc::clone(&shared), node));
        }
        if shared.has(Bug::LivingTakenForDead) {
            nodes.spawn(node::take_living_for_dead(Arc::clone(&shared)));
        }
        match &shared.plan.probe {
            Some(probe) => drop(nodes.spawn(Arc::clone(probe).resume_stalled())),
            None => {
                nodes.spawn(jump_store_clock(Arc::clone(&shared)));
                nodes.spawn(keep_file_busy(Arc::clone(&shared)));
                nodes.spawn(client::poll_statuses(Arc::clone(&shared)));
            }
        }
        if let Some((at, ms)) = shared.plan.pause {
            nodes.spawn(client::pause_orchestrations(Arc::clone(&shared), at, ms));
        }
        for (nth, at) in shared.plan.stray_times_ms.iter().enumerate() {
            nodes.spawn(client::send_to_missing_instance(Arc::clone(&shared), nth, *at));
        }
        let mut clients = Clients::new();
        for root in shared.plan.roots.clone() {
            if shared.plan.probe.is_none() {
                nodes.spawn(client::start_concurrently(Arc::clone(&shared), root.clone()));
            }
            clients.spawn(client::drive(Arc::clone(&shared), root));
        }
        let ended = tokio::select! {
            biased;
            () = shared.failed.notified() => Ok(()),
            () = shared.backend.runaway() => {
                Err("I7: runaway: a lane of the PostgreSQL store asks for transactions without end".to_string())
            }
            ended = self.phases(&mut clients) => ended,
        };
        if let Err(failure) = ended {
            shared.fail(failure);
        }
        shared.tally().virtual_ms = shared.now_ms();
    }

    /// The safety phase, the liveness phase, and the checks of the end.
    async fn phases(&mut self, clients: &mut Clients) -> Result<(), String> {
        let shared = Arc::clone(&self.shared);
        // Safety: faults happen, and no item is lost.
        while shared.now_ms() < shared.plan.safety_ms {
            let pause = shared.rng().between(200, 3_000);
            tokio::time::sleep(Duration::from_millis(pause)).await;
            check::check_world(&shared, &mut self.recorder).await?;
        }
        shared.heal();
        // Liveness: no faults happen, and every instance ends.
        let statuses = self.finish(clients).await?;
        let snapshot = self.wait_for_empty_queues().await?;
        shared.tally().instances = snapshot.instances.len() as u64;
        shared.tally().orphans = check::queues::orphans(&snapshot) as u64;
        for (root, status) in &statuses {
            check::ending::outcome(&shared, &snapshot, root, status)?;
            check::ending::detached(&shared, &snapshot, root)?;
            check::ending::forked(&shared, &snapshot, root)?;
        }
        if let Some(probe) = &shared.plan.probe {
            sweep::record_endings(probe, &snapshot);
        }
        Ok(())
    }

    /// Waits until all clients and instances have ended; returns the final statuses that clients received.
    async fn finish(&mut self, clients: &mut Clients) -> Result<Vec<(Root, OrchestrationStatus)>, String> {
        let shared = Arc::clone(&self.shared);
        let give_up_at = shared.now_ms() + MOST_LIVENESS_MS;
        let mut statuses = Vec::new();
        let mut liveness = Liveness::default();
        loop {
            while let Some(joined) = clients.try_join_next() {
                statuses.push(joined.map_err(|error| format!("a client panicked: {error}"))?);
            }
            let snapshot = check::check_world(&shared, &mut self.recorder).await?;
            if clients.is_empty() && check::ending::unfinished_ids(&snapshot).is_empty() {
                return Ok(statuses);
            }
            liveness.check(&shared, &snapshot)?;
            if shared.now_ms() >= give_up_at {
                return Err(check::ending::unfinished(&shared, &snapshot));
            }
            tokio::time::sleep(CHECK_EVERY).await;
        }
    }

    /// I10: waits until the queues are empty after the last instance has ended.
    async fn wait_for_empty_queues(&mut self) -> Result<Snapshot, String> {
        let shared = Arc::clone(&self.shared);
        let begun = shared.now_ms();
        let mut give_up_at = None;
        loop {
            let snapshot = check::check_world(&shared, &mut self.recorder).await?;
            // Activities that are left behind run to their end, and sessions end when they were idle.
            let promise_ms = liveness::promise_ms(&shared);
            let most_ms = promise_ms
                + liveness::workers_ms(&shared, &snapshot)
                + 4 * shared.plan.lease_ms
                + 2 * liveness::CLEANUP_MS;
            let give_up_at: &mut u64 = give_up_at.get_or_insert(begun + most_ms);
            // A message with a delay, which a turn may also store while the world ends, is delivered after its delay.
            let now = shared.clock.now_ms();
            let delays = snapshot.messages.iter().map(|message| message.visible_at.saturating_sub(now));
            if let Some(delay) = delays.max().filter(|delay| *delay > 0) {
                let due = shared.now_ms() + delay + promise_ms;
                *give_up_at = due.max(*give_up_at).min(begun + MOST_LIVENESS_MS);
            }
            let leftovers = check::queues::left_over(&shared, &snapshot);
            if leftovers.is_empty() {
                return Ok(snapshot);
            }
            if shared.now_ms() >= *give_up_at {
                return Err(format!(
                    "I10: all instances have ended, and the store still holds {}",
                    leftovers.join(", ")
                ));
            }
            tokio::time::sleep(CHECK_EVERY).await;
        }
    }
}

/// Lets the clock of the store jump at random times. It is set back by little: leases then last longer, and that is not
/// under test.
async fn jump_store_clock(shared: Arc<Shared>) {
    const HOUR_MS: u64 = 3_600_000;
    let Some(mean) = shared.plan.process_fault_means_ms.get(&Fault::StoreClockJump).copied() else { return };
    while shared.has_faults() {
        let pause = shared.rng().below(2 * mean);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        if !shared.has_faults() {
            return;
        }
        let ms = {
            let mut rng = shared.rng();
            // With a clock that is set back, the order of two rows is not defined, so two stores may differ.
            let back = rng.per_mille(300) && shared.plan.store != StoreKind::SqliteMirrored;
            let ms = rng.below(if back { 2 * shared.plan.lease_ms } else { HOUR_MS });
            i64::try_from(ms).unwrap_or(0) * if back { -1 } else { 1 }
        };
        shared.note("WORLD", &format!("the store's clock jumps by {ms} ms"));
        shared.tally().happened(Fault::StoreClockJump);
        shared.disturb_all();
        if ms < 0 {
            shared.performed().leases.clock_set_back(shared.clock.now_ms());
        }
        shared.clock.jump(ms);
    }
}

/// Lets a process outside of the world hold the write lock of the file at random times. It then commits or dies. A lock that is held when
/// the faults end ends with them.
async fn keep_file_busy(shared: Arc<Shared>) {
    let Some(mean) = shared.plan.process_fault_means_ms.get(&Fault::BusyFile).copied() else { return };
    let Some(file) = shared.backend.file() else { return };
    while shared.has_faults() {
        let pause = shared.rng().below(2 * mean);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        if !shared.has_faults() {
            return;
        }
        let (ms, commits) = {
            let mut rng = shared.rng();
            (rng.between(1, 2 * shared.plan.lease_ms), rng.per_mille(500))
        };
        if let Err(error) = file.make_busy() {
            return shared.fail(format!("B1: a process outside of the world does not get the lock: {error}"));
        }
        shared.note("WORLD", &format!("the file is busy for {ms} ms"));
        shared.tally().happened(Fault::BusyFile);
        // No lease can be renewed or given back until the file is free.
        shared.disturb_all();
        tokio::select! {
            biased;
            () = shared.healing() => {}
            () = tokio::time::sleep(Duration::from_millis(ms)) => {}
        }
        shared.disturb_all();
        match commits {
            true => shared.require(file.foreign_process_commits().map_err(|error| {
                format!("B1: a process outside of the world cannot commit under its lock: {error}")
            })),
            false => file.foreign_process_dies(),
        }
        shared.note("WORLD", "the file is free");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_that_broken_builds_park_end_as_planned() {
        let mut parked = 0;
        for seed in (0..).filter(|seed| !Plan::of(*seed).misfits.is_empty()).take(8) {
            let outcome = run(seed, &Settings::default());
            assert!(outcome.failures.is_empty(), "seed {seed}: {:?}", outcome.failures);
            parked += outcome.tally.by_fault().get(&Fault::BrokenBuild);
        }
        assert!(parked > 0, "no broken build parked an instance");
    }

    #[test]
    fn ended_worlds_are_dropped_with_their_files() {
        let mut on_files = 0;
        for seed in 0..12 {
            let ended = virtual_time::run(async {
                let shared = Shared::new(Plan::of(seed), &Settings::default()).await;
                run_shared(&shared).await;
                on_files += u64::from(shared.plan.store == StoreKind::SqliteFile);
                Arc::downgrade(&shared)
            });
            assert!(ended.upgrade().is_none(), "the world of seed {seed} is still owned");
        }
        assert!(on_files > 0, "no world had a file");
    }
}

//! One world: built from its seed, left to its faults, healed, and judged.

use crate::bug::Bug;
use crate::check::{self, Recorder};
use crate::client;
use crate::node;
use crate::panics;
use crate::plan::{NODES, Plan, Root};
use crate::shared::Shared;
use crate::tally::Tally;
use outlast_runtime::OrchestrationStatus;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::task::JoinSet;

/// How a world is run.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// A defect to find.
    pub bug: Option<Bug>,
    /// How many lines of the trace are kept.
    pub keep_lines: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { bug: None, keep_lines: 60 }
    }
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
pub fn run(seed: u64, settings: Settings) -> Outcome {
    let (ran, panics) = panics::collect(|| in_virtual_time(seed, settings));
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

#[allow(clippy::expect_used, reason = "a tokio runtime without I/O needs nothing that could be missing")]
fn in_virtual_time(seed: u64, settings: Settings) -> Outcome {
    // One thread and a clock that jumps when everybody waits: the order of everything follows from the seed.
    let builder = &mut tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().expect("a runtime can be built");
    runtime.block_on(async {
        let shared = Shared::new(Plan::of(seed), settings);
        World { shared: Arc::clone(&shared), recorder: Recorder::default() }.live().await;
        shared.over.store(true, Relaxed);
        let mut trace = shared.trace();
        let (digest, lines) = (trace.digest(), trace.take_lines());
        let setting = shared.plan.describe();
        let tally = shared.tally().clone();
        Outcome { seed, failures: shared.failures(), digest, lines, setting, tally }
    })
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
        for node in 0..NODES {
            nodes.spawn(node::run(Arc::clone(&shared), node));
        }
        let mut clients = Clients::new();
        for root in shared.plan.roots.clone() {
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
        let snapshot = check::everything(&shared, &mut self.recorder).await?;
        shared.tally().instances = snapshot.instances.len() as u64;
        for (root, status) in &told {
            check::ending::outcome(&shared, root, status)?;
            check::ending::detached(&shared, &snapshot, root)?;
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
}

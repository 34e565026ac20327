//! A process: the shipped runtime, killed, stopped and started again.

use crate::plan::Fault;
use crate::program;
use crate::shared::Shared;
use crate::store::FaultyStore;
use outlast_provider::Clock;
use outlast_runtime::Runtime;
use std::sync::Arc;
use std::time::Duration;

/// Why a life ends.
enum End {
    /// Everything is dropped, nothing is handed back.
    Crash,
    /// It is asked to stop, and has this long.
    Shutdown(u64),
}

/// Lives until the world is over.
pub(crate) async fn run(shared: Arc<Shared>, node: usize) {
    let name = format!("node{node}");
    for life in 0.. {
        let clock: Arc<dyn Clock> = Arc::<_>::clone(&shared.clock) as Arc<dyn Clock>;
        let runtime = Runtime::start_with_options(
            FaultyStore::for_node(&shared, node),
            program::activities(&shared),
            shared.orchestrations.clone(),
            shared.plan.options(node, life, clock),
        )
        .await;
        shared.note(&name, "up");
        match end_of_life(&shared, node).await {
            End::Crash => crash(&shared, &name, runtime).await,
            End::Shutdown(grace_ms) => stop(&shared, node, &name, runtime, grace_ms).await,
        }
        shared.note(&name, "down");
        let downtime = shared.dice().below(shared.plan.downtime_ms);
        tokio::select! {
            biased;
            () = shared.healing() => {}
            () = tokio::time::sleep(Duration::from_millis(downtime)) => {}
        }
    }
}

async fn end_of_life(shared: &Shared, node: usize) -> End {
    let plan = &shared.plan;
    let (crash_after, shutdown_after) = {
        let mut dice = shared.dice();
        let mut after = |mean: u64| (mean > 0).then(|| Duration::from_millis(dice.below(2 * mean)));
        (after(plan.crash_every_ms), after(plan.shutdown_every_ms))
    };
    let is_healed = !shared.is_faulty();
    tokio::select! {
        biased;
        () = shared.kill[node].notified() => End::Crash,
        () = shared.healing(), if !is_healed => {
            // A kill may be on its way still. After that it lives for ever.
            shared.kill[node].notified().await;
            End::Crash
        }
        () = maybe(crash_after), if !is_healed => {
            shared.tally().happened(Fault::Crash);
            End::Crash
        }
        () = maybe(shutdown_after), if !is_healed => {
            shared.tally().happened(Fault::Shutdown);
            End::Shutdown(shared.dice().pick(&[1, 50, 1_000, 5_000]))
        }
    }
}

async fn maybe(after: Option<Duration>) {
    match after {
        Some(after) => tokio::time::sleep(after).await,
        None => std::future::pending().await,
    }
}

async fn crash(shared: &Shared, name: &str, runtime: Arc<Runtime>) {
    shared.note(name, "crash");
    runtime.shutdown(Some(0)).await;
}

/// An orderly stop, which a crash may cut short.
async fn stop(shared: &Shared, node: usize, name: &str, runtime: Arc<Runtime>, grace_ms: u64) {
    shared.note(name, &format!("shutdown within {grace_ms} ms"));
    let began = shared.now_ms();
    tokio::select! {
        biased;
        () = shared.kill[node].notified() => crash(shared, name, Arc::clone(&runtime)).await,
        () = Arc::clone(&runtime).shutdown(Some(grace_ms)) => {
            let took = shared.now_ms() - began;
            // The grace period, and as long again at most for giving back.
            if took > 2 * grace_ms + LEEWAY_MS {
                shared.fail(format!("S1: {name} took {took} ms to shut down within {grace_ms} ms"));
            }
        }
    }
}

/// For what is not part of the promise: timers have a resolution.
const LEEWAY_MS: u64 = 20;

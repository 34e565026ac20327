//! A worker process: the shipped runtime on the store under test, with short leases.

mod activities;
mod pause_points;
mod pausing_store;

pub(crate) use pause_points::Point;

use crate::args::WorkerArgs;
use crate::commit_log::CommitLog;
use crate::effect_ledger::EffectLedger;
use crate::job::orchestrations;
use outlast::RuntimeOptions;
use outlast::runtime::Runtime;
use pause_points::{Order, PausePoints};
use pausing_store::PausingStore;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, BufReader};

/// The default lease. A kill delays an instance for this long.
pub(crate) const LEASE: Duration = Duration::from_millis(1_200);

/// The line that a worker prints when it has started, and the prefix of the line with a point that it has reached.
pub(crate) const READY: &str = "READY";
pub(crate) const AT: &str = "AT ";

/// Runs turns and activities until the supervisor stops the worker.
pub(crate) async fn run(args: WorkerArgs) -> Result<(), String> {
    let ledger = EffectLedger::open(&args.folder)?;
    let commit_log = Arc::new(CommitLog::create(&args.folder, &args.name)?);
    let store = args.store.open(&args.disk, None).await?;
    let pause_points = Arc::new(PausePoints::default());
    let pausing_store = PausingStore {
        inner: store.provider,
        pause_points: Arc::clone(&pause_points),
        commit_log,
        sabotage: args.sabotage,
        name: args.name.clone(),
    };
    let runtime = Runtime::builder()
        .store(Arc::new(pausing_store))
        .activities(activities::all(&ledger, &args).build())
        .orchestrations(orchestrations().build())
        .options(options(&args.name, Duration::from_millis(args.lease_ms)))
        .start()
        .await
        .map_err(|error| format!("the runtime did not start: {error}"))?;
    println!("{READY}");

    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    loop {
        match lines.next_line().await {
            Ok(Some(line)) => match Order::parse(&line)? {
                Order::Pause(point) => pause_points.arm(point),
                Order::Hold(bytes) => pause_points.hold(bytes),
                Order::Release => pause_points.release(),
                Order::Stop => break,
            },
            // The supervisor has exited, so no order to stop will come.
            Ok(None) | Err(_) => std::process::exit(3),
        }
    }
    runtime.shutdown(Some(5_000)).await;
    Ok(())
}

fn options(name: &str, lease: Duration) -> RuntimeOptions {
    let renewal_buffer = lease / 2;
    RuntimeOptions {
        orchestration_concurrency: 4,
        worker_concurrency: 8,
        orchestrator_lock_timeout: lease,
        orchestrator_lock_renewal_buffer: renewal_buffer,
        worker_lock_timeout: lease,
        worker_lock_renewal_buffer: renewal_buffer,
        session_lock_timeout: lease,
        session_lock_renewal_buffer: renewal_buffer,
        session_idle_timeout: lease * 5 / 2,
        session_cleanup_interval: Duration::from_secs(2),
        activity_cancellation_grace_period: Duration::from_secs(1),
        // No instance is poison, however often its worker is killed.
        max_attempts: 10_000,
        worker_node_id: Some(name.to_string()),
        ..RuntimeOptions::default()
    }
}

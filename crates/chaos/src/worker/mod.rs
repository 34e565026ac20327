//! A worker process: the shipped runtime on the store under test, with short leases.

mod activities;
mod control;
mod gate;

pub(crate) use control::Point;

use crate::args::WorkerArgs;
use crate::evidence::Evidence;
use crate::job::orchestrations;
use crate::ledger::Ledger;
use control::{Control, Order};
use gate::Gate;
use outlast::RuntimeOptions;
use outlast::runtime::Runtime;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, BufReader};

/// How long work is leased, unless a phase says otherwise: a kill delays its instance for so long.
pub(crate) const LEASE: Duration = Duration::from_millis(1_200);

/// What a worker prints when it has begun to work, and before the name of a point that it has reached.
pub(crate) const READY: &str = "READY";
pub(crate) const AT: &str = "AT ";

/// Works until it is told to stop.
pub(crate) async fn run(args: WorkerArgs) -> Result<(), String> {
    let ledger = Ledger::open(&args.folder)?;
    let evidence = Arc::new(Evidence::create(&args.folder, &args.name)?);
    let store = args.store.open(&args.disk).await?;
    let control = Arc::new(Control::default());
    let gate = Gate {
        inner: store.provider,
        control: Arc::clone(&control),
        evidence,
        sabotage: args.sabotage,
        name: args.name.clone(),
    };
    let runtime = Runtime::builder()
        .store(Arc::new(gate))
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
                Order::Pause(point) => control.arm(point),
                Order::Hold(bytes) => control.hold(bytes),
                Order::Release => control.release(),
                Order::Stop => break,
            },
            // Whoever supervised us is gone, and nobody would ever stop us.
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
        // Nothing here is poison, however often its worker is killed.
        max_attempts: 10_000,
        worker_node_id: Some(name.to_string()),
        ..RuntimeOptions::default()
    }
}

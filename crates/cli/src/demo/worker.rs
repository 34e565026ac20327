//! A worker process: runs orchestrations and activities on the store until its supervisor stops it or dies.

use super::books::Books;
use super::files::Files;
use super::order;
use super::past::Past;
use super::shop::Shop;
use crate::failure::Failure;
use crate::signals::{self, Signals};
use outlast::providers::sqlite::SqliteProvider;
use outlast::runtime::{Runtime, RuntimeOptions};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The grace period after a request to stop.
pub(super) const GRACE_MS: u64 = 2_000;
/// The line by which the supervisor stops a worker.
pub(super) const STOP: &str = "stop";
/// The most deliveries: many kills must not poison an activity.
pub(super) const MAX_ATTEMPTS: u32 = 10_000;

pub(super) async fn run(dir: &Path) -> Result<(), Failure> {
    let files = Files::in_dir(dir);
    let _lock = files.locks().work()?;
    let (books, lines) = Books::open(files.open()?)?;
    let past = Past::of(&lines).ok_or_else(|| Failure::new("a worker is started by `outlast demo`"))?;
    let store = SqliteProvider::new(&files.store_url()?, None).await;
    let store = Arc::new(store.map_err(|error| Failure::new(error.to_string()))?);
    let mut signals = Signals::new()?;
    let runtime = Runtime::builder()
        .store(store)
        .register(order::module())
        .state(Shop::new(books, past.batch))
        .options(options())
        .start()
        .await
        .map_err(|error| Failure::new(error.to_string()))?;
    let mut order = tokio::task::spawn_blocking(is_stopped);
    loop {
        tokio::select! {
            order = &mut order => return match order {
                Ok(true) => {
                    runtime.shutdown(Some(GRACE_MS)).await;
                    Ok(())
                }
                // The supervisor is dead. Its next run waits until this process has ended.
                Ok(false) | Err(_) => Err(Failure::stopped()),
            },
            signal = signals.next() => {
                // A terminal sends Ctrl-C to this process too: the supervisor decides. SIGTERM is for this worker alone.
                if signal == signals::TERMINATED {
                    runtime.shutdown(Some(GRACE_MS)).await;
                    return Ok(());
                }
            }
        }
    }
}

/// Waits for the request to stop; `false` if the supervisor has died, which closes the pipe.
fn is_stopped() -> bool {
    std::io::stdin().lines().map_while(Result::ok).any(|line| line == STOP)
}

fn options() -> RuntimeOptions {
    RuntimeOptions {
        orchestration_concurrency: 4,
        worker_concurrency: 32,
        orchestrator_lock_timeout: Duration::from_secs(3),
        worker_lock_timeout: Duration::from_secs(3),
        max_attempts: MAX_ATTEMPTS,
        ..RuntimeOptions::default()
    }
}

//! A worker that drains when the process is asked to end: it fetches no more, finishes what it can within the grace period, and gives
//! the rest back, so that another process continues it at once. with a file in `DRAIN_STORE` it runs until SIGTERM or Ctrl-C; without one
//! it sends SIGTERM to itself, and a second worker continues.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::prelude::*;
use outlast::providers::sqlite::SqliteProvider;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// The grace period. Let systemd, Docker or Kubernetes wait some seconds longer before they kill the process.
const GRACE: Duration = Duration::from_millis(500);

#[derive(Clone, Default)]
struct Worker {
    is_patient: bool,
    has_begun: Arc<Notify>,
}

/// Takes longer than the grace period in the first worker.
#[outlast::activity]
async fn bake(_ctx: ActivityContext, State(worker): State<Worker>, what: String) -> Result<String, String> {
    worker.has_begun.notify_one();
    if worker.is_patient {
        println!("begun");
        std::future::pending::<()>().await;
    }
    Ok(format!("{what} is baked"))
}

#[outlast::orchestration]
async fn dinner(ctx: OrchestrationContext, what: String) -> Result<String, String> {
    Ok(bake::call(&ctx, what).await?)
}

async fn start(url: &str, worker: Worker) -> Result<(Arc<Runtime>, Client), Box<dyn Error>> {
    let store = Arc::new(SqliteProvider::new(url, None).await?);
    let module = outlast::module![bake, dinner];
    let runtime = Runtime::builder().store(store.clone()).register(module).state(worker).start().await?;
    Ok((runtime, Client::new(store)))
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let file = std::env::var("DRAIN_STORE").ok();
    let path = file.clone().map_or_else(|| folder.path().join("dinner.db"), Into::into);
    let url = format!("sqlite:{}", path.display());

    let worker = Worker { is_patient: true, ..Worker::default() };
    let (runtime, client) = start(&url, worker.clone()).await?;
    let draining = tokio::spawn(runtime.run_until_signal(GRACE));
    let cake = dinner::start(&client, "cake".into()).id("dinner-1").await?;
    worker.has_begun.notified().await;
    if file.is_none() {
        let own = std::process::id().to_string();
        std::process::Command::new("kill").args(["-TERM", &own]).status()?;
    }
    let signal = draining.await??;
    println!("drained after {signal}");
    if file.is_some() {
        return Ok(());
    }

    // The activity was given back: the next worker runs it at once, without waiting for the end of its lease.
    let (runtime, client) = start(&url, Worker::default()).await?;
    let cake = dinner::handle(&client, cake.id()).result().await?;
    println!("{cake}");
    assert_eq!((signal, cake.as_str()), ("SIGTERM", "cake is baked"));
    runtime.shutdown(None).await;
    Ok(())
}

//! Writes a store with the published crates: `peer-stores sqlite PATH`, or `peer-stores postgres SCHEMA` with the server in
//! `OUTLAST_TEST_POSTGRES_URL`.
//!
//! The store has finished and failed instances, instances that wait for a timer, an event, an activity, a child, queue messages, or
//! for their first turn, keys, and executions that continued as new. The process ends without a shutdown, as a killed one does, so that
//! leases are left too; then messages are sent that no runtime takes.
#![forbid(unsafe_code)]

mod peer {
    pub use duroxide::*;
}
mod programs;

use duroxide::providers::Provider;
use duroxide::providers::sqlite::SqliteProvider;
use duroxide::runtime::Runtime;
use duroxide::{Client, OrchestrationStatus, RuntimeOptions};
use duroxide_pg::PostgresProvider;
use std::sync::Arc;
use std::time::Duration;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let store: Arc<dyn Provider> = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["sqlite", path] => Arc::new(SqliteProvider::new(&format!("sqlite:{path}?mode=rwc"), None).await?),
            ["postgres", schema] => {
                let url = std::env::var("OUTLAST_TEST_POSTGRES_URL")?;
                Arc::new(PostgresProvider::new_with_schema(&url, Some(schema)).await?)
            }
            _ => return Err("usage: peer-stores sqlite PATH | postgres SCHEMA".into()),
        };
        write(store).await
    })
}

async fn write(store: Arc<dyn Provider>) -> Outcome<()> {
    let (began, mut begins) = tokio::sync::mpsc::unbounded_channel();
    let activities = programs::activities(move |input| {
        let began = began.clone();
        async move {
            let _ = began.send(input);
            std::future::pending().await
        }
    });
    // More workers than activities that never end.
    let options = RuntimeOptions { worker_concurrency: 8, ..RuntimeOptions::default() };
    let programs = programs::orchestrations();
    let runtime = Runtime::start_with_options(Arc::clone(&store), activities, programs, options).await;
    let client = Client::new(Arc::clone(&store));
    for (id, name, input) in [
        ("hello-1", "Hello", "Ada"),
        ("hello-2", "Hello", "a\"b\\c\u{1f980}\n"),
        ("fails-1", "Fails", ""),
        ("nap-long", "Sleeps", "long"),
        ("waits-1", "Waits", "x"),
        ("waits-2", "Waits", "x"),
        ("cancelled-1", "Waits", "x"),
        ("work-1", "Works", "plain"),
        ("work-tag", "Works", "tag"),
        ("work-session", "Works", "session"),
        ("parent-1", "Parent", "x"),
        ("counts-1", "Counts", "1"),
        ("counts-2", "Counts", "1"),
        ("reads-1", "Reads", ""),
    ] {
        client.start_orchestration(id, name, input).await?;
    }
    for id in ["hello-1", "hello-2", "fails-1"] {
        client.wait_for_orchestration(id, Duration::from_secs(60)).await?;
    }
    client.cancel_instance("cancelled-1", "no longer needed").await?;
    client.wait_for_orchestration("cancelled-1", Duration::from_secs(60)).await?;
    client.enqueue_event("reads-1", "orders", "first").await?;
    client.enqueue_event("reads-1", "orders", "second").await?;
    // The instances that wait have committed their turns when their marks are in the store.
    for id in ["waits-1", "waits-2"] {
        until(|| async { Ok(client.get_kv_value(id, "state").await?.as_deref() == Some("asked")) }).await?;
    }
    for id in ["counts-1", "counts-2"] {
        until(|| async { Ok(client.get_kv_value(id, "round-3").await?.is_some()) }).await?;
    }
    client.raise_event("counts-2", "go", "went").await?;
    client.wait_for_orchestration("counts-2", Duration::from_secs(60)).await?;
    for _ in ["plain", "session"] {
        begins.recv().await;
    }
    // Timers that are due when a test reads the store: the process ends before they fire.
    client.start_orchestration("nap-short", "Sleeps", "short").await?;
    client.start_orchestration("family-1", "Family", "Eve").await?;
    client.wait_for_orchestration("detached-1", Duration::from_secs(60)).await?;
    for id in ["nap-long", "nap-short", "family-nap", "work-tag", "parent-1", "parent-1::sub::2", "reads-1"] {
        until(|| async {
            let status = client.get_orchestration_status(id).await?;
            Ok(matches!(status, OrchestrationStatus::Running { .. }))
        })
        .await?;
    }
    runtime.shutdown(Some(0)).await;
    // No runtime takes these.
    client.raise_event("waits-2", "approval", "Grace").await?;
    client.enqueue_event("reads-1", "orders", "third").await?;
    client.start_orchestration("late-1", "Hello", "Lin").await?;
    Ok(())
}

/// Asks until the answer is yes.
async fn until<F, Fut>(mut ask: F) -> Outcome<()>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Outcome<bool>>,
{
    for _ in 0..600 {
        if ask().await? {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Err("the instances did not come to their waits".into())
}

//! A process ends during an instance, and the next process continues it from the file. Here both are in one program, and the first
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::providers::sqlite::SqliteProvider;
use outlast::runtime::Runtime;
use outlast::runtime::registry::ActivityRegistry;
use outlast::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

async fn build_house(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let mut done = Vec::new();
    for part in ["cellar", "walls", "roof"] {
        done.push(ctx.schedule_activity("Build", part).await?);
        ctx.set_custom_status(done.join(", "));
        if part == "walls" {
            ctx.schedule_wait("go on").await;
        }
    }
    Ok(done.join(", "))
}

async fn start(url: &str, year: u32) -> Result<(Arc<Runtime>, Client), Box<dyn Error>> {
    let activities = ActivityRegistry::builder()
        .register("Build", move |_: ActivityContext, part: String| async move {
            println!("{year}: building the {part}");
            Ok(format!("{part} of {year}"))
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder().register("BuildHouse", build_house).build();
    let store = Arc::new(SqliteProvider::new(url, None).await?);
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    Ok((runtime, Client::new(store)))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite:{}", folder.path().join("houses.db").display());

    let (runtime, client) = start(&url, 2025).await?;
    client.start_orchestration("house-1", "BuildHouse", "").await?;
    client.wait_for_status_change("house-1", 1, Duration::from_millis(10), Duration::from_secs(5)).await?;
    // Without a grace period running code is aborted, as in a crash.
    runtime.shutdown(Some(0)).await;

    let (runtime, client) = start(&url, 2026).await?;
    client.raise_event("house-1", "go on", "").await?;
    let house: String = client.wait_for_orchestration_typed("house-1", Duration::from_secs(20)).await??;
    println!("{house}");
    assert_eq!(house, "cellar of 2025, walls of 2025, roof of 2026");
    runtime.shutdown(None).await;
    Ok(())
}

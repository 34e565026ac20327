//! Hello world on a SQLite file.
#![forbid(unsafe_code)]

use duroxide::providers::sqlite::SqliteProvider;
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus,
};
use std::sync::Arc;
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("the file of the store?")?;
    std::fs::File::create(&file)?;
    let store = Arc::new(SqliteProvider::new(&format!("sqlite:{file}"), None).await?);
    let activities = ActivityRegistry::builder()
        .register("Greet", |_: ActivityContext, name: String| async move { Ok(format!("hello, {name}")) })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("Hello", |ctx: OrchestrationContext, name: String| async move {
            ctx.schedule_activity("Greet", name).await
        })
        .build();
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    let client = Client::new(store);
    client.start_orchestration("hello-1", "Hello", "world").await?;
    match client.wait_for_orchestration("hello-1", Duration::from_secs(30)).await {
        Ok(OrchestrationStatus::Completed { output, .. }) => println!("{output}"),
        other => return Err(format!("{other:?}").into()),
    }
    runtime.shutdown(None).await;
    Ok(())
}

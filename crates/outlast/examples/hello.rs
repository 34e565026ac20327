//! One activity, called by one orchestration, with all parts that a program needs.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::providers::memory::MemoryProvider;
use outlast::runtime::{Runtime, registry::ActivityRegistry};
use outlast::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry};
use std::{sync::Arc, time::Duration};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let activities = ActivityRegistry::builder()
        .register("Greet", |_: ActivityContext, name: String| async move { Ok(format!("Hello, {name}!")) })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("Hello", |ctx: OrchestrationContext, name: String| async move {
            ctx.schedule_activity("Greet", name).await
        })
        .build();

    let store = Arc::new(MemoryProvider::new());
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    let client = Client::new(store);
    client.start_orchestration("hello-1", "Hello", "Ada").await?;
    let greeting: String = client.wait_for_orchestration_typed("hello-1", Duration::from_secs(5)).await??;
    println!("{greeting}");
    assert_eq!(greeting, "Hello, Ada!");
    runtime.shutdown(None).await;
    Ok(())
}

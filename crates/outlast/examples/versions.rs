//! A new version of the code: running instances keep the old version, new instances get the new one.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::providers::memory::MemoryProvider;
use outlast::runtime::Runtime;
use outlast::runtime::registry::ActivityRegistry;
use outlast::{Client, OrchestrationContext, OrchestrationRegistry};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

async fn greet_v1(ctx: OrchestrationContext, name: String) -> Result<String, String> {
    ctx.set_custom_status("waiting");
    ctx.schedule_wait("go").await;
    Ok(format!("Hello, {name}"))
}

async fn greet_v2(_: OrchestrationContext, name: String) -> Result<String, String> {
    Ok(format!("Good morning, {name}"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(MemoryProvider::new());
    let client = Client::new(store.clone());

    // Monday's release.
    let monday = OrchestrationRegistry::builder().register("Greet", greet_v1).build();
    let runtime = Runtime::start_with_store(store.clone(), ActivityRegistry::default(), monday).await;
    client.start_orchestration("early", "Greet", "Ada").await?;
    client.wait_for_status_change("early", 0, Duration::from_millis(10), Duration::from_secs(5)).await?;
    runtime.shutdown(None).await;

    // Tuesday's release has both: the first version is for running instances.
    let tuesday = OrchestrationRegistry::builder()
        .register("Greet", greet_v1)
        .register_versioned("Greet", "2.0.0", greet_v2)
        .build();
    let runtime = Runtime::start_with_store(store, ActivityRegistry::default(), tuesday).await;
    client.start_orchestration("late", "Greet", "Bob").await?;
    client.raise_event("early", "go", "").await?;
    for (instance, expected) in [("early", "Hello, Ada"), ("late", "Good morning, Bob")] {
        let greeting: String =
            client.wait_for_orchestration_typed(instance, Duration::from_secs(5)).await??;
        let version = client.get_instance_info(instance).await?.orchestration_version;
        println!("{instance}: {greeting}, by version {version}");
        assert_eq!(greeting, expected);
    }
    runtime.shutdown(None).await;
    Ok(())
}

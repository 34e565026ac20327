//! An endless loop: continue-as-new starts each round with an empty history.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::providers::memory::MemoryProvider;
use outlast::runtime::Runtime;
use outlast::runtime::registry::ActivityRegistry;
use outlast::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

async fn watch(ctx: OrchestrationContext, round: u64) -> Result<String, String> {
    let degrees: u64 = ctx.schedule_activity_typed("Measure", &round).await?;
    if degrees > 50 {
        return Ok(format!("round {round}: {degrees} degrees, call the fire brigade"));
    }
    ctx.schedule_timer(Duration::from_millis(10)).await;
    ctx.continue_as_new_typed(&(round + 1)).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let activities = ActivityRegistry::builder()
        .register_typed("Measure", |_: ActivityContext, round: u64| async move { Ok(20 + round * 3) })
        .build();
    let orchestrations = OrchestrationRegistry::builder().register_typed("Watch", watch).build();
    let store = Arc::new(MemoryProvider::new());
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    let client = Client::new(store);

    client.start_orchestration_typed("attic", "Watch", 1_u64).await?;
    let alarm: String = client.wait_for_orchestration_typed("attic", Duration::from_secs(5)).await??;
    let rounds = client.list_executions("attic").await?;
    let longest = client.read_execution_history("attic", 1).await?.len();
    println!("{alarm}; {} rounds with {longest} events each", rounds.len());
    assert_eq!((rounds.len(), longest), (11, 6));
    runtime.shutdown(None).await;
    Ok(())
}

//! Waits for the decision of a person, or for a timer. An instance that waits uses no resources but its rows in the store.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::providers::memory::MemoryProvider;
use outlast::runtime::Runtime;
use outlast::runtime::registry::ActivityRegistry;
use outlast::{Client, Either2, OrchestrationContext, OrchestrationRegistry};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

async fn expense(ctx: OrchestrationContext, days: u64) -> Result<String, String> {
    let decision = ctx.schedule_wait("decision");
    // A day is short in this example.
    let deadline = ctx.schedule_timer(Duration::from_millis(50 * days));
    ctx.set_custom_status("waiting for a decision");
    Ok(match ctx.select2(decision, deadline).await {
        Either2::First(decision) => format!("decided: {decision}"),
        Either2::Second(()) => "nobody decided: passed on to the boss".to_string(),
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let orchestrations = OrchestrationRegistry::builder().register_typed("Expense", expense).build();
    let store = Arc::new(MemoryProvider::new());
    let runtime = Runtime::start_with_store(store.clone(), ActivityRegistry::default(), orchestrations).await;
    let client = Client::new(store);

    client.start_orchestration_typed("taxi", "Expense", 365_u64).await?;
    client.start_orchestration_typed("piano", "Expense", 2_u64).await?;
    // An event is dropped unless the instance waits for it, so wait until it does.
    client.wait_for_status_change("taxi", 0, Duration::from_millis(10), Duration::from_secs(5)).await?;
    client.raise_event("taxi", "decision", "approved").await?;
    for (instance, expected) in
        [("taxi", "decided: approved"), ("piano", "nobody decided: passed on to the boss")]
    {
        let outcome: String = client.wait_for_orchestration_typed(instance, Duration::from_secs(5)).await??;
        println!("{instance}: {outcome}");
        assert_eq!(outcome, expected);
    }
    runtime.shutdown(None).await;
    Ok(())
}

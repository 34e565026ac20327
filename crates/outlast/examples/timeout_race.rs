//! A race of an activity against a timer: the loser is cancelled.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::providers::memory::MemoryProvider;
use outlast::runtime::Runtime;
use outlast::runtime::registry::ActivityRegistry;
use outlast::{ActivityContext, Client, Either2, OrchestrationContext, OrchestrationRegistry};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

async fn ask(ctx: ActivityContext, who: String) -> Result<String, String> {
    if who == "the oracle" {
        // Runs until it is cancelled.
        ctx.cancelled().await;
        println!("the oracle was cancelled");
    }
    Ok(format!("{who} says yes"))
}

async fn question(ctx: OrchestrationContext, who: String) -> Result<String, String> {
    let answer = ctx.schedule_activity("Ask", who);
    let patience = ctx.schedule_timer(Duration::from_millis(100));
    match ctx.select2(answer, patience).await {
        Either2::First(answer) => answer,
        Either2::Second(()) => Ok("no answer in time".to_string()),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let activities = ActivityRegistry::builder().register("Ask", ask).build();
    let orchestrations = OrchestrationRegistry::builder().register("Question", question).build();
    let store = Arc::new(MemoryProvider::new());
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    let client = Client::new(store);

    for (who, expected) in [("my neighbour", "my neighbour says yes"), ("the oracle", "no answer in time")] {
        client.start_orchestration(who, "Question", who).await?;
        let answer: String = client.wait_for_orchestration_typed(who, Duration::from_secs(5)).await??;
        println!("{who}: {answer}");
        assert_eq!(answer, expected);
    }
    runtime.shutdown(None).await;
    Ok(())
}

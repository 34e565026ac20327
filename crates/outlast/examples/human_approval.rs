//! Waits for the decision of a person, or for a timer. An instance that waits uses no resources but its rows in the store.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::prelude::*;
use outlast::providers::memory::MemoryProvider;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

#[derive(Serialize, Deserialize, outlast::Message)]
struct Decision {
    approved: bool,
    by: String,
}

#[outlast::orchestration(accepts(Decision))]
async fn expense(ctx: OrchestrationContext, days: u64) -> Result<String, String> {
    // A day is short in this example.
    let deadline = Duration::from_millis(50 * days);
    Ok(match ctx.next::<Decision>().within(deadline).await? {
        Some(Decision { approved: true, by }) => format!("approved by {by}"),
        Some(Decision { approved: false, by }) => format!("refused by {by}"),
        None => "no decision: passed on to the boss".to_string(),
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(MemoryProvider::new());
    let runtime = Runtime::builder().store(store.clone()).register(outlast::module![expense]).start().await?;
    let client = Client::new(store);

    let taxi = expense::start(&client, 365).id("taxi").await?;
    let piano = expense::start(&client, 2).id("piano").await?;
    // The message waits in a queue until the instance reads it.
    taxi.send(Decision { approved: true, by: "Ada".into() }).await?;
    let (taxi, piano) = (taxi.result().await?, piano.result().await?);
    println!("taxi: {taxi}; piano: {piano}");
    assert_eq!((taxi.as_str(), piano.as_str()), ("approved by Ada", "no decision: passed on to the boss"));
    // A message to an instance that does not exist is an error.
    let nobody = expense::handle(&client, "tax").send(Decision { approved: true, by: "Ada".into() }).await;
    assert!(matches!(nobody, Err(InstanceError::NotFound { .. })));
    runtime.shutdown(None).await;
    Ok(())
}

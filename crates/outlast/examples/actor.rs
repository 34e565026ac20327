//! An actor: takes messages from a queue one by one, and keeps state that clients can read.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::providers::memory::MemoryProvider;
use outlast::runtime::Runtime;
use outlast::runtime::registry::ActivityRegistry;
use outlast::{Client, OrchestrationContext, OrchestrationRegistry};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

async fn account(ctx: OrchestrationContext, mut balance: i64) -> Result<String, String> {
    // Messages wait in the queue until they are read, also across continue-as-new.
    for _ in 0..4 {
        let message = ctx.dequeue_event("messages").await;
        match message.parse::<i64>() {
            Ok(amount) => balance += amount,
            Err(_) => return Ok(format!("closed with {balance}")),
        }
        ctx.set_kv_value_typed("balance", &balance);
    }
    ctx.continue_as_new_typed(&balance).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let orchestrations = OrchestrationRegistry::builder().register_typed("Account", account).build();
    let store = Arc::new(MemoryProvider::new());
    let runtime = Runtime::start_with_store(store.clone(), ActivityRegistry::default(), orchestrations).await;
    let client = Client::new(store);

    client.start_orchestration_typed("ada", "Account", 0_i64).await?;
    for amount in 1..=10 {
        client.enqueue_event("ada", "messages", amount.to_string()).await?;
    }
    client.enqueue_event("ada", "messages", "close").await?;
    let closed: String = client.wait_for_orchestration_typed("ada", Duration::from_secs(5)).await??;
    let balance: Option<i64> = client.get_kv_value_typed("ada", "balance").await?;
    println!("{closed}; the balance is still there: {balance:?}");
    assert_eq!((closed.as_str(), balance), ("closed with 55", Some(55)));
    runtime.shutdown(None).await;
    Ok(())
}

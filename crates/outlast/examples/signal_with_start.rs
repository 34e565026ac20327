//! Starts an instance unless it exists, and sends it a message in the same step. Concurrent callers need not know which is first.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::client::Conflict;
use outlast::providers::memory::MemoryProvider;
use outlast::runtime::Runtime;
use outlast::runtime::registry::ActivityRegistry;
use outlast::{Client, OrchestrationContext, OrchestrationRegistry};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

async fn basket(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let mut items = Vec::new();
    loop {
        match ctx.dequeue_event("items").await.as_str() {
            "check out" => return Ok(items.join(", ")),
            item => items.push(item.to_string()),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let orchestrations = OrchestrationRegistry::builder().register("Basket", basket).build();
    let store = Arc::new(MemoryProvider::new());
    let runtime = Runtime::start_with_store(store.clone(), ActivityRegistry::default(), orchestrations).await;
    let client = Client::new(store);

    let mut starts = 0;
    for item in ["apples", "bread", "cheese", "check out"] {
        let receipt = client
            .start_request("Basket")
            .instance("basket-of-ada")
            .if_exists(Conflict::UseExisting)
            .with_event("items", item)
            .send()
            .await?;
        println!("{item}: {}", if receipt.is_started() { "started the basket" } else { "found the basket" });
        starts += u32::from(receipt.is_started());
    }
    let bought: String =
        client.wait_for_orchestration_typed("basket-of-ada", Duration::from_secs(5)).await??;
    println!("bought {bought}");
    assert_eq!((starts, bought.as_str()), (1, "apples, bread, cheese"));
    runtime.shutdown(None).await;
    Ok(())
}

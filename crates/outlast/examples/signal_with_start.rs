//! Starts an instance unless it exists, and sends it a message in the same step. Concurrent callers need not know which is first.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::prelude::*;
use outlast::providers::memory::MemoryProvider;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::sync::Arc;

#[derive(Serialize, Deserialize, outlast::Message)]
enum Item {
    Add(String),
    CheckOut,
}

#[outlast::orchestration(accepts(Item))]
async fn basket(ctx: OrchestrationContext) -> Result<String, String> {
    let mut items = Vec::new();
    loop {
        match ctx.next::<Item>().await? {
            Item::Add(item) => items.push(item),
            Item::CheckOut => return Ok(items.join(", ")),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(MemoryProvider::new());
    let runtime = Runtime::builder().store(store.clone()).register(outlast::module![basket]).start().await?;
    let client = Client::new(store);

    for item in ["apples", "bread", "cheese"] {
        let item = Item::Add(item.to_string());
        basket::start(&client).id("basket-of-ada").or_existing().with(&item).await?;
    }
    let basket = basket::handle(&client, "basket-of-ada");
    basket.send(Item::CheckOut).await?;
    let bought = basket.result().await?;
    println!("bought {bought}");
    assert_eq!(bought, "apples, bread, cheese");
    runtime.shutdown(None).await;
    Ok(())
}

//! A chain of steps: each gets the result of the one before. Values of any type with serde's traits travel as JSON.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::prelude::*;
use outlast::providers::memory::MemoryProvider;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Order {
    item: String,
    cents: u64,
    label: Option<String>,
}

#[outlast::activity]
async fn price(_ctx: ActivityContext, item: String) -> Result<Order, String> {
    Ok(Order { cents: 100 * item.len() as u64, item, label: None })
}

/// Several inputs travel as an object with their names.
#[outlast::activity]
async fn pack(_ctx: ActivityContext, order: Order, gift: bool) -> Result<Order, String> {
    let wrapping = if gift { ", as a gift" } else { "" };
    Ok(Order { label: Some(format!("{} for {} cents{wrapping}", order.item, order.cents)), ..order })
}

#[outlast::orchestration]
async fn fulfil(ctx: OrchestrationContext, item: String) -> Result<Order, String> {
    let priced = price::call(&ctx, item).await?;
    println!("priced: {priced:?}");
    Ok(pack::call(&ctx, priced, true).await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(MemoryProvider::new());
    let module = outlast::module![price, pack, fulfil];
    let runtime = Runtime::builder().store(store.clone()).register(module).start().await?;
    let client = Client::new(store);

    let order = fulfil::start(&client, "lamp".into()).id("order-1").await?.result().await?;
    println!("packed: {order:?}");
    assert_eq!(order.label.as_deref(), Some("lamp for 400 cents, as a gift"));
    runtime.shutdown(None).await;
    Ok(())
}

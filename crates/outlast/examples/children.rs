//! Orchestrations that call orchestrations: each has its own history, and the failure of a child is an error in its parent.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::prelude::*;
use outlast::providers::memory::MemoryProvider;
use std::error::Error;
use std::sync::Arc;

#[outlast::orchestration]
async fn region(ctx: OrchestrationContext, shops: Vec<String>) -> Result<u64, String> {
    let children: Vec<_> = shops.iter().map(|name| shop::child(&ctx, name.clone())).collect();
    let mut sales = 0;
    for (name, result) in shops.iter().zip(ctx.join_all(children).await) {
        match result {
            Ok(sold) => sales += sold,
            Err(error) => ctx.trace_warn(format!("{name}: {error}")),
        }
    }
    Ok(sales)
}

#[outlast::orchestration]
async fn shop(_ctx: OrchestrationContext, name: String) -> Result<u64, String> {
    if name == "closed" { Err("the shop is closed".to_string()) } else { Ok(100 * name.len() as u64) }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(MemoryProvider::new());
    let module = outlast::module![region, shop];
    let runtime = Runtime::builder().store(store.clone()).register(module).start().await?;
    let client = Client::new(store);

    let shops = ["harbour", "station", "closed"].map(String::from).to_vec();
    let sales = region::start(&client, shops).id("north").await?.result().await?;
    let tree = client.get_instance_tree("north").await?;
    println!("sold {sales} in the tree {:?}", tree.all_ids);
    assert_eq!((sales, tree.size()), (1_400, 4));
    runtime.shutdown(None).await;
    Ok(())
}

//! Orchestrations that call orchestrations: each has its own history, and the failure of a child is an error in its parent.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::providers::memory::MemoryProvider;
use outlast::runtime::Runtime;
use outlast::runtime::registry::ActivityRegistry;
use outlast::{Client, OrchestrationContext, OrchestrationRegistry};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

async fn region(ctx: OrchestrationContext, shops: Vec<String>) -> Result<u64, String> {
    let mut sales = 0;
    let children =
        shops.iter().map(|shop| ctx.schedule_sub_orchestration_typed::<String, u64>("Shop", shop)).collect();
    for (shop, result) in shops.iter().zip(ctx.join(children).await) {
        match result {
            Ok(sold) => sales += sold,
            Err(error) => ctx.trace_warn(format!("{shop}: {error}")),
        }
    }
    Ok(sales)
}

async fn shop(_: OrchestrationContext, name: String) -> Result<u64, String> {
    if name == "closed" { Err("nobody is there".to_string()) } else { Ok(100 * name.len() as u64) }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let orchestrations = OrchestrationRegistry::builder()
        .register_typed("Region", region)
        .register_typed("Shop", shop)
        .build();
    let store = Arc::new(MemoryProvider::new());
    let runtime = Runtime::start_with_store(store.clone(), ActivityRegistry::default(), orchestrations).await;
    let client = Client::new(store);

    client.start_orchestration_typed("north", "Region", ["harbour", "station", "closed"]).await?;
    let sales: u64 = client.wait_for_orchestration_typed("north", Duration::from_secs(5)).await??;
    let tree = client.get_instance_tree("north").await?;
    println!("sold {sales} in the tree {:?}", tree.all_ids);
    assert_eq!((sales, tree.size()), (1_400, 4));
    runtime.shutdown(None).await;
    Ok(())
}

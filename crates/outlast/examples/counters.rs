//! Key-value state of an instance: written by its code, read by clients and other instances.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::providers::memory::MemoryProvider;
use outlast::runtime::Runtime;
use outlast::runtime::registry::ActivityRegistry;
use outlast::{Client, OrchestrationContext, OrchestrationRegistry};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

async fn turnstile(ctx: OrchestrationContext, visitors: u64) -> Result<u64, String> {
    for _ in 0..visitors {
        let gate = ctx.dequeue_event("gate").await;
        let count: u64 = ctx.get_kv_value_typed(&gate)?.unwrap_or(0);
        ctx.set_kv_value_typed(gate, &(count + 1));
    }
    Ok(visitors)
}

async fn reporter(ctx: OrchestrationContext, other: String) -> Result<u64, String> {
    // Another instance can read it as well.
    let east: Option<u64> = ctx.get_kv_value_from_instance_typed(other, "east").await?;
    Ok(east.unwrap_or(0))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let orchestrations = OrchestrationRegistry::builder()
        .register_typed("Turnstile", turnstile)
        .register_typed("Reporter", reporter)
        .build();
    let store = Arc::new(MemoryProvider::new());
    let runtime = Runtime::start_with_store(store.clone(), ActivityRegistry::default(), orchestrations).await;
    let client = Client::new(store);

    client.start_orchestration_typed("stadium", "Turnstile", 5_u64).await?;
    for gate in ["east", "west", "east", "east", "west"] {
        client.enqueue_event("stadium", "gate", gate).await?;
    }
    let _: u64 = client.wait_for_orchestration_typed("stadium", Duration::from_secs(5)).await??;
    let east: Option<u64> = client.get_kv_value_typed("stadium", "east").await?;
    let west: Option<u64> = client.get_kv_value_typed("stadium", "west").await?;
    client.start_orchestration_typed("news", "Reporter", "stadium").await?;
    let reported: u64 = client.wait_for_orchestration_typed("news", Duration::from_secs(5)).await??;
    println!("east {east:?}, west {west:?}, and the news say {reported}");
    assert_eq!((east, west, reported), (Some(3), Some(2), 3));
    runtime.shutdown(None).await;
    Ok(())
}

//! Key-value state of an instance: written by its code, read by clients and other instances.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::prelude::*;
use outlast::providers::memory::MemoryProvider;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::sync::Arc;

#[derive(Serialize, Deserialize, outlast::Message)]
struct Gate(String);

#[outlast::orchestration(accepts(Gate))]
async fn turnstile(ctx: OrchestrationContext, visitors: u64) -> Result<u64, String> {
    for _ in 0..visitors {
        let Gate(gate) = ctx.next().await?;
        let key: Key<u64> = Key::named(gate);
        let count = ctx.get(key.clone())?.unwrap_or(0);
        ctx.set(key, &(count + 1));
    }
    Ok(visitors)
}

#[outlast::orchestration]
async fn reporter(ctx: OrchestrationContext, other: String) -> Result<u64, String> {
    // Another instance can read it as well.
    let east: Option<u64> = ctx.get_kv_value_from_instance_typed(other, "east").await?;
    Ok(east.unwrap_or(0))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(MemoryProvider::new());
    let module = outlast::module![turnstile, reporter];
    let runtime = Runtime::builder().store(store.clone()).register(module).start().await?;
    let client = Client::new(store);

    let stadium = turnstile::start(&client, 5).id("stadium").await?;
    for gate in ["east", "west", "east", "east", "west"] {
        stadium.send(Gate(gate.to_string())).await?;
    }
    stadium.result().await?;
    let east = stadium.get(Key::<u64>::new("east")).await?;
    let west = stadium.get(Key::<u64>::new("west")).await?;
    let reported = reporter::start(&client, stadium.id().to_string()).await?.result().await?;
    println!("east {east:?}, west {west:?}, and the news say {reported}");
    assert_eq!((east, west, reported), (Some(3), Some(2), 3));
    runtime.shutdown(None).await;
    Ok(())
}

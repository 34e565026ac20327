//! An endless loop: continue-as-new starts each round with an empty history.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::prelude::*;
use outlast::providers::memory::MemoryProvider;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

#[outlast::activity]
async fn measure(_ctx: ActivityContext, round: u64) -> Result<u64, String> {
    Ok(20 + round * 3)
}

#[outlast::orchestration]
async fn watch(ctx: OrchestrationContext, round: u64) -> Result<String, String> {
    let degrees = measure::call(&ctx, round).await?;
    if degrees > 50 {
        return Ok(format!("round {round}: {degrees} degrees, call the fire brigade"));
    }
    ctx.sleep(Duration::from_millis(10)).await;
    watch::continue_as_new(&ctx, round + 1).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(MemoryProvider::new());
    let module = outlast::module![measure, watch];
    let runtime = Runtime::builder().store(store.clone()).register(module).start().await?;
    let client = Client::new(store);

    let alarm = watch::start(&client, 1).id("attic").await?.result().await?;
    let rounds = client.list_executions("attic").await?;
    let longest = client.read_execution_history("attic", 1).await?.len();
    println!("{alarm}; {} rounds with {longest} events each", rounds.len());
    assert_eq!((rounds.len(), longest), (11, 6));
    runtime.shutdown(None).await;
    Ok(())
}

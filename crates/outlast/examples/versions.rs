//! A new version of the code: running instances keep the old version, new instances get the new one.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::prelude::*;
use outlast::providers::memory::MemoryProvider;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::sync::Arc;

#[derive(Serialize, Deserialize, outlast::Message)]
struct Go;

/// Monday's code, which keeps its name in histories.
#[outlast::orchestration(name = "greet", version = "1.0.0", accepts(Go))]
async fn greet_v1(ctx: OrchestrationContext, name: String) -> Result<String, String> {
    ctx.set_custom_status("waiting");
    let _: Go = ctx.next().await?;
    Ok(format!("Hello, {name}"))
}

#[outlast::orchestration(version = "2.0.0")]
async fn greet(_ctx: OrchestrationContext, name: String) -> Result<String, String> {
    Ok(format!("Good morning, {name}"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(MemoryProvider::new());
    let client = Client::new(store.clone());

    // Monday's release.
    let runtime =
        Runtime::builder().store(store.clone()).register(outlast::module![greet_v1]).start().await?;
    let early = greet_v1::start(&client, "Ada".into()).id("early").await?;
    while early.status().await.ok().flatten().is_none() {
        tokio::task::yield_now().await;
    }
    runtime.shutdown(None).await;

    // Tuesday's release has both: the first version is for running instances.
    let module = outlast::module![greet_v1, greet];
    let runtime = Runtime::builder().store(store).register(module).start().await?;
    let late = greet::start(&client, "Bob".into()).id("late").await?;
    early.send(Go).await?;
    let greetings = (early.result().await?, late.result().await?);
    println!("{greetings:?}");
    assert_eq!(greetings, ("Hello, Ada".to_string(), "Good morning, Bob".to_string()));
    assert_eq!(client.get_instance_info("early").await?.orchestration_version, "1.0.0");
    assert_eq!(client.get_instance_info("late").await?.orchestration_version, "2.0.0");
    runtime.shutdown(None).await;
    Ok(())
}

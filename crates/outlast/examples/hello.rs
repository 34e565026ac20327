//! One activity, called by one orchestration, with all parts that a program needs.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::prelude::*;
use outlast::providers::memory::MemoryProvider;
use std::sync::Arc;

#[outlast::activity]
async fn greet(_ctx: ActivityContext, name: String) -> Result<String, String> {
    Ok(format!("Hello, {name}!"))
}

#[outlast::orchestration]
async fn hello(ctx: OrchestrationContext, name: String) -> Result<String, String> {
    Ok(greet::call(&ctx, name).await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Arc::new(MemoryProvider::new());
    let module = outlast::module![greet, hello];
    let runtime = Runtime::builder().store(store.clone()).register(module).start().await?;
    let client = Client::new(store);

    let instance = hello::start(&client, "Ada".into()).id("hello-1").await?;
    let greeting = instance.result().await?;
    println!("{greeting}");
    assert_eq!(greeting, "Hello, Ada!");
    runtime.shutdown(None).await;
    Ok(())
}

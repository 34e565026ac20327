//! Hello world on a SQLite file.
#![forbid(unsafe_code)]

use outlast::prelude::*;
use outlast::providers::sqlite::SqliteProvider;
use std::sync::Arc;

#[outlast::activity]
async fn greet(_ctx: ActivityContext, name: String) -> Result<String, String> {
    Ok(format!("hello, {name}"))
}

#[outlast::orchestration]
async fn hello(ctx: OrchestrationContext, name: String) -> Result<String, String> {
    Ok(greet::call(&ctx, name).await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("the file of the store?")?;
    let store = Arc::new(SqliteProvider::new(&format!("sqlite:{file}"), None).await?);
    let module = outlast::module![greet, hello];
    let runtime = Runtime::builder().store(store.clone()).register(module).start().await?;
    let client = Client::new(store);
    let instance = hello::start(&client, "world".into()).id("hello-1").await?;
    println!("{}", instance.result().await?);
    runtime.shutdown(None).await;
    Ok(())
}

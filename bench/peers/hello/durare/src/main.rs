//! Hello world on a SQLite file.
#![forbid(unsafe_code)]

use durare::{DurableContext, DurableEngine, SqliteProvider, WorkflowOptions};
use std::sync::Arc;
use std::time::Duration;

async fn hello(ctx: DurableContext, name: String) -> durare::Result<String> {
    ctx.step("Greet", || async move { Ok(format!("hello, {name}")) }).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("the file of the store?")?;
    let store = SqliteProvider::connect(&format!("sqlite://{file}")).await?;
    let mut builder = DurableEngine::builder(Arc::new(store));
    builder.register("Hello", hello);
    let engine = builder.build().await?;
    engine.launch().await?;
    let options = WorkflowOptions::with_id("hello-1");
    let handle = engine.start::<_, String>("Hello", "world".to_string(), options).await?;
    println!("{}", handle.result().await?);
    engine.shutdown(Duration::ZERO).await?;
    Ok(())
}

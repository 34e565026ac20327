//! The programs of docs/guide/configuration.md.

// guide: program
use outlast::prelude::*;
use outlast::providers::memory::MemoryProvider;
use outlast::runtime::limits::Limits;
use outlast::{RuntimeOptions, TagFilter};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

#[outlast::activity]
async fn greet(_ctx: ActivityContext, name: String) -> Result<String, String> {
    Ok(format!("Hello, {name}!"))
}

#[outlast::orchestration]
async fn hello(ctx: OrchestrationContext, name: String) -> Result<String, String> {
    Ok(greet::call(&ctx, name).await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(MemoryProvider::new());
    let limits = Limits { payload_bytes: 64 * 1024, ..Limits::default() };
    let options = RuntimeOptions {
        orchestration_concurrency: 16,
        worker_concurrency: 64,
        worker_lock_timeout: Duration::from_secs(60),
        worker_tag_filter: TagFilter::default_and(["gpu"]),
        limits: limits.clone(),
        ..RuntimeOptions::default()
    };
    let runtime = Runtime::builder()
        .store(store.clone())
        .register(outlast::module![greet, hello])
        .options(options)
        .start()
        .await?;
    let client = Client::new(store).with_limits(limits);

    let greeting = hello::start(&client, "Ada".into()).await?.result().await?;
    assert_eq!(greeting, "Hello, Ada!");
    let long = hello::start(&client, "A".repeat(100_000)).id("long").await;
    println!("{}", long.err().ok_or("the name is too long")?);
    runtime.shutdown(Some(10_000)).await;
    Ok(())
}
// guide: end

#[test]
fn the_program_runs() {
    main().unwrap();
}

const PAGE: &str = include_str!("../../../../../docs/guide/configuration.md");

#[tokio::test]
async fn the_error_of_the_page_is_the_error_of_the_client() {
    let limits = Limits { payload_bytes: 64 * 1024, ..Limits::default() };
    let client = Client::new(Arc::new(MemoryProvider::new())).with_limits(limits);
    let error = hello::start(&client, "A".repeat(100_000)).id("long").await.unwrap_err().to_string();
    assert!(PAGE.contains(&error), "{error}");
}

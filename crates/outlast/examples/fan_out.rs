//! Many activities at the same time, and one result from all of them.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::RuntimeOptions;
use outlast::prelude::*;
use outlast::providers::memory::MemoryProvider;
use std::error::Error;
use std::sync::Arc;

#[outlast::activity]
async fn count_words(_ctx: ActivityContext, page: String) -> Result<usize, String> {
    Ok(page.split_whitespace().count())
}

#[outlast::orchestration]
async fn survey(ctx: OrchestrationContext, pages: Vec<String>) -> Result<usize, String> {
    // All activities are scheduled here and awaited together. The results are in the order of the pages.
    let counts: Vec<_> = pages.into_iter().map(|page| count_words::call(&ctx, page)).collect();
    let mut words = 0;
    for count in ctx.join_all(counts).await {
        words += count?;
    }
    Ok(words)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(MemoryProvider::new());
    let runtime = Runtime::builder()
        .store(store.clone())
        .register(outlast::module![count_words, survey])
        .options(RuntimeOptions { worker_concurrency: 8, ..RuntimeOptions::default() })
        .start()
        .await?;
    let client = Client::new(store);

    let pages: Vec<String> = (1..=100).map(|words| "word ".repeat(words)).collect();
    let words = survey::start(&client, pages).id("survey-1").await?.result().await?;
    println!("{words} words on 100 pages, 8 pages at a time");
    assert_eq!(words, 5_050);
    runtime.shutdown(None).await;
    Ok(())
}

//! Many activities at the same time, and one result from all of them.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::providers::memory::MemoryProvider;
use outlast::runtime::Runtime;
use outlast::runtime::registry::ActivityRegistry;
use outlast::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

async fn count_words(_: ActivityContext, page: String) -> Result<usize, String> {
    Ok(page.split_whitespace().count())
}

async fn survey(ctx: OrchestrationContext, pages: Vec<String>) -> Result<usize, String> {
    // All activities are scheduled here and awaited together. The results are in the order of the pages.
    let counts =
        pages.iter().map(|page| ctx.schedule_activity_typed::<String, usize>("CountWords", page)).collect();
    ctx.join(counts).await.into_iter().sum()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let activities = ActivityRegistry::builder().register_typed("CountWords", count_words).build();
    let orchestrations = OrchestrationRegistry::builder().register_typed("Survey", survey).build();
    let store = Arc::new(MemoryProvider::new());
    let options = RuntimeOptions { worker_concurrency: 8, ..RuntimeOptions::default() };
    let runtime = Runtime::start_with_options(store.clone(), activities, orchestrations, options).await;
    let client = Client::new(store);

    let pages: Vec<String> = (1..=100).map(|words| "word ".repeat(words)).collect();
    client.start_orchestration_typed("survey-1", "Survey", pages).await?;
    let words: usize = client.wait_for_orchestration_typed("survey-1", Duration::from_secs(5)).await??;
    println!("{words} words on 100 pages, 8 pages at a time");
    assert_eq!(words, 5_050);
    runtime.shutdown(None).await;
    Ok(())
}

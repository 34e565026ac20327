//! The programs of docs/guide/state.md.

// guide: program
use outlast::prelude::*;
use outlast::providers::memory::MemoryProvider;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::sync::Arc;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Progress {
    Counting { done: usize, of: usize },
    Finished,
}

const WORDS: Key<usize> = Key::new("words");

#[outlast::activity]
async fn count(_ctx: ActivityContext, page: String) -> Result<usize, String> {
    Ok(page.split_whitespace().count())
}

#[outlast::orchestration(status = Progress)]
async fn count_all(ctx: OrchestrationContext, pages: Vec<String>) -> Result<(), String> {
    let of = pages.len();
    for (done, page) in pages.into_iter().enumerate() {
        count_all::set_status(&ctx, &Progress::Counting { done, of });
        let words = count::call(&ctx, page).await?;
        let total = ctx.get(WORDS)?.unwrap_or(0) + words;
        ctx.set(WORDS, &total);
    }
    count_all::set_status(&ctx, &Progress::Finished);
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(MemoryProvider::new());
    let module = outlast::module![count, count_all];
    let runtime = Runtime::builder().store(store.clone()).register(module).start().await?;
    let client = Client::new(store);

    let pages = vec!["in the beginning".to_string(), "the end".to_string()];
    let book = count_all::start(&client, pages).id("book-1").await?;
    book.result().await?;
    // Status and keys can be read while the instance runs and after it has ended.
    assert_eq!(book.status().await?, Some(Progress::Finished));
    assert_eq!(book.get(WORDS).await?, Some(5));
    runtime.shutdown(None).await;
    Ok(())
}
// guide: end

#[test]
fn the_program_runs() {
    main().unwrap();
}

// guide: other
#[outlast::orchestration]
async fn report(ctx: OrchestrationContext, book: String) -> Result<String, String> {
    let words: Option<usize> = ctx.get_kv_value_from_instance_typed(&book, WORDS.name()).await?;
    Ok(format!("{book}: {} words", words.unwrap_or(0)))
}
// guide: end

#[test]
fn another_instance_reads_a_key() {
    let run = outlast::testing::Test::<report>::new(outlast::module![report]).run("book-1".into());
    assert_eq!(run.output(), "book-1: 0 words");
}

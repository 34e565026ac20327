//! `src/main.rs` of the project of docs/guide/testing.md.

use super::library as letters;

// guide: program
use letters::{course, module};
use outlast::prelude::*;
use outlast::providers::sqlite::SqliteProvider;
use std::error::Error;
use std::sync::Arc;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(SqliteProvider::new("sqlite:letters.db", None).await?);
    let runtime = Runtime::builder().store(store.clone()).register(module()).start().await?;
    let course = course::start(&Client::new(store), "Ada".into()).id("course-of-ada").or_existing().await?;
    println!("{} lessons", course.result().await?);
    runtime.shutdown(None).await;
    Ok(())
}
// guide: end

/// The program runs for three days, so that the tests only compile it.
const _: fn() -> Result<(), Box<dyn Error>> = main;

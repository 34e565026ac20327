//! Steps that are undone when a later step fails.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::prelude::*;
use outlast::providers::memory::MemoryProvider;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::sync::Arc;

#[derive(Debug, PartialEq, thiserror::Error, Serialize, Deserialize, outlast::Failure)]
enum BookingError {
    #[error("no {0} left")]
    #[failure(permanent)]
    SoldOut(String),
}

#[derive(Debug, PartialEq, thiserror::Error, Serialize, Deserialize, outlast::Failure)]
enum TripError {
    #[error("no trip: there is no {part}")]
    Impossible { part: String },
    #[error("{0}")]
    #[failure(call)]
    Broken(String),
}

#[outlast::activity]
async fn book(_ctx: ActivityContext, part: String) -> Result<String, BookingError> {
    println!("book {part}");
    if part == "rocket" { Err(BookingError::SoldOut(part)) } else { Ok(format!("{part} #1")) }
}

/// Succeeds also if the part is not booked.
#[outlast::activity]
async fn cancel(_ctx: ActivityContext, part: String) -> Result<(), String> {
    println!("cancel {part}");
    Ok(())
}

#[outlast::orchestration]
async fn trip(ctx: OrchestrationContext, parts: Vec<String>) -> Result<String, TripError> {
    let mut undo = Undo::new(&ctx);
    let mut booked = Vec::new();
    for part in parts {
        // Before the call: a booking that fails may have been made.
        undo.push::<cancel>(part.clone());
        match book::call(&ctx, part).retry(3).await {
            Ok(booking) => booked.push(booking),
            Err(CallError::Failed(BookingError::SoldOut(part))) => {
                return undo.fail(TripError::Impossible { part }).await;
            }
            Err(other) => return undo.fail(other.into()).await,
        }
    }
    Ok(booked.join(", "))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(MemoryProvider::new());
    let module = outlast::module![book, cancel, trip];
    let runtime = Runtime::builder().store(store.clone()).register(module).start().await?;
    let client = Client::new(store);

    let parts = |parts: &[&str]| parts.iter().map(|part| (*part).to_string()).collect();
    let sea = trip::start(&client, parts(&["train", "hotel"])).id("to-the-sea").await?.result().await;
    let moon =
        trip::start(&client, parts(&["train", "hotel", "rocket"])).id("to-the-moon").await?.result().await;
    println!("sea: {sea:?}, moon: {moon:?}");
    assert_eq!(sea.as_deref(), Ok("train #1, hotel #1"));
    assert_eq!(moon, Err(CallError::Failed(TripError::Impossible { part: "rocket".into() })));
    runtime.shutdown(None).await;
    Ok(())
}

//! A race of an activity against a timer: the loser is cancelled.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::prelude::*;
use outlast::providers::memory::MemoryProvider;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

#[outlast::activity]
async fn ask(ctx: ActivityContext, who: String) -> Result<String, String> {
    if who == "the oracle" {
        // Runs until it is cancelled.
        ctx.cancelled().await;
        println!("the oracle was cancelled");
    }
    Ok(format!("{who} says yes"))
}

#[outlast::orchestration]
async fn question(ctx: OrchestrationContext, who: String) -> Result<String, String> {
    let answer = ask::call(&ctx, who);
    let patience = ctx.sleep(Duration::from_millis(100));
    match ctx.select2(answer, patience).await {
        Either2::First(answer) => Ok(answer?),
        Either2::Second(()) => Ok("no answer in time".to_string()),
    }
}

/// The same with less code: a call with a timeout.
#[outlast::orchestration]
async fn short_question(ctx: OrchestrationContext, who: String) -> Result<String, String> {
    match ask::call(&ctx, who).timeout(Duration::from_millis(100)).await {
        Err(CallError::TimedOut(_)) => Ok("no answer in time".to_string()),
        answer => Ok(answer?),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(MemoryProvider::new());
    let module = outlast::module![ask, question, short_question];
    let runtime = Runtime::builder().store(store.clone()).register(module).start().await?;
    let client = Client::new(store);

    for (who, expected) in [("my neighbour", "my neighbour says yes"), ("the oracle", "no answer in time")] {
        let answer = question::start(&client, who.into()).await?.result().await?;
        let same = short_question::start(&client, who.into()).await?.result().await?;
        println!("{who}: {answer}");
        assert_eq!((answer.as_str(), same.as_str()), (expected, expected));
    }
    runtime.shutdown(None).await;
    Ok(())
}

//! An activity that fails is retried with a growing pause. The pauses are durable timers. A permanent error is not retried.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::BackoffStrategy;
use outlast::prelude::*;
use outlast::providers::memory::MemoryProvider;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

#[derive(Debug, PartialEq, thiserror::Error, Serialize, Deserialize, outlast::Failure)]
enum PaymentError {
    #[error("the bank does not answer")]
    NoAnswer,
    #[error("declined: {code}")]
    #[failure(permanent)]
    Declined { code: String },
    #[error("{0}")]
    #[failure(call)]
    Broken(String),
}

#[derive(Clone, Default)]
struct Bank(Arc<AtomicU32>);

#[outlast::activity]
async fn charge(
    _ctx: ActivityContext,
    State(bank): State<Bank>,
    card: String,
) -> Result<String, PaymentError> {
    match bank.0.fetch_add(1, Ordering::SeqCst) {
        0..3 => Err(PaymentError::NoAnswer),
        _ if card == "stolen" => Err(PaymentError::Declined { code: "05".into() }),
        _ => Ok(format!("charged {card}")),
    }
}

#[outlast::orchestration]
async fn payment(ctx: OrchestrationContext, card: String) -> Result<String, PaymentError> {
    let backoff = BackoffStrategy::Exponential {
        base: Duration::from_millis(10),
        multiplier: 2.0,
        max: Duration::from_millis(100),
    };
    let policy = RetryPolicy::new(5).with_backoff(backoff);
    match charge::call(&ctx, card).retry(policy).timeout(Duration::from_secs(1)).await {
        Err(CallError::Failed(error)) => Err(error),
        other => Ok(other?),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let bank = Bank::default();
    let store = Arc::new(MemoryProvider::new());
    let module = outlast::module![charge, payment];
    let runtime =
        Runtime::builder().store(store.clone()).register(module).state(bank.clone()).start().await?;
    let client = Client::new(store);

    let receipt = payment::start(&client, "card 4711".into()).id("payment-1").await?.result().await?;
    let tries = bank.0.load(Ordering::SeqCst);
    println!("{receipt} at the {tries}th try");
    assert_eq!((receipt.as_str(), tries), ("charged card 4711", 4));

    let declined = payment::start(&client, "stolen".into()).id("payment-2").await?.result().await;
    println!("{declined:?} at the first try");
    assert_eq!(declined, Err(CallError::Failed(PaymentError::Declined { code: "05".into() })));
    assert_eq!(bank.0.load(Ordering::SeqCst), 5);
    runtime.shutdown(None).await;
    Ok(())
}

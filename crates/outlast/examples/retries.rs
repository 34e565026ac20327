//! An activity that fails is retried with a growing pause. The pauses are durable timers.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::providers::memory::MemoryProvider;
use outlast::runtime::Runtime;
use outlast::runtime::registry::ActivityRegistry;
use outlast::{
    ActivityContext, BackoffStrategy, Client, OrchestrationContext, OrchestrationRegistry, RetryPolicy,
};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

async fn charge(ctx: OrchestrationContext, card: String) -> Result<String, String> {
    let backoff = BackoffStrategy::Exponential {
        base: Duration::from_millis(10),
        multiplier: 2.0,
        max: Duration::from_millis(100),
    };
    let policy = RetryPolicy::new(5).with_backoff(backoff).with_timeout(Duration::from_secs(1));
    ctx.schedule_activity_with_retry("Charge", card, policy).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let tries = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&tries);
    let activities = ActivityRegistry::builder()
        .register("Charge", move |_: ActivityContext, card: String| {
            let tries = Arc::clone(&counted);
            async move {
                match tries.fetch_add(1, Ordering::SeqCst) {
                    0..3 => Err("the bank does not answer".to_string()),
                    _ => Ok(format!("charged {card}")),
                }
            }
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder().register("Payment", charge).build();
    let store = Arc::new(MemoryProvider::new());
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    let client = Client::new(store);

    client.start_orchestration("payment-1", "Payment", "card 4711").await?;
    let receipt: String = client.wait_for_orchestration_typed("payment-1", Duration::from_secs(5)).await??;
    println!("{receipt} at the {}th try", tries.load(Ordering::SeqCst));
    assert_eq!((receipt.as_str(), tries.load(Ordering::SeqCst)), ("charged card 4711", 4));
    runtime.shutdown(None).await;
    Ok(())
}

//! The program of docs/coming-from.md.

// guide: program
use outlast::prelude::*;
use outlast::providers::memory::MemoryProvider;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

#[derive(Serialize, Deserialize, outlast::Message)]
struct Approval {
    yes: bool,
}

#[outlast::activity(retry = 5, timeout = "30s")]
async fn charge(ctx: ActivityContext, cents: u64) -> Result<String, String> {
    Ok(format!("{cents} cents under the key {}", ctx.idempotency_key()))
}

#[outlast::activity(retry = 10)]
async fn refund(_ctx: ActivityContext, receipt: String) -> Result<(), String> {
    println!("refunded: {receipt}");
    Ok(())
}

#[outlast::orchestration(accepts(Approval))]
async fn order(ctx: OrchestrationContext, cents: u64) -> Result<String, String> {
    let receipt = charge::call(&ctx, cents).await?;
    match ctx.next::<Approval>().within(Duration::from_secs(3 * 86_400)).await? {
        Some(Approval { yes: true }) => Ok(receipt),
        _ => {
            refund::call(&ctx, receipt).await?;
            Err("not approved".to_string())
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(MemoryProvider::new());
    let module = outlast::module![charge, refund, order];
    let runtime = Runtime::builder().store(store.clone()).register(module).start().await?;
    let client = Client::new(store);

    let order = order::start(&client, 700).id("order-1").await?;
    order.send(Approval { yes: true }).await?;
    println!("{}", order.result().await?);
    runtime.shutdown(None).await;
    Ok(())
}
// guide: end

#[test]
fn the_program_runs() {
    main().unwrap();
}

#[test]
fn an_order_that_is_not_approved_is_refunded() {
    let run = outlast::testing::Test::<order>::new(outlast::module![charge, refund, order]).run(700);
    assert_eq!(run.failure(), "not approved");
    assert_eq!(run.elapsed(), outlast::testing::days(3));
    run.calls::<refund>().once();
}

//! The program of docs/coming-from.md, in short lines: the page shows it beside others.

// guide: program
// step: imports
use outlast::prelude::*;
use outlast::providers::memory::MemoryProvider;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

// step: approval
#[derive(Serialize, Deserialize, outlast::Message)]
struct Approval {
    yes: bool,
}

// step: charge
#[outlast::activity(retry = 5, timeout = "30s")]
async fn charge(
    ctx: ActivityContext,
    cents: u64,
) -> Result<String, String> {
    let key = ctx.idempotency_key();
    Ok(format!("{cents} cents under the key {key}"))
}

// step: refund
#[outlast::activity(retry = 10)]
async fn refund(
    _ctx: ActivityContext,
    receipt: String,
) -> Result<(), String> {
    println!("refunded: {receipt}");
    Ok(())
}

// step: order
const PATIENCE: Duration = Duration::from_secs(3 * 86_400);

#[outlast::orchestration(accepts(Approval))]
async fn order(
    ctx: OrchestrationContext,
    cents: u64,
) -> Result<String, String> {
    let receipt = charge::call(&ctx, cents).await?;
    // step: wait
    let approval = ctx.next::<Approval>().within(PATIENCE);
    match approval.await? {
        Some(Approval { yes: true }) => Ok(receipt),
        // step: refused
        _ => {
            refund::call(&ctx, receipt).await?;
            Err("not approved".to_string())
        }
    }
}

// step: runtime
#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(MemoryProvider::new());
    let module = outlast::module![charge, refund, order];
    let runtime = Runtime::builder()
        .store(store.clone())
        .register(module)
        .start()
        .await?;
    let client = Client::new(store);

    // step: client
    let order = order::start(&client, 700);
    let order = order.id("order-1").await?;
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

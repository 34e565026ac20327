//! The program of docs/coming-from.md as it is written for duroxide, in short lines: the page shows it beside another one.
#![allow(clippy::print_stdout, reason = "the program talks to its terminal")]

// step: imports
use duroxide::providers::sqlite::SqliteProvider;
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    ActivityContext, Client, Either2, OrchestrationContext,
    OrchestrationRegistry, OrchestrationStatus, RetryPolicy,
};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

// step: approval
#[derive(Serialize, Deserialize)]
struct Approval {
    yes: bool,
}

// step: charge
async fn charge(
    _ctx: ActivityContext,
    input: String,
) -> Result<String, String> {
    // Each attempt is a call, so the input has the key.
    Ok(format!("charged {input}"))
}

// step: refund
async fn refund(
    _ctx: ActivityContext,
    receipt: String,
) -> Result<String, String> {
    println!("refunded: {receipt}");
    Ok(String::new())
}

// step: order
const PATIENCE: Duration = Duration::from_secs(3 * 86_400);

async fn order(
    ctx: OrchestrationContext,
    cents: String,
) -> Result<String, String> {
    let key = ctx.new_guid().await?;
    let input = format!("{cents} cents, {key}");
    let limit = Duration::from_secs(30);
    let policy = RetryPolicy::new(5).with_timeout(limit);
    let receipt = ctx
        .schedule_activity_with_retry("charge", input, policy)
        .await?;
    // step: wait
    let message = ctx.dequeue_event("approval");
    let patience = ctx.schedule_timer(PATIENCE);
    let approved = match ctx.select2(message, patience).await {
        Either2::First(text) => {
            let approval = serde_json::from_str::<Approval>(&text);
            approval.is_ok_and(|approval| approval.yes)
        }
        Either2::Second(()) => false,
    };
    if approved {
        return Ok(receipt);
    }
    // step: refused
    ctx.schedule_activity("refund", receipt).await?;
    Err("not approved".to_string())
}

// step: runtime
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(SqliteProvider::new_in_memory().await?);
    let activities = ActivityRegistry::builder()
        .register("charge", charge)
        .register("refund", refund)
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("order", order)
        .build();
    let runtime = Runtime::start_with_store(
        store.clone(),
        activities,
        orchestrations,
    )
    .await;
    let client = Client::new(store);

    // step: client
    client.start_orchestration("order-1", "order", "700").await?;
    let approval = serde_json::to_string(&Approval { yes: true })?;
    client.enqueue_event("order-1", "approval", approval).await?;
    let minute = Duration::from_secs(60);
    match client.wait_for_orchestration("order-1", minute).await? {
        OrchestrationStatus::Completed { output, .. } => {
            println!("{output}");
        }
        other => return Err(format!("{other:?}").into()),
    }
    runtime.shutdown(None).await;
    Ok(())
}
// guide: end

#[test]
fn the_program_runs() {
    main().unwrap();
}

//! The orchestrations: the steps of an order. This code survives crashes.
//!
//! The code does not handle crashes. There is no state machine, no status column and no clean-up job: an order is a function that
//! runs from top to bottom, in one process or several.

use super::gateway::{Answer, Payment, charge, refund};
use super::goods::Order;
use super::shop::{apologise, hand_over, invoice, pack, release, reserve, ship};
use outlast::BackoffStrategy;
use outlast::prelude::*;
use outlast::runtime::Module;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The custom status of an order that waits for an approval.
pub(super) const AWAITS_APPROVAL: &str = "awaits approval";

/// The answer to an order that waits for an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, outlast::Message)]
pub(super) enum Approval {
    Granted,
    Refused { reason: String },
}

/// The outcome of an order, which the orchestration returns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Outcome {
    pub(super) ending: Ending,
    /// The tracking number, or the reason why there is none.
    pub(super) note: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Ending {
    Delivered,
    OutOfStock,
    NotApproved,
    NotPaid,
    Broken,
    /// A client cancelled the order: the demo does not, but a visitor of the dashboard may.
    Cancelled,
}

/// The orchestrations and all activities.
pub(super) fn module() -> Module {
    outlast::module![
        order, delivery, reserve, release, pack, ship, hand_over, invoice, apologise, charge, refund
    ]
}

/// One order, from its start to the bill or the apology. A request to cancel it undoes what was done.
#[outlast::orchestration(name = "Order", accepts(Approval), on_cancel = undo)]
pub(super) async fn order(ctx: OrchestrationContext, order: Order) -> Result<Outcome, String> {
    let mut undo = Undo::new(&ctx);
    ctx.set_custom_status("reserves stock");
    // Not interrupted: the code must know whether goods are reserved.
    if let Some(sku) = ctx.shielded(reserve::call(&ctx, order.clone())).await? {
        return give_up(&ctx, &order, Ending::OutOfStock, format!("not enough {sku}s")).await;
    }
    undo.push::<release>(order.clone());
    // Created once and stored in the history: all payment attempts, before and after a crash, have the same id.
    let payment = Payment { id: ctx.new_guid().await?, order: order.id.clone(), cents: order.cents() };
    // Before the charge: money may be charged even if the gateway returns an error.
    undo.push::<refund>(payment.clone());
    match fulfil(&ctx, &order, &payment).await {
        Ok(tracking) => {
            undo.forget();
            ctx.set_custom_status("sends the bill");
            invoice::call(&ctx, order).await?;
            Ok(Outcome { ending: Ending::Delivered, note: tracking })
        }
        Err((ending, reason)) => {
            ctx.set_custom_status("is undone");
            undo.run().await.map_err(|error| format!("{reason}, and {error}"))?;
            give_up(&ctx, &order, ending, reason).await
        }
    }
}

/// The steps that must succeed; the first error ends the order.
async fn fulfil(
    ctx: &OrchestrationContext,
    order: &Order,
    payment: &Payment,
) -> Result<String, (Ending, String)> {
    if order.needs_approval() {
        approval(ctx, order).await.map_err(|reason| (Ending::NotApproved, reason))?;
    }

    ctx.set_custom_status("pays");
    let policy = RetryPolicy::new(6).with_backoff(BackoffStrategy::Exponential {
        base: Duration::from_millis(50),
        multiplier: 2.0,
        max: Duration::from_millis(400),
    });
    // Not interrupted: a charge that runs on after a request to cancel would be made after its refund.
    match ctx.shielded(charge::call(ctx, payment.clone()).retry(policy)).await {
        Ok(Answer::Charged) => {}
        Ok(Answer::Declined) => return Err((Ending::NotPaid, "the card was declined".to_string())),
        Err(error) => return Err((Ending::NotPaid, error.to_string())),
    }

    ctx.set_custom_status(format!("packs {} items", order.items.len()));
    let packing: Vec<_> =
        order.items.iter().map(|item| pack::call(ctx, order.id.clone(), item.clone())).collect();
    let packed: Result<Vec<()>, CallError<String>> = ctx.join_all(packing).await.into_iter().collect();
    packed.map_err(|error| (Ending::Broken, error.to_string()))?;

    ctx.set_custom_status("is on its way");
    let delivered = delivery::child(ctx, order.clone()).await;
    delivered.map_err(|error| (Ending::Broken, error.to_string()))
}

/// Waits for an approval, a refusal, or a timer. The timer runs while no process runs.
async fn approval(ctx: &OrchestrationContext, order: &Order) -> Result<(), String> {
    ctx.set_custom_status(AWAITS_APPROVAL);
    match ctx.next::<Approval>().within(Duration::from_millis(order.approval_ms)).await? {
        Some(Approval::Granted) => Ok(()),
        Some(Approval::Refused { reason }) => Err(reason),
        None => Err("nobody approved it in time".to_string()),
    }
}

/// Tells the customer.
async fn give_up(
    ctx: &OrchestrationContext,
    order: &Order,
    ending: Ending,
    reason: String,
) -> Result<Outcome, String> {
    ctx.set_custom_status("tells the customer");
    apologise::call(ctx, order.id.clone(), reason.clone()).await?;
    Ok(Outcome { ending, note: reason })
}

/// The child orchestration: ships the parcel, waits for its travel time, and delivers it.
#[outlast::orchestration(name = "Delivery")]
async fn delivery(ctx: OrchestrationContext, order: Order) -> Result<String, String> {
    ctx.set_custom_status("ships");
    let tracking = ship::call(&ctx, order.id.clone()).await?;
    ctx.set_custom_status("travels");
    ctx.sleep(Duration::from_millis(order.transit_ms)).await;
    hand_over::call(&ctx, order.id).await?;
    Ok(tracking)
}

//! The orchestrations: the steps of an order. This code survives crashes.
//!
//! The code does not handle crashes. There is no state machine, no status column and no clean-up job: an order is a function that
//! runs from top to bottom, in one process or several.

use super::gateway::{Answer, Payment};
use super::goods::Order;
use super::shop::{Apology, Packing};
use outlast::runtime::OrchestrationRegistryBuilder;
use outlast::{BackoffStrategy, Either2, OrchestrationContext, OrchestrationRegistry, RetryPolicy};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The custom status of an order that waits for an approval.
pub(super) const AWAITS_APPROVAL: &str = "awaits approval";
/// The name of the approval event, and its data for yes.
pub(super) const APPROVAL: &str = "approval";
pub(super) const APPROVED: &str = "approved";

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
}

pub(super) fn orchestrations() -> OrchestrationRegistryBuilder {
    OrchestrationRegistry::builder().register_typed("Order", order).register_typed("Delivery", delivery)
}

/// One order, from its start to the bill or the apology.
async fn order(ctx: OrchestrationContext, order: Order) -> Result<Outcome, String> {
    ctx.set_custom_status("reserves stock");
    let missing: Option<String> = ctx.schedule_activity_typed("Reserve", &order).await?;
    if let Some(sku) = missing {
        return apologise(&ctx, &order, Ending::OutOfStock, format!("not enough {sku}s")).await;
    }
    // Created once and stored in the history: all payment attempts, before and after a crash, have the same id.
    let payment = Payment { id: ctx.new_guid().await?, order: order.id.clone(), cents: order.cents() };
    match fulfil(&ctx, &order, &payment).await {
        Ok(tracking) => {
            ctx.set_custom_status("sends the bill");
            let () = ctx.schedule_activity_typed("Invoice", &order).await?;
            Ok(Outcome { ending: Ending::Delivered, note: tracking })
        }
        Err((ending, reason)) => {
            undo(&ctx, &order, &payment).await?;
            apologise(&ctx, &order, ending, reason).await
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
    match ctx.schedule_activity_with_retry_typed("Charge", payment, policy).await {
        Ok(Answer::Charged) => {}
        Ok(Answer::Declined) => return Err((Ending::NotPaid, "the card was declined".to_string())),
        Err(reason) => return Err((Ending::NotPaid, reason)),
    }

    ctx.set_custom_status(format!("packs {} items", order.items.len()));
    let packing = order.items.iter().map(|item| {
        let packing = Packing { order: order.id.clone(), item: item.clone() };
        ctx.schedule_activity_typed::<_, ()>("Pack", &packing)
    });
    let packed: Result<Vec<()>, String> = ctx.join(packing.collect()).await.into_iter().collect();
    packed.map_err(|reason| (Ending::Broken, reason))?;

    ctx.set_custom_status("is on its way");
    let delivered = ctx.schedule_sub_orchestration_typed("Delivery", order).await;
    delivered.map_err(|reason| (Ending::Broken, reason))
}

/// Waits for an approval, a refusal, or a timer. The timer runs while no process runs.
async fn approval(ctx: &OrchestrationContext, order: &Order) -> Result<(), String> {
    ctx.set_custom_status(AWAITS_APPROVAL);
    let answer = ctx.schedule_wait(APPROVAL);
    let patience = ctx.schedule_timer(Duration::from_millis(order.approval_ms));
    match ctx.select2(answer, patience).await {
        Either2::First(answer) if answer == APPROVED => Ok(()),
        Either2::First(answer) => Err(answer),
        Either2::Second(()) => Err("nobody approved it in time".to_string()),
    }
}

/// Refunds the money, which may have been charged even if the gateway returned an error, and releases the goods.
async fn undo(ctx: &OrchestrationContext, order: &Order, payment: &Payment) -> Result<(), String> {
    ctx.set_custom_status("is undone");
    let refund = ctx.schedule_activity_typed::<_, bool>("Refund", payment);
    let release = ctx.schedule_activity_typed::<_, ()>("Release", order);
    let (refunded, released) = ctx.join2(refund, release).await;
    refunded.and(released)
}

async fn apologise(
    ctx: &OrchestrationContext,
    order: &Order,
    ending: Ending,
    reason: String,
) -> Result<Outcome, String> {
    ctx.set_custom_status("tells the customer");
    let apology = Apology { order: order.id.clone(), reason: reason.clone() };
    let () = ctx.schedule_activity_typed("Apologise", &apology).await?;
    Ok(Outcome { ending, note: reason })
}

/// The child orchestration: ships the parcel, waits for its travel time, and delivers it.
async fn delivery(ctx: OrchestrationContext, order: Order) -> Result<String, String> {
    ctx.set_custom_status("ships");
    let tracking: String = ctx.schedule_activity_typed("Ship", &order.id).await?;
    ctx.set_custom_status("travels");
    ctx.schedule_timer(Duration::from_millis(order.transit_ms)).await;
    let () = ctx.schedule_activity_typed("HandOver", &order.id).await?;
    Ok(tracking)
}

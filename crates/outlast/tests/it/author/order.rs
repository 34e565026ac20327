//! A saga with an approval, a child, a detached start, state and a status, with a crash at every crash point.

use crate::support::{Cluster, Ledger, Node, on_every_store};
use outlast::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

on_every_store! { order: 60 }

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Order {
    id: String,
    cents: u64,
}

#[derive(Debug, PartialEq, thiserror::Error, Serialize, Deserialize, outlast::Failure)]
pub(crate) enum PaymentError {
    #[error("declined: {code}")]
    #[failure(permanent)]
    Declined { code: String },
}

#[derive(Debug, PartialEq, thiserror::Error, Serialize, Deserialize, outlast::Failure)]
pub(crate) enum FulfilError {
    #[error("not paid: {code}")]
    NotPaid { code: String },
    #[error("not approved")]
    NotApproved,
    #[error("{0}")]
    #[failure(call)]
    Broken(String),
}

#[derive(Serialize, Deserialize, outlast::Message)]
pub(crate) struct Approval {
    yes: bool,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Progress {
    Charged,
    Shipped,
}

const RECEIPT: Key<String> = Key::new("receipt");

#[outlast::activity]
async fn reserve(ctx: ActivityContext, State(ledger): State<Ledger>, order: Order) -> Result<(), String> {
    ledger.note(&ctx, format!("reserve {}", order.id));
    Ok(())
}

#[outlast::activity]
async fn release(ctx: ActivityContext, State(ledger): State<Ledger>, order: Order) -> Result<(), String> {
    ledger.note(&ctx, format!("release {}", order.id));
    Ok(())
}

#[outlast::activity]
async fn refund(ctx: ActivityContext, State(ledger): State<Ledger>, receipt: String) -> outlast::Result<()> {
    ledger.note(&ctx, format!("refund {receipt}"));
    Ok(())
}

/// Takes the money.
#[outlast::activity(timeout = "30s")]
async fn charge(
    ctx: ActivityContext,
    State(ledger): State<Ledger>,
    order: Order,
) -> Result<String, PaymentError> {
    if order.cents == 13 {
        return Err(PaymentError::Declined { code: "05".into() });
    }
    ledger.note(&ctx, format!("charge {}", order.cents));
    Ok(format!("receipt of {}", order.id))
}

/// Several inputs travel as an object.
#[outlast::activity(name = "Label")]
async fn label(_ctx: ActivityContext, order: String, express: bool) -> Result<String, String> {
    Ok(format!("{order}{}", if express { " express" } else { "" }))
}

#[outlast::orchestration]
async fn ship(ctx: OrchestrationContext, order: String, express: bool) -> Result<String, String> {
    ctx.schedule_timer(Duration::from_millis(5)).await;
    Ok(label::call(&ctx, order, express).await?)
}

#[outlast::orchestration(name = "survey")]
async fn ask_customer(_ctx: OrchestrationContext, order: Order) -> Result<u64, String> {
    Ok(order.cents)
}

#[outlast::orchestration(accepts(Approval), status = Progress)]
async fn fulfil(ctx: OrchestrationContext, order: Order) -> Result<String, FulfilError> {
    let mut undo = Undo::new(&ctx);
    reserve::call(&ctx, order.clone()).await?;
    undo.push::<release>(order.clone());
    let receipt = match charge::call(&ctx, order.clone()).retry(3).await {
        Err(CallError::Failed(PaymentError::Declined { code })) => {
            return undo.fail(FulfilError::NotPaid { code }).await;
        }
        other => other?,
    };
    undo.push::<refund>(receipt.clone());
    ctx.set(RECEIPT, &receipt);
    fulfil::set_status(&ctx, &Progress::Charged);
    let approval = ctx.next::<Approval>().within(Duration::from_secs(60)).await?;
    if !approval.is_some_and(|approval| approval.yes) {
        return undo.fail(FulfilError::NotApproved).await;
    }
    let shipped = ship::child(&ctx, order.id.clone(), true).id(format!("ship-{}", order.id)).await?;
    fulfil::set_status(&ctx, &Progress::Shipped);
    ask_customer::detached(&ctx, order.clone()).id(format!("survey-{}", order.id))?;
    Ok(format!("{shipped}, {}", ctx.get(RECEIPT)?.unwrap_or_default()))
}

async fn order(cluster: Arc<Cluster>) {
    let ledger = Ledger::default();
    let module = outlast::module![reserve, release, refund, charge, label, ship, ask_customer, fulfil];
    cluster.start(&Node::of(module.state(ledger.clone()))).await;

    let start = |id: &str, cents| {
        let order = Order { id: id.to_string(), cents };
        fulfil::start(&cluster.client, order).id(id)
    };
    let good = start("good", 1200).await.unwrap();
    let poor = start("poor", 13).await.unwrap();
    let unwanted = start("unwanted", 7).await.unwrap();
    good.send(Approval { yes: true }).await.unwrap();
    unwanted.send(Approval { yes: false }).await.unwrap();

    assert_eq!(good.result().await.unwrap(), "good express, receipt of good");
    assert_eq!(good.status().await.unwrap(), Some(Progress::Shipped));
    assert_eq!(good.get(RECEIPT).await.unwrap().as_deref(), Some("receipt of good"));
    assert_eq!(poor.result().await, Err(CallError::Failed(FulfilError::NotPaid { code: "05".into() })));
    assert_eq!(unwanted.result().await, Err(CallError::Failed(FulfilError::NotApproved)));
    assert_eq!(ask_customer::handle(&cluster.client, "survey-good").result().await, Ok(1200));
    assert_eq!(ledger.of("good"), ["reserve good", "charge 1200"]);
    assert_eq!(ledger.of("poor"), ["reserve poor", "release poor"]);
    assert_eq!(
        ledger.of("unwanted"),
        ["reserve unwanted", "charge 7", "refund receipt of unwanted", "release unwanted"]
    );
}

//! Steps with compensation: when a later step fails, earlier bookings are cancelled in reverse order.

use crate::support::{
    Cluster, Kind, Ledger, Node, activities, on_every_store, orchestrations, survives_crashes,
};
use outlast::runtime::registry::ActivityRegistryBuilder;
use outlast::{ActivityContext, OrchestrationContext};
use std::sync::Arc;

on_every_store! { saga: 100 }

/// The other crashes of this scenario run under paused time; a rig has real time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crashes_on_cosmos() {
    survives_crashes(Kind::Cosmos, |cluster| Box::pin(saga(cluster)), 4).await;
}

fn noted(
    builder: ActivityRegistryBuilder,
    ledger: &Ledger,
    name: &'static str,
    fails: &'static str,
) -> ActivityRegistryBuilder {
    let ledger = ledger.clone();
    builder.register(name, move |ctx: ActivityContext, what: String| {
        let ledger = ledger.clone();
        async move {
            if what == fails {
                return Err(format!("no {what} left"));
            }
            ledger.note(&ctx, format!("{name} {what}"));
            Ok(format!("{name} {what}"))
        }
    })
}

async fn trip(ctx: OrchestrationContext, parts: Vec<String>) -> Result<String, String> {
    let mut booked = Vec::new();
    for part in parts {
        match ctx.schedule_activity("book", part.clone()).await {
            Ok(_) => booked.push(part),
            Err(error) => {
                for part in booked.into_iter().rev() {
                    ctx.schedule_activity("cancel", part).await?;
                }
                return Err(format!("trip not possible: {error}"));
            }
        }
    }
    Ok(booked.join("+"))
}

async fn saga(cluster: Arc<Cluster>) {
    let ledger = Ledger::default();
    let booking = noted(activities(), &ledger, "book", "car");
    let booking = noted(booking, &ledger, "cancel", "");
    cluster.start(&Node::new(orchestrations().register_typed("Trip", trip), booking)).await;

    cluster.client.start_orchestration_typed("trip-1", "Trip", ["flight", "hotel", "car"]).await.unwrap();
    cluster.client.start_orchestration_typed("trip-2", "Trip", ["flight", "hotel"]).await.unwrap();
    assert_eq!(cluster.failure("trip-1").await, "trip not possible: no car left");
    assert_eq!(ledger.of("trip-1"), ["book flight", "book hotel", "cancel hotel", "cancel flight"]);
    assert_eq!(cluster.output("trip-2").await, "flight+hotel");
    assert_eq!(ledger.of("trip-2"), ["book flight", "book hotel"]);
}

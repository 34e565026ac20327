//! The activities: the external effects of the shop. Each writes to the ledger and causes its effect once.
//!
//! Half of an activity's time is before its effect and half after it, so that a kill often falls between the effect and its
//! acknowledgement: the store then delivers the activity again, and the books reject the duplicate.

use super::books::{Books, Open};
use super::entry::Entry;
use super::goods::{Batch, Item, Order};
use super::report::Running;
use outlast::prelude::*;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The state that the activities share.
pub(super) struct Shop {
    books: Books,
    batch: Batch,
    stock: BTreeMap<String, u64>,
}

/// The percentage of items that break while they are packed.
const BREAKS: u64 = 2;

impl Shop {
    pub(super) fn new(books: Books, batch: Batch) -> Arc<Self> {
        Arc::new(Self { books, stock: batch.stock(), batch })
    }

    pub(super) fn batch(&self) -> &Batch {
        &self.batch
    }

    /// Waits, writes to the books, and waits again.
    pub(super) async fn perform<T: Send + 'static>(
        &self,
        ctx: &ActivityContext,
        deed: impl FnOnce(&mut Open) -> io::Result<T> + Send + 'static,
    ) -> Result<T, String> {
        let _running = Running::begin(ctx);
        let mut dice = self.batch.dice(ctx.idempotency_key());
        let effort = |ms: u64| tokio::time::sleep(Duration::from_millis(self.batch.ms(ms)));
        effort(40 + dice.below(120)).await;
        let done = self.books.with(deed).await;
        effort(40 + dice.below(120)).await;
        done
    }

    /// [`Shop::perform`] with an effect that happens once per scheduled activity, for any number of deliveries.
    async fn once(&self, ctx: &ActivityContext, entry: Entry) -> Result<(), String> {
        let key = ctx.idempotency_key().to_string();
        self.perform(ctx, move |books| books.once(&key, |_| entry).map(|_| ())).await
    }
}

/// Reserves all items, or none and returns which one is missing.
#[outlast::activity(name = "Reserve")]
pub(super) async fn reserve(
    ctx: ActivityContext,
    State(shop): State<Arc<Shop>>,
    order: Order,
) -> Result<Option<String>, String> {
    let key = ctx.idempotency_key().to_string();
    let stock = shop.stock.clone();
    let entry = move |books: &Open| {
        let left = |sku: &str| stock.get(sku).copied().unwrap_or_default().saturating_sub(books.taken(sku));
        match order.items.iter().find(|item| left(&item.sku) < item.quantity) {
            Some(missing) => Entry::OutOfStock { order: order.id, sku: missing.sku.clone() },
            None => Entry::Reserved { order: order.id, items: order.items },
        }
    };
    match shop.perform(&ctx, move |books| books.once(&key, entry)).await? {
        Entry::OutOfStock { sku, .. } => Ok(Some(sku)),
        _ => Ok(None),
    }
}

#[outlast::activity(name = "Release")]
pub(super) async fn release(
    ctx: ActivityContext,
    State(shop): State<Arc<Shop>>,
    order: Order,
) -> Result<(), String> {
    shop.once(&ctx, Entry::Released { order: order.id, items: order.items }).await
}

/// Packs one item. Some items break, which is an error that ends the order.
#[outlast::activity(name = "Pack")]
pub(super) async fn pack(
    ctx: ActivityContext,
    State(shop): State<Arc<Shop>>,
    order: String,
    item: Item,
) -> Result<(), String> {
    let sku = item.sku;
    let question = format!("pack/{order}/{sku}");
    if shop.batch.dice(&question).below(100) < BREAKS {
        shop.once(&ctx, Entry::Broken { order, sku: sku.clone() }).await?;
        return Err(format!("the {sku} broke while it was packed"));
    }
    shop.once(&ctx, Entry::Packed { order, sku }).await
}

/// Ships the parcel and returns the tracking number.
#[outlast::activity(name = "Ship")]
pub(super) async fn ship(
    ctx: ActivityContext,
    State(shop): State<Arc<Shop>>,
    order: String,
) -> Result<String, String> {
    let tracking = format!("OL{:08}", shop.batch.dice(&format!("ship/{order}")).below(100_000_000));
    shop.once(&ctx, Entry::Shipped { order, tracking: tracking.clone() }).await?;
    Ok(tracking)
}

#[outlast::activity(name = "HandOver")]
pub(super) async fn hand_over(
    ctx: ActivityContext,
    State(shop): State<Arc<Shop>>,
    order: String,
) -> Result<(), String> {
    shop.once(&ctx, Entry::HandedOver { order }).await
}

#[outlast::activity(name = "Invoice")]
pub(super) async fn invoice(
    ctx: ActivityContext,
    State(shop): State<Arc<Shop>>,
    order: Order,
) -> Result<(), String> {
    let cents = order.cents();
    shop.once(&ctx, Entry::Invoiced { order: order.id, cents }).await
}

#[outlast::activity(name = "Apologise")]
pub(super) async fn apologise(
    ctx: ActivityContext,
    State(shop): State<Arc<Shop>>,
    order: String,
    reason: String,
) -> Result<(), String> {
    shop.once(&ctx, Entry::Apologised { order, reason }).await
}

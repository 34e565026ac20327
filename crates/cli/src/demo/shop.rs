//! The activities: the external effects of the shop. Each writes to the ledger and causes its effect once.
//!
//! Half of an activity's time is before its effect and half after it, so that a kill often falls between the effect and its
//! acknowledgement: the store then delivers the activity again, and the books reject the duplicate.

use super::books::{Books, Open};
use super::entry::Entry;
use super::goods::{Batch, Item, Order};
use outlast::ActivityContext;
use outlast::runtime::registry::{ActivityRegistry, ActivityRegistryBuilder};
use serde::{Deserialize, Serialize};
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

/// One item to be packed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Packing {
    pub(super) order: String,
    pub(super) item: Item,
}

/// The message to a customer whose order ends without goods.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Apology {
    pub(super) order: String,
    pub(super) reason: String,
}

impl Shop {
    pub(super) fn new(books: Books, batch: Batch) -> Arc<Self> {
        Arc::new(Self { books, stock: batch.stock(), batch })
    }

    pub(super) fn batch(&self) -> &Batch {
        &self.batch
    }

    /// All activities, the payment gateway's included.
    pub(super) fn activities(self: &Arc<Self>) -> ActivityRegistryBuilder {
        let registry = ActivityRegistry::builder()
            .register_typed("Reserve", self.bound(reserve))
            .register_typed("Release", self.bound(release))
            .register_typed("Pack", self.bound(pack))
            .register_typed("Ship", self.bound(ship))
            .register_typed("HandOver", self.bound(hand_over))
            .register_typed("Invoice", self.bound(invoice))
            .register_typed("Apologise", self.bound(apologise));
        super::gateway::register(self, registry)
    }

    /// Registers a method of the shop as an activity.
    pub(super) fn bound<In, Fut>(
        self: &Arc<Self>,
        activity: fn(Arc<Self>, ActivityContext, In) -> Fut,
    ) -> impl Fn(ActivityContext, In) -> Fut + Send + Sync + 'static
    where
        In: 'static,
        Fut: 'static,
    {
        let shop = Arc::clone(self);
        move |ctx, input| activity(Arc::clone(&shop), ctx, input)
    }

    /// Waits, writes to the books, and waits again.
    pub(super) async fn perform<T: Send + 'static>(
        &self,
        ctx: &ActivityContext,
        deed: impl FnOnce(&mut Open) -> io::Result<T> + Send + 'static,
    ) -> Result<T, String> {
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
async fn reserve(shop: Arc<Shop>, ctx: ActivityContext, order: Order) -> Result<Option<String>, String> {
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

async fn release(shop: Arc<Shop>, ctx: ActivityContext, order: Order) -> Result<(), String> {
    shop.once(&ctx, Entry::Released { order: order.id, items: order.items }).await
}

/// Packs one item. Some items break, which is an error that ends the order.
async fn pack(shop: Arc<Shop>, ctx: ActivityContext, packing: Packing) -> Result<(), String> {
    let Packing { order, item } = packing;
    let sku = item.sku;
    let question = format!("pack/{order}/{sku}");
    if shop.batch.dice(&question).below(100) < BREAKS {
        shop.once(&ctx, Entry::Broken { order, sku: sku.clone() }).await?;
        return Err(format!("the {sku} broke while it was packed"));
    }
    shop.once(&ctx, Entry::Packed { order, sku }).await
}

/// Ships the parcel and returns the tracking number.
async fn ship(shop: Arc<Shop>, ctx: ActivityContext, order: String) -> Result<String, String> {
    let tracking = format!("OL{:08}", shop.batch.dice(&format!("ship/{order}")).below(100_000_000));
    shop.once(&ctx, Entry::Shipped { order, tracking: tracking.clone() }).await?;
    Ok(tracking)
}

async fn hand_over(shop: Arc<Shop>, ctx: ActivityContext, order: String) -> Result<(), String> {
    shop.once(&ctx, Entry::HandedOver { order }).await
}

async fn invoice(shop: Arc<Shop>, ctx: ActivityContext, order: Order) -> Result<(), String> {
    let cents = order.cents();
    shop.once(&ctx, Entry::Invoiced { order: order.id, cents }).await
}

async fn apologise(shop: Arc<Shop>, ctx: ActivityContext, apology: Apology) -> Result<(), String> {
    shop.once(&ctx, Entry::Apologised { order: apology.order, reason: apology.reason }).await
}

//! The goods of the shop, and the generated orders.

use super::dice::Dice;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const CATALOGUE: &[(&str, u64)] = &[
    ("mug", 1_290),
    ("plant", 2_400),
    ("kettle", 3_550),
    ("lamp", 4_900),
    ("clock", 5_900),
    ("rug", 9_900),
    ("chair", 18_900),
    ("desk", 42_000),
];

/// An item whose stock is less than its demand.
const SCARCE: &str = "kettle";

const CUSTOMERS: &[&str] = &[
    "Ada", "Ben", "Chloe", "Dmitri", "Elif", "Femi", "Grace", "Hugo", "Ines", "Jun", "Kofi", "Lena", "Mia",
    "Noor",
];

/// The total from which an order needs an approval.
pub(super) const APPROVAL_FROM_CENTS: u64 = 50_000;

/// One line of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Item {
    pub(super) sku: String,
    pub(super) quantity: u64,
    /// The price of one piece.
    pub(super) cents: u64,
}

/// An order: the input of the orchestration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Order {
    /// Also the id of the instance.
    pub(super) id: String,
    pub(super) customer: String,
    pub(super) items: Vec<Item>,
    /// The timeout of an approval.
    pub(super) approval_ms: u64,
    /// The travel time of a parcel.
    pub(super) transit_ms: u64,
}

impl Order {
    pub(super) fn cents(&self) -> u64 {
        self.items.iter().map(|item| item.cents * item.quantity).sum()
    }

    pub(super) fn needs_approval(&self) -> bool {
        self.cents() >= APPROVAL_FROM_CENTS
    }
}

/// The orders of one run of the demo. All orders follow from these four numbers, so a restart generates the same orders.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Batch {
    pub(super) number: u32,
    pub(super) orders: u32,
    pub(super) seed: u64,
    /// Multiplies every duration.
    pub(super) pace: f64,
}

impl Batch {
    pub(super) fn dice(&self, question: &str) -> Dice {
        Dice::new(self.seed, &format!("{}/{question}", self.number))
    }

    /// A duration multiplied by the pace of the batch.
    pub(super) fn ms(&self, ms: u64) -> u64 {
        // Paces are between 0 and 100 and durations are seconds, so the product is small and not negative.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "see above")]
        let paced = (ms as f64 * self.pace) as u64;
        paced
    }

    /// The prefix of the order ids of this batch.
    pub(super) fn prefix(&self) -> String {
        format!("order-{}-", self.number)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = String> + use<> {
        let prefix = self.prefix();
        (1..=self.orders).map(move |index| format!("{prefix}{index:03}"))
    }

    pub(super) fn order(&self, id: &str) -> Order {
        let mut dice = self.dice(id);
        let wanted = 1 + dice.below(3);
        let mut items: Vec<Item> = Vec::new();
        for _ in 0..wanted {
            let (sku, cents) = *dice.pick(CATALOGUE);
            let quantity = 1 + dice.below(2);
            // An order has each item once.
            if !items.iter().any(|item| item.sku == sku) {
                items.push(Item { sku: sku.to_string(), quantity, cents });
            }
        }
        Order {
            id: id.to_string(),
            customer: dice.pick(CUSTOMERS).to_string(),
            items,
            // At least this time also at the fastest pace.
            approval_ms: self.ms(2_500).max(400),
            transit_ms: self.ms(1_200),
        }
    }

    /// The stock of an item before the first order.
    pub(super) fn stock(&self) -> BTreeMap<String, u64> {
        let mut demand: BTreeMap<String, u64> = BTreeMap::new();
        for id in self.ids() {
            for item in self.order(&id).items {
                *demand.entry(item.sku).or_default() += item.quantity;
            }
        }
        if let Some(scarce) = demand.get_mut(SCARCE) {
            *scarce = *scarce * 3 / 4;
        }
        demand
    }
}

/// `1 order`, `2 orders`
pub(super) fn some(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// `12.90`
pub(super) fn money(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BATCH: Batch = Batch { number: 1, orders: 60, seed: 4, pace: 1.0 };

    #[test]
    fn a_batch_is_the_same_after_a_restart() {
        for id in BATCH.ids() {
            assert_eq!(BATCH.order(&id), BATCH.order(&id));
        }
        let next = Batch { number: 2, ..BATCH };
        assert_ne!(BATCH.order("order-1-001").items, next.order("order-1-001").items);
    }

    #[test]
    fn the_default_batch_has_every_kind_of_order() {
        let orders: Vec<Order> = BATCH.ids().map(|id| BATCH.order(&id)).collect();
        let expensive = orders.iter().filter(|order| order.needs_approval()).count();
        assert!((6..=24).contains(&expensive), "{expensive} of 60 need approval");
        assert!(orders.iter().any(|order| order.items.len() == 3));
        assert!(BATCH.stock()[SCARCE] > 0);
    }

    #[test]
    fn the_pace_multiplies_durations() {
        assert_eq!(Batch { pace: 0.5, ..BATCH }.ms(900), 450);
        assert_eq!(Batch { pace: 0.0, ..BATCH }.ms(900), 0);
        assert_eq!(money(1_205), "12.05");
        assert_eq!((some(1, "order"), some(0, "order")), ("1 order".to_string(), "0 orders".to_string()));
    }
}

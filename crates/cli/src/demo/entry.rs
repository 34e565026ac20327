//! What the ledger says: one JSON object per line.

use super::goods::{Batch, Item};
use serde::{Deserialize, Serialize};

/// One line of the ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Line {
    /// Milliseconds since the Unix epoch.
    pub(super) at_ms: u64,
    /// Names the one thing that was done: a second line with the same key would be the same thing done twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
    #[serde(flatten)]
    pub(super) entry: Entry,
}

/// What happened in the world.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub(super) enum Entry {
    // Written by the shop's own process.
    /// The first line: whose file this is.
    Ledger {
        of: String,
    },
    /// A new batch of orders is announced.
    Batch(Batch),
    /// A process took over the batch.
    Opened {
        process: u32,
    },
    /// The store has acknowledged the order, and the customer was told so: from here on it may not be lost.
    Placed {
        order: String,
    },
    /// The ledger was read back, and nothing was wrong.
    Proven {
        batch: u32,
    },

    // Written by activities.
    Reserved {
        order: String,
        items: Vec<Item>,
    },
    OutOfStock {
        order: String,
        sku: String,
    },
    /// The gateway took no money, and said that it may be tried again.
    Unavailable {
        order: String,
        payment: String,
    },
    /// The gateway took no money, and never will.
    Declined {
        order: String,
    },
    Charged {
        order: String,
        cents: u64,
        answer_lost: bool,
    },
    Refunded {
        order: String,
        cents: u64,
    },
    Packed {
        order: String,
        sku: String,
    },
    Broken {
        order: String,
        sku: String,
    },
    Released {
        order: String,
        items: Vec<Item>,
    },
    Shipped {
        order: String,
        tracking: String,
    },
    HandedOver {
        order: String,
    },
    /// The customer was sent the goods and the bill.
    Invoiced {
        order: String,
        cents: u64,
    },
    /// The customer was told that there will be no goods.
    Apologised {
        order: String,
        reason: String,
    },
    /// Something was asked for a second time, and not done again.
    Refused {
        order: String,
        repeats: String,
        because: Because,
    },
}

/// Why something was asked for twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Because {
    /// The first answer never arrived, so the order tried again.
    AnswerLost,
    /// The process ended between the deed and its acknowledgement, so the store delivered the activity again.
    DeliveredAgain,
}

impl Entry {
    /// The order that it is about.
    pub(super) fn order(&self) -> Option<&str> {
        match self {
            Self::Ledger { .. } | Self::Batch(_) | Self::Opened { .. } | Self::Proven { .. } => None,
            Self::Placed { order }
            | Self::Reserved { order, .. }
            | Self::OutOfStock { order, .. }
            | Self::Unavailable { order, .. }
            | Self::Declined { order }
            | Self::Charged { order, .. }
            | Self::Refunded { order, .. }
            | Self::Packed { order, .. }
            | Self::Broken { order, .. }
            | Self::Released { order, .. }
            | Self::Shipped { order, .. }
            | Self::HandedOver { order }
            | Self::Invoiced { order, .. }
            | Self::Apologised { order, .. }
            | Self::Refused { order, .. } => Some(order),
        }
    }
}

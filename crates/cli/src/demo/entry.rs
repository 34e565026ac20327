//! The entries of the ledger: one JSON object per line.

use super::goods::{Batch, Item};
use serde::{Deserialize, Serialize};

/// One line of the ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Line {
    /// Milliseconds since the Unix epoch.
    pub(super) at_ms: u64,
    /// Identifies the effect: two lines with the same key would be a duplicated effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
    #[serde(flatten)]
    pub(super) entry: Entry,
}

/// An external effect, or an event of the shop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub(super) enum Entry {
    // Written by the shop's own process.
    /// The first line, which identifies the file.
    Ledger {
        of: String,
    },
    /// A new batch of orders.
    Batch(Batch),
    /// A process started to run the batch.
    Opened {
        process: u32,
    },
    /// A worker process was killed; another one is started in its place.
    WorkerKilled {
        worker: u32,
        process: u32,
    },
    /// The store has acknowledged the order, and the customer has a confirmation: from here on it must not be lost.
    Placed {
        order: String,
    },
    /// The proof was run and found no error.
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
    /// The gateway charged nothing and returned a retryable error.
    Unavailable {
        order: String,
        payment: String,
    },
    /// The gateway charged nothing and returned a permanent error.
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
    /// The customer got the message that the order ends without goods.
    Apologised {
        order: String,
        reason: String,
    },
    /// An effect was requested a second time and not repeated.
    Refused {
        order: String,
        repeats: String,
        because: Because,
    },
}

/// Why an effect was requested twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Because {
    /// The first answer was lost, so the order retried.
    AnswerLost,
    /// The process ended between the effect and its acknowledgement, so the store delivered the activity again.
    DeliveredAgain,
}

impl Entry {
    /// The order of the entry.
    pub(super) fn order(&self) -> Option<&str> {
        match self {
            Self::Ledger { .. }
            | Self::Batch(_)
            | Self::Opened { .. }
            | Self::WorkerKilled { .. }
            | Self::Proven { .. } => None,
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

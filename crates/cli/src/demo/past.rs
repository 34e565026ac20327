//! The state of earlier runs, from the ledger.

use super::entry::{Entry, Line};
use super::goods::Batch;

/// The newest batch of a ledger.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Past {
    pub(super) batch: Batch,
    /// Ids of orders that were confirmed to customers.
    pub(super) placed: Vec<String>,
    /// Whether the proof of the batch succeeded.
    pub(super) proven: bool,
}

impl Past {
    pub(super) fn of(lines: &[Line]) -> Option<Self> {
        let mut past: Option<Self> = None;
        for line in lines {
            match (&line.entry, &mut past) {
                (Entry::Batch(batch), _) => {
                    past = Some(Self { batch: *batch, placed: Vec::new(), proven: false });
                }
                (Entry::Placed { order }, Some(past)) => past.placed.push(order.clone()),
                (Entry::Proven { batch }, Some(past)) => past.proven = *batch == past.batch.number,
                _ => {}
            }
        }
        past
    }
}

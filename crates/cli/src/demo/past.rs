//! What the ledger tells about earlier runs.

use super::entry::{Entry, Line};
use super::goods::Batch;

/// The newest batch of a ledger.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Past {
    pub(super) batch: Batch,
    /// Ids of orders that customers were promised.
    pub(super) placed: Vec<String>,
    /// Whether all of it was read back and found right.
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

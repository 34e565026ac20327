//! Our model of Azure's prices.
//!
//! The emulator charges every operation of a batch 1.24 and every query 1.0, whatever they read. The model charges the
//! counted operations by their kind and size instead. Nothing of it was measured on Azure: the prices are published
//! figures for small documents with few indexed properties.

use serde::{Deserialize, Serialize};

use crate::Kind;

/// Request units per operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChargeModel {
    /// A point read of up to 1 KB.
    pub read: f64,
    /// Each further KB that is read.
    pub read_kb: f64,
    /// A create of up to 1 KB, or an upsert that creates.
    pub create: f64,
    /// A replace of up to 1 KB, or an upsert or patch that replaces.
    pub replace: f64,
    /// A delete.
    pub delete: f64,
    /// Each further KB that is written.
    pub write_kb: f64,
    /// A page of a query in one physical partition, without its documents.
    pub query: f64,
    /// A page of a change feed, without its documents.
    pub feed: f64,
    /// Each document in a page of a query or feed; its bytes cost `read_kb`.
    pub row: f64,
    /// An operation that Azure refuses (404, 409, 412 and others). Throttled requests are free.
    pub refused: f64,
}

impl Default for ChargeModel {
    fn default() -> Self {
        Self {
            read: 1.0,
            read_kb: 0.09,
            create: 6.5,
            replace: 10.5,
            delete: 6.0,
            write_kb: 0.45,
            query: 3.0,
            feed: 1.0,
            row: 0.05,
            refused: 1.0,
        }
    }
}

impl ChargeModel {
    /// The charge of an operation on one document.
    pub fn point(&self, kind: Kind, status: u16, bytes: usize) -> f64 {
        let further = further_kb(bytes);
        match (status, kind) {
            (424 | 429, _) => 0.0,
            (400.., _) => self.refused,
            (201, Kind::Create | Kind::Upsert) => self.create + further * self.write_kb,
            (_, Kind::Upsert | Kind::Replace | Kind::Patch) => self.replace + further * self.write_kb,
            (_, Kind::Delete) => self.delete,
            (_, Kind::Read) => self.read + further * self.read_kb,
            _ => 0.0,
        }
    }

    /// The charge of a page of a query or feed.
    pub fn page(&self, kind: Kind, status: u16, rows: usize, bytes: usize) -> f64 {
        let base = match (status, kind) {
            (429, _) => return 0.0,
            (400.., _) => return self.refused,
            (_, Kind::Query) => self.query,
            (_, Kind::ChangeFeed | Kind::ReadFeed) => self.feed,
            _ => return 0.0,
        };
        let bytes = if rows == 0 { 0 } else { bytes };
        // usize as f64: rows of a page are few.
        base + rows as f64 * self.row + further_kb(bytes) * self.read_kb
    }
}

/// The kilobytes after the first.
fn further_kb(bytes: usize) -> f64 {
    bytes.div_ceil(1024).saturating_sub(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_follow_kind_status_and_size() {
        let model = ChargeModel::default();
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
        close(model.point(Kind::Create, 201, 300), 6.5);
        close(model.point(Kind::Create, 201, 3 * 1024), 6.5 + 2.0 * 0.45);
        close(model.point(Kind::Upsert, 200, 300), 10.5);
        close(model.point(Kind::Upsert, 201, 300), 6.5);
        close(model.point(Kind::Replace, 412, 300), 1.0);
        close(model.point(Kind::Create, 424, 300), 0.0);
        close(model.point(Kind::Create, 429, 300), 0.0);
        close(model.page(Kind::ChangeFeed, 304, 0, 0), 1.0);
        close(model.page(Kind::Query, 200, 10, 2048), 3.0 + 0.5 + 0.09);
    }
}

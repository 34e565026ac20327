//! The stored text of a node's report, and the row as a record.

use outlast_model::limits::{MAX_NODE_ID_BYTES, MAX_NODE_REPORT_BYTES};
use outlast_provider::{NodeRecord, NodeReport, ProviderError, saturating_ms};
use std::time::Duration;

/// A report to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRow {
    /// The id of the node.
    pub node_id: String,
    /// The JSON of the report.
    pub report: String,
    /// How long the report counts as live.
    pub live_ms: u64,
    /// How long the report is kept after that.
    pub kept_ms: u64,
}

impl NodeRow {
    /// The row of a report, or a permanent error for a report that is out of bounds.
    pub fn of(report: &NodeReport, live: Duration, kept: Duration) -> Result<Self, ProviderError> {
        const ANNOUNCE: &str = "announce_node";
        if report.node_id.is_empty() || report.node_id.len() > MAX_NODE_ID_BYTES {
            let message = format!("the id of a node has 1 to {MAX_NODE_ID_BYTES} bytes");
            return Err(ProviderError::permanent(ANNOUNCE, message));
        }
        let text = report.stored();
        if text.len() > MAX_NODE_REPORT_BYTES {
            let message = format!(
                "the report of node '{}' has {} bytes, the limit is {MAX_NODE_REPORT_BYTES}",
                report.node_id,
                text.len()
            );
            return Err(ProviderError::permanent(ANNOUNCE, message));
        }
        Ok(Self {
            node_id: report.node_id.clone(),
            report: text,
            live_ms: saturating_ms(live),
            kept_ms: saturating_ms(kept),
        })
    }

    /// When a report that is stored now expires.
    pub fn expires_at(&self, now_ms: u64) -> u64 {
        now_ms.saturating_add(self.live_ms)
    }

    /// When a report that is stored now may be deleted.
    pub fn kept_until(&self, now_ms: u64) -> u64 {
        self.expires_at(now_ms).saturating_add(self.kept_ms)
    }
}

/// The record of a stored report. A text that is no report shows the id alone: a later release may have written it.
pub fn node_record(node_id: &str, report: &str, seen_at: u64, expires_at: u64, now_ms: u64) -> NodeRecord {
    NodeRecord {
        report: NodeReport::of_stored(report).unwrap_or_else(|| NodeReport::new(node_id)),
        seen_ms_ago: now_ms.saturating_sub(seen_at),
        expires_in_ms: expires_at.saturating_sub(now_ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_out_of_bounds_are_refused() {
        let (live, kept) = (Duration::from_secs(15), Duration::from_secs(60));
        let row = NodeRow::of(&NodeReport::new("a1"), live, kept).unwrap();
        assert_eq!((row.expires_at(1_000), row.kept_until(1_000)), (16_000, 76_000));
        assert_eq!(row.kept_until(u64::MAX), u64::MAX);
        for id in [String::new(), "n".repeat(MAX_NODE_ID_BYTES + 1)] {
            assert!(!NodeRow::of(&NodeReport::new(id), live, kept).unwrap_err().is_retryable());
        }
        let mut large = NodeReport::new("a1");
        large.build = "b".repeat(MAX_NODE_REPORT_BYTES);
        assert!(NodeRow::of(&large, live, kept).unwrap_err().to_string().contains("'a1'"));
    }

    #[test]
    fn text_that_is_no_report_shows_the_id() {
        let record = node_record("a1", "null", 900, 1_500, 1_000);
        assert_eq!(
            (record.report, record.seen_ms_ago, record.expires_in_ms),
            (NodeReport::new("a1"), 100, 500)
        );
        assert!(node_record("a1", "{}", 900, 1_000, 1_000).is_lost());
    }
}

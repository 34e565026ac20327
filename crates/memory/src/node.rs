//! Reports of nodes.

use crate::rules::NodeRules;
use crate::state::{State, refuse};
use outlast_provider::model::limits::{MAX_NODE_ID_BYTES, MAX_NODE_REPORT_BYTES};
use outlast_provider::{NodeRecord, NodeReport, ProviderError, saturating_ms};
use std::ops::Bound;
use std::time::Duration;

/// A stored report.
#[derive(Clone)]
pub(crate) struct Announced {
    pub(crate) report: NodeReport,
    seen_at: u64,
    pub(crate) expires_at: u64,
    pub(crate) kept_until: u64,
}

impl State {
    pub(crate) fn announce_node(
        &mut self,
        report: &NodeReport,
        live: Duration,
        kept: Duration,
        now: u64,
    ) -> Result<bool, ProviderError> {
        let id = &report.node_id;
        if id.is_empty() || id.len() > MAX_NODE_ID_BYTES {
            return refuse("announce_node", format!("the id of a node has 1 to {MAX_NODE_ID_BYTES} bytes"));
        }
        if self.rules.is_oversized(report.stored_bytes(), MAX_NODE_REPORT_BYTES) {
            let limit = format!("the limit is {MAX_NODE_REPORT_BYTES} bytes");
            return refuse("announce_node", format!("the report of node '{id}' is too large: {limit}"));
        }
        let expires_at = now.saturating_add(saturating_ms(live));
        let kept_until = expires_at.saturating_add(saturating_ms(kept));
        let announced = Announced { report: report.clone(), seen_at: now, expires_at, kept_until };
        let rules = self.rules;
        rules.keep_report(self, announced);
        Ok(true)
    }

    /// Stores a report under the id of its node.
    pub(crate) fn put_report(&mut self, announced: Announced) {
        self.nodes.insert(announced.report.node_id.clone(), announced);
    }

    pub(crate) fn nodes(&self, after: Option<&str>, limit: usize, now: u64) -> Vec<NodeRecord> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let listed = self.nodes.range::<str, _>((from, Bound::Unbounded)).map(|(_, announced)| NodeRecord {
            report: announced.report.clone(),
            seen_ms_ago: now.saturating_sub(announced.seen_at),
            expires_in_ms: announced.expires_at.saturating_sub(now),
        });
        listed.filter(|record| self.rules.is_listed(record)).take(limit).collect()
    }

    pub(crate) fn sweep_nodes(&mut self, limit: usize, now: u64) -> u64 {
        let rules = self.rules;
        let over = self.nodes.iter().filter(|(_, announced)| rules.is_over(announced, now));
        let ids: Vec<String> = over.map(|(id, _)| id.clone()).take(rules.sweep_limit(limit)).collect();
        for id in &ids {
            self.nodes.remove(id);
        }
        ids.len() as u64
    }
}

//! Broken reports of nodes.

use super::{Defect, Rules};
use crate::node::Announced;
use crate::rules::{Contract, NodeRules};
use crate::state::State;
use outlast_provider::NodeRecord;

impl NodeRules for Rules {
    fn is_oversized(&self, bytes: usize, limit: usize) -> bool {
        self.defect != Some(Defect::NodeReportUnbounded) && Contract.is_oversized(bytes, limit)
    }

    fn keep_report(&self, state: &mut State, announced: Announced) {
        match self.defect {
            Some(Defect::NodeReportKeepsFirst) if state.nodes.contains_key(&announced.report.node_id) => {}
            _ => Contract.keep_report(state, announced),
        }
    }

    fn is_listed(&self, record: &NodeRecord) -> bool {
        match self.defect {
            Some(Defect::LostNodesNotListed) => !record.is_lost(),
            _ => Contract.is_listed(record),
        }
    }

    fn is_over(&self, announced: &Announced, now: u64) -> bool {
        match self.defect {
            Some(Defect::NodeSweepTakesExpired) => announced.expires_at <= now,
            Some(Defect::NodeSweepTakesNothing) => false,
            _ => Contract.is_over(announced, now),
        }
    }

    fn sweep_limit(&self, limit: usize) -> usize {
        match self.defect {
            Some(Defect::NodeSweepUnbounded) => usize::MAX,
            _ => Contract.sweep_limit(limit),
        }
    }

    fn remove_report(&self, state: &mut State, node_id: &str) -> bool {
        match self.defect {
            Some(Defect::NodeRemovalTakesAll) => {
                let found = state.nodes.contains_key(node_id);
                state.nodes.clear();
                found
            }
            _ => Contract.remove_report(state, node_id),
        }
    }
}

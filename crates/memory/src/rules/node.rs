//! Reports of nodes.

use crate::node::Announced;
use crate::state::State;
use outlast_provider::NodeRecord;

pub(crate) trait NodeRules {
    /// A report over the limit is refused.
    fn is_oversized(&self, bytes: usize, limit: usize) -> bool {
        bytes > limit
    }

    /// A report replaces the earlier report of its node.
    fn keep_report(&self, state: &mut State, announced: Announced) {
        state.put_report(announced);
    }

    /// Expired reports are listed too.
    fn is_listed(&self, _record: &NodeRecord) -> bool {
        true
    }

    /// A report is swept when it is kept no longer, not when it expires.
    fn is_over(&self, announced: &Announced, now: u64) -> bool {
        announced.kept_until <= now
    }

    /// A sweep is bounded.
    fn sweep_limit(&self, limit: usize) -> usize {
        limit
    }

    /// A removal deletes the report of this node only.
    fn remove_report(&self, state: &mut State, node_id: &str) -> bool {
        state.nodes.remove(node_id).is_some()
    }
}

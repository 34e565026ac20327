//! The options of runtimes in tests: no timer fires without need, and nothing is random.

use crate::poll_gate::PollGate;
use outlast_provider::{Clock, Entropy, TagFilter};
use outlast_runtime::RuntimeOptions;
use outlast_runtime::observability::ObservabilityConfig;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Longer than any test. Leases never expire by time: the kit ends them when their process crashes.
const FAR: Duration = crate::days(36_500);

/// The options of a process. With the default options a runtime looks at its leases every 1.25 seconds, and a test of thirty days
/// takes 20 seconds.
pub(crate) fn quiet(
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    gate: &Arc<PollGate>,
) -> RuntimeOptions {
    RuntimeOptions {
        dispatcher_long_poll_timeout: FAR,
        orchestrator_lock_timeout: FAR,
        worker_lock_timeout: FAR,
        session_lock_timeout: FAR,
        session_idle_timeout: 2 * FAR,
        session_cleanup_interval: FAR,
        observability: ObservabilityConfig { gauge_poll_interval: FAR, ..ObservabilityConfig::default() },
        // A restarted process owns the sessions of its predecessor.
        worker_node_id: Some("test".to_string()),
        worker_tag_filter: TagFilter::Any,
        // A beat every five seconds would be the only work of most tests of long waits.
        node_heartbeat: None,
        clock,
        entropy,
        pulse: Some(Arc::<PollGate>::clone(gate) as _),
        ..RuntimeOptions::default()
    }
}

/// Numbers that differ within a run and are equal in every run.
#[derive(Default)]
pub(crate) struct Draws(AtomicU64);

impl Entropy for Draws {
    fn next_u128(&self) -> u128 {
        // An odd factor maps different counts to different numbers.
        const FACTOR: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
        u128::from(1 + self.0.fetch_add(1, Relaxed)).wrapping_mul(FACTOR)
    }
}

//! The passes of a runtime.

use super::{Pass, Retention, RetentionReport};
use crate::core::Core;
use outlast_provider::ErrorClass;
use std::sync::Arc;
use std::time::Duration;

/// A runtime makes its first pass within this time after its start, so that processes which are restarted often make passes too.
const FIRST_WITHIN: Duration = Duration::from_secs(60);

/// Makes a pass after a random part of a minute, and then at the interval of the policy. The random part separates the passes of
/// nodes that start together.
pub(crate) async fn apply_regularly(core: Arc<Core>, policy: Retention) {
    let part = (core.options.entropy.next_u128() % 1_000) as u32;
    let mut wait = FIRST_WITHIN.min(policy.every) * part / 1_000;
    loop {
        tokio::select! {
            () = core.stopping.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
        }
        apply(&core, &policy).await;
        wait = policy.every;
    }
}

/// Makes one pass, and logs its result.
async fn apply(core: &Core, policy: &Retention) {
    let Some(admin) = core.store.as_management_capability() else { return };
    let now_ms = core.options.clock.now_ms();
    let report = RetentionReport::default();
    let mut pass = Pass { admin, policy, now_ms, stop: &core.stopping, report };
    let node = core.options.worker_node_id.as_deref().unwrap_or(&core.runtime_id);
    let actor = format!("retention of {node}");
    let done = pass.run(&actor).await;
    let report = pass.report;
    let RetentionReport { instances, audit_records, dead_letters, .. } = report;
    core.metrics.record_retention(instances, audit_records, dead_letters);
    if let Err(error) = done {
        let error_type = ErrorClass::of(&error).label();
        tracing::warn!(target: "duroxide::runtime", error_type, instances, "retention stopped: the store returned an error. The next pass tries again");
    } else if report.has_deleted() {
        tracing::info!(target: "duroxide::runtime", instances, audit_records, dead_letters, "retention deleted");
    }
    if !report.unsupported.is_empty() {
        tracing::warn!(target: "duroxide::runtime", unsupported = ?report.unsupported, "the store has no retention for a part of the policy");
    }
}

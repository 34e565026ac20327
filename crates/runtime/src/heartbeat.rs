//! The heartbeat of a node: at [`RuntimeOptions::node_heartbeat`](crate::RuntimeOptions::node_heartbeat) the runtime stores a
//! report about itself, so that other processes see its handlers, its running work and its leases.
//!
//! A report that the store refuses fails no work: the next report follows. A node that stops reporting is lost after
//! [`MISSED_BEATS`] intervals, and its report is kept for [`KEPT`] after that.

use crate::core::Core;
use crate::dispatch::lease::Kind;
use outlast_model::{NodeLoad, NodeOrchestration, NodeReport, NodeTags};
use outlast_provider::{ErrorClass, ProviderAdmin, TagFilter};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The intervals without a report after which a node is lost.
const MISSED_BEATS: u32 = 3;
/// How long the report of a lost node is kept.
const KEPT: Duration = Duration::from_secs(600);
/// Beats between two sweeps of old reports.
const BEATS_PER_SWEEP: u32 = 12;
/// The most old reports that one sweep deletes.
const SWEPT: usize = 64;
/// The longest wait for a beat that is under way when the runtime has drained, and for the removal of the report.
const LONGEST_END: Duration = Duration::from_millis(250);

/// Stores a report at every interval, until the runtime has drained.
pub(crate) async fn beat(core: Arc<Core>, every: Duration) {
    let Some(admin) = core.store.as_management_capability() else { return };
    let started_at_ms = core.now_ms();
    // Nodes that start together report at different times, and a runtime that ends soon after its start writes no report.
    let mut pause = (every / 10).saturating_add(part(&core, every / 10));
    for count in 0_u32.. {
        tokio::select! {
            biased;
            () = core.drained.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        if !announce(&core, admin, report(&core, started_at_ms), every).await {
            return;
        }
        if count.is_multiple_of(BEATS_PER_SWEEP) {
            sweep(&core, admin).await;
        }
        pause = (every - every / 10).saturating_add(part(&core, every / 5));
    }
}

/// A random part of a duration.
fn part(core: &Core, of: Duration) -> Duration {
    let draw = core.options.entropy.next_u128() % 1_000;
    (of / 1_000).saturating_mul(u32::try_from(draw).unwrap_or(0))
}

/// Stores one report. Returns whether the heartbeat goes on.
async fn announce(core: &Core, admin: &dyn ProviderAdmin, report: NodeReport, every: Duration) -> bool {
    core.has_announced.store(true, Relaxed);
    let mut stored = admin.announce_node(&report, every.saturating_mul(MISSED_BEATS), KEPT);
    let answer = tokio::select! {
        biased;
        answer = &mut stored => answer,
        () = core.drained.cancelled() => {
            // The removal of the report must not overtake this report.
            if !core.aborted.is_cancelled() {
                let _ = tokio::time::timeout(LONGEST_END, stored).await;
            }
            return false;
        }
    };
    match answer {
        Ok(is_kept) => is_kept,
        Err(error) => {
            failed(&error);
            true
        }
    }
}

/// Deletes expired reports, unless the runtime drains.
async fn sweep(core: &Core, admin: &dyn ProviderAdmin) {
    tokio::select! {
        biased;
        () = core.drained.cancelled() => {}
        swept = admin.sweep_nodes(SWEPT) => {
            if let Err(error) = swept {
                failed(&error);
            }
        }
    }
}

fn failed(error: &outlast_provider::ProviderError) {
    let error_type = ErrorClass::of(error).label();
    tracing::debug!(target: "duroxide::runtime", error_type, "the report of this node was not stored; the next one follows");
}

/// Removes the report of a node that shuts down.
pub(crate) async fn remove(core: &Core) {
    if !core.has_announced.load(Relaxed) {
        return;
    }
    let Some(admin) = core.store.as_management_capability() else { return };
    let removed = tokio::time::timeout(LONGEST_END, admin.remove_node(&core.node_id())).await;
    if !matches!(removed, Ok(Ok(_))) {
        tracing::debug!(target: "duroxide::runtime", "the report of this node was not removed; it expires");
    }
}

/// The report of this runtime as it is now. A runtime that runs no turns reports no orchestrations, and one that runs no activities
/// reports no activities and tags.
fn report(core: &Core, started_at_ms: u64) -> NodeReport {
    let options = &core.options;
    let mut report = NodeReport::new(core.node_id());
    report.host = host();
    report.pid = std::process::id();
    report.build = options.build_id.clone();
    report.started_at_ms = started_at_ms;
    if options.orchestration_concurrency > 0 {
        report.orchestrations = orchestrations(core);
        report.missing_patches = core.older_code.patches();
    }
    if options.worker_concurrency > 0 {
        report.activities = core.activities.user_names().collect();
        report.tags = tags(&options.worker_tag_filter);
    }
    report.running_turns = load(core, Kind::Turn, options.orchestration_concurrency);
    report.running_activities = load(core, Kind::Activity, options.worker_concurrency);
    core.leases.report(&mut report);
    report.bounded()
}

fn orchestrations(core: &Core) -> Vec<NodeOrchestration> {
    let registered = |name: String| {
        let versions = core.orchestrations.list_versions(&name).iter().map(ToString::to_string).collect();
        NodeOrchestration { name, versions }
    };
    core.orchestrations.list_names().into_iter().map(registered).collect()
}

fn load(core: &Core, kind: Kind, limit: usize) -> NodeLoad {
    NodeLoad { running: core.permits(kind).taken() as u64, limit: limit as u64 }
}

fn tags(filter: &TagFilter) -> NodeTags {
    let named = |tags: &std::collections::HashSet<String>| {
        let mut named: Vec<String> = tags.iter().cloned().collect();
        named.sort();
        named
    };
    match filter {
        TagFilter::DefaultOnly => NodeTags { untagged: true, ..NodeTags::default() },
        TagFilter::Tags(tags) => NodeTags { named: named(tags), ..NodeTags::default() },
        TagFilter::DefaultAnd(tags) => NodeTags { untagged: true, any: false, named: named(tags) },
        TagFilter::Any => NodeTags { untagged: true, any: true, named: Vec::new() },
        TagFilter::None => NodeTags::default(),
    }
}

/// The name of the host; empty if the system does not report it.
fn host() -> String {
    let of_system = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let of_shell = || std::env::var("HOSTNAME").or_else(|_| std::env::var("COMPUTERNAME")).ok();
    of_system.or_else(of_shell).unwrap_or_default().trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_filter_of_tags_is_reported() {
        let gpu = || TagFilter::tags(["gpu"]);
        let both = TagFilter::default_and(["b", "a"]);
        let takes = |filter: &TagFilter| {
            let tags = tags(filter);
            [tags.take(None), tags.take(Some("gpu")), tags.take(Some("a"))]
        };
        assert_eq!(takes(&TagFilter::DefaultOnly), [true, false, false]);
        assert_eq!(takes(&gpu()), [false, true, false]);
        assert_eq!(takes(&both), [true, false, true]);
        assert_eq!(tags(&both).named, ["a", "b"]);
        assert_eq!(takes(&TagFilter::Any), [true; 3]);
        assert_eq!(takes(&TagFilter::None), [false; 3]);
    }
}

//! Reports of nodes: the newest report of each node is kept, expires by the store's clock, and is swept later.

use crate::ProviderFactory;
use crate::support::*;
use outlast_provider::model::limits::{MAX_NODE_ID_BYTES, MAX_NODE_REPORT_BYTES};
use outlast_provider::model::{NodeLease, NodeLoad, NodeOrchestration, NodeTags};
use outlast_provider::{NodeRecord, NodeReport, Provider};
use std::sync::Arc;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(50);

/// A store with an instance, which reports do not change; `None` if the store keeps no reports.
async fn store(factory: &dyn ProviderFactory) -> Option<Arc<dyn Provider>> {
    let provider = factory.create_provider().await;
    create_instance(&*provider, "beside").await;
    let listed = admin(&*provider).nodes(None, 10).await.expect("nodes succeeds");
    match announce(&*provider, &NodeReport::new("probe"), MINUTE, MINUTE).await {
        true => {
            assert_eq!(listed, Some(Vec::new()), "a new store has no nodes");
            assert!(remove(&*provider, "probe").await);
            Some(provider)
        }
        false => {
            assert_eq!(listed, None, "a store that keeps no reports lists none");
            None
        }
    }
}

async fn announce(provider: &dyn Provider, report: &NodeReport, live: Duration, kept: Duration) -> bool {
    admin(provider).announce_node(report, live, kept).await.expect("announce_node succeeds")
}

async fn remove(provider: &dyn Provider, node: &str) -> bool {
    admin(provider).remove_node(node).await.expect("remove_node succeeds")
}

async fn sweep(provider: &dyn Provider, limit: usize) -> u64 {
    admin(provider).sweep_nodes(limit).await.expect("sweep_nodes succeeds")
}

async fn listed(provider: &dyn Provider, after: Option<&str>, limit: usize) -> Vec<NodeRecord> {
    let nodes = admin(provider).nodes(after, limit).await.expect("nodes succeeds");
    nodes.expect("the store keeps reports")
}

async fn ids(provider: &dyn Provider, after: Option<&str>, limit: usize) -> Vec<String> {
    listed(provider, after, limit).await.into_iter().map(|record| record.report.node_id).collect()
}

/// A report with every field in use.
fn report(node: &str) -> NodeReport {
    let mut report = NodeReport::new(node);
    report.host = "host \u{1f980}".to_string();
    report.pid = 811;
    report.build = "a\0b \"c\" \u{1}".to_string();
    report.started_at_ms = u64::MAX;
    report.orchestrations =
        vec![NodeOrchestration { name: "Order".to_string(), versions: vec!["1.4.0".to_string()] }];
    report.activities = vec!["Charge".to_string(), "\0".to_string()];
    report.omitted_handlers = 7;
    report.tags = NodeTags { untagged: true, any: false, named: vec!["gpu".to_string()] };
    report.running_turns = NodeLoad { running: 2, limit: 16 };
    report.running_activities = NodeLoad { running: 31, limit: 64 };
    report.leases = vec![
        NodeLease { instance: "o/1".to_string(), activity: None },
        NodeLease { instance: "o\0".to_string(), activity: Some((1, 2)) },
    ];
    report.omitted_leases = 1;
    report
}

/// A report is read back exactly, with the time since it was stored and the time until it expires.
pub async fn a_report_is_listed_as_announced(factory: &dyn ProviderFactory) {
    let Some(provider) = store(factory).await else { return };
    assert!(announce(&*provider, &report("a\0/#1"), MINUTE, MINUTE).await);
    let nodes = listed(&*provider, None, 10).await;
    assert_eq!(nodes.len(), 1);
    assert_eq!(nodes[0].report, report("a\0/#1"));
    assert!(nodes[0].seen_ms_ago < 30_000, "{} ms", nodes[0].seen_ms_ago);
    assert!((30_000..=60_000).contains(&nodes[0].expires_in_ms), "{} ms", nodes[0].expires_in_ms);
    assert!(!nodes[0].is_lost());
    assert_eq!(instances(&*provider).await, ["beside"], "a report is no instance");
}

/// A later report replaces the earlier one of its node, and no other.
pub async fn a_report_replaces_the_earlier_one(factory: &dyn ProviderFactory) {
    let Some(provider) = store(factory).await else { return };
    for node in ["a", "b"] {
        announce(&*provider, &report(node), MINUTE, MINUTE).await;
    }
    let mut later = NodeReport::new("a");
    later.build = "later".to_string();
    announce(&*provider, &later, 2 * MINUTE, MINUTE).await;
    let nodes = listed(&*provider, None, 10).await;
    let reports: Vec<_> = nodes.iter().map(|record| &record.report).collect();
    assert_eq!(reports, [&later, &report("b")]);
    assert!(nodes[0].expires_in_ms > 60_000, "the later report counts: {} ms", nodes[0].expires_in_ms);
}

/// A report that was not renewed in time is listed as lost, until the node reports again.
pub async fn a_lost_node_is_listed(factory: &dyn ProviderFactory) {
    let Some(provider) = store(factory).await else { return };
    announce(&*provider, &report("a"), SHORT, MINUTE).await;
    announce(&*provider, &report("b"), MINUTE, MINUTE).await;
    outlive(SHORT).await;
    let lost: Vec<_> = listed(&*provider, None, 10).await.iter().map(NodeRecord::is_lost).collect();
    assert_eq!(lost, [true, false]);
    let first = &listed(&*provider, None, 1).await[0];
    assert!(first.seen_ms_ago >= 50, "{} ms", first.seen_ms_ago);
    assert_eq!(sweep(&*provider, 10).await, 0, "an expired report is kept for its time");
    announce(&*provider, &report("a"), MINUTE, MINUTE).await;
    assert!(!listed(&*provider, None, 10).await[0].is_lost(), "the node reported again");
}

/// Nodes are listed by ascending id, page by page.
pub async fn nodes_are_paged_by_id(factory: &dyn ProviderFactory) {
    let Some(provider) = store(factory).await else { return };
    for node in ["c", "B", "a", "Z"] {
        announce(&*provider, &NodeReport::new(node), MINUTE, MINUTE).await;
    }
    assert_eq!(ids(&*provider, None, 10).await, ["B", "Z", "a", "c"]);
    assert_eq!(ids(&*provider, None, 2).await, ["B", "Z"]);
    assert_eq!(ids(&*provider, Some("Z"), 1).await, ["a"]);
    assert_eq!(ids(&*provider, Some("b"), 10).await, ["c"]);
    assert_eq!(ids(&*provider, Some("c"), 10).await, [""; 0]);
}

/// A removed node is not listed, and the others stay.
pub async fn a_removed_node_is_gone(factory: &dyn ProviderFactory) {
    let Some(provider) = store(factory).await else { return };
    for node in ["a", "b"] {
        announce(&*provider, &report(node), MINUTE, MINUTE).await;
    }
    assert!(remove(&*provider, "a").await);
    assert!(!remove(&*provider, "a").await, "it is gone");
    assert!(!remove(&*provider, "nobody").await);
    assert_eq!(ids(&*provider, None, 10).await, ["b"]);
}

/// A sweep deletes reports that are kept no longer, at most as many as its limit.
pub async fn old_reports_are_swept_in_batches(factory: &dyn ProviderFactory) {
    let Some(provider) = store(factory).await else { return };
    for node in ["a", "b", "c"] {
        announce(&*provider, &NodeReport::new(node), SHORT, SHORT).await;
    }
    announce(&*provider, &NodeReport::new("live"), MINUTE, Duration::ZERO).await;
    announce(&*provider, &NodeReport::new("lost"), SHORT, MINUTE).await;
    outlive(2 * SHORT).await;
    assert_eq!(sweep(&*provider, 2).await, 2);
    assert_eq!(ids(&*provider, None, 10).await.len(), 3);
    assert_eq!(sweep(&*provider, 2).await, 1);
    assert_eq!(sweep(&*provider, 2).await, 0);
    assert_eq!(ids(&*provider, None, 10).await, ["live", "lost"]);
}

/// A report without an id, with an id that is too long, or over the limit of its size is refused and changes nothing.
pub async fn reports_out_of_bounds_are_refused(factory: &dyn ProviderFactory) {
    let Some(provider) = store(factory).await else { return };
    announce(&*provider, &report("a"), MINUTE, MINUTE).await;
    let mut large = report("a");
    large.build = "b".repeat(MAX_NODE_REPORT_BYTES);
    let longest = "n".repeat(MAX_NODE_ID_BYTES);
    for refused in [NodeReport::new(""), NodeReport::new(format!("{longest}n")), large] {
        let answer = admin(&*provider).announce_node(&refused, MINUTE, MINUTE).await;
        assert!(!answer.expect_err("the report is refused").is_retryable());
    }
    announce(&*provider, &NodeReport::new(longest.clone()), Duration::MAX, Duration::MAX).await;
    assert_eq!(ids(&*provider, None, 10).await, ["a".to_string(), longest]);
    assert_eq!(listed(&*provider, None, 1).await[0].report, report("a"), "the earlier report stays");
}

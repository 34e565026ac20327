//! Checks of the nodes that report to the store.

use super::report::Check;
use crate::failure::Failure;
use outlast::client::{Client, ListedNode};
use outlast::lens::{counted, span};
use std::collections::BTreeMap;

/// Lost nodes, and live nodes of several builds.
pub(super) async fn check(client: &Client) -> Result<Check, Failure> {
    let Some(nodes) = client.list_nodes().await? else {
        return Ok(Check::fine("nodes", "the store keeps no reports of nodes"));
    };
    let live = || nodes.iter().filter(|node| !node.record.is_lost());
    let says = match live().count() {
        0 => "no node reports".to_string(),
        count => format!("{}, no lost one", counted(count, "live node")),
    };
    let mut check = Check::fine("nodes", says);
    for lost in nodes.iter().filter(|node| node.record.is_lost()) {
        check.found(lost_node(lost));
    }
    let mut builds: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for node in live() {
        builds.entry(&node.record.report.build).or_default().push(&node.record.report.node_id);
    }
    if builds.len() > 1 {
        let build = |(build, nodes): (&&str, &Vec<&str>)| {
            let name = if build.is_empty() { "no build id" } else { *build };
            format!("{name} ({})", nodes.join(", "))
        };
        let builds: Vec<String> = builds.iter().map(build).collect();
        check.found(format!("live nodes run {} builds: {}", builds.len(), builds.join("; ")));
    }
    Ok(check)
}

fn lost_node(node: &ListedNode) -> String {
    let report = &node.record.report;
    let place = match report.host.is_empty() {
        true => format!("pid {}", report.pid),
        false => format!("{}, pid {}", report.host, report.pid),
    };
    let leases = match node.lost_leases.count {
        0 => "none of its leases is left".to_string(),
        count => {
            format!("{} left, until {} from now", counted(count, "lease"), span(node.lost_leases.end_in_ms))
        }
    };
    format!(
        "node {} ({place}) is lost: its last report was {} ago, and it did not shut down; {leases}",
        report.node_id,
        span(node.record.seen_ms_ago)
    )
}

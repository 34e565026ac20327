//! Nodes: the reports that runtimes store about themselves.

use super::{Client, ClientError};
use outlast_model::{NodeLease, NodeRecord, PendingWork};
use std::collections::{BTreeMap, BTreeSet};

/// Nodes that are read at a time.
const PAGE: usize = 100;
/// The most nodes that are listed.
const MOST_NODES: usize = 1_000;
/// The most instances whose leases are looked up for lost nodes.
const MOST_LOOKUPS: usize = 256;
/// The most activities of one instance that are searched for a lease.
const MOST_QUEUED: usize = 200;

/// A node, live or lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedNode {
    /// Its newest report.
    pub record: NodeRecord,
    /// The leases of a lost node that have not ended. A live node has none here: its report names its leases.
    pub lost_leases: LostLeases,
}

/// The leases of a lost node that have not ended and that no live node holds. When a lease ends, its turn or activity is delivered
/// again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LostLeases {
    /// The number of these leases.
    pub count: u64,
    /// The time until the last of these leases ends, by the store's clock.
    pub end_in_ms: u64,
}

impl Client {
    /// The reports of live and lost nodes by ascending id, at most 1,000. `None` if the store keeps no reports.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn node_records(&self) -> Result<Option<Vec<NodeRecord>>, ClientError> {
        let mut all: Vec<NodeRecord> = Vec::new();
        while all.len() < MOST_NODES {
            let after = all.last().map(|last| last.report.node_id.clone());
            let Some(page) = self.admin()?.nodes(after.as_deref(), PAGE).await? else { return Ok(None) };
            let is_last = page.len() < PAGE;
            all.extend(page);
            if is_last {
                break;
            }
        }
        Ok(Some(all))
    }

    /// The nodes of the store by ascending id, each lost node with its leases that have not ended. `None` if the store keeps no
    /// reports.
    ///
    /// Cancellation safety: the call only reads.
    pub async fn list_nodes(&self) -> Result<Option<Vec<ListedNode>>, ClientError> {
        let Some(records) = self.node_records().await? else { return Ok(None) };
        let live = records.iter().filter(|record| !record.is_lost()).flat_map(|record| &record.report.leases);
        let taken_over: BTreeSet<(String, Option<(u64, u64)>)> = live.map(key).collect();
        let mut queues: BTreeMap<String, Option<PendingWork>> = BTreeMap::new();
        let mut nodes = Vec::with_capacity(records.len());
        for record in records {
            let mut lost_leases = LostLeases::default();
            let lost = record.report.leases.iter().filter(|_| record.is_lost());
            for lease in lost.filter(|lease| !taken_over.contains(&key(lease))) {
                if !queues.contains_key(&lease.instance) {
                    if queues.len() == MOST_LOOKUPS {
                        break;
                    }
                    let pending = self.pending_work(&lease.instance, MOST_QUEUED).await?;
                    queues.insert(lease.instance.clone(), pending);
                }
                let pending = queues.get(&lease.instance).and_then(Option::as_ref);
                if let Some(left) = pending.and_then(|pending| left_ms(pending, lease)) {
                    lost_leases.count += 1;
                    lost_leases.end_in_ms = lost_leases.end_in_ms.max(left);
                }
            }
            nodes.push(ListedNode { record, lost_leases });
        }
        Ok(Some(nodes))
    }
}

fn key(lease: &NodeLease) -> (String, Option<(u64, u64)>) {
    (lease.instance.clone(), lease.activity)
}

/// The time until the lease ends; `None` if it has ended.
fn left_ms(pending: &PendingWork, lease: &NodeLease) -> Option<u64> {
    let locked_until = match lease.activity {
        None => pending.turn_locked_until,
        Some((execution_id, id)) => pending
            .activities
            .iter()
            .find(|item| (item.execution_id, item.id) == (Some(execution_id), Some(id)))
            .and_then(|item| item.locked_until),
    };
    locked_until.and_then(|until| until.checked_sub(pending.now_ms)).filter(|left| *left > 0)
}

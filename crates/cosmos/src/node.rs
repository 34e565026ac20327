//! Reports of nodes: documents in a partition of their own. The service deletes a report that no sweep deleted by its time to live.

use crate::client::Op;
use crate::document::Versioned;
use crate::doubt::{Refusal, Verdict};
use crate::ids::sha256_hex;
use crate::layout::NODES;
use crate::number;
use crate::sql;
use crate::store::Store;
use outlast_provider::{NodeRecord, ProviderError};
use outlast_provider_kit::{NodeRow, node_record};
use serde::{Deserialize, Serialize};

const ANNOUNCE: &str = "announce_node";
const REMOVE: &str = "remove_node";
const LIST: &str = "nodes";
const SWEEP: &str = "sweep_nodes";

/// Attempts of a write whose outcome is in doubt.
const ATTEMPTS: usize = 4;

/// The time in which sweeps can delete a report before the service does, in seconds.
const SWEEP_TIME: u64 = 600;

/// The report of a node: `t = "b"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Document {
    id: String,
    #[serde(rename = "instanceId")]
    partition: String,
    t: String,
    /// Not indexed.
    d: Announced,
    ttl: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Announced {
    node: String,
    /// The JSON of the report as a text, so that numbers stay exact.
    report: String,
    #[serde(with = "number")]
    seen: u64,
    #[serde(with = "number")]
    expires: u64,
    #[serde(with = "number")]
    kept: u64,
}

/// The id of the document of a node. It has no text of users.
fn id_of(node_id: &str) -> String {
    format!("b:{}", sha256_hex(node_id))
}

/// The time to live of a report, in seconds; at most the largest that the service takes.
fn time_to_live(row: &NodeRow) -> u32 {
    let seconds = row.kept_until(0).div_ceil(1_000).saturating_add(SWEEP_TIME);
    u32::try_from(seconds).unwrap_or(u32::MAX).min(i32::MAX as u32)
}

impl Store {
    /// Stores the report of a node in place of its earlier one.
    pub(crate) async fn announce_node(&self, row: &NodeRow) -> Result<bool, ProviderError> {
        let now = self.now();
        let document = Document {
            id: id_of(&row.node_id),
            partition: NODES.to_string(),
            t: "b".to_string(),
            d: Announced {
                node: row.node_id.clone(),
                report: row.report.clone(),
                seen: now,
                expires: row.expires_at(now),
                kept: row.kept_until(now),
            },
            ttl: time_to_live(row),
        };
        for _ in 0..ATTEMPTS {
            let batched = self.client.batch(NODES, vec![Op::upsert(&document)?]).await?;
            match batched.verdict() {
                Verdict::Applied => return Ok(true),
                Verdict::Refused(_) => return Err(batched.error(ANNOUNCE)),
                // A repetition stores the same document.
                Verdict::InDoubt => {}
            }
        }
        Err(unanswered(ANNOUNCE))
    }

    /// Deletes the report of a node; returns whether there was one.
    pub(crate) async fn remove_node(&self, node_id: &str) -> Result<bool, ProviderError> {
        let mut was_in_doubt = false;
        for _ in 0..ATTEMPTS {
            let batched = self.client.batch(NODES, vec![Op::delete(&id_of(node_id), None)]).await?;
            match batched.verdict() {
                Verdict::Applied => return Ok(true),
                Verdict::Refused(Refusal::Absent) => return Ok(was_in_doubt),
                Verdict::Refused(_) => return Err(batched.error(REMOVE)),
                Verdict::InDoubt => was_in_doubt = true,
            }
        }
        Err(unanswered(REMOVE))
    }

    /// Reports by ascending node id. The documents are sorted here: their ids are hashes, and a store has few nodes.
    pub(crate) async fn nodes(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<NodeRecord>, ProviderError> {
        let mut found = self.node_documents(LIST).await?;
        let now = self.now();
        found.sort_by(|one, other| one.document.d.node.cmp(&other.document.d.node));
        let listed = found.iter().map(|found| &found.document.d);
        let listed = listed.filter(|node| after.is_none_or(|after| node.node.as_str() > after));
        let record = |node: &Announced| node_record(&node.node, &node.report, node.seen, node.expires, now);
        Ok(listed.take(limit).map(record).collect())
    }

    /// Deletes reports after their time. A report that its node has renewed meanwhile stays.
    pub(crate) async fn sweep_nodes(&self, limit: usize) -> Result<u64, ProviderError> {
        let now = self.now();
        let found = self.node_documents(SWEEP).await?;
        let mut swept = 0;
        for Versioned { etag, document } in
            found.iter().filter(|found| found.document.d.kept <= now).take(limit)
        {
            let removal = Op::delete(&document.id, Some(etag.as_str()));
            let batched = self.client.batch(NODES, vec![removal]).await?;
            match batched.verdict() {
                Verdict::Refused(Refusal::Later | Refusal::Permanent) => return Err(batched.error(SWEEP)),
                Verdict::Applied => swept += 1,
                Verdict::Refused(_) | Verdict::InDoubt => {}
            }
        }
        Ok(swept)
    }

    async fn node_documents(&self, operation: &str) -> Result<Vec<Versioned<Document>>, ProviderError> {
        self.client.query(operation, NODES, sql::NODES, &[]).await
    }
}

fn unanswered(operation: &str) -> ProviderError {
    ProviderError::retryable(operation, "no answer for the report of a node: try again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_provider::NodeReport;
    use std::time::Duration;

    #[test]
    fn the_service_keeps_a_report_longer_than_sweeps_do() {
        let ttl = |live: Duration, kept: Duration| {
            time_to_live(&NodeRow::of(&NodeReport::new("a"), live, kept).unwrap())
        };
        assert_eq!(ttl(Duration::from_secs(15), Duration::from_millis(1)), 616);
        assert_eq!(ttl(Duration::MAX, Duration::MAX), i32::MAX as u32);
    }

    #[test]
    fn ids_of_documents_have_no_text_of_users() {
        assert_eq!(id_of("a/b?#").len(), 66);
        assert_ne!(id_of("a"), id_of("b"));
    }
}

//! The audit: documents in a partition of their own, in the order of their numbers.

use crate::client::{Op, is_conflict};
use crate::doubt::{Refusal, Verdict};
use crate::layout;
use crate::number;
use crate::sql;
use crate::store::Store;
use outlast_model::defect::{self, Defect};
use outlast_provider::{AuditEntry, AuditRecord, ProviderError};
use serde::{Deserialize, Serialize};

const APPEND: &str = "append_audit";

/// Attempts of a write whose outcome is in doubt.
const ATTEMPTS: usize = 4;

/// A record of the audit: `t = "u"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Record {
    id: String,
    #[serde(rename = "instanceId")]
    partition: String,
    t: String,
    /// The indexed number of the order.
    #[serde(rename = "o")]
    sequence: u64,
    #[serde(rename = "tm", with = "number")]
    at: u64,
    /// Actor, action, target, reason, request and result. Not indexed.
    d: (String, String, String, String, Option<String>, String),
}

impl Store {
    pub(crate) async fn append_audit(&self, entry: &AuditEntry) -> Result<(), ProviderError> {
        let AuditEntry { actor, action, target, reason, request, result } = entry.clone();
        let result = if defect::is_on(Defect::RecordMixesTexts) { reason.clone() } else { result };
        let record = Record {
            id: format!("u:{}", self.uid()),
            partition: layout::AUDIT.to_string(),
            t: "u".to_string(),
            sequence: self.time.sequence(),
            at: self.now(),
            d: (actor, action, target, reason, request, result),
        };
        for _ in 0..ATTEMPTS {
            // A repetition has the same id, so that the record is stored once.
            let batched = self.client.batch(layout::AUDIT, vec![Op::create(&record)?]).await?;
            match batched.verdict() {
                Verdict::Applied | Verdict::Refused(Refusal::Exists) => return Ok(()),
                Verdict::Refused(_) => return Err(batched.error(APPEND)),
                Verdict::InDoubt => {}
            }
        }
        Err(ProviderError::retryable(
            APPEND,
            format!("no answer for the record of '{}': try again", entry.target),
        ))
    }

    /// Deletes records from before a time, among the oldest ones, and never the newest record.
    pub(crate) async fn prune_audit(&self, before: u64, limit: usize) -> Result<u64, ProviderError> {
        const PRUNE: &str = "prune_audit";
        // One more than is examined shows whether the last examined record is the newest.
        let most = limit.saturating_add(1);
        let found: Vec<Record> =
            self.client.query_some(PRUNE, layout::AUDIT, sql::AUDIT_OLDEST, &[], most).await?;
        let newest = found.len().saturating_sub(1);
        let examined = found.into_iter().take(newest.min(limit));
        let old: Vec<String> = examined
            .filter(|record| record.at < before || defect::is_on(Defect::YoungRecordPruned))
            .map(|record| record.id)
            .collect();
        let mut pruned = 0;
        for chunk in old.chunks(100) {
            let removals: Vec<Op> = chunk.iter().map(|id| Op::delete(id, None)).collect();
            let batched = self.client.batch(layout::AUDIT, removals).await?;
            match batched.verdict() {
                Verdict::Applied => pruned += chunk.len() as u64,
                // Another process deletes the same records, or did so before an answer was lost. The next pass deletes the rest.
                Verdict::Refused(refusal) if is_conflict(refusal) => {}
                Verdict::InDoubt => {}
                Verdict::Refused(_) => return Err(batched.error(PRUNE)),
            }
        }
        Ok(pruned)
    }

    /// Records of the audit, newest first.
    pub(crate) async fn audit_page(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<AuditRecord>, ProviderError> {
        let overlap = u64::from(defect::is_on(Defect::AuditPageOverlaps));
        let before = before.map_or(u64::MAX, |before| before + overlap);
        let parameters = [("@before", number::parameter(number::indexed(before)))];
        let found: Vec<Record> =
            self.client.query_some("audit_page", layout::AUDIT, sql::AUDIT, &parameters, limit).await?;
        let record = |Record { sequence, at, d, .. }: Record| {
            let (actor, action, target, reason, request, result) = d;
            let entry = AuditEntry { actor, action, target, reason, request, result };
            AuditRecord { id: sequence, at_ms: at, entry }
        };
        Ok(found.into_iter().take(limit).map(record).collect())
    }
}

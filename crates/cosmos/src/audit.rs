//! The audit: documents in a partition of their own, in the order of their numbers.

use crate::client::Op;
use crate::doubt::{Refusal, Verdict};
use crate::layout;
use crate::number;
use crate::sql;
use crate::store::Store;
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

    /// Records of the audit, newest first.
    pub(crate) async fn audit_page(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<AuditRecord>, ProviderError> {
        let parameters = [("@before", number::parameter(number::indexed(before.unwrap_or(u64::MAX))))];
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

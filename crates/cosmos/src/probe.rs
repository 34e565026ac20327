//! Tests whether the account respects `If-Match` on the read of a batch. Staged turns and run-ahead commits depend on this
//! condition, which no page of Cosmos DB promises, so the first process that opens a container tests the account.

use crate::client::{Batched, Client, Op};
use crate::doubt::{Refusal, Verdict};
use crate::error::{CosmosStoreError, is_transient};
use crate::layout;
use outlast_provider::ProviderError;
use serde_json::{Value, json};
use std::time::Duration;

const ACTION: &str = "probing the container";

/// The document that says that a probe succeeded.
const PROBED: &str = "q:probed";
/// The document that the probe reads, and the one that it must not create.
const READ: &str = "q:read";
const FORBIDDEN: &str = "q:forbidden";

/// No document has this version.
const NO_VERSION: &str = "\"00000000-0000-0000-0000-000000000000\"";

/// The life of the documents of a probe, in seconds.
const LIFE: u32 = 600;

/// Attempts of a probe while the account is busy.
const ATTEMPTS: u32 = 5;

/// Refuses an account that ignores the condition.
pub(crate) async fn probe(client: &Client, first_pause: Duration) -> Result<(), CosmosStoreError> {
    let probed = client.read::<Value>(ACTION, layout::SYSTEM, PROBED).await.map_err(failed)?;
    if probed.is_some() {
        return Ok(());
    }
    let body = |id: &str| json!({ "id": id, "instanceId": layout::SYSTEM, "t": "q", "ttl": LIFE });
    written(client, first_pause, Op::Upsert(body(READ))).await?;
    let guard = Op::Guard { id: READ.to_string(), etag: NO_VERSION.to_string() };
    let batched = repeated(client, first_pause, vec![guard, Op::Upsert(body(FORBIDDEN))]).await?;
    match batched.verdict() {
        Verdict::Applied => return Err(CosmosStoreError::UnguardedReads),
        Verdict::Refused(Refusal::Changed) => {}
        _ if batched.answer.status == Some(412) => {}
        _ => return Err(refused(&batched)),
    }
    written(client, first_pause, Op::Upsert(json!({ "id": PROBED, "instanceId": layout::SYSTEM, "t": "q" })))
        .await
}

async fn written(client: &Client, first_pause: Duration, operation: Op) -> Result<(), CosmosStoreError> {
    let batched = repeated(client, first_pause, vec![operation]).await?;
    match batched.verdict() {
        Verdict::Applied => Ok(()),
        _ => Err(refused(&batched)),
    }
}

/// Repeats a request that a busy account refuses.
async fn repeated(
    client: &Client,
    first_pause: Duration,
    operations: Vec<Op>,
) -> Result<Batched, CosmosStoreError> {
    let mut pause = first_pause;
    for _ in 1..ATTEMPTS {
        let batched = client.batch(layout::SYSTEM, operations.clone()).await.map_err(failed)?;
        if !batched.answer.status.is_none_or(is_transient) {
            return Ok(batched);
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
    client.batch(layout::SYSTEM, operations).await.map_err(failed)
}

fn refused(batched: &Batched) -> CosmosStoreError {
    match batched.answer.status {
        Some(status @ (401 | 403)) => CosmosStoreError::Denied { action: ACTION.to_string(), status },
        status => CosmosStoreError::Failed {
            action: ACTION.to_string(),
            reason: batched.error(ACTION).message,
            is_transient: status.is_none_or(is_transient),
        },
    }
}

fn failed(error: ProviderError) -> CosmosStoreError {
    CosmosStoreError::Failed {
        action: ACTION.to_string(),
        is_transient: error.is_retryable(),
        reason: error.message,
    }
}

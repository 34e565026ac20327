//! The task of an operation.

use super::Operation;
use super::pace::Pace;
use outlast::Client;
use outlast::client::ClientError;
use outlast::providers::{AuditEntry, Clock, SystemClock};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::task::{JoinError, JoinSet};

/// The most instances that an operation changes at the same time: a pause waits for a running turn.
const AT_A_TIME: usize = 8;

/// Changes the instances, until all are changed, the operation is stopped, or the store does not answer.
pub(super) async fn run(client: Client, operation: Arc<Operation>, instances: Vec<String>, pace: Arc<Pace>) {
    let error = tokio::select! {
        biased;
        () = operation.stop.notified() => None,
        changed = change_all(&client, &operation, instances, &pace) => changed.err(),
    };
    let error = error.map(|error| error.to_string());
    let _ = operation.ended.set((SystemClock.now_ms(), error));
    record_end(&client, &operation).await;
}

/// A dropped call leaves each instance changed or not.
async fn change_all(
    client: &Client,
    operation: &Arc<Operation>,
    instances: Vec<String>,
    pace: &Pace,
) -> Result<(), ClientError> {
    let mut tasks = JoinSet::new();
    for instance in instances {
        pace.turn().await;
        if tasks.len() >= AT_A_TIME {
            count(operation, tasks.join_next().await)?;
        }
        let (client, operation) = (client.clone(), operation.clone());
        tasks.spawn(async move { client.bulk_apply(&operation.change, &instance).await });
    }
    while !tasks.is_empty() {
        count(operation, tasks.join_next().await)?;
    }
    Ok(())
}

/// Counts an instance. An error of the store ends the operation.
fn count(
    operation: &Operation,
    done: Option<Result<Result<bool, ClientError>, JoinError>>,
) -> Result<(), ClientError> {
    let counter = match done {
        Some(Ok(Ok(true))) => &operation.tally.changed,
        Some(Ok(Ok(false))) => &operation.tally.unchanged,
        Some(Ok(Err(error @ ClientError::Provider(_)))) => {
            if error.change_was_made() {
                operation.tally.changed.fetch_add(1, Ordering::Relaxed);
            }
            return Err(error);
        }
        Some(Ok(Err(_)) | Err(_)) => &operation.tally.refused,
        None => return Ok(()),
    };
    counter.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// The record of the end has the numbers. A store that does not answer has the records of the changed instances only.
async fn record_end(client: &Client, operation: &Operation) {
    let view = operation.view();
    let entry = AuditEntry {
        actor: view.actor,
        action: "operation.end".to_string(),
        target: view.id,
        reason: view.reason,
        request: operation.change.request.clone(),
        result: format!(
            "{} {}: {} of {} changed, {} unchanged, {} refused",
            view.action, view.state, view.changed, view.matching, view.unchanged, view.refused
        ),
    };
    let _ = client.append_audit(&entry).await;
}

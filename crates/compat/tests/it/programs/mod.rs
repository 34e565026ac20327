//! Complete programs for the contract: each covers the rows of spec/api.md 11 that its first line names.

mod activities;
mod client_calls;
mod combinators;
mod handlers;
mod hooks;
mod management;
mod observability;
mod options;
mod orchestrations;
mod parked;
mod properties;
mod registries;
mod sub_orchestrations;
mod wrapped_store;

use duroxide::providers::sqlite::SqliteProvider;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::runtime::{self, OrchestrationStatus};
use duroxide::{Client, OrchestrationRegistry};
use std::sync::Arc;
use std::time::Duration;

/// The setup of most programs: an in-memory database, a runtime on it and a client.
async fn started(
    activities: ActivityRegistry,
    orchestrations: OrchestrationRegistry,
) -> (Arc<SqliteProvider>, Arc<runtime::Runtime>, Client) {
    let store = Arc::new(SqliteProvider::new_in_memory().await.unwrap());
    let rt = runtime::Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    let client = Client::new(store.clone());
    (store, rt, client)
}

async fn output(client: &Client, instance: &str) -> String {
    match client.wait_for_orchestration(instance, Duration::from_secs(30)).await.unwrap() {
        OrchestrationStatus::Completed { output, .. } => output,
        other => panic!("{instance}: {other:?}"),
    }
}

async fn failure(client: &Client, instance: &str) -> duroxide::ErrorDetails {
    match client.wait_for_orchestration(instance, Duration::from_secs(30)).await.unwrap() {
        OrchestrationStatus::Failed { details, .. } => details,
        other => panic!("{instance}: {other:?}"),
    }
}

//! Instances in the initial states of validations.

use super::*;
use outlast_provider::{ExecutionMetadata, Provider};
use std::time::Duration;

/// Far enough apart for two commits to differ by the store's millisecond clock.
pub(crate) const APART: Duration = Duration::from_millis(20);

/// Starts an instance and fetches its first turn, to be committed by the caller.
pub(crate) async fn first_turn(provider: &dyn Provider, instance: &str) -> String {
    enqueue(provider, start_item(instance)).await;
    turn_of(provider, instance).await
}

/// Delivers a message to a created instance and fetches its turn, to be committed by the caller.
pub(crate) async fn next_turn(provider: &dyn Provider, instance: &str) -> String {
    poke(provider, instance).await;
    turn_of(provider, instance).await
}

async fn turn_of(provider: &dyn Provider, instance: &str) -> String {
    let (item, token, _) = must_fetch(provider, LONG).await;
    assert_eq!(item.instance, instance, "the only waiting instance is fetched");
    token
}

/// Starts the instance and commits its first turn: history of one event, a row with name and version.
pub(crate) async fn create_instance(provider: &dyn Provider, instance: &str) {
    create_with(provider, instance, named()).await;
}

pub(crate) async fn create_instance_with_parent(provider: &dyn Provider, instance: &str, parent: &str) {
    let metadata = ExecutionMetadata { parent_instance_id: Some(parent.to_string()), ..named() };
    create_with(provider, instance, metadata).await;
}

/// Starts the instance and commits a first turn without name and version: a history, and no row.
pub(crate) async fn create_rowless(provider: &dyn Provider, instance: &str) {
    create_with(provider, instance, ExecutionMetadata::default()).await;
}

/// Creates the instance in one turn that also completes it.
pub(crate) async fn create_completed(provider: &dyn Provider, instance: &str, output: &str) {
    create_with(provider, instance, ended("Completed", output, None)).await;
}

/// Starts the instance and commits a first turn with this metadata.
pub(crate) async fn create_with(provider: &dyn Provider, instance: &str, metadata: ExecutionMetadata) {
    let token = first_turn(provider, instance).await;
    Turn::new(&token).event(started(instance)).metadata(metadata).commit(provider).await;
}

/// Commits a turn that only sets the status and output of an execution.
pub(crate) async fn set_status(
    provider: &dyn Provider,
    instance: &str,
    execution_id: u64,
    state: &str,
    output: &str,
) {
    let token = next_turn(provider, instance).await;
    Turn::new(&token).execution(execution_id).metadata(status(state, output)).commit(provider).await;
}

/// Commits the first turn of a later execution.
pub(crate) async fn begin_execution(provider: &dyn Provider, instance: &str, execution_id: u64) {
    let token = next_turn(provider, instance).await;
    let turn = Turn::new(&token).execution(execution_id).event(started_in(instance, execution_id));
    turn.commit(provider).await;
}

/// Ends the running execution by continue-as-new and commits the first turn of the next one. The ending has event id
/// 100, to leave room for other events.
pub(crate) async fn continue_as_new(provider: &dyn Provider, instance: &str, execution_id: u64) {
    let token = next_turn(provider, instance).await;
    Turn::new(&token)
        .execution(execution_id)
        .event(event_in(instance, execution_id, 100, continued_kind("next")))
        .metadata(status("ContinuedAsNew", "next"))
        .commit(provider)
        .await;
    begin_execution(provider, instance, execution_id + 1).await;
}

//! Turns of instances, for tests of single features.

use crate::factory::fresh_config;
use crate::script::{LEASE, again, start};
use outlast_cosmos::{CosmosDBOptions, CosmosDBProvider};
use outlast_cosmos_rig::{Rig, RigOptions, Target};
use outlast_provider::model::{Event, EventKind, WorkItem};
use outlast_provider::{ExecutionMetadata, Provider, ProviderError, TurnCommit};
use std::time::Duration;

/// A rig of its own, and a store on it.
pub(crate) async fn rig_and_store(options: CosmosDBOptions) -> (Target, CosmosDBProvider) {
    let target = Target::Rig(Box::new(Rig::start_with(RigOptions::default()).await.unwrap()));
    let store = CosmosDBProvider::open(fresh_config(&target), options).await.unwrap();
    (target, store)
}

/// Options with batches of this number of operations.
pub(crate) fn batches_of(operations: usize) -> CosmosDBOptions {
    CosmosDBOptions { batch: (operations, 1_800_000), ..CosmosDBOptions::default() }
}

pub(crate) fn signal(instance: &str) -> WorkItem {
    WorkItem::ExternalRaised { instance: instance.into(), name: "go".into(), data: String::new() }
}

/// An event with any content.
pub(crate) fn event(instance: &str, execution_id: u64, id: u64) -> Event {
    Event::at(
        7,
        id,
        instance,
        execution_id,
        None,
        EventKind::OrchestrationCancelRequested { reason: "r".into() },
    )
}

/// A turn with one event, which leaves the execution in this status.
pub(crate) fn turn(instance: &str, execution_id: u64, event_id: u64, status: Option<&str>) -> TurnCommit {
    TurnCommit {
        execution_id,
        history_delta: vec![event(instance, execution_id, event_id)],
        metadata: ExecutionMetadata {
            orchestration_name: Some("Flow".into()),
            orchestration_version: Some("1".into()),
            status: status.map(str::to_string),
            ..ExecutionMetadata::default()
        },
        ..TurnCommit::default()
    }
}

/// Leases the turn of an instance. Other instances must not wait.
pub(crate) async fn lease(store: &CosmosDBProvider, instance: &str) -> String {
    let fetch = again(|| store.fetch_orchestration_item(LEASE * 50, Duration::from_secs(10), None));
    // By a clock that stands still, the patience of the fetch never ends.
    let fetched =
        tokio::time::timeout(Duration::from_secs(60), fetch).await.expect("the fetch ends in a minute");
    let (item, token, _) = fetched.unwrap().expect("a turn waits");
    assert_eq!(item.instance, instance);
    token
}

/// Sends a message to the instance and commits a turn.
pub(crate) async fn run(
    store: &CosmosDBProvider,
    instance: &str,
    commit: TurnCommit,
) -> Result<(), ProviderError> {
    let message = if commit.history_delta[0].event_id == 1 { start(instance) } else { signal(instance) };
    again(|| store.enqueue_for_orchestrator(message.clone(), None)).await.unwrap();
    let token = lease(store, instance).await;
    again(|| store.commit_turn(&token, commit.clone())).await.map(drop)
}

/// Runs executions of this number of turns each. The last execution is completed.
pub(crate) async fn run_executions(store: &CosmosDBProvider, instance: &str, executions: u64, turns: u64) {
    for execution in 1..=executions {
        for nth in 1..=turns {
            let status = match (nth == turns, execution == executions) {
                (false, _) => None,
                (true, false) => Some("ContinuedAsNew"),
                (true, true) => Some("Completed"),
            };
            run(store, instance, turn(instance, execution, nth, status)).await.unwrap();
        }
    }
}

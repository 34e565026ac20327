//! Every execution of an instance has its own history; the newest one is the current one.

use crate::ProviderFactory;
use crate::support::*;
use outlast_provider::model::Event;
use outlast_provider::{OrchestrationItem, Provider, WorkItem};

/// A history with these event ids and with stamps that a store cannot compute.
fn history(instance: &str, execution_id: u64, ids: &[u64]) -> Vec<Event> {
    let event = |&id: &u64| {
        let kind = match id {
            1 => started_kind(),
            _ => scheduled_kind(&format!("execution-{execution_id}-event-{id}")),
        };
        let event = Event::at(1_000 + id, id, instance, execution_id, Some(id), kind);
        Event { duroxide_version: "0.0.7".to_string(), ..event }
    };
    ids.iter().map(event).collect()
}

/// Delivers a message and commits these events to the execution, without name and version; returns the fetched turn.
async fn advance(
    provider: &dyn Provider,
    message: WorkItem,
    execution_id: u64,
    events: &[Event],
) -> OrchestrationItem {
    enqueue(provider, message.clone()).await;
    let (item, token, _) = must_fetch(provider, LONG).await;
    assert_eq!(item.messages, [message]);
    Turn::new(&token).execution(execution_id).events(events.to_vec()).commit(provider).await;
    item
}

/// Executions share event ids and nothing else, and plain reading means the newest.
pub async fn test_execution_isolation<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let first = history("split", 1, &[1, 2, 3]);
    let second = history("split", 2, &[1, 2]);
    let neighbour = history("neighbour", 1, &[1]);
    advance(provider, start_item("split"), 1, &first).await;
    advance(provider, continue_item("split"), 2, &second).await;
    advance(provider, start_item("neighbour"), 1, &neighbour).await;

    assert_eq!(provider.read_with_execution("split", 1).await.unwrap(), first);
    assert_eq!(provider.read_with_execution("split", 2).await.unwrap(), second);
    assert!(provider.read_with_execution("split", 3).await.unwrap().is_empty());
    assert_eq!(provider.read("split").await.unwrap(), second);
    assert_eq!(provider.read("neighbour").await.unwrap(), neighbour);
}

/// The newest execution is the one with the highest number, whichever was written last; older ones stay readable.
pub async fn test_latest_execution_detection<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let executions = [1, 2, 9, 10];
    for execution_id in executions {
        let events = history("growing", execution_id, &[1, 2]);
        advance(provider, continue_item("growing"), execution_id, &events).await;
        assert_eq!(provider.read("growing").await.unwrap(), events, "{execution_id} is the newest");
    }
    let newest = provider.read("growing").await.unwrap();
    advance(provider, raised("growing", "poke", ""), 2, &history("growing", 2, &[3])).await;

    assert_eq!(provider.read("growing").await.unwrap(), newest, "a late write to an old one changes nothing");
    for (execution_id, events) in [(1, 2), (2, 3), (9, 2), (10, 2)] {
        let history = provider.read_with_execution("growing", execution_id).await.unwrap();
        assert_eq!(history.len(), events);
        assert!(history.iter().all(|event| event.execution_id == execution_id));
    }
    operator(provider).sees_executions("growing", &executions).await;
}

/// A fetch reports the execution that the last commit reached; neither messages nor commits to old ones change it.
pub async fn test_execution_id_sequencing<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "counted").await;
    let first = provider.read("counted").await.unwrap();
    let second = history("counted", 2, &[1, 2]);
    let mut ahead = start_item("counted");
    if let WorkItem::StartOrchestration { execution_id, .. } = &mut ahead {
        *execution_id = 7;
    }

    // The message, the execution that the turn commits to, its events, and the result that the fetch must return.
    let turns = [
        (raised("counted", "poke", ""), 1, vec![], (1, &first)),
        (ahead, 1, vec![], (1, &first)),
        (continue_item("counted"), 2, second.clone(), (1, &first)),
        (raised("counted", "poke", ""), 1, vec![], (2, &second)),
        (raised("counted", "poke", ""), 2, vec![], (2, &second)),
    ];
    for (step, (message, execution_id, events, expected)) in turns.into_iter().enumerate() {
        let item = advance(provider, message, execution_id, &events).await;
        assert_eq!((item.execution_id, &item.history), expected, "turn {step}");
    }
    operator(provider).sees_current("counted", 2, "Running", None).await;
}

/// Committing to execution 2 creates it, and turns continue there.
pub async fn test_continue_as_new_creates_new_execution<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let first = history("again", 1, &[1, 2]);
    let second = history("again", 2, &[1]);
    let token = first_turn(provider, "again").await;
    Turn::new(&token).events(first.clone()).message(continue_item("again")).commit(provider).await;
    operator(provider).sees_executions("again", &[1]).await;

    let (item, token, _) = must_fetch(provider, LONG).await;
    assert_eq!((item.messages, &item.history), (vec![continue_item("again")], &first));
    Turn::new(&token).execution(2).events(second.clone()).commit(provider).await;
    operator(provider).sees_executions("again", &[1, 2]).await;
    assert_eq!(provider.read_with_execution("again", 1).await.unwrap(), first);
    assert_eq!(provider.read("again").await.unwrap(), second);

    let item = advance(provider, raised("again", "poke", ""), 2, &[]).await;
    assert_eq!((item.orchestration_name.as_str(), item.history), ("TestOrch", second));
}

/// Histories grow turn by turn and stay complete and in order while later executions are written.
pub async fn test_execution_history_persistence<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    let histories = [1, 2, 3].map(|execution_id| history("lasting", execution_id, &[1, 2, 9, 10, 100]));
    for (execution_id, events) in (1..).zip(&histories) {
        advance(provider, continue_item("lasting"), execution_id, &events[..2]).await;
        let item = advance(provider, raised("lasting", "poke", ""), execution_id, &events[2..]).await;
        assert_eq!(item.history, events[..2], "the first turn is in the history");
    }
    for (execution_id, events) in (1..).zip(&histories) {
        assert_eq!(provider.read_with_execution("lasting", execution_id).await.unwrap(), *events);
        operator(provider).sees_history("lasting", execution_id, events).await;
    }
    assert_eq!(provider.read("lasting").await.unwrap(), histories[2]);
}

//! Eager starts: a start is committed together with the first turn of its instance. A store may always refuse, and writes nothing
//! then; it must not commit the turn of an instance that it knows.

use crate::ProviderFactory;
use crate::snapshot::snapshot;
use crate::support::*;
use outlast_provider::{EagerStart, Interest, Provider, ProviderError, TurnAhead, TurnCommit, TurnRequest};

const ID: &str = "eager";

/// The time of the store, if the store reports it.
async fn time_of(provider: &dyn Provider) -> u64 {
    enqueue(provider, start_item("clock")).await;
    let request =
        TurnRequest { lock_timeout: LONG, poll_timeout: NO_WAIT, filter: None, with_history: false };
    let fetched = provider.fetch_turn(request).await.unwrap().expect("a start waits");
    fetched.now_ms.unwrap_or(0)
}

/// The first turn of the instance, which schedules activity 2 and starts another instance.
fn first_turn_at(ran_at_ms: u64) -> TurnAhead {
    let commit = TurnCommit {
        execution_id: 1,
        history_delta: vec![
            started(ID),
            event(ID, 2, scheduled_kind("Activity2")),
            event(ID, 3, custom_status_kind(Some("begun"))),
        ],
        worker_items: vec![activity(ID, 2)],
        orchestrator_items: vec![start_item("other")],
        metadata: named(),
        cancelled_activities: Vec::new(),
    };
    TurnAhead { after_event_id: 0, ran_at_ms, commit }
}

async fn start_at(provider: &dyn Provider, ran_at_ms: u64) -> Result<EagerStart, ProviderError> {
    provider.start_with_turn(start_item(ID), first_turn_at(ran_at_ms)).await
}

/// Checks that nothing was stored: the caller enqueues the start, which is delivered after these messages.
async fn assert_unchanged(provider: &dyn Provider, before: &[outlast_provider::WorkItem]) {
    assert_eq!(provider.read(ID).await.unwrap(), [], "nothing of the turn is stored");
    assert!(fetch_activity(provider, LONG).await.is_none(), "no activity is scheduled");
    enqueue(provider, start_item(ID)).await;
    let (item, _, attempt) = must_fetch(provider, LONG).await;
    let expected = [before, &[start_item(ID)]].concat();
    assert_eq!((item.instance.as_str(), item.messages, attempt), (ID, expected, 1));
    assert!(fetch(provider, LONG).await.is_none(), "nothing was sent to others");
}

/// Start and turn are stored together, or nothing is stored.
pub async fn a_start_is_stored_with_its_first_turn_or_not_at_all(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let now_ms = time_of(provider).await;
    match start_at(provider, now_ms).await.expect("a new instance starts") {
        EagerStart::Unchanged => assert_unchanged(provider, &[]).await,
        EagerStart::WithTurn { .. } => {
            assert_eq!(event_ids(&provider.read(ID).await.unwrap()), [1, 2, 3]);
            let status = (Some("begun".to_string()), 1);
            assert_eq!(provider.get_custom_status(ID, 0).await.unwrap(), Some(status));
            operator(provider).sees_current(ID, 1, "Running", None).await;
            let (work, _, attempt) = must_fetch_activity(provider, LONG).await;
            assert_eq!((work, attempt), (activity(ID, 2), 1));
            assert_eq!(must_fetch(provider, LONG).await.0.messages, [start_item("other")]);
            assert!(fetch(provider, LONG).await.is_none(), "the start is not in the queue");
        }
    }
}

/// After an eager start the instance continues as after any other first turn.
pub async fn an_instance_continues_after_an_eager_start(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let now_ms = time_of(provider).await;
    let mut turn = first_turn_at(now_ms);
    turn.commit.orchestrator_items.clear();
    let completion = provider.start_with_turn(start_item(ID), turn).await.expect("a new instance starts");
    if let EagerStart::WithTurn { at_ms } = completion {
        let (_, token, _) = must_fetch_activity(provider, LONG).await;
        provider.ack_work_item(&token, Some(completed(ID, 2))).await.unwrap();
        let request =
            TurnRequest { lock_timeout: LONG, poll_timeout: NO_WAIT, filter: None, with_history: true };
        let fetched = provider.fetch_turn(request).await.unwrap().expect("the outcome waits");
        assert_eq!(fetched.item.messages, [completed(ID, 2)]);
        assert_eq!((fetched.item.execution_id, event_ids(&fetched.item.history)), (1, vec![1, 2, 3]));
        if let Some(created_at_ms) = fetched.created_at_ms {
            assert_eq!(created_at_ms, at_ms, "the answer has the time of the creation");
        }
        let ends = event(ID, 4, completed_kind("done"));
        Turn::new(&fetched.lock_token)
            .event(ends)
            .metadata(status("Completed", "done"))
            .commit(provider)
            .await;
        operator(provider).sees_current(ID, 1, "Completed", Some("done")).await;
    }
}

/// A first turn that ends its instance resolves watches and sets the outcome.
pub async fn an_eager_start_can_end_the_instance(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let now_ms = time_of(provider).await;
    let mut turn = first_turn_at(now_ms);
    turn.commit.history_delta = vec![started(ID), event(ID, 2, completed_kind("done"))];
    turn.commit.worker_items.clear();
    turn.commit.orchestrator_items.clear();
    turn.commit.metadata = ended("Completed", "done", None);
    let watch = provider.watch_instance(ID, Interest::Ended);
    let completion = provider.start_with_turn(start_item(ID), turn).await.expect("a new instance starts");
    if let EagerStart::WithTurn { .. } = completion {
        if let Some(watch) = watch {
            tokio::time::timeout(LONG, watch).await.expect("the watch resolves");
        }
        let outcome = provider.read_outcome(ID).await.unwrap().expect("it exists");
        assert_eq!((outcome.status.as_str(), outcome.output.as_deref()), ("Completed", Some("done")));
        assert!(fetch(provider, LONG).await.is_none(), "no message waits");
    }
}

/// The start of an instance that exists is refused with its turn.
pub async fn the_turn_of_an_instance_that_exists_is_not_stored(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let now_ms = time_of(provider).await;
    create_completed(provider, ID, "before").await;
    let (history, outcome) = (provider.read(ID).await.unwrap(), provider.read_outcome(ID).await.unwrap());
    assert_eq!(start_at(provider, now_ms).await, Ok(EagerStart::Unchanged));
    assert_eq!(provider.read(ID).await.unwrap(), history);
    assert_eq!(provider.read_outcome(ID).await.unwrap(), outcome);
    assert!(fetch_activity(provider, LONG).await.is_none());
    assert!(fetch(provider, LONG).await.is_none(), "the start is not stored");
}

/// A first turn overtakes no message: one that was sent before the start, a start, or a delayed message.
pub async fn a_first_turn_overtakes_no_message(factory: &dyn ProviderFactory) {
    for (message, delay) in
        [(queue_message(ID, "q", ""), None), (start_item(ID), None), (raised(ID, "e", ""), Some(LONG))]
    {
        let provider = &*factory.create_provider().await;
        let now_ms = time_of(provider).await;
        provider.enqueue_for_orchestrator(message.clone(), delay).await.unwrap();
        assert_eq!(start_at(provider, now_ms).await, Ok(EagerStart::Unchanged), "{message:?}");
        let visible = if delay.is_some() { vec![] } else { vec![message] };
        assert_unchanged(provider, &visible).await;
    }
}

/// Of two eager starts of one instance, one turn at most is stored.
pub async fn a_second_eager_start_is_refused(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let now_ms = time_of(provider).await;
    start_at(provider, now_ms).await.expect("a new instance starts");
    let history = provider.read(ID).await.unwrap();
    assert_eq!(start_at(provider, now_ms).await, Ok(EagerStart::Unchanged));
    assert_eq!(provider.read(ID).await.unwrap(), history);
}

/// A first turn with a time that differs from the store's clock is not stored: its timers would be wrong.
pub async fn a_first_turn_of_another_time_is_not_stored(factory: &dyn ProviderFactory) {
    for off_ms in [60_000, -120_000] {
        let provider = &*factory.create_provider().await;
        let now_ms = time_of(provider).await;
        let answer = start_at(provider, now_ms.saturating_add_signed(off_ms)).await;
        assert_eq!(answer, Ok(EagerStart::Unchanged), "{off_ms} ms");
        assert_unchanged(provider, &[]).await;
    }
}

/// A turn that follows an event is no first turn.
pub async fn a_turn_after_an_event_is_no_first_turn(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let now_ms = time_of(provider).await;
    let turn = TurnAhead { after_event_id: 1, ..first_turn_at(now_ms) };
    assert_eq!(provider.start_with_turn(start_item(ID), turn).await, Ok(EagerStart::Unchanged));
    assert_unchanged(provider, &[]).await;
}

/// An eager start with an invalid start changes nothing.
pub async fn a_malformed_eager_start_changes_nothing(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let now_ms = time_of(provider).await;
    let untouched = snapshot(provider, &[ID, "other"]).await;
    let wrong = provider.start_with_turn(activity(ID, 2), first_turn_at(now_ms)).await;
    permanent(wrong, "an activity is no start");
    assert_eq!(snapshot(provider, &[ID, "other"]).await, untouched);
}

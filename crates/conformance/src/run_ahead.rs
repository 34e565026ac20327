//! Run-ahead: the outcome of an activity is committed with the turn that follows from it. A store may always queue the outcome
//! instead; it must not commit a turn that does not follow the stored history.

use crate::ProviderFactory;
use crate::snapshot::snapshot;
use crate::support::*;
use outlast_provider::model::EventKind;
use outlast_provider::{
    Completion, ExecutionMetadata, Interest, Provider, ProviderError, TagFilter, TurnAhead, TurnCommit,
    WorkItem, WorkRequest,
};
use std::time::Duration;

const ID: &str = "ahead";

/// The lease of an activity, and the store's time of the fetch, if the store reports it.
struct Leased {
    token: String,
    now_ms: u64,
}

/// Creates the instance, whose history has two events, and leases its activity 2.
async fn lease_activity(provider: &dyn Provider, lease: Duration) -> Leased {
    let token = first_turn(provider, ID).await;
    let scheduled = event(ID, 2, scheduled_kind("Activity2"));
    let turn = Turn::new(&token).event(started(ID)).event(scheduled).metadata(named());
    turn.activity(activity(ID, 2)).commit(provider).await;
    lease_again(provider, lease).await
}

async fn lease_again(provider: &dyn Provider, lease: Duration) -> Leased {
    let request = WorkRequest {
        max_items: 1,
        lock_timeout: lease,
        poll_timeout: NO_WAIT,
        session: None,
        tag_filter: &TagFilter::default(),
    };
    let fetched = provider.fetch_work_items(request).await.unwrap().pop().expect("there is an activity");
    assert_eq!(fetched.item, activity(ID, 2));
    Leased { token: fetched.lock_token, now_ms: fetched.now_ms.unwrap_or(0) }
}

/// The run-ahead turn of the outcome of activity 2, which follows event 2.
fn turn_ahead(ran_at_ms: u64) -> TurnAhead {
    let mut completed = event(ID, 3, EventKind::ActivityCompleted { result: "result-2".to_string() });
    completed.source_event_id = Some(2);
    let commit = TurnCommit {
        execution_id: 1,
        history_delta: vec![
            completed,
            event(ID, 4, scheduled_kind("Activity4")),
            event(ID, 5, custom_status_kind(Some("half"))),
            event(ID, 6, value_kind("key", "value", 1)),
        ],
        worker_items: vec![activity(ID, 4)],
        orchestrator_items: vec![start_item("other")],
        metadata: ExecutionMetadata::default(),
        cancelled_activities: Vec::new(),
    };
    TurnAhead { after_event_id: 2, ran_at_ms, commit }
}

async fn complete(provider: &dyn Provider, leased: &Leased) -> Result<Completion, ProviderError> {
    complete_with(provider, leased, turn_ahead(leased.now_ms)).await
}

async fn complete_with(
    provider: &dyn Provider,
    leased: &Leased,
    turn: TurnAhead,
) -> Result<Completion, ProviderError> {
    provider.complete_with_turn(&leased.token, completed(ID, 2), turn).await
}

/// Checks that the turn was not committed: the outcome is delivered with the next turn, after these messages.
async fn assert_queued(provider: &dyn Provider, events: &[u64], before: &[WorkItem]) {
    assert_eq!(event_ids(&provider.read(ID).await.unwrap()), events, "nothing of the turn is stored");
    assert_eq!(provider.get_custom_status(ID, 0).await.unwrap(), None);
    assert!(
        fetch_activity(provider, LONG).await.is_none(),
        "the activity is done, and no other was scheduled"
    );
    let (item, _, attempt) = must_fetch(provider, LONG).await;
    let expected: Vec<WorkItem> = before.iter().cloned().chain([completed(ID, 2)]).collect();
    assert_eq!((item.instance.as_str(), item.messages, attempt), (ID, expected, 1));
    assert!(fetch(provider, LONG).await.is_none(), "nothing was sent to others");
}

/// Outcome and turn are stored together, each once; or only the outcome is queued.
pub async fn an_outcome_is_stored_with_its_turn_or_queued(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let leased = lease_activity(provider, LONG).await;
    match complete(provider, &leased).await.expect("a live lease completes") {
        Completion::Queued => assert_queued(provider, &[1, 2], &[]).await,
        Completion::WithTurn { .. } => {
            assert_eq!(event_ids(&provider.read(ID).await.unwrap()), [1, 2, 3, 4, 5, 6]);
            let status = (Some("half".to_string()), 1);
            assert_eq!(provider.get_custom_status(ID, 0).await.unwrap(), Some(status));
            assert_eq!(provider.get_kv_value(ID, "key").await.unwrap().as_deref(), Some("value"));
            let (work, _, attempt) = must_fetch_activity(provider, LONG).await;
            assert_eq!((work, attempt), (activity(ID, 4), 1), "its activity, and the other is done");
            assert!(fetch_activity(provider, LONG).await.is_none());
            assert_eq!(must_fetch(provider, LONG).await.0.messages, [start_item("other")]);
            assert!(fetch(provider, LONG).await.is_none(), "the outcome is in history, and not in the queue");
        }
    }
}

/// After a committed run-ahead turn the instance continues as after any other turn.
pub async fn an_instance_continues_after_a_run_ahead_turn(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let leased = lease_activity(provider, LONG).await;
    let mut turn = turn_ahead(leased.now_ms);
    turn.commit.orchestrator_items.clear();
    let completed = complete_with(provider, &leased, turn).await.expect("a live lease completes");
    let last = if completed == Completion::Queued { 2 } else { 6 };
    poke(provider, ID).await;
    let (item, token, _) = must_fetch(provider, LONG).await;
    assert_eq!((item.execution_id, item.history.last().map(|event| event.event_id)), (1, Some(last)));
    let ends = event(ID, last + 1, completed_kind("done"));
    Turn::new(&token).event(ends).metadata(status("Completed", "done")).commit(provider).await;
    operator(provider).sees_current(ID, 1, "Completed", Some("done")).await;
}

/// A run-ahead turn that ends its instance resolves watches and sets the outcome.
pub async fn a_run_ahead_turn_can_end_the_instance(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let leased = lease_activity(provider, LONG).await;
    let mut turn = turn_ahead(leased.now_ms);
    turn.commit.history_delta = vec![event(ID, 3, completed_kind("done"))];
    turn.commit.worker_items.clear();
    turn.commit.metadata = status("Completed", "done");
    let watch = provider.watch_instance(ID, Interest::Ended);
    let answer = complete_with(provider, &leased, turn).await;
    match answer.expect("a live lease completes") {
        Completion::Queued => assert_queued(provider, &[1, 2], &[]).await,
        Completion::WithTurn { at_ms } => {
            if let Some(watch) = watch {
                let told = tokio::time::timeout(LONG, watch).await;
                told.expect("the watch resolves");
            }
            let outcome = provider.read_outcome(ID).await.unwrap().expect("it exists");
            assert_eq!((outcome.status.as_str(), outcome.output.as_deref()), ("Completed", Some("done")));
            operator(provider).sees_current(ID, 1, "Completed", Some("done")).await;
            if let Some(admin) = provider.as_management_capability() {
                let ended_at = admin.get_execution_info(ID, 1).await.unwrap().completed_at;
                assert_eq!(ended_at, Some(at_ms), "the answer has the time of the end");
            }
        }
    }
}

/// Without the lease of the activity there is neither outcome nor turn.
pub async fn a_lost_activity_stores_no_turn(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let leased = lease_activity(provider, factory.lock_timeout()).await;
    outlive(factory.lock_timeout()).await;
    let untouched = snapshot(provider, &[ID, "other"]).await;
    let unknown = Leased { token: "lock_unknown".to_string(), ..leased };
    permanent(complete(provider, &unknown).await, "an unknown token");
    let leased = Leased { token: leased.token, ..unknown };
    permanent(complete(provider, &leased).await, "a lease that is over");
    assert_eq!(snapshot(provider, &[ID, "other"]).await, untouched);
    let leased = lease_again(provider, LONG).await;
    complete(provider, &leased).await.expect("the new lease completes");
    let once = snapshot(provider, &[ID, "other"]).await;
    permanent(complete(provider, &leased).await, "a second outcome");
    assert_eq!(snapshot(provider, &[ID, "other"]).await, once);
}

/// A run-ahead turn is rejected if another turn was committed first.
pub async fn an_instance_at_a_later_position_gets_the_outcome_only(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let leased = lease_activity(provider, LONG).await;
    let between = next_turn(provider, ID).await;
    Turn::new(&between).event(event(ID, 3, value_kind("other", "", 1))).commit(provider).await;
    assert_eq!(complete(provider, &leased).await.unwrap(), Completion::Queued);
    assert_queued(provider, &[1, 2, 3], &[]).await;
}

/// A run-ahead turn is rejected if the instance has continued as new: the outcome is for its old execution.
pub async fn a_successor_gets_no_turn_of_its_predecessor(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let leased = lease_activity(provider, LONG).await;
    continue_as_new(provider, ID, 1).await;
    let history = provider.read(ID).await.unwrap();
    let mut turn = turn_ahead(leased.now_ms);
    turn.after_event_id = history.last().map_or(0, |event| event.event_id);
    assert_eq!(complete_with(provider, &leased, turn).await.unwrap(), Completion::Queued);
    assert_eq!(provider.read(ID).await.unwrap(), history);
    assert_eq!(must_fetch(provider, LONG).await.0.messages, [completed(ID, 2)]);
}

/// A run-ahead turn is rejected while the instance is leased, also if the holder has crashed.
pub async fn an_instance_under_lease_gets_the_outcome_only(factory: &dyn ProviderFactory) {
    for is_over in [false, true] {
        let provider = &*factory.create_provider().await;
        let leased = lease_activity(provider, LONG).await;
        poke(provider, ID).await;
        let (item, holder, _) = must_fetch(provider, factory.lock_timeout()).await;
        if is_over {
            outlive(factory.lock_timeout()).await;
        }
        let answer = complete(provider, &leased).await.expect("the activity's own lease is live");
        assert_eq!(answer, Completion::Queued, "lease over: {is_over}");
        assert_eq!(event_ids(&provider.read(ID).await.unwrap()), [1, 2]);
        let done = Turn::new(&holder).event(event(ID, 3, value_kind("mine", "", 1)));
        match is_over {
            true => {
                permanent(done.try_commit(provider).await, "a lease that is over");
                let messages = must_fetch(provider, LONG).await.0.messages;
                assert_eq!(messages, [item.messages, vec![completed(ID, 2)]].concat());
            }
            false => {
                done.commit(provider).await;
                assert_eq!(must_fetch(provider, LONG).await.0.messages, [completed(ID, 2)]);
            }
        }
    }
}

/// Messages that were sent before the outcome are delivered before it.
pub async fn an_outcome_does_not_overtake_older_messages(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let leased = lease_activity(provider, LONG).await;
    let sent = [raised(ID, "progress", "1"), raised(ID, "progress", "2")];
    enqueue_all(provider, &sent).await;
    assert_eq!(complete(provider, &leased).await.unwrap(), Completion::Queued);
    assert_queued(provider, &[1, 2], &sent).await;
}

/// A store that supports run-ahead commits the turn if only delayed messages, or messages of other instances, wait.
pub async fn other_and_delayed_messages_do_not_prevent_a_run_ahead_turn(factory: &dyn ProviderFactory) {
    let alone = &*factory.create_provider().await;
    let leased = lease_activity(alone, LONG).await;
    let alone = complete(alone, &leased).await.expect("a live lease completes");

    let provider = &*factory.create_provider().await;
    let leased = lease_activity(provider, LONG).await;
    provider.enqueue_for_orchestrator(raised(ID, "later", ""), Some(LONG)).await.unwrap();
    enqueue(provider, start_item("somebody")).await;
    let disturbed = complete(provider, &leased).await.expect("a live lease completes");
    let with_turn = |completion| matches!(completion, Completion::WithTurn { .. });
    assert_eq!(with_turn(disturbed), with_turn(alone));
    let last = if with_turn(alone) { 6 } else { 2 };
    assert_eq!(provider.read(ID).await.unwrap().len(), last);
    assert_eq!(must_fetch(provider, LONG).await.0.messages, [start_item("somebody")]);
}

/// A run-ahead turn with a time that differs from the store's clock is rejected: its timers would be wrong.
pub async fn a_turn_of_another_time_is_not_stored(factory: &dyn ProviderFactory) {
    for off_ms in [60_000, -120_000] {
        let provider = &*factory.create_provider().await;
        let leased = lease_activity(provider, LONG).await;
        let turn = turn_ahead(leased.now_ms.saturating_add_signed(off_ms));
        assert_eq!(complete_with(provider, &leased, turn).await.unwrap(), Completion::Queued, "{off_ms} ms");
        assert_queued(provider, &[1, 2], &[]).await;
    }
}

/// A run-ahead turn with invalid content is rejected together with its outcome.
pub async fn a_malformed_turn_refuses_its_outcome_too(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let leased = lease_activity(provider, LONG).await;
    let untouched = snapshot(provider, &[ID, "other"]).await;
    let turn = turn_ahead(leased.now_ms);
    let wrong = provider.complete_with_turn(&leased.token, raised(ID, "no", "outcome"), turn).await;
    permanent(wrong, "an outcome that is none");
    assert_eq!(snapshot(provider, &[ID, "other"]).await, untouched);
    complete(provider, &leased).await.expect("the lease is as it was");
}

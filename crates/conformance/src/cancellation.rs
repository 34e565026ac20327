//! An activity is cancelled only by its removal from the worker queue: the state of its orchestration has no effect on it.

use crate::ProviderFactory;
use crate::support::*;
use outlast_provider::{Provider, ScheduledActivityIdentifier, TagFilter, WorkItem};
use std::time::Duration;

/// Creates the instance in a turn that schedules these activities.
async fn create_with_activities(provider: &dyn Provider, instance: &str, ids: impl IntoIterator<Item = u64>) {
    let token = first_turn(provider, instance).await;
    let turn = Turn::new(&token).event(started(instance)).metadata(named());
    ids.into_iter().fold(turn, |turn, id| schedules(turn, instance, id)).commit(provider).await;
}

/// The turn, with an activity and the event that schedules it.
fn schedules<'a>(turn: Turn<'a>, instance: &str, id: u64) -> Turn<'a> {
    let kind = scheduled_kind(&format!("Activity{id}"));
    turn.event(event(instance, id, kind)).activity(activity(instance, id))
}

/// Ends the execution with this status, in a separate turn.
async fn end(provider: &dyn Provider, instance: &str, state: &str) {
    set_status(provider, instance, 1, state, "out").await;
    operator(provider).sees_current(instance, 1, state, Some("out")).await;
}

/// Enqueues an activity of a deleted instance, or of an instance that never existed if the store has no deletion.
async fn create_leftover_activity(provider: &dyn Provider, instance: &str) {
    if let Some(admin) = provider.as_management_capability() {
        create_instance(provider, instance).await;
        admin.delete_instance(instance, true).await.expect("a forced deletion succeeds");
    }
    operator(provider).sees_instances(&[]).await;
    enqueue_activity(provider, activity(instance, 2)).await;
}

/// Cancels activities in a turn of their instance.
async fn cancel_activities(
    provider: &dyn Provider,
    instance: &str,
    activities: impl IntoIterator<Item = ScheduledActivityIdentifier>,
) {
    let token = next_turn(provider, instance).await;
    activities.into_iter().fold(Turn::new(&token), Turn::cancels).commit(provider).await;
}

/// Fetches activity 2 of the instance, for the first time.
async fn fetch_second(provider: &dyn Provider, instance: &str, lease: Duration) -> String {
    let (item, token, attempt) = must_fetch_activity(provider, lease).await;
    assert_eq!((item, attempt), (activity(instance, 2), 1));
    token
}

/// Activity 2 can be fetched and completed, and its completion is delivered.
async fn assert_completable(provider: &dyn Provider, instance: &str) {
    let token = fetch_second(provider, instance, LONG).await;
    provider
        .ack_work_item(&token, Some(completed(instance, 2)))
        .await
        .expect("the activity can be completed");
    assert_eq!(must_fetch(provider, LONG).await.0.messages, [completed(instance, 2)]);
}

/// The lease that the token stands for can be renewed, so that it holds beyond its first deadline.
async fn assert_renewable(provider: &dyn Provider, token: &str, lease: Duration) {
    provider.renew_work_item_lock(token, LONG).await.expect("the lease can be renewed");
    outlive(lease).await;
    assert!(fetch_activity(provider, LONG).await.is_none(), "the renewed lease keeps others out");
    provider.ack_work_item(token, None).await.expect("the renewed lease is good for an ack");
}

/// All activities that can be fetched, in order.
async fn drain(provider: &dyn Provider) -> Vec<WorkItem> {
    let drained = drain_activities(provider, &TagFilter::default()).await;
    drained.into_iter().map(|(item, _)| item).collect()
}

/// An activity of a running orchestration is delivered.
pub async fn test_fetch_returns_running_state_for_active_orchestration<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_with_activities(provider, "busy", [2]).await;
    operator(provider).sees_current("busy", 1, "Running", None).await;
    assert_completable(provider, "busy").await;
}

/// An activity of a completed orchestration is delivered too.
pub async fn test_fetch_returns_terminal_state_when_orchestration_completed<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_with_activities(provider, "done", [2]).await;
    end(provider, "done", "Completed").await;
    assert_completable(provider, "done").await;
}

/// An activity of a failed orchestration is delivered too.
pub async fn test_fetch_returns_terminal_state_when_orchestration_failed<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_with_activities(provider, "broken", [2]).await;
    end(provider, "broken", "Failed").await;
    assert_completable(provider, "broken").await;
}

/// An activity of an execution that was continued as new is delivered too.
pub async fn test_fetch_returns_terminal_state_when_orchestration_continued_as_new<F: ProviderFactory>(
    factory: &F,
) {
    let provider = &*factory.create_provider().await;
    create_with_activities(provider, "moved-on", [2]).await;
    continue_as_new(provider, "moved-on", 1).await;
    operator(provider).sees_current("moved-on", 2, "Running", None).await;
    assert_completable(provider, "moved-on").await;
}

/// An activity whose instance does not exist (any more) is delivered and can be completed.
pub async fn test_fetch_returns_missing_state_when_instance_deleted<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_leftover_activity(provider, "deleted").await;
    let token = fetch_second(provider, "deleted", LONG).await;
    let completion = Some(completed("deleted", 2));
    provider.ack_work_item(&token, completion).await.expect("a completion needs no instance");
    assert_eq!(drain(provider).await, []);
    operator(provider).sees_instances(&[]).await;
    assert_eq!(provider.read("deleted").await.unwrap(), [], "a completion creates no instance");
}

/// The lease of a running orchestration's activity can be renewed.
pub async fn test_renew_returns_running_when_orchestration_active<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_with_activities(provider, "busy", [2]).await;
    let token = fetch_second(provider, "busy", factory.lock_timeout()).await;
    assert_renewable(provider, &token, factory.lock_timeout()).await;
}

/// The lease of an activity can be renewed after its orchestration completed.
pub async fn test_renew_returns_terminal_when_orchestration_completed<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_with_activities(provider, "done", [2]).await;
    let token = fetch_second(provider, "done", factory.lock_timeout()).await;
    end(provider, "done", "Completed").await;
    assert_renewable(provider, &token, factory.lock_timeout()).await;
}

/// The lease of an activity can be renewed while no instance of its name exists.
pub async fn test_renew_returns_missing_when_instance_deleted<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_leftover_activity(provider, "deleted").await;
    let token = fetch_second(provider, "deleted", factory.lock_timeout()).await;
    assert_renewable(provider, &token, factory.lock_timeout()).await;
}

/// An ack without a completion removes the activity and sends no message; one with a completion sends it to the instance.
pub async fn test_ack_work_item_none_deletes_without_enqueue<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_with_activities(provider, "quiet", [2, 3]).await;
    let token = fetch_second(provider, "quiet", factory.lock_timeout()).await;
    provider.ack_work_item(&token, None).await.expect("an ack without a completion succeeds");
    assert!(fetch(provider, LONG).await.is_none(), "nothing is enqueued for the orchestration");

    let (item, token, _) = must_fetch_activity(provider, LONG).await;
    assert_eq!(item, activity("quiet", 3));
    provider.ack_work_item(&token, Some(completed("quiet", 3))).await.expect("an ack succeeds");
    assert_eq!(must_fetch(provider, LONG).await.0.messages, [completed("quiet", 3)]);
    outlive(factory.lock_timeout()).await;
    assert_eq!(drain(provider).await, [], "both activities are deleted");
}

/// A turn removes exactly the activities that it cancels: instance, execution and id must match.
pub async fn test_cancelled_activities_deleted_from_worker_queue<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_with_activities(provider, "choosy", [2, 3, 4]).await;
    create_with_activities(provider, "other", [2]).await;
    let mut of_execution_2 = activity("choosy", 2);
    if let WorkItem::ActivityExecute { execution_id, .. } = &mut of_execution_2 {
        *execution_id = 2;
    }
    enqueue_activity(provider, of_execution_2.clone()).await;

    cancel_activities(provider, "choosy", [2, 4].map(|id| scheduled("choosy", id))).await;
    assert_eq!(drain(provider).await, [activity("choosy", 3), activity("other", 2), of_execution_2]);
}

/// Completing an activity that was cancelled is a permanent error.
pub async fn test_ack_work_item_fails_when_entry_deleted<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_with_activities(provider, "strict", [2]).await;
    let token = fetch_second(provider, "strict", LONG).await;
    cancel_activities(provider, "strict", [scheduled("strict", 2)]).await;
    for completion in [Some(completed("strict", 2)), None] {
        permanent(provider.ack_work_item(&token, completion).await, "the ack of a cancelled activity");
    }
    assert!(fetch(provider, LONG).await.is_none(), "no completion is enqueued");
}

/// The renewal of a cancelled activity is an error.
pub async fn test_renew_fails_when_entry_deleted<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_with_activities(provider, "strict", [2, 3]).await;
    let cancelled = fetch_second(provider, "strict", LONG).await;
    let (_, kept, _) = must_fetch_activity(provider, LONG).await;
    for token in [&cancelled, &kept] {
        provider.renew_work_item_lock(token, LONG).await.expect("nothing is cancelled yet");
    }
    cancel_activities(provider, "strict", [scheduled("strict", 2)]).await;
    permanent(provider.renew_work_item_lock(&cancelled, LONG).await, "renewing a cancelled activity");
    provider.renew_work_item_lock(&kept, LONG).await.expect("the other activity is not cancelled");
}

/// Cancelling an activity that does not exist does not affect the other items of the turn.
pub async fn test_cancelling_nonexistent_activities_is_idempotent<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_with_activities(provider, "calm", [2]).await;
    let token = fetch_second(provider, "calm", LONG).await;
    provider.ack_work_item(&token, None).await.expect("the activity is done");
    for id in [3, 4] {
        let token = next_turn(provider, "calm").await;
        schedules(Turn::new(&token), "calm", id)
            .cancels(scheduled("calm", 2))
            .cancels(scheduled("calm", 99))
            .cancels(scheduled("unknown", 2))
            .commit(provider)
            .await;
    }
    assert_eq!(drain(provider).await, [activity("calm", 3), activity("calm", 4)]);
    assert_eq!(event_ids(&provider.read("calm").await.unwrap()), [1, 2, 3, 4]);
}

/// One turn cancels many activities, waiting and leased ones.
pub async fn test_batch_cancellation_deletes_multiple_activities<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_with_activities(provider, "broad", 2..=7).await;
    let lease = factory.lock_timeout();
    fetch_second(provider, "broad", lease).await;
    assert_eq!(must_fetch_activity(provider, lease).await.0, activity("broad", 3));
    cancel_activities(provider, "broad", (2..=6).map(|id| scheduled("broad", id))).await;
    outlive(lease).await;
    assert_eq!(drain(provider).await, [activity("broad", 7)]);
}

/// An activity that one turn both schedules and cancels never reaches a worker; its event is recorded.
pub async fn test_same_activity_in_worker_items_and_cancelled_is_noop<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "hasty").await;
    let token = next_turn(provider, "hasty").await;
    let turn = [2, 3].into_iter().fold(Turn::new(&token), |turn, id| schedules(turn, "hasty", id));
    turn.cancels(scheduled("hasty", 2)).commit(provider).await;
    assert_eq!(drain(provider).await, [activity("hasty", 3)]);
    assert_eq!(provider.read("hasty").await.unwrap().len(), 3);
}

/// After a forced deletion, fetches return no error, the queue can be emptied, and later activities are delivered.
pub async fn test_orphan_activity_after_instance_force_deletion<F: ProviderFactory>(factory: &F) {
    let provider = &*factory.create_provider().await;
    create_with_activities(provider, "deleted", [2, 3]).await;
    let held = fetch_second(provider, "deleted", LONG).await;
    admin(provider).delete_instance("deleted", true).await.expect("a forced deletion succeeds");

    if provider.renew_work_item_lock(&held, LONG).await.is_ok() {
        provider.ack_work_item(&held, None).await.expect("what can be renewed can be acknowledged");
    }
    while let Some((_, token, _)) = fetch_activity(provider, LONG).await {
        provider.ack_work_item(&token, None).await.expect("what was fetched can be acknowledged");
    }
    assert_eq!(instances(provider).await, [""; 0], "no activity brings its instance back");

    enqueue_activity(provider, activity("deleted", 2)).await;
    let token = fetch_second(provider, "deleted", LONG).await;
    provider.ack_work_item(&token, None).await.expect("a new activity can be acknowledged");
    assert_eq!(drain(provider).await, []);
}

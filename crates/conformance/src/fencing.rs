//! Only the holder of a lease can commit, only once, and completely or not at all.

use crate::ProviderFactory;
use crate::queues::{BOTH, Queue};
use crate::snapshot::snapshot;
use crate::support::*;
use futures::future::join;
use outlast_provider::model::Event;
use outlast_provider::{Provider, WorkItem};
use std::time::Duration;
use tokio::time::sleep;

/// The events of a turn that changes every kind of state.
fn traces(instance: &str, first_id: u64) -> [Event; 3] {
    [
        event(instance, first_id, scheduled_kind("Activity")),
        event(instance, first_id + 1, custom_status_kind(Some(&format!("at {first_id}")))),
        event(instance, first_id + 2, value_kind("key", &format!("value-{first_id}"), 1)),
    ]
}

/// A turn that writes history, status and values, sends activities and messages, cancels an activity and ends the instance.
fn loud<'a>(token: &'a str, instance: &str, first_id: u64) -> Turn<'a> {
    Turn::new(token)
        .events(traces(instance, first_id))
        .activity(activity(instance, first_id))
        .message(start_item("other"))
        .cancels(scheduled(instance, 7))
        .metadata(status("Completed", &format!("by {first_id}")))
}

/// An instance with history, status, value and a waiting activity 7; returns its first events.
async fn create_furnished(provider: &dyn Provider, instance: &str) -> Vec<Event> {
    let token = first_turn(provider, instance).await;
    let mut events = vec![started(instance)];
    events.extend(traces(instance, 2));
    let turn = Turn::new(&token).events(events.clone()).activity(activity(instance, 7)).metadata(named());
    turn.commit(provider).await;
    events
}

/// Checks that the turn of `first_id`, and no other, was committed after the earlier events.
async fn assert_committed(provider: &dyn Provider, instance: &str, before: &[Event], first_id: u64) {
    let expected: Vec<u64> = event_ids(before).into_iter().chain(first_id..first_id + 3).collect();
    assert_eq!(event_ids(&provider.read(instance).await.unwrap()), expected);
    let status = (Some(format!("at {first_id}")), 2);
    assert_eq!(provider.get_custom_status(instance, 0).await.unwrap(), Some(status));
    let value = provider.get_kv_value(instance, "key").await.unwrap();
    assert_eq!(value, Some(format!("value-{first_id}")));
    operator(provider).sees_current(instance, 1, "Completed", Some(&format!("by {first_id}"))).await;
    let (work, _, _) = must_fetch_activity(provider, LONG).await;
    assert_eq!(
        work,
        activity(instance, first_id),
        "its activity is queued, and the cancelled one is deleted"
    );
    assert!(fetch_activity(provider, LONG).await.is_none());
    assert_eq!(must_fetch(provider, LONG).await.0.messages, [start_item("other")], "its message, once");
    assert!(fetch(provider, LONG).await.is_none(), "every message was consumed");
}

/// After a takeover the commit of the old holder changes nothing, and the commit of the new holder consumes every message once.
pub async fn a_commit_after_takeover_writes_nothing(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let before = create_furnished(provider, "fenced").await;
    let messages = [raised("fenced", "a", ""), raised("fenced", "b", "")];
    enqueue_all(provider, &messages).await;
    let (_, lost, _) = must_fetch(provider, factory.lock_timeout()).await;
    outlive(factory.lock_timeout()).await;
    let (item, token, attempt) = must_fetch(provider, LONG).await;
    assert_eq!((item.messages.as_slice(), attempt), (messages.as_slice(), 2));

    let untouched = snapshot(provider, &["fenced", "other"]).await;
    permanent(loud(&lost, "fenced", 10).try_commit(provider).await, "a commit after takeover");
    permanent(Turn::new(&lost).try_commit(provider).await, "an empty commit after takeover");
    assert_eq!(snapshot(provider, &["fenced", "other"]).await, untouched);
    loud(&token, "fenced", 20).commit(provider).await;
    assert_committed(provider, "fenced", &before, 20).await;
}

/// A commit under an expired lease is rejected, even if no other fetch has leased the instance.
pub async fn a_commit_after_expiry_writes_nothing(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let before = create_furnished(provider, "fenced").await;
    enqueue(provider, raised("fenced", "a", "")).await;
    let (_, lost, _) = must_fetch(provider, factory.lock_timeout()).await;
    outlive(factory.lock_timeout()).await;

    let untouched = snapshot(provider, &["fenced", "other"]).await;
    permanent(loud(&lost, "fenced", 10).try_commit(provider).await, "a commit after the lease ended");
    assert_eq!(snapshot(provider, &["fenced", "other"]).await, untouched);
    let (item, token, _) = must_fetch(provider, LONG).await;
    assert_eq!(item.messages, [raised("fenced", "a", "")]);
    loud(&token, "fenced", 20).commit(provider).await;
    assert_committed(provider, "fenced", &before, 20).await;
}

/// A second commit under the same token is rejected and changes nothing.
pub async fn one_lease_commits_once(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let before = create_furnished(provider, "fenced").await;
    let token = next_turn(provider, "fenced").await;
    loud(&token, "fenced", 10).commit(provider).await;
    let once = snapshot(provider, &["fenced", "other"]).await;
    permanent(loud(&token, "fenced", 20).try_commit(provider).await, "a second commit");
    assert_eq!(snapshot(provider, &["fenced", "other"]).await, once);
    assert_committed(provider, "fenced", &before, 10).await;
}

/// The lease decides the instance of a commit, not the instance id in the events.
pub async fn a_commit_changes_only_the_instance_of_its_lease(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_furnished(provider, "mine").await;
    provider.ack_work_item(&must_fetch_activity(provider, LONG).await.1, None).await.unwrap();
    let theirs = create_furnished(provider, "theirs").await;
    let [mine_token, theirs_token] = [next_turn(provider, "mine").await, next_turn(provider, "theirs").await];

    Turn::new(&mine_token).events(traces("theirs", 10)).commit(provider).await;
    assert_eq!(provider.read("mine").await.unwrap().len(), 7);
    assert_eq!(provider.read("theirs").await.unwrap(), theirs);
    assert_eq!(provider.get_kv_value("theirs", "key").await.unwrap().as_deref(), Some("value-2"));
    assert!(fetch(provider, LONG).await.is_none(), "the other lease is still held");
    loud(&theirs_token, "theirs", 20).commit(provider).await;
    assert_committed(provider, "theirs", &theirs, 20).await;
}

/// A commit with invalid content changes nothing, consumes no message, and keeps its lease for a valid commit.
pub async fn a_refused_commit_changes_nothing(factory: &dyn ProviderFactory) {
    type Spoil = fn(Turn<'_>) -> Turn<'_>;
    let spoils: [(&str, Spoil); 6] = [
        ("a stored event id", |turn| turn.event(started("fenced"))),
        ("event id 0", |turn| turn.event(event("fenced", 0, scheduled_kind("zero")))),
        ("an event id given twice", |turn| {
            turn.events([20, 20].map(|id| event("fenced", id, started_kind())))
        }),
        ("a start as an activity", |turn| turn.activity(start_item("fenced"))),
        ("a completion as an activity", |turn| turn.activity(completed("fenced", 7))),
        ("an activity as a message", |turn| turn.message(activity("fenced", 8))),
    ];
    let provider = &*factory.create_provider().await;
    let before = create_furnished(provider, "fenced").await;
    let mut token = next_turn(provider, "fenced").await;
    let untouched = snapshot(provider, &["fenced", "other"]).await;
    for (what, spoil) in spoils {
        permanent(spoil(loud(&token, "fenced", 10)).try_commit(provider).await, what);
        assert_eq!(snapshot(provider, &["fenced", "other"]).await, untouched, "after {what}");
        assert!(fetch(provider, LONG).await.is_none(), "the lease is kept after {what}");
        provider.abandon_orchestration_item(&token, None, true).await.expect("the lease is kept");
        let (item, again, attempt) = must_fetch(provider, LONG).await;
        assert_eq!((item.messages, attempt), (vec![raised("fenced", "poke", "")], 1), "after {what}");
        token = again;
        permanent(spoil(loud(&token, "fenced", 10)).try_commit(provider).await, what);
    }
    loud(&token, "fenced", 10).commit(provider).await;
    assert_committed(provider, "fenced", &before, 10).await;
}

/// A completion of a wrong kind changes nothing and keeps the activity's lease for a valid one.
pub async fn a_refused_completion_changes_nothing(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_furnished(provider, "fenced").await;
    let (_, token, _) = must_fetch_activity(provider, LONG).await;
    let untouched = snapshot(provider, &["fenced"]).await;
    let wrong: [WorkItem; 6] = [
        start_item("fenced"),
        activity("fenced", 7),
        raised("fenced", "event", ""),
        queue_message("fenced", "queue", ""),
        timer("fenced", 7, 0),
        cancel("fenced"),
    ];
    for completion in wrong {
        let what = format!("{completion:?} as a completion");
        permanent(provider.ack_work_item(&token, Some(completion)).await, &what);
        assert_eq!(snapshot(provider, &["fenced"]).await, untouched, "after {what}");
        assert!(fetch_activity(provider, LONG).await.is_none(), "the lease is kept after {what}");
    }
    provider.ack_work_item(&token, Some(completed("fenced", 7))).await.expect("the lease is live");
    assert_eq!(must_fetch(provider, LONG).await.0.messages, [completed("fenced", 7)]);
    assert!(fetch_activity(provider, LONG).await.is_none());
}

/// A read during the commit of a large turn sees all of it or nothing.
pub async fn a_partial_commit_is_never_visible(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "whole").await;
    for round in 1..=2 {
        let token = next_turn(provider, "whole").await;
        let before = 1 + (round - 1) * 60;
        let events = (1..=60).map(|n| event("whole", before + n, scheduled_kind("Activity")));
        let turn = (1..=20)
            .fold(Turn::new(&token).events(events), |turn, n| turn.activity(activity("whole", before + n)));
        let reading = async {
            for _ in 0..10 {
                let events = provider.read("whole").await.unwrap().len() as u64;
                assert!(
                    events == before || events == before + 60,
                    "{events} events, {before} before the turn"
                );
                if let Some(admin) = provider.as_management_capability() {
                    let work = admin.get_queue_depths().await.unwrap().worker_queue;
                    assert_eq!(work % 20, 0, "{work} activities");
                }
                sleep(Duration::from_millis(1)).await;
            }
        };
        join(turn.commit(provider), reading).await;
        assert_eq!(provider.read("whole").await.unwrap().len() as u64, before + 60);
    }
}

/// A token that was used for a commit is invalid, also for the next lease of the instance.
pub async fn a_used_token_is_refused(factory: &dyn ProviderFactory) {
    for queue in BOTH {
        for given_back in [false, true] {
            let provider = &*factory.create_provider().await;
            queue.put(provider, 1).await;
            let used = queue.take(provider, LONG).await.token;
            match given_back {
                true => queue.abandon(provider, &used, None, false).await.unwrap(),
                false => queue.finish(provider, &used).await.unwrap(),
            }
            refuses(provider, queue, &used).await;
            if !given_back {
                queue.finds_nothing(provider, "it is finished").await;
                continue;
            }
            let token = queue.take(provider, LONG).await.token;
            refuses(provider, queue, &used).await;
            queue.finds_nothing(provider, "the new lease is untouched").await;
            queue.finish(provider, &token).await.expect("the new lease is live");
            queue.finds_nothing(provider, "it is finished").await;
        }
    }
}

/// Every call with this token must be rejected.
async fn refuses(provider: &dyn Provider, queue: Queue, token: &str) {
    permanent(queue.finish(provider, token).await, &format!("{queue:?}: finishing with a dead token"));
    permanent(queue.renew(provider, token, LONG).await, &format!("{queue:?}: renewing with a dead token"));
    for delay in [None, Some(LONG)] {
        let abandoned = queue.abandon(provider, token, delay, true).await;
        permanent(abandoned, &format!("{queue:?}: abandoning with a dead token"));
    }
}

/// A token whose lease was taken over can neither renew, give back nor complete.
pub async fn a_lost_token_cannot_disturb_the_new_holder(factory: &dyn ProviderFactory) {
    let lease = factory.lock_timeout();
    for queue in BOTH {
        let provider = &*factory.create_provider().await;
        queue.put(provider, 1).await;
        let lost = queue.take(provider, lease).await.token;
        outlive(lease).await;
        let held = queue.take(provider, lease).await;
        assert_eq!(held.attempt, 2);
        refuses(provider, queue, &lost).await;
        queue.finds_nothing(provider, "the new lease is held").await;
        // Neither the end of the lease nor the delivery count has changed.
        outlive(lease).await;
        let again = queue.take(provider, LONG).await;
        assert_eq!((again.nth, again.attempt), (1, 3));
        queue.finish(provider, &again.token).await.expect("the newest lease is live");
        queue.finds_nothing(provider, "it is finished").await;
    }
}

/// A completion after takeover or expiry delivers nothing and does not change the lease of the activity.
pub async fn a_late_completion_writes_nothing(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_furnished(provider, "fenced").await;
    let (_, lost, _) = must_fetch_activity(provider, factory.lock_timeout()).await;
    outlive(factory.lock_timeout()).await;
    let late = || provider.ack_work_item(&lost, Some(completed("fenced", 7)));
    let untouched = snapshot(provider, &["fenced"]).await;
    permanent(late().await, "a completion after the lease ended");
    assert_eq!(snapshot(provider, &["fenced"]).await, untouched);

    let (item, token, attempt) = must_fetch_activity(provider, LONG).await;
    assert_eq!((item, attempt), (activity("fenced", 7), 2));
    let untouched = snapshot(provider, &["fenced"]).await;
    permanent(late().await, "a completion after takeover");
    assert_eq!(snapshot(provider, &["fenced"]).await, untouched);
    provider.ack_work_item(&token, Some(completed("fenced", 7))).await.expect("the new lease is live");
    permanent(provider.ack_work_item(&token, Some(completed("fenced", 7))).await, "a second completion");
    assert_eq!(must_fetch(provider, LONG).await.0.messages, [completed("fenced", 7)], "delivered once");
    assert!(fetch(provider, LONG).await.is_none() && fetch_activity(provider, LONG).await.is_none());
}

/// An activity is completed once per lease: of two concurrent completions one is refused, and so is a later one.
pub async fn one_lease_completes_once(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_furnished(provider, "fenced").await;
    let (_, token, _) = must_fetch_activity(provider, LONG).await;
    let complete = || provider.ack_work_item(&token, Some(completed("fenced", 7)));
    let (first, second) = join(complete(), complete()).await;
    assert_eq!([&first, &second].iter().filter(|done| done.is_ok()).count(), 1, "{first:?} and {second:?}");
    permanent(complete().await, "a third completion");
    let (item, turn, _) = must_fetch(provider, LONG).await;
    assert_eq!(item.messages, [completed("fenced", 7)], "delivered once");
    Turn::new(&turn).commit(provider).await;
    assert!(fetch(provider, LONG).await.is_none());
}

/// A token of one queue is invalid in the other.
pub async fn a_token_is_valid_for_its_own_queue_only(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    for queue in BOTH {
        queue.put(provider, 1).await;
    }
    let turn = Queue::Turns.take(provider, LONG).await.token;
    let work = Queue::Work.take(provider, LONG).await.token;
    refuses(provider, Queue::Turns, &work).await;
    refuses(provider, Queue::Work, &turn).await;
    Queue::Turns.finish(provider, &turn).await.expect("the turn's lease is live");
    Queue::Work.finish(provider, &work).await.expect("the activity's lease is live");
}

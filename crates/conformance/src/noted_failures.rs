//! Failures of an activity's handler that the worker reports with `abandon_work_noted`. They are kept with the activity, apart from
//! its delivery count. A store without the method keeps nothing and counts the delivery.

use crate::ProviderFactory;
use crate::support::*;
use outlast_provider::{FetchedWork, Provider, TagFilter, WorkItem, WorkNotes, WorkRequest};
use std::time::Duration;

/// Fetches the next activity.
async fn fetch_within(provider: &dyn Provider, lock_timeout: Duration) -> Option<FetchedWork> {
    let owner = session_owner("owner", LONG);
    let request = WorkRequest {
        max_items: 1,
        lock_timeout,
        poll_timeout: NO_WAIT,
        session: Some(&owner),
        tag_filter: &TagFilter::Any,
    };
    provider.fetch_work_items(request).await.expect("fetch_work_items succeeds").pop()
}

async fn fetch(provider: &dyn Provider, expected: &WorkItem) -> FetchedWork {
    let fetched = fetch_within(provider, LONG).await.expect("the activity is fetchable");
    assert_eq!(&fetched.item, expected);
    fetched
}

async fn note(provider: &dyn Provider, work: &FetchedWork, error: &str) {
    let noted = provider.abandon_work_noted(&work.lock_token, None, error).await;
    noted.expect("the failure of a held activity can be noted");
}

/// Compares the notes and the delivery count. A store that keeps no notes counts every failure as a delivery.
#[track_caller]
fn assert_notes(work: &FetchedWork, failures: u32, last_error: Option<&str>, silent_deliveries: u32) {
    match &work.notes {
        Some(notes) => {
            let last_error = last_error.map(str::to_string);
            assert_eq!(notes, &WorkNotes { failures, last_error });
            assert_eq!(work.attempt_count, silent_deliveries + 1, "silent deliveries, and this one");
        }
        None => assert_eq!(work.attempt_count, failures + silent_deliveries + 1, "all deliveries"),
    }
}

/// Every reported failure is counted, and the text of the last one is kept exactly.
pub async fn a_noted_failure_is_counted_and_kept(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let item = activity("noted", 2);
    enqueue_activity(provider, item.clone()).await;
    let mut work = fetch(provider, &item).await;
    assert_notes(&work, 0, None, 0);
    let texts = ["first", "", "{\"error\":\"busy\"}", "a\0b\u{1}c", "\u{1f980} \u{202e}"];
    for (failures, text) in (1..).zip(texts) {
        note(provider, &work, text).await;
        work = fetch(provider, &item).await;
        assert_notes(&work, failures, Some(text), 0);
    }
}

/// The delivery count holds the deliveries that reported nothing, before and after a reported failure.
pub async fn a_noted_failure_is_no_silent_delivery(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let item = activity("noted", 2);
    enqueue_activity(provider, item.clone()).await;
    let work = fetch_within(provider, factory.lock_timeout()).await.expect("the activity is fetchable");
    assert_notes(&work, 0, None, 0);
    outlive(factory.lock_timeout()).await;
    let work = fetch(provider, &item).await;
    assert_notes(&work, 0, None, 1);
    note(provider, &work, "one").await;
    let work = fetch(provider, &item).await;
    assert_notes(&work, 1, Some("one"), 1);
    provider.abandon_work_item(&work.lock_token, None, false).await.expect("its lease is live");
    let work = fetch(provider, &item).await;
    assert_notes(&work, 1, Some("one"), 2);
    provider.abandon_work_item(&work.lock_token, None, true).await.expect("its lease is live");
    let work = fetch(provider, &item).await;
    assert_notes(&work, 1, Some("one"), 2);
    note(provider, &work, "two").await;
    assert_notes(&fetch(provider, &item).await, 2, Some("two"), 2);
}

/// The activity returns after the delay, with its tag and session, and others are delivered meanwhile.
pub async fn a_noted_activity_returns_after_its_delay(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let (item, other) = (activity_with("noted", 2, Some("s"), Some("gpu")), activity("noted", 3));
    enqueue_activities(provider, &[item.clone(), other.clone()]).await;
    let work = fetch(provider, &item).await;
    let delay = factory.lock_timeout();
    provider.abandon_work_noted(&work.lock_token, Some(delay), "busy").await.expect("its lease is live");
    let second = fetch(provider, &other).await;
    assert_notes(&second, 0, None, 0);
    assert!(fetch_within(provider, LONG).await.is_none(), "the delay is not over");
    outlive(delay).await;
    assert_notes(&fetch(provider, &item).await, 1, Some("busy"), 0);
}

/// Only the holder of an activity can report its failure; an expired lease can report until another fetch takes the activity.
pub async fn a_failure_is_noted_under_the_lease_only(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let item = activity("noted", 2);
    permanent(provider.abandon_work_noted("none", None, "lost").await, "a token of no lease");
    enqueue_activity(provider, item.clone()).await;
    let lease = factory.lock_timeout();
    let expired = fetch_within(provider, lease).await.expect("the activity is fetchable");
    outlive(lease).await;
    note(provider, &expired, "late").await;
    permanent(provider.abandon_work_noted(&expired.lock_token, None, "again").await, "a token that was used");
    let lost = fetch_within(provider, lease).await.expect("the activity is fetchable");
    assert_notes(&lost, 1, Some("late"), 0);
    outlive(lease).await;
    let holder = fetch(provider, &item).await;
    permanent(provider.abandon_work_noted(&lost.lock_token, None, "lost").await, "a lost lease");
    note(provider, &holder, "held").await;
    let work = fetch(provider, &item).await;
    assert_notes(&work, 2, Some("held"), 1);
    provider.ack_work_item(&work.lock_token, None).await.expect("its lease is live");
    permanent(provider.abandon_work_noted(&work.lock_token, None, "over").await, "a completed activity");
}

/// An activity with reported failures completes as any other, and leaves no failures for the next activity of its id.
pub async fn a_noted_activity_completes_as_any_other(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "noted").await;
    let item = activity("noted", 2);
    enqueue_activity(provider, item.clone()).await;
    note(provider, &fetch(provider, &item).await, "busy").await;
    let work = fetch(provider, &item).await;
    let completion = completed("noted", 2);
    provider.ack_work_item(&work.lock_token, Some(completion.clone())).await.expect("its lease is live");
    assert_eq!(must_fetch(provider, LONG).await.0.messages, [completion]);

    enqueue_activity(provider, item.clone()).await;
    assert_notes(&fetch(provider, &item).await, 0, None, 0);
}

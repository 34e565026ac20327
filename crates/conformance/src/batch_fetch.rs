//! Several activities in one fetch. The result is the same as with one fetch for each.

use crate::ProviderFactory;
use crate::support::*;
use futures::future::join_all;
use outlast_provider::{FetchedWork, Provider, TagFilter, WorkItem, WorkRequest};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

fn up_to(max_items: usize) -> WorkRequest<'static> {
    const UNTAGGED: &TagFilter = &TagFilter::DefaultOnly;
    WorkRequest { max_items, lock_timeout: LONG, poll_timeout: NO_WAIT, session: None, tag_filter: UNTAGGED }
}

async fn fetch_batch(provider: &dyn Provider, request: WorkRequest<'_>) -> Vec<FetchedWork> {
    provider.fetch_work_items(request).await.expect("fetch_work_items succeeds")
}

fn items(batch: &[FetchedWork]) -> Vec<WorkItem> {
    batch.iter().map(|work| work.item.clone()).collect()
}

fn activities(ids: impl IntoIterator<Item = u64>) -> Vec<WorkItem> {
    ids.into_iter().map(|id| activity("batch", id)).collect()
}

/// A batch holds the oldest activities, at most `max_items`, in order, each once and with a separate lease.
pub async fn a_batch_is_in_order_and_bounded(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    enqueue_activities(provider, &activities([5, 3, 9, 1, 7])).await;
    let mut tokens = BTreeSet::new();
    for (max_items, expected) in [(3, activities([5, 3, 9])), (10, activities([1, 7])), (10, vec![])] {
        let batch = fetch_batch(provider, up_to(max_items)).await;
        assert_eq!(items(&batch), expected);
        assert!(batch.iter().all(|work| work.attempt_count == 1), "each for the first time");
        tokens.extend(batch.into_iter().map(|work| work.lock_token));
    }
    assert_eq!(tokens.len(), 5, "every activity has its own lease");
    assert!(fetch_activity(provider, LONG).await.is_none(), "activities of a batch are not delivered again");
}

/// A batch of none takes nothing.
pub async fn a_batch_of_zero_takes_no_activity(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    enqueue_activities(provider, &activities([1])).await;
    assert_eq!(fetch_batch(provider, up_to(0)).await, []);
    let batch = fetch_batch(provider, up_to(usize::MAX)).await;
    assert_eq!((items(&batch), batch[0].attempt_count), (activities([1]), 1));
}

/// Each activity of a batch is finished, given back, renewed and lost by itself.
pub async fn the_leases_of_a_batch_are_independent(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    create_instance(provider, "batch").await;
    enqueue_activities(provider, &activities(1..=4)).await;
    let batch = fetch_batch(provider, WorkRequest { lock_timeout: lease, ..up_to(4) }).await;
    let [finished, given_back, renewed, lost] = &batch[..] else { panic!("four are ready: {batch:?}") };

    provider
        .ack_work_item(&finished.lock_token, Some(completed("batch", 1)))
        .await
        .expect("its lease is live");
    provider.abandon_work_item(&given_back.lock_token, None, false).await.expect("its lease is live");
    provider.renew_work_item_lock(&renewed.lock_token, LONG).await.expect("its lease is live");
    assert_eq!(must_fetch(provider, LONG).await.0.messages, [completed("batch", 1)]);
    let again = fetch_batch(provider, up_to(4)).await;
    assert_eq!((items(&again), again[0].attempt_count), (activities([2]), 2), "only one was given back");

    outlive(lease).await;
    permanent(provider.ack_work_item(&lost.lock_token, None).await, "finishing after the lease");
    let again = fetch_batch(provider, up_to(4)).await;
    assert_eq!((items(&again), again[0].attempt_count), (activities([4]), 2), "only one lease ended");
    provider.ack_work_item(&renewed.lock_token, None).await.expect("its lease was renewed");
}

/// A batch holds no activity that the tag filter excludes, and excluded activities delay no others.
pub async fn a_batch_honours_tags(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let tagged = |id: u64| match id % 3 {
        0 => activity("batch", id),
        1 => activity_with("batch", id, None, Some("gpu")),
        _ => activity_with("batch", id, None, Some("cpu")),
    };
    enqueue_activities(provider, &(1..=9).map(tagged).collect::<Vec<_>>()).await;
    let cases: [(TagFilter, &[u64]); 5] = [
        (TagFilter::None, &[]),
        (TagFilter::tags(["gpu"]), &[1, 4, 7]),
        (TagFilter::default_and(["tpu"]), &[3, 6, 9]),
        (TagFilter::DefaultOnly, &[]),
        (TagFilter::Any, &[2, 5, 8]),
    ];
    for (tag_filter, expected) in &cases {
        let batch = fetch_batch(provider, WorkRequest { tag_filter, ..up_to(20) }).await;
        assert_eq!(
            items(&batch),
            expected.iter().map(|id| tagged(*id)).collect::<Vec<_>>(),
            "{tag_filter:?}"
        );
    }
}

/// A batch claims the sessions of its activities, and holds no activity of another owner's session.
pub async fn a_batch_honours_sessions(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let bound = |id, session| activity_with("batch", id, Some(session), None);
    let (a, b) = (session_owner("a", LONG), session_owner("b", LONG));
    let work = [
        bound(1, "s"),
        activity("batch", 2),
        bound(3, "t"),
        bound(4, "s"),
        activity("batch", 5),
        bound(6, "t"),
    ];
    enqueue_activities(provider, &work).await;

    let by_a = fetch_batch(provider, WorkRequest { session: Some(&a), ..up_to(2) }).await;
    assert_eq!(items(&by_a), work[..2], "a gets the oldest and the session of the first");
    let by_b = fetch_batch(provider, WorkRequest { session: Some(&b), ..up_to(2) }).await;
    assert_eq!(
        items(&by_b),
        [work[2].clone(), work[4].clone()],
        "b passes over a's session and gets the other"
    );
    let without = fetch_batch(provider, up_to(9)).await;
    assert_eq!(without, [], "without a session there is nothing more");
    let by_a = fetch_batch(provider, WorkRequest { session: Some(&a), ..up_to(9) }).await;
    assert_eq!(items(&by_a), [work[3].clone()]);
    let by_b = fetch_batch(provider, WorkRequest { session: Some(&b), ..up_to(9) }).await;
    assert_eq!(items(&by_b), [work[5].clone()]);
}

/// Concurrent batches do not overlap and together take all activities.
pub async fn parallel_batches_do_not_overlap(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    enqueue_activities(provider, &activities(1..=40)).await;
    let batches = join_all((0..8).map(|_| fetch_batch(provider, up_to(7)))).await;
    assert!(batches.iter().all(|batch| batch.len() <= 7), "no batch is larger than asked");
    let all: Vec<WorkItem> = batches.iter().flat_map(|batch| items(batch)).collect();
    for expected in activities(1..=40) {
        let times = all.iter().filter(|item| **item == expected).count();
        assert_eq!(times, 1, "{expected:?} is delivered once");
    }
    assert_eq!(all.len(), 40);
}

/// A batch with at least one activity does not wait for more.
pub async fn a_batch_waits_for_its_first_activity_only(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    enqueue_activities(provider, &activities([1, 2])).await;
    let begun = Instant::now();
    let batch =
        fetch_batch(provider, WorkRequest { poll_timeout: Duration::from_secs(30), ..up_to(5) }).await;
    let took = begun.elapsed();
    assert_eq!(items(&batch), activities([1, 2]));
    assert!(took <= factory.short_poll_threshold(), "a batch of what was ready took {took:?}");
}

/// If a store returns the orchestration of an activity, it is the correct one.
pub async fn the_orchestration_of_an_activity_is_right_if_given(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let orchestrations = [("one", "First", "1.2.3"), ("two", "Second", "4.5.6")];
    for (instance, name, version) in orchestrations {
        create_with(provider, instance, named_as(name, version)).await;
        let token = next_turn(provider, instance).await;
        Turn::new(&token).activity(activity(instance, 2)).commit(provider).await;
    }
    enqueue_activity(provider, activity("unknown", 2)).await;
    let batch = fetch_batch(provider, up_to(5)).await;
    assert_eq!(items(&batch), ["one", "two", "unknown"].map(|instance| activity(instance, 2)));
    for (work, (_, name, version)) in batch.iter().zip(orchestrations) {
        if let Some(orchestration) = &work.orchestration {
            assert_eq!(orchestration, &(name.to_string(), version.to_string()), "{:?}", work.item);
        }
    }
    assert_eq!(batch[2].orchestration, None, "nothing is known of an unknown instance");
}

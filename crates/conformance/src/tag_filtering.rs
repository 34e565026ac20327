//! A worker gets the activities whose tag matches its filter, in the order of enqueueing, and does not affect the others.

use crate::ProviderFactory;
use crate::support::*;
use futures::future::join_all;
use outlast_provider::{Provider, TagFilter, WorkItem};

const INSTANCE: &str = "tagged-work";

fn tagged(id: u64, tag: Option<&str>) -> WorkItem {
    activity_with(INSTANCE, id, None, tag)
}

/// Activities 1, 2, 3 .. with these tags.
fn numbered(tags: &[Option<&str>]) -> Vec<WorkItem> {
    (1..).zip(tags).map(|(id, tag)| tagged(id, *tag)).collect()
}

/// Enqueues activities 1, 2, 3 .. with these tags.
async fn enqueue_tagged(provider: &dyn Provider, tags: &[Option<&str>]) {
    enqueue_activities(provider, &numbered(tags)).await;
}

async fn fetch_tagged(provider: &dyn Provider, filter: &TagFilter) -> Option<(WorkItem, String, u32)> {
    fetch_activity_as(provider, LONG, None, filter).await
}

/// These of the activities, each on its first delivery.
fn first_deliveries(tags: &[Option<&str>], ids: impl IntoIterator<Item = usize>) -> Vec<(WorkItem, u32)> {
    let items = numbered(tags);
    ids.into_iter().map(|id| (items[id - 1].clone(), 1)).collect()
}

/// A fetch with this filter gets exactly these of six activities, and the others are unchanged.
async fn check_filter(factory: &dyn ProviderFactory, filter: TagFilter, admitted: &[usize]) {
    let provider = &*factory.create_provider().await;
    let tags = [None, Some("gpu"), Some("cpu"), None, Some("gpu"), Some("cpu")];
    enqueue_tagged(provider, &tags).await;
    let expected = first_deliveries(&tags, admitted.iter().copied());
    assert_eq!(drain_activities(provider, &filter).await, expected, "what {filter:?} admits");
    let others = first_deliveries(&tags, (1..=tags.len()).filter(|id| !admitted.contains(id)));
    assert_eq!(drain_activities(provider, &TagFilter::any()).await, others, "what {filter:?} leaves alone");
}

/// A fetch with this filter gets no activity of a session whose activities are tagged `gpu`, and does not own the session.
async fn check_claims_no_session(factory: &dyn ProviderFactory, filter: TagFilter) {
    let provider = &*factory.create_provider().await;
    let bound = activity_with(INSTANCE, 1, Some("s"), Some("gpu"));
    enqueue_activity(provider, bound.clone()).await;
    let [alice, bob] = ["alice", "bob"].map(|id| session_owner(id, LONG));
    let fetched = fetch_activity_as(provider, LONG, Some(&alice), &filter).await;
    assert_eq!(fetched, None, "{filter:?} does not admit it");
    let fetched = fetch_activity_as(provider, LONG, Some(&bob), &TagFilter::any()).await;
    let (item, _, attempt) = fetched.expect("the session is free");
    assert_eq!((item, attempt), (bound, 1));
}

/// The default filter matches untagged activities only.
pub async fn test_default_only_fetches_untagged(factory: &dyn ProviderFactory) {
    check_filter(factory, TagFilter::default_only(), &[1, 4]).await;
    check_filter(factory, TagFilter::default(), &[1, 4]).await;
    check_claims_no_session(factory, TagFilter::default_only()).await;
}

/// A filter by tag matches activities with exactly that tag.
pub async fn test_tags_fetches_only_matching(factory: &dyn ProviderFactory) {
    check_filter(factory, TagFilter::tags(["gpu"]), &[2, 5]).await;
    check_filter(factory, TagFilter::tags(["GPU", "gp", "gpu2", "%", "gpu,cpu"]), &[]).await;
    check_claims_no_session(factory, TagFilter::tags(["cpu"])).await;
}

/// A filter by tag and default matches untagged activities as well.
pub async fn test_default_and_fetches_untagged_and_matching(factory: &dyn ProviderFactory) {
    check_filter(factory, TagFilter::default_and(["gpu"]), &[1, 2, 4, 5]).await;
    check_filter(factory, TagFilter::default_and(["fpga"]), &[1, 4]).await;
}

/// The empty filter matches nothing, with or without sessions, and changes nothing.
pub async fn test_none_filter_returns_nothing(factory: &dyn ProviderFactory) {
    check_filter(factory, TagFilter::none(), &[]).await;
    check_claims_no_session(factory, TagFilter::none()).await;
}

/// The open filter matches every activity.
pub async fn test_any_filter_fetches_everything(factory: &dyn ProviderFactory) {
    check_filter(factory, TagFilter::any(), &[1, 2, 3, 4, 5, 6]).await;
}

/// A filter by several tags matches activities with any one of them, in the order of enqueueing.
pub async fn test_multi_tag_filter(factory: &dyn ProviderFactory) {
    check_filter(factory, TagFilter::tags(["cpu", "gpu"]), &[2, 3, 5, 6]).await;
    check_filter(factory, TagFilter::tags(["a", "b", "c", "d", "cpu"]), &[3, 6]).await;
    check_filter(factory, TagFilter::default_and(["gpu", "cpu"]), &[1, 2, 3, 4, 5, 6]).await;
}

/// Any tag up to the limit is returned unchanged, and matches only itself.
pub async fn test_tag_round_trip_preservation(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let longest = "x".repeat(256);
    let tags =
        ["gpu", "GPU", "null", "a,b", "it's \"quoted\"", "100%_\\", "größe-显卡-🦀", " padded ", &longest];
    enqueue_tagged(provider, &tags.map(Some)).await;
    enqueue_activity(provider, tagged(100, None)).await;
    for (id, tag) in (1..).zip(tags).collect::<Vec<_>>().into_iter().rev() {
        let fetched = drain_activities(provider, &TagFilter::tags([tag])).await;
        assert_eq!(fetched, [(tagged(id, Some(tag)), 1)], "the activity with tag {tag:?}");
    }
    assert_eq!(
        drain_activities(provider, &TagFilter::any()).await,
        [(tagged(100, None), 1)],
        "no tag stays no tag"
    );
}

/// An abandoned activity keeps its tag.
pub async fn test_tag_survives_abandon_and_refetch(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let filter = TagFilter::tags(["gpu"]);
    let item = tagged(1, Some("gpu"));
    enqueue_activity(provider, item.clone()).await;
    for (delivery, ignore_attempt) in [(1, false), (2, true), (2, false)] {
        for other in [TagFilter::default_only(), TagFilter::tags(["cpu"])] {
            assert_eq!(fetch_tagged(provider, &other).await, None, "{other:?} before delivery {delivery}");
        }
        let (fetched, token, attempt) = fetch_tagged(provider, &filter).await.expect("the activity is ready");
        assert_eq!((&fetched, attempt), (&item, delivery));
        provider.abandon_work_item(&token, None, ignore_attempt).await.unwrap();
    }
}

/// Activities that a commit enqueues keep their tags.
pub async fn test_tag_preserved_through_ack_orchestration_item(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, INSTANCE).await;
    let turn = next_turn(provider, INSTANCE).await;
    let tags = [Some("gpu"), None, Some("cpu"), Some("gpu")];
    Turn::new(&turn).activities(numbered(&tags)).commit(provider).await;

    for (filter, admitted) in [
        (TagFilter::default_only(), vec![2]),
        (TagFilter::tags(["gpu"]), vec![1, 4]),
        (TagFilter::tags(["cpu"]), vec![3]),
    ] {
        let expected = first_deliveries(&tags, admitted);
        assert_eq!(drain_activities(provider, &filter).await, expected, "what {filter:?} admits");
    }
}

/// Runtimes with disjoint, overlapping and enclosing filters share a queue, and each activity goes to one of them.
pub async fn test_multi_runtime_tag_isolation(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let [gpu, cpu] = ["gpu", "cpu"].map(|tag| TagFilter::tags([tag]));
    let (both, default_and_gpu) = (TagFilter::tags(["gpu", "cpu"]), TagFilter::default_and(["gpu"]));
    let (untagged, any) = (TagFilter::default_only(), TagFilter::any());
    let tags = [None, Some("gpu"), Some("cpu"), Some("gpu"), Some("cpu"), None, Some("fpga")];
    enqueue_tagged(provider, &tags).await;
    let steps = [
        (&gpu, Some(2)),
        (&cpu, Some(3)),
        (&default_and_gpu, Some(1)),
        (&default_and_gpu, Some(4)),
        (&gpu, None),
        (&any, Some(5)),
        (&both, None),
        (&untagged, Some(6)),
        (&default_and_gpu, None),
        (&any, Some(7)),
        (&any, None),
    ];
    for (step, (filter, expected)) in steps.into_iter().enumerate() {
        let fetched = fetch_tagged(provider, filter).await.map(|(item, _, attempt)| (item, attempt));
        let expected = first_deliveries(&tags, expected).pop();
        assert_eq!(fetched, expected, "step {step}, {filter:?}");
    }
    check_shared_queue(factory, &tags.repeat(4), &[gpu, cpu, both, default_and_gpu, untagged, any]).await;
}

/// Runtimes that fetch concurrently get only activities that match their filters, and each once.
async fn check_shared_queue(factory: &dyn ProviderFactory, tags: &[Option<&str>], filters: &[TagFilter]) {
    let provider = &*factory.create_provider().await;
    enqueue_tagged(provider, tags).await;
    let mut delivered = Vec::new();
    for (filter, drained) in
        filters.iter().zip(join_all(filters.iter().map(|f| drain_activities(provider, f))).await)
    {
        for (item, attempt) in drained {
            let WorkItem::ActivityExecute { id, tag, .. } = &item else {
                panic!("{item:?} is not an activity");
            };
            assert!(filter.matches(tag.as_deref()), "{filter:?} got {item:?}");
            delivered.push((*id, (item, attempt)));
        }
    }
    delivered.sort_by_key(|(id, _)| *id);
    let delivered: Vec<_> = delivered.into_iter().map(|(_, delivery)| delivery).collect();
    assert_eq!(delivered, first_deliveries(tags, 1..=tags.len()), "every activity is delivered once");
}

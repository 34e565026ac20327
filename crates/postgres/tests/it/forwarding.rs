//! Processes with different eligibility, played by store objects on one schema: a process that is not eligible for a notified
//! item forwards the notification to an eligible process.

use crate::factory::raw;
use crate::listening::{open, quiet, rarely_polling};
use crate::support::*;
use outlast_model::WorkItem;
use outlast_postgres::PostgresProvider;
use outlast_provider::{
    DispatcherCapabilityFilter, ExecutionMetadata, Provider, SemverRange, SessionFetchConfig, TagFilter,
};
use semver::Version;
use std::sync::Arc;
use tokio::task::{JoinHandle, spawn};
use tokio::time::timeout;

/// Three processes: `here` commits items, `there` is eligible for them, `elsewhere` is not.
struct Three {
    here: Arc<PostgresProvider>,
    there: Arc<PostgresProvider>,
    elsewhere: Arc<PostgresProvider>,
    schema: String,
}

impl Three {
    async fn new() -> Self {
        let config = rarely_polling("three");
        let schema = config.schema_name.clone().unwrap();
        let [here, there, elsewhere] = [open(&config).await, open(&config).await, open(&config).await];
        Self { here, there, elsewhere, schema }
    }

    /// Commits items until `elsewhere` has received three notifications; `there` fetches each item.
    async fn arrives(&self, column: &str, take: impl Fn() -> JoinHandle<()>, give: impl AsyncFn(u64)) {
        let both_wait = format!("SELECT count(*) FILTER (WHERE {column}) = 2 FROM {}.listeners", self.schema);
        for n in 0..100 {
            let taken = take();
            until(&raw().await, &both_wait).await;
            // No process polls without a notification.
            quiet(|| self.there.stats().polls).await;
            give(n).await;
            timeout(PATIENCE, taken).await.expect("the notification is forwarded").unwrap();
            if self.elsewhere.stats().notifications >= 3 {
                return;
            }
        }
        panic!("`elsewhere` was notified {} times of 100 items", self.elsewhere.stats().notifications);
    }
}

fn with_tag(n: u64, of: &str) -> WorkItem {
    activity_with("i", n, None, Some(of))
}

fn in_session(n: u64, of: &str) -> WorkItem {
    activity_with("i", n, Some(of), None)
}

/// A fetch that leases one activity and settles it.
fn takes(store: &Arc<PostgresProvider>, owner: Option<&str>, tags: TagFilter) -> JoinHandle<()> {
    let store = Arc::clone(store);
    let session = owner.map(|owner| SessionFetchConfig { owner_id: owner.to_string(), lock_timeout: LONG });
    spawn(async move {
        let fetched = store.fetch_work_item(LONG, LONG, session.as_ref(), &tags).await;
        let (_, token, _) = fetched.unwrap().expect("activities");
        store.ack_work_item(&token, None).await.unwrap();
    })
}

/// A process with a parked fetch that commits activities, and an idle process with a parked fetch for untagged activities.
async fn committing_and_idle(
    own: TagFilter,
) -> (Arc<PostgresProvider>, JoinHandle<()>, Arc<PostgresProvider>) {
    let config = rarely_polling("put off");
    let [here, there] = [open(&config).await, open(&config).await];
    let own = takes(&here, None, own);
    let both = format!(
        "SELECT count(*) FILTER (WHERE activities) = 2 FROM {}.listeners",
        config.schema_name.unwrap()
    );
    let idle = Arc::clone(&there);
    // The idle process fetches again after each activity.
    spawn(async move { while takes(&idle, None, TagFilter::DefaultOnly).await.is_ok() {} });
    until(&raw().await, &both).await;
    quiet(|| there.stats().polls).await;
    (here, own, there)
}

/// Waits until a process has taken an activity.
async fn until_fetched(there: &PostgresProvider) {
    let fetched = async {
        while there.stats().fetched == 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, fetched).await.expect("the notification is delayed, not dropped");
}

#[tokio::test]
async fn another_process_is_notified_of_an_activity_that_no_local_fetch_takes() {
    let (here, own, there) = committing_and_idle(TagFilter::tags(["gpu"])).await;
    let before = there.stats().notifications;
    here.enqueue_for_worker(activity("i", 1)).await.unwrap();
    until_fetched(&there).await;
    assert_eq!(there.stats().notifications, before + 1);
    own.abort();
}

#[tokio::test]
async fn closing_process_notifies_another_one_of_an_activity_that_it_leaves() {
    let (here, own, there) = committing_and_idle(TagFilter::tags(["gpu"])).await;
    here.enqueue_for_worker(activity("i", 1)).await.unwrap();
    own.abort();
    drop((own.await, here));
    until_fetched(&there).await;
}

#[tokio::test]
async fn no_other_process_is_notified_of_activities_that_local_fetches_take() {
    let (here, mut own, there) = committing_and_idle(TagFilter::DefaultOnly).await;
    let before = (there.stats().notifications, there.stats().polls);
    for n in 1..=5 {
        here.enqueue_for_worker(activity("i", n)).await.unwrap();
        timeout(PATIENCE, own).await.expect("the local fetch takes the activity").unwrap();
        own = takes(&here, None, TagFilter::DefaultOnly);
        quiet(|| here.stats().polls).await;
    }
    assert_eq!((there.stats().notifications, there.stats().polls), before);
    own.abort();
}

#[tokio::test]
async fn notification_of_a_tagged_activity_is_forwarded() {
    let three = Three::new().await;
    let plain = takes(&three.elsewhere, None, TagFilter::DefaultOnly);
    let take = || takes(&three.there, None, TagFilter::tags(["gpu"]));
    let give = async |n| three.here.enqueue_for_worker(with_tag(n, "gpu")).await.unwrap();
    three.arrives("activities", take, give).await;
    plain.abort();
}

#[tokio::test]
async fn notification_of_a_session_activity_is_forwarded() {
    let three = Three::new().await;
    let mine = takes(&three.there, Some("there"), TagFilter::DefaultOnly);
    three.here.enqueue_for_worker(in_session(0, "s")).await.unwrap();
    mine.await.unwrap();
    let other = takes(&three.elsewhere, Some("elsewhere"), TagFilter::DefaultOnly);
    let take = || takes(&three.there, Some("there"), TagFilter::DefaultOnly);
    let give = async |n| three.here.enqueue_for_worker(in_session(n + 1, "s")).await.unwrap();
    three.arrives("activities", take, give).await;
    other.abort();
}

/// Turns of an execution that is pinned to 1.0.0.
#[tokio::test]
async fn notification_of_a_pinned_turn_is_forwarded() {
    let three = Three::new().await;
    enqueue(&*three.here, "i").await;
    let (_, token, _) = turn(&*three.here).await;
    let pinned = ExecutionMetadata { pinned_duroxide_version: Some(Version::new(1, 0, 0)), ..named() };
    three
        .here
        .ack_orchestration_item(&token, 1, vec![started("i")], vec![], vec![], pinned, vec![])
        .await
        .unwrap();

    let takes = |store: &Arc<PostgresProvider>, major: u64| -> JoinHandle<()> {
        let store = Arc::clone(store);
        let range = SemverRange::new(Version::new(major, 0, 0), Version::new(major, 9, 9));
        let filter = DispatcherCapabilityFilter { supported_duroxide_versions: vec![range] };
        spawn(async move {
            let fetched = store.fetch_orchestration_item(LONG, LONG, Some(&filter)).await;
            let (item, token, attempts) = fetched.unwrap().expect("a turn");
            assert_eq!((item.instance.as_str(), attempts), ("i", 1));
            let nothing = ExecutionMetadata::default();
            store.ack_orchestration_item(&token, 1, vec![], vec![], vec![], nothing, vec![]).await.unwrap();
        })
    };
    let newer = takes(&three.elsewhere, 2);
    let give = async |n| {
        let message =
            WorkItem::QueueMessage { instance: "i".to_string(), name: "q".to_string(), data: format!("{n}") };
        three.here.enqueue_for_orchestrator(message, None).await.unwrap();
    };
    three.arrives("turns", || takes(&three.there, 1), give).await;
    newer.abort();
}

/// No process is eligible for the items: each item notifies at most one process, which drops the notification.
#[tokio::test]
async fn notification_without_an_eligible_process_is_dropped() {
    const GIVEN: u64 = 10;
    let config = rarely_polling("nobody").pool_size(2);
    let schema = config.schema_name.clone().unwrap();
    let here = open(&config).await;
    let mut all = Vec::new();
    for _ in 0..4 {
        let store = open(&config).await;
        let fetch = takes(&store, None, TagFilter::DefaultOnly);
        all.push((store, fetch));
    }
    until(&raw().await, &format!("SELECT count(*) FILTER (WHERE activities) = 4 FROM {schema}.listeners"))
        .await;
    let polls = || all.iter().map(|(store, _)| store.stats().polls).sum::<u64>();
    let notifications = || all.iter().map(|(store, _)| store.stats().notifications).sum::<u64>();
    quiet(polls).await;
    for n in 0..GIVEN {
        here.enqueue_for_worker(with_tag(n, "gpu")).await.unwrap();
    }
    quiet(polls).await;
    assert!((1..=GIVEN).contains(&notifications()), "notified {} times of {GIVEN}", notifications());
    // The items delay no other activity.
    for n in 0..4 {
        here.enqueue_for_worker(activity("i", GIVEN + n)).await.unwrap();
    }
    for (_, fetch) in all {
        timeout(PATIENCE, fetch).await.expect("each fetch is served").unwrap();
    }
}

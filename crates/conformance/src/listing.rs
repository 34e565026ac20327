//! Paged listing of instances.

use crate::ProviderFactory;
use crate::support::*;
use outlast_provider::{ExecutionMetadata, InstanceInfo, InstancePage, InstanceQuery, Provider};
use tokio::time::sleep;

async fn page(provider: &dyn Provider, query: &InstanceQuery) -> InstancePage {
    let page = admin(provider).query_instances(query).await.expect("query_instances succeeds");
    assert!(page.instances.len() <= query.page_size(), "a page holds at most {}", query.page_size());
    page
}

fn ids(instances: &[InstanceInfo]) -> Vec<String> {
    instances.iter().map(|info| info.instance_id.clone()).collect()
}

/// All pages from a position on, as ids. The last page may turn out to be empty, no other one.
async fn walk(provider: &dyn Provider, query: &InstanceQuery) -> Vec<String> {
    let mut query = query.clone();
    let mut found = Vec::new();
    for _ in 0..1_000 {
        let page = page(provider, &query).await;
        found.extend(ids(&page.instances));
        if page.next.is_none() {
            return found;
        }
        assert!(!page.instances.is_empty(), "an empty page is the last one");
        query.after = page.next;
    }
    panic!("the pages do not end: {found:?}");
}

async fn create_apart(provider: &dyn Provider, instances: impl IntoIterator<Item = String>) {
    for instance in instances {
        create_instance(provider, &instance).await;
        sleep(APART).await;
    }
}

/// Pages of any size list every instance once, newest first, each with the data of its info.
pub async fn pages_list_every_instance_once(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_apart(provider, (1..=7).map(|n| format!("instance-{}", 7 * n % 10))).await;
    let newest_first = admin(provider).list_instances().await.unwrap();
    assert_eq!(newest_first.len(), 7);
    for limit in [Some(1), Some(2), Some(3), Some(6), Some(7), Some(8), Some(1_000), None] {
        let query = InstanceQuery { limit, ..InstanceQuery::default() };
        assert_eq!(walk(provider, &query).await, newest_first, "pages of {limit:?}");
    }
    let all = page(provider, &InstanceQuery::default()).await;
    assert_eq!(all.next, None, "all instances fit on one page");
    for shown in all.instances {
        let info = admin(provider).get_instance_info(&shown.instance_id).await.unwrap();
        assert_eq!(format!("{shown:?}"), format!("{info:?}"));
    }
}

/// Instances of one millisecond are all shown, once.
pub async fn instances_of_the_same_millisecond_are_all_listed(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    for n in 0..12 {
        create_instance(provider, &format!("instance-{}", 5 * n % 12)).await;
    }
    let whole = walk(provider, &InstanceQuery::default()).await;
    let mut sorted = whole.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(sorted.len(), 12);
    for limit in [1, 2, 5, 11] {
        let query = InstanceQuery { limit: Some(limit), ..InstanceQuery::default() };
        assert_eq!(walk(provider, &query).await, whole, "pages of {limit}");
    }
}

/// Each condition selects by itself, all of them together, and ids are compared as text.
pub async fn every_condition_selects(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let instances = [
        ("app-1", "TestOrch", "Running", None),
        ("app-2", "TestOrch", "Completed", None),
        ("app_3", "TestOrch", "Failed", None),
        ("APP-4", "Other", "Running", None),
        ("job%1", "Other", "Completed", None),
        ("job-2", "TestOrch", "Running", Some("app-1")),
        ("job-3", "TestOrch", "Completed", Some("app-1")),
        ("between", "TestOrch", "ContinuedAsNew", None),
    ];
    for (instance, name, state, parent) in instances {
        let metadata =
            ExecutionMetadata { orchestration_name: Some(name.to_string()), ..ended(state, "out", parent) };
        create_with(provider, instance, metadata).await;
        sleep(APART).await;
    }
    let created =
        async |instance| Some(admin(provider).get_instance_info(instance).await.unwrap().created_at);
    let (from, before) = (created("app_3").await, created("job-2").await);

    type Change = fn(&mut InstanceQuery);
    let conditions: [(Change, &[&str]); 17] = [
        (|_| (), &["between", "job-3", "job-2", "job%1", "APP-4", "app_3", "app-2", "app-1"]),
        (|q| q.status = some("Running"), &["job-2", "APP-4", "app-1"]),
        (|q| q.status = some("Completed"), &["job-3", "job%1", "app-2"]),
        (|q| q.status = some("ContinuedAsNew"), &["between"]),
        (|q| q.status = some("Unheard"), &[]),
        (|q| q.orchestration_name = some("Other"), &["job%1", "APP-4"]),
        (|q| q.id_prefix = some("app"), &["app_3", "app-2", "app-1"]),
        (|q| q.id_prefix = some("app_"), &["app_3"]),
        (|q| q.id_prefix = some("job%"), &["job%1"]),
        (|q| q.id_prefix = some("%"), &[]),
        (|q| q.id_prefix = some("job-2"), &["job-2"]),
        (|q| q.parent_instance_id = some("app-1"), &["job-3", "job-2"]),
        (|q| q.parent_instance_id = some("app-2"), &[]),
        (
            |q| {
                q.status = some("Completed");
                q.id_prefix = some("job");
            },
            &["job-3", "job%1"],
        ),
        (
            |q| {
                q.parent_instance_id = some("app-1");
                q.status = some("Completed");
                q.orchestration_name = some("TestOrch");
            },
            &["job-3"],
        ),
        (
            |q| {
                q.orchestration_name = some("Other");
                q.status = some("Running");
            },
            &["APP-4"],
        ),
        (
            |q| {
                q.orchestration_name = some("Other");
                q.parent_instance_id = some("app-1");
            },
            &[],
        ),
    ];
    for (change, expected) in conditions {
        let mut query = InstanceQuery::default();
        change(&mut query);
        for limit in [1, 2, 1_000] {
            query.limit = Some(limit);
            assert_eq!(walk(provider, &query).await, expected, "{query:?}");
        }
    }

    let times: [(Option<u64>, Option<u64>, &[&str]); 4] = [
        (from, None, &["between", "job-3", "job-2", "job%1", "APP-4", "app_3"]),
        (None, before, &["job%1", "APP-4", "app_3", "app-2", "app-1"]),
        (from, before, &["job%1", "APP-4", "app_3"]),
        (before, from, &[]),
    ];
    for (created_from, created_before, expected) in times {
        let query =
            InstanceQuery { created_from, created_before, limit: Some(2), ..InstanceQuery::default() };
        assert_eq!(walk(provider, &query).await, expected, "{query:?}");
        let running: Vec<&str> =
            expected.iter().copied().filter(|id| ["app-1", "APP-4", "job-2"].contains(id)).collect();
        let query = InstanceQuery { status: some("Running"), ..query };
        assert_eq!(walk(provider, &query).await, running, "{query:?}");
    }
}

fn some(text: &str) -> Option<String> {
    Some(text.to_string())
}

/// A page holds at least one instance, a hundred unless asked otherwise, and as many as there are if asked for more.
pub async fn the_page_size_has_bounds(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    for n in 0..101 {
        create_instance(provider, &format!("instance-{n}")).await;
    }
    for (limit, expected, ends) in
        [(None, 100, false), (Some(0), 1, false), (Some(1_000), 101, true), (Some(u32::MAX), 101, true)]
    {
        let query = InstanceQuery { limit, ..InstanceQuery::default() };
        let page = page(provider, &query).await;
        assert_eq!((page.instances.len(), page.next.is_none()), (expected, ends), "limit {limit:?}");
        assert_eq!(walk(provider, &query).await.len(), 101, "limit {limit:?}");
    }
}

/// A listing of nothing is one empty page.
pub async fn an_empty_store_has_one_empty_page(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let empty = async |query: InstanceQuery| {
        let page = page(provider, &query).await;
        assert_eq!((ids(&page.instances), page.next), (vec![], None), "{query:?}");
    };
    empty(InstanceQuery::default()).await;
    enqueue(provider, start_item("queued")).await;
    empty(InstanceQuery::default()).await;
    let (_, token, _) = must_fetch(provider, LONG).await;
    Turn::new(&token).event(started("queued")).metadata(named()).commit(provider).await;
    assert_eq!(walk(provider, &InstanceQuery::default()).await, ["queued"], "from its first commit on");
    empty(InstanceQuery { status: some("Failed"), ..InstanceQuery::default() }).await;
}

/// A reader of all pages gets each instance that existed at the start once, while others are created and deleted.
pub async fn changes_between_pages_hide_and_repeat_no_instance(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_apart(provider, (1..=8).map(|n| format!("old-{n}"))).await;
    let mut query = InstanceQuery { limit: Some(2), ..InstanceQuery::default() };
    let mut seen = Vec::new();
    for round in 1..=10 {
        let page = page(provider, &query).await;
        seen.extend(ids(&page.instances));
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
        create_instance(provider, &format!("new-{round}")).await;
        if round == 2 {
            // One that was listed before, and one that will not be listed.
            for gone in ["old-8", "old-2"] {
                admin(provider).delete_instance(gone, true).await.expect("force deletes");
            }
        }
        let token = next_turn(provider, "old-1").await;
        Turn::new(&token).commit(provider).await; // which makes it no newer
    }
    assert_eq!(query.after, None, "the pages end");
    seen.retain(|id| id.starts_with("old"));
    assert_eq!(seen, ["old-8", "old-7", "old-6", "old-5", "old-4", "old-3", "old-1"]);
}

/// Pages of any size have every event of their execution once, in order, and no event of other executions and instances.
pub async fn pages_of_a_history_have_every_event_once(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "other").await;
    let token = first_turn(provider, "i").await;
    let later = (2..=7).map(|id| event("i", id, scheduled_kind("work")));
    Turn::new(&token).event(started("i")).events(later).metadata(named()).commit(provider).await;
    provider.append_with_execution("i", 2, vec![started_in("i", 2)]).await.expect("an append succeeds");
    let page = async |instance: &str, execution: u64, after: u64, limit: usize| {
        let page = admin(provider).history_page(instance, execution, after, limit).await;
        page.expect("history_page succeeds")
    };
    for limit in [1, 2, 3, 6, 7, 8, 1_000] {
        let mut found = Vec::new();
        for _ in 0..=7 {
            let events = page("i", 1, found.last().copied().unwrap_or(0), limit).await;
            assert!(events.len() <= limit, "a page holds at most {limit} events");
            found.extend(event_ids(&events));
        }
        assert_eq!(found, [1, 2, 3, 4, 5, 6, 7], "pages of {limit}");
    }
    let whole = admin(provider).read_history_with_execution_id("i", 1).await.unwrap();
    assert_eq!(page("i", 1, 0, 100).await, whole, "a page has the events as they are stored");
    assert_eq!(event_ids(&page("i", 2, 0, 100).await), [1], "executions have pages of their own");
    for (instance, execution) in [("i", 3), ("unknown", 1)] {
        assert_eq!(page(instance, execution, 0, 100).await, [], "{instance} has no execution {execution}");
    }
}

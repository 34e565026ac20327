//! Pages, continuations and change feeds, through the SDK.

use azure_data_cosmos::options::{ChangeFeedOptions, ChangeFeedStartFrom, MaxItemCountHint, QueryOptions};
use azure_data_cosmos::{FeedScope, Query};
use futures::StreamExt;
use outlast_cosmos_rig::{Fault, Kind};
use serde_json::{Value, json};

use crate::kit::{Fixture, code};

/// Partitions `P0` to `P11` with three documents each, whose `n` runs over all of them.
async fn fixture() -> Fixture {
    let fixture = Fixture::new().await;
    for n in 0..36 {
        fixture.create(&format!("P{}", n / 3), &format!("x{}", n % 3), json!({ "n": n })).await;
    }
    fixture.rig.take_recorded();
    fixture
}

async fn numbers(fixture: &Fixture, sql: &str, scope: FeedScope, options: Option<QueryOptions>) -> Vec<u64> {
    let items = fixture.container.query_items::<Value>(Query::from(sql), scope, options).await.unwrap();
    items.map(|item| item.unwrap()["n"].as_u64().unwrap()).collect().await
}

#[tokio::test]
async fn the_sdk_merges_an_order_over_all_partitions() {
    let fixture = fixture().await;
    let all = FeedScope::full_container;
    let ordered = numbers(&fixture, "SELECT * FROM c WHERE c.n < 20 ORDER BY c.n", all(), None).await;
    assert_eq!(ordered, (0..20).collect::<Vec<_>>());
    let top = numbers(&fixture, "SELECT TOP 5 * FROM c ORDER BY c.n DESC", all(), None).await;
    assert_eq!(top, [35, 34, 33, 32, 31]);
    let mut filtered = numbers(&fixture, "SELECT * FROM c WHERE c.n >= 30", all(), None).await;
    filtered.sort_unstable();
    assert_eq!(filtered, (30..36).collect::<Vec<_>>());
    let records = fixture.rig.recorded();
    let queries: Vec<_> = records.iter().filter(|record| record.kind == Kind::Query).collect();
    assert!(queries.len() >= 12, "four physical partitions for each query: {}", queries.len());
    assert!(queries.iter().all(|record| record.partition.is_none() && record.status == 200));
}

#[tokio::test]
async fn the_sdk_refuses_counts_over_several_partitions() {
    let fixture = fixture().await;
    let sql = "SELECT VALUE COUNT(1) FROM c";
    let refused =
        match fixture.container.query_items::<u64>(Query::from(sql), FeedScope::full_container(), None).await
        {
            Ok(mut items) => items.next().await.unwrap().err(),
            Err(error) => Some(error),
        };
    assert_eq!(refused.map(|error| code(&error)), Some(400));
    let counted =
        fixture.container.query_items::<u64>(Query::from(sql), FeedScope::partition("P3"), None).await;
    assert_eq!(counted.unwrap().next().await.unwrap().unwrap(), 3);
}

fn pages_of(count: u32) -> QueryOptions {
    QueryOptions::default().with_max_item_count(MaxItemCountHint::Limit(count.try_into().unwrap()))
}

#[tokio::test]
async fn a_query_goes_on_from_a_continuation() {
    let fixture = Fixture::new().await;
    for n in 0..7 {
        fixture.create("p", &format!("a{n}"), json!({ "n": n })).await;
    }
    let sql = "SELECT * FROM c WHERE c.n >= @from ORDER BY c.n";
    let query = || Query::from(sql).with_parameter("@from", 0).unwrap();
    let start = async |options: QueryOptions| {
        let items =
            fixture.container.query_items::<Value>(query(), FeedScope::partition("p"), Some(options)).await;
        items.unwrap().into_pages()
    };
    let mut pages = start(pages_of(3)).await;
    let first = pages.next().await.unwrap().unwrap();
    assert_eq!(first.items().len(), 3);
    let token = pages.to_continuation_token().unwrap();
    let mut rest = start(pages_of(3).with_continuation_token(token)).await;
    let mut numbers = Vec::new();
    while let Some(page) = rest.next().await {
        numbers.push(
            page.unwrap().into_items().iter().map(|item| item["n"].as_u64().unwrap()).collect::<Vec<_>>(),
        );
    }
    assert_eq!(numbers, [vec![3, 4, 5], vec![6]]);
}

#[tokio::test]
async fn pages_stay_stable_while_documents_are_deleted() {
    let fixture = Fixture::new().await;
    for n in 0..9 {
        fixture.create("p", &format!("a{n}"), json!({ "n": n })).await;
    }
    let items = fixture.container.query_items::<Value>(
        "SELECT * FROM c",
        FeedScope::partition("p"),
        Some(pages_of(3)),
    );
    let mut pages = items.await.unwrap().into_pages();
    let mut ids = Vec::new();
    while let Some(page) = pages.next().await {
        for item in page.unwrap().into_items() {
            let id = item["id"].as_str().unwrap().to_string();
            fixture.container.delete_item("p", &id, None).await.unwrap();
            ids.push(id);
        }
    }
    ids.sort();
    assert_eq!(ids, (0..9).map(|n| format!("a{n}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn empty_pages_with_a_continuation_lose_nothing() {
    let fixture = fixture().await;
    let scopes = [
        ("SELECT * FROM c", FeedScope::partition("P4"), 3),
        ("SELECT * FROM c WHERE c.n >= 0", FeedScope::full_container(), 36),
        ("SELECT * FROM c ORDER BY c.n", FeedScope::full_container(), 36),
    ];
    for (sql, scope, expected) in scopes {
        let fault = fixture.rig.fault(Fault::on(Kind::Query).times(3).empty_page());
        let mut found = numbers(&fixture, sql, scope, Some(pages_of(2))).await;
        found.sort_unstable();
        found.dedup();
        assert_eq!((found.len(), fault.struck()), (expected, 3), "{sql}");
        fixture.rig.clear_faults();
    }
    // Single pages are empty too: a client that stops at the first would find nothing.
    fixture.rig.fault(Fault::on(Kind::Query).empty_page());
    let items =
        fixture.container.query_items::<Value>("SELECT * FROM c", FeedScope::partition("P4"), None).await;
    let pages: Vec<usize> =
        items.unwrap().into_pages().map(|page| page.unwrap().items().len()).collect().await;
    assert_eq!(pages, [0, 3]);
}

#[tokio::test]
async fn the_rig_limits_pages_below_the_size_that_the_client_asks_for() {
    let fixture = fixture().await;
    fixture.rig.limit_pages(Some(2));
    let items = fixture.container.query_items::<Value>(
        "SELECT * FROM c",
        FeedScope::partition("P4"),
        Some(pages_of(50)),
    );
    let pages: Vec<usize> =
        items.await.unwrap().into_pages().map(|page| page.unwrap().items().len()).collect().await;
    assert_eq!(pages, [2, 1]);
    fixture.rig.limit_pages(None);
    let items =
        fixture.container.query_items::<Value>("SELECT * FROM c", FeedScope::partition("P4"), None).await;
    let pages: Vec<usize> =
        items.unwrap().into_pages().map(|page| page.unwrap().items().len()).collect().await;
    assert_eq!(pages, [3]);
}

/// The ids in the next page of a change feed.
macro_rules! next_ids {
    ($feed:expr) => {{
        let page = $feed.next().await.unwrap().unwrap();
        let ids = page.items().iter().map(|item| item.current().unwrap()["id"].as_str().unwrap().to_string());
        ids.collect::<Vec<String>>()
    }};
}

#[tokio::test]
async fn a_change_feed_of_a_partition_shows_each_change_once_and_resumes() {
    let fixture = Fixture::new().await;
    fixture.create("~ready", "old", json!({})).await;
    let start = async |options: Option<ChangeFeedOptions>| {
        let scope = FeedScope::partition("~ready");
        fixture.container.query_change_feed::<Value>(scope, ChangeFeedStartFrom::Now, options).await.unwrap()
    };
    let mut feed = start(None).await;
    assert_eq!(next_ids!(feed), [""; 0]);
    fixture.create("~ready", "a", json!({})).await;
    fixture.create("~other", "b", json!({})).await;
    assert_eq!(next_ids!(feed), ["a"]);
    assert_eq!(next_ids!(feed), [""; 0]);
    let token = feed.to_continuation_token().unwrap();
    fixture.create("~ready", "c", json!({})).await;
    fixture.container.delete_item("~ready", "old", None).await.unwrap();
    let mut resumed = start(Some(ChangeFeedOptions::default().with_continuation_token(token))).await;
    assert_eq!(next_ids!(resumed), ["c"], "deletes are not shown");
}

#[tokio::test]
async fn empty_pages_of_a_change_feed_lose_nothing() {
    let fixture = Fixture::new().await;
    let scope = || FeedScope::partition("p");
    fixture.create("p", "a", json!({})).await;
    let fault = fixture.rig.fault(Fault::on(Kind::ChangeFeed).nth(1).empty_page());
    let later = fixture.rig.fault(Fault::on(Kind::ChangeFeed).nth(3).empty_page());
    let feed =
        fixture.container.query_change_feed::<Value>(scope(), ChangeFeedStartFrom::Beginning, None).await;
    let mut feed = feed.unwrap();
    assert_eq!(next_ids!(feed), [""; 0]);
    assert_eq!(next_ids!(feed), ["a"]);
    fixture.create("p", "b", json!({})).await;
    assert_eq!(next_ids!(feed), [""; 0]);
    assert_eq!(next_ids!(feed), ["b"]);
    assert_eq!((fault.struck(), later.struck()), (1, 1));
}

//! Lists of instances: any filter, any page size, any position, on the specification and on the SQLite store.

mod rows;

use crate::bytes::Bytes;
use outlast_provider::{InstanceInfo, InstancePage, InstanceQuery, Provider, ProviderAdmin, ProviderError};
use rows::{BEGAN_AT_MS, NAMES, PARENTS, PREFIXES, STATUSES, Stores, stores};

/// Reads lists page by page. The pages of both stores add up to what the filter admits, and a position that no store
/// gave out is refused or means what it says.
pub fn list_filter_cursor(data: &[u8]) {
    let bytes = &mut Bytes::new(data);
    // Nothing here waits, so that it needs no clock.
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime can be built");
    let Stores { memory, sqlite } = stores();
    runtime.block_on(async {
        let query = query(bytes);
        let wanted = admitted(memory, &query).await;
        let limits: [Option<u32>; 3] = std::array::from_fn(|_| limit(bytes));
        let forged = position(bytes);
        let status = status(bytes);
        for store in [memory as &dyn Provider, sqlite as &dyn Provider] {
            let admin = store.as_management_capability().expect("both stores can be managed");
            assert_eq!(shown(&all_pages(admin, query.clone(), &limits).await), shown(&wanted), "{query:?}");
            let by_status = admin.list_instances_by_status(&status).await.expect("any text may be asked for");
            let of_status = InstanceQuery { status: Some(status.clone()), ..InstanceQuery::default() };
            assert_eq!(by_status, ids(&admitted(memory, &of_status).await), "{status:?}");
        }
        let asked = InstanceQuery { after: Some(forged.clone()), limit: limits[0], ..query };
        let is_known =
            admitted(memory, &InstanceQuery::default()).await.iter().any(|info| info.instance_id == forged);
        jump(memory, &asked, &wanted, is_known).await;
        let number = forged.parse::<i64>().ok().filter(|number| *number > 0);
        let is_position = number.is_some_and(|number| number.to_string() == forged);
        jump(sqlite, &asked, &wanted, is_position).await;
    });
}

fn query(bytes: &mut Bytes<'_>) -> InstanceQuery {
    let time = |bytes: &mut Bytes<'_>| {
        bytes.flag().then(|| match bytes.flag() {
            true => BEGAN_AT_MS + u64::from(bytes.byte()),
            false => bytes.number().cast_unsigned(),
        })
    };
    InstanceQuery {
        status: bytes.flag().then(|| status(bytes)),
        orchestration_name: bytes.flag().then(|| text_or(bytes, &NAMES)),
        id_prefix: bytes.flag().then(|| text_or(bytes, &PREFIXES)),
        parent_instance_id: bytes.flag().then(|| text_or(bytes, &PARENTS)),
        created_from: time(bytes),
        created_before: time(bytes),
        limit: None,
        after: None,
    }
}

fn status(bytes: &mut Bytes<'_>) -> String {
    text_or(bytes, &STATUSES)
}

/// Mostly a text that some row has.
fn text_or(bytes: &mut Bytes<'_>, known: &[&str]) -> String {
    match bytes.below(4) {
        0 => bytes.text(12),
        _ => bytes.pick(known).to_string(),
    }
}

fn limit(bytes: &mut Bytes<'_>) -> Option<u32> {
    bytes.flag().then(|| match bytes.byte() {
        byte @ 0..=199 => u32::from(byte),
        byte => u32::MAX - u32::from(byte),
    })
}

fn position(bytes: &mut Bytes<'_>) -> String {
    match bytes.below(4) {
        0 => bytes.number().to_string(),
        1 => format!("{}{}", bytes.pick(&["+", "0", " ", "-", "0x"]), bytes.byte()),
        2 => bytes.pick(&PARENTS).to_string(),
        _ => bytes.text(24),
    }
}

/// What the specification has and the filter admits, by its own definition.
async fn admitted(memory: &impl Provider, query: &InstanceQuery) -> Vec<InstanceInfo> {
    let admin = memory.as_management_capability().expect("it can be managed");
    let all = InstanceQuery { limit: Some(1_000), ..InstanceQuery::default() };
    let InstancePage { mut instances, next } =
        admin.query_instances(&all).await.expect("nothing is wrong with it");
    assert!(next.is_none() && instances.len() == rows::COUNT);
    instances.retain(|info| query.matches(info));
    instances
}

/// All pages, of sizes that change from page to page.
async fn all_pages(
    admin: &dyn ProviderAdmin,
    mut query: InstanceQuery,
    limits: &[Option<u32>],
) -> Vec<InstanceInfo> {
    let mut read = Vec::new();
    for limit in limits.iter().cycle().take(rows::COUNT + 1) {
        query.limit = *limit;
        let page = admin.query_instances(&query).await.expect("the store gave the position out");
        let is_full = page.instances.len() == query.page_size();
        assert!(page.instances.len() <= query.page_size() && (is_full || page.next.is_none()), "{query:?}");
        read.extend(page.instances);
        query.after = page.next;
        if query.after.is_none() {
            return read;
        }
    }
    panic!("there are more pages than rows: {query:?}");
}

/// A position from somewhere else: what comes is a part of the list, or a refusal that trying again does not change.
async fn jump(store: &impl Provider, query: &InstanceQuery, wanted: &[InstanceInfo], is_position: bool) {
    let admin = store.as_management_capability().expect("both stores can be managed");
    let answer: Result<InstancePage, ProviderError> = admin.query_instances(query).await;
    match answer {
        Ok(page) => {
            let part = ids(&page.instances);
            assert!(is_position, "{query:?} was answered with {part:?}");
            let all = ids(wanted);
            assert!(part.is_empty() || all.windows(part.len()).any(|window| window == part), "{part:?}");
        }
        Err(error) => assert!(!error.retryable && !error.message.is_empty(), "{error:?}"),
    }
}

fn ids(instances: &[InstanceInfo]) -> Vec<String> {
    instances.iter().map(|info| info.instance_id.clone()).collect()
}

/// `InstanceInfo` has no equality.
fn shown(instances: &[InstanceInfo]) -> Vec<String> {
    instances.iter().map(|info| format!("{info:?}")).collect()
}

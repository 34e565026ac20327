//! Lists of instances with any filter, page size and position, on the memory store and on the SQLite store.

mod rows;

use crate::choices::Choices;
use outlast_provider::{InstanceInfo, InstancePage, InstanceQuery, Provider, ProviderAdmin, ProviderError};
use rows::{FIRST_MS, NAMES, PARENTS, PREFIXES, STATUSES, Stores, stores};

/// Reads lists page by page. The pages of both stores together must contain exactly the instances that the filter
/// matches, and a position that no store returned must be refused or be a valid position.
pub fn list_filter_cursor(data: &[u8]) {
    let choices = &mut Choices::new(data);
    // No call here waits, so the runtime needs no clock.
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime can be built");
    let Stores { memory, sqlite } = stores();
    runtime.block_on(async {
        let query = query(choices);
        let expected = matching(memory, &query).await;
        let limits: [Option<u32>; 3] = std::array::from_fn(|_| limit(choices));
        let forged = position(choices);
        let status = status(choices);
        for store in [memory as &dyn Provider, sqlite as &dyn Provider] {
            let admin = store.as_management_capability().expect("both stores have management");
            assert_eq!(shown(&all_pages(admin, query.clone(), &limits).await), shown(&expected), "{query:?}");
            let by_status = admin.list_instances_by_status(&status).await.expect("any text may be asked for");
            let of_status = InstanceQuery { status: Some(status.clone()), ..InstanceQuery::default() };
            assert_eq!(by_status, ids(&matching(memory, &of_status).await), "{status:?}");
        }
        let asked = InstanceQuery { after: Some(forged.clone()), limit: limits[0], ..query };
        let is_known =
            matching(memory, &InstanceQuery::default()).await.iter().any(|info| info.instance_id == forged);
        read_from_forged_position(memory, &asked, &expected, is_known).await;
        let number = forged.parse::<i64>().ok().filter(|number| *number > 0);
        let is_position = number.is_some_and(|number| number.to_string() == forged);
        read_from_forged_position(sqlite, &asked, &expected, is_position).await;
    });
}

fn query(choices: &mut Choices<'_>) -> InstanceQuery {
    let time = |choices: &mut Choices<'_>| {
        choices.flag().then(|| match choices.flag() {
            true => FIRST_MS + u64::from(choices.byte()),
            false => choices.number().cast_unsigned(),
        })
    };
    InstanceQuery {
        status: choices.flag().then(|| status(choices)),
        orchestration_name: choices.flag().then(|| text_or(choices, &NAMES)),
        id_prefix: choices.flag().then(|| text_or(choices, &PREFIXES)),
        parent_instance_id: choices.flag().then(|| text_or(choices, &PARENTS)),
        created_from: time(choices),
        created_before: time(choices),
        limit: None,
        after: None,
    }
}

fn status(choices: &mut Choices<'_>) -> String {
    text_or(choices, &STATUSES)
}

/// A text, mostly one that some row has.
fn text_or(choices: &mut Choices<'_>, known: &[&str]) -> String {
    match choices.below(4) {
        0 => choices.text(12),
        _ => choices.pick(known).to_string(),
    }
}

fn limit(choices: &mut Choices<'_>) -> Option<u32> {
    choices.flag().then(|| match choices.byte() {
        byte @ 0..=199 => u32::from(byte),
        byte => u32::MAX - u32::from(byte),
    })
}

fn position(choices: &mut Choices<'_>) -> String {
    match choices.below(4) {
        0 => choices.number().to_string(),
        1 => format!("{}{}", choices.pick(&["+", "0", " ", "-", "0x"]), choices.byte()),
        2 => choices.pick(&PARENTS).to_string(),
        _ => choices.text(24),
    }
}

/// The instances of the memory store that the filter matches.
async fn matching(memory: &impl Provider, query: &InstanceQuery) -> Vec<InstanceInfo> {
    let admin = memory.as_management_capability().expect("the memory store has management");
    let all = InstanceQuery { limit: Some(1_000), ..InstanceQuery::default() };
    let InstancePage { mut instances, next } =
        admin.query_instances(&all).await.expect("a valid query succeeds");
    assert!(next.is_none() && instances.len() == rows::COUNT);
    instances.retain(|info| query.matches(info));
    instances
}

/// Reads all pages, with a different size for each page.
async fn all_pages(
    admin: &dyn ProviderAdmin,
    mut query: InstanceQuery,
    limits: &[Option<u32>],
) -> Vec<InstanceInfo> {
    let mut read = Vec::new();
    for limit in limits.iter().cycle().take(rows::COUNT + 1) {
        query.limit = *limit;
        let page = admin.query_instances(&query).await.expect("the store returned this position");
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

/// Reads from a position that no store returned. The answer must be a part of the list or a permanent error.
async fn read_from_forged_position(
    store: &impl Provider,
    query: &InstanceQuery,
    expected: &[InstanceInfo],
    is_position: bool,
) {
    let admin = store.as_management_capability().expect("both stores have management");
    let answer: Result<InstancePage, ProviderError> = admin.query_instances(query).await;
    match answer {
        Ok(page) => {
            let part = ids(&page.instances);
            assert!(is_position, "{query:?} was answered with {part:?}");
            let all = ids(expected);
            assert!(part.is_empty() || all.windows(part.len()).any(|window| window == part), "{part:?}");
        }
        Err(error) => assert!(!error.retryable && !error.message.is_empty(), "{error:?}"),
    }
}

fn ids(instances: &[InstanceInfo]) -> Vec<String> {
    instances.iter().map(|info| info.instance_id.clone()).collect()
}

/// The instances as text, because `InstanceInfo` has no equality.
fn shown(instances: &[InstanceInfo]) -> Vec<String> {
    instances.iter().map(|info| format!("{info:?}")).collect()
}

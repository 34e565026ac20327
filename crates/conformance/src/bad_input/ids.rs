//! Instance ids: invalid ones are rejected, and no two valid ones are confused.

use crate::ProviderFactory;
use crate::snapshot::snapshot;
use crate::support::*;
use outlast_provider::model::Event;
use outlast_provider::model::limits::{MAX_GENERATED_INSTANCE_ID_BYTES, MAX_INSTANCE_ID_BYTES};
use outlast_provider::{InstanceQuery, Provider, ProviderAdmin, ProviderError, StartPolicy, StartRequest};
use std::collections::BTreeMap;

/// Passes an instance id to every call that stores one, except a completion; `turn` is a live lease.
async fn every_way_in(
    provider: &dyn Provider,
    id: &str,
    turn: &str,
) -> Vec<(&'static str, Result<(), ProviderError>)> {
    let mut tried = Vec::new();
    for message in [
        start_item(id),
        cancel(id),
        raised(id, "event", ""),
        queue_message(id, "q", ""),
        child_completed(id, 2),
    ] {
        tried.push(("enqueue_for_orchestrator", provider.enqueue_for_orchestrator(message, None).await));
    }
    tried.push(("enqueue_for_worker", provider.enqueue_for_worker(activity(id, 1)).await));
    let request = StartRequest {
        start: start_item(id),
        delay: None,
        policy: StartPolicy::UseExisting,
        messages: vec![queue_message(id, "q", "")],
    };
    tried.push(("start_orchestration", provider.start_orchestration(request).await.map(drop)));
    tried.push(("append_with_execution", provider.append_with_execution(id, 1, vec![started(id)]).await));
    tried.push(("a commit's message", Turn::new(turn).message(start_item(id)).try_commit(provider).await));
    tried.push(("a commit's activity", Turn::new(turn).activity(activity(id, 2)).try_commit(provider).await));
    tried
}

/// Every kind of bad id.
fn bad_ids() -> Vec<String> {
    let bad = ["", "\0", "a\0b", "tab\tbed", "line\nbreak", "\u{7f}", "\u{85}"];
    let too_long = [MAX_INSTANCE_ID_BYTES + 1, 1 << 20].map(|bytes| "x".repeat(bytes));
    bad.map(str::to_string).into_iter().chain(too_long).collect()
}

/// An id for messages.
fn shown(id: &str) -> String {
    format!("'{}'", id.escape_debug().take(20).collect::<String>())
}

fn assert_refused(result: Result<(), ProviderError>, what: &str) {
    let message = permanent(result, what).message.to_lowercase();
    assert!(message.contains("instance id"), "{what}: {message:.200}");
    assert!(message.len() < 1_000, "{what}: a message of {} bytes", message.len());
}

/// An id that is empty, too long or holds a control character is a permanent error of every call, whose message names the mistake.
pub async fn bad_instance_ids_are_refused(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "host").await;
    let turn = next_turn(provider, "host").await;
    let untouched = snapshot(provider, &["host"]).await;
    for id in &bad_ids() {
        for (way, result) in every_way_in(provider, id, &turn).await {
            assert_refused(result, &format!("{} in {way}", shown(id)));
        }
        assert_eq!(snapshot(provider, &["host"]).await, untouched, "after {}", shown(id));
    }
    Turn::new(&turn).event(event("host", 2, scheduled_kind("Activity"))).commit(provider).await;
}

/// A completion for an invalid id is rejected too, and does not change the lease of the activity.
pub async fn a_completion_for_a_bad_instance_id_is_refused(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "host").await;
    enqueue_activity(provider, activity("host", 1)).await;
    let (_, work, _) = must_fetch_activity(provider, LONG).await;
    let untouched = snapshot(provider, &["host"]).await;
    for id in &bad_ids() {
        let completion = provider.ack_work_item(&work, Some(completed(id, 1))).await;
        assert_refused(completion, &format!("a completion for {}", shown(id)));
        assert_eq!(snapshot(provider, &["host"]).await, untouched, "after {}", shown(id));
    }
    provider.ack_work_item(&work, None).await.expect("the lease is live");
}

/// Ids that the runtime generates for children nest those of their ancestors, and may be longer.
pub async fn generated_ids_may_be_longer(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let prefix = "root::sub::2";
    let longest = format!("{prefix}{}", "x".repeat(MAX_GENERATED_INSTANCE_ID_BYTES - prefix.len()));
    create_instance(provider, &longest).await;
    assert_eq!(provider.read(&longest).await.unwrap().len(), 1);
    operator(provider).sees_instances(&[&longest]).await;
    let error = provider.enqueue_for_orchestrator(start_item(&format!("{longest}x")), None).await;
    permanent(error, "a generated id beyond its limit");
}

/// Pairs of similar ids. The first of each pair is deleted, and the second must not change.
fn pairs() -> Vec<[String; 2]> {
    let crabs = "🦀".repeat(MAX_INSTANCE_ID_BYTES / "🦀".len());
    let mut pairs: Vec<[String; 2]> = [
        ["a_b", "axb"],
        ["a%", "ab"],
        ["%", "_"],
        ["PLAIN", "plain"],
        ["trailing ", "trailing"],
        [" leading", "leading"],
        ["a::b", "a:b"],
        ["a", "a::sub::1"],
        ["'; DROP TABLE x; --", "x"],
        ["it''s", "it's"],
        ["\"quoted\"", "quoted"],
        ["back\\slash", "back\\\\slash"],
        ["/a/../b", "/b"],
        ["é", "e\u{301}"],
        ["日本", "日本語"],
        ["{\"json\":1}", "null"],
        ["0", "00"],
        ["?1", "$1"],
        ["*", "a*"],
        ["\u{202e}rtl", "\u{feff}bom"],
    ]
    .map(|pair| pair.map(str::to_string))
    .to_vec();
    pairs.push([crabs, "x".repeat(MAX_INSTANCE_ID_BYTES)]);
    pairs
}

/// The events of a test instance.
fn furniture(id: &str) -> Vec<Event> {
    let value = value_kind(id, &format!("value of {id}"), 1);
    let status = custom_status_kind(Some(&format!("status of {id}")));
    // Stamped alike, so that the same call makes the same events.
    [started_kind(), value, status]
        .into_iter()
        .zip(1..)
        .map(|(kind, n)| Event::at(7, n, id, 1, None, kind))
        .collect()
}

/// Checks all data of a test instance.
async fn assert_furnished(provider: &dyn Provider, id: &str) {
    assert_eq!(provider.read(id).await.unwrap(), furniture(id), "history of '{id}'");
    let values = BTreeMap::from([(id.to_string(), format!("value of {id}"))]);
    let found: BTreeMap<_, _> = provider.get_kv_all_values(id).await.unwrap().into_iter().collect();
    assert_eq!(found, values, "values of '{id}'");
    let status = (Some(format!("status of {id}")), 1);
    assert_eq!(provider.get_custom_status(id, 0).await.unwrap(), Some(status));
    assert_eq!(
        provider.get_instance_stats(id).await.unwrap().map(|stats| stats.history_event_count),
        Some(3)
    );
    assert_eq!(
        provider.read_outcome(id).await.unwrap().map(|outcome| outcome.status).as_deref(),
        Some("Running")
    );
    if let Some(admin) = provider.as_management_capability() {
        assert_eq!(admin.get_instance_info(id).await.unwrap().instance_id, id);
        let query =
            InstanceQuery { id_prefix: Some(id.to_string()), limit: Some(1_000), ..InstanceQuery::default() };
        let matching = admin.query_instances(&query).await.unwrap().instances;
        assert!(matching.iter().any(|info| info.instance_id == id), "'{id}' is found by its own id");
        assert!(matching.iter().all(|info| info.instance_id.starts_with(id)), "and nothing else is");
    }
}

/// Deletes the first of each pair, with its message and the activity that it has left.
async fn delete_the_first_ones(provider: &dyn Provider, admin: &dyn ProviderAdmin, pairs: &[[String; 2]]) {
    for [gone, stays] in pairs {
        let deleted = admin.delete_instance(gone, true).await.expect("force deletes");
        assert_eq!(
            (deleted.instances_deleted, deleted.events_deleted, deleted.queue_messages_deleted),
            (1, 3, 2),
            "'{gone}' had three events, a message and an activity"
        );
        assert_eq!(provider.read(gone).await.unwrap(), []);
        assert!(provider.get_kv_all_values(gone).await.unwrap().is_empty(), "'{gone}' has no values");
        operator(provider).sees_no_instance(gone).await;
        assert_furnished(provider, stays).await;
    }
}

/// Ids of any other text are kept exactly, and no call for one id touches another.
pub async fn unusual_instance_ids_are_kept_apart(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let pairs = pairs();
    let all: Vec<&str> = pairs.iter().flatten().map(String::as_str).collect();
    for id in &all {
        enqueue(provider, start_item(id)).await;
        let (item, token, _) = must_fetch(provider, LONG).await;
        assert_eq!((item.instance.as_str(), item.messages), (*id, vec![start_item(id)]));
        let turn = Turn::new(&token).events(furniture(id)).metadata(named());
        turn.activity(activity(id, 2)).activity(activity(id, 3)).commit(provider).await;
    }
    operator(provider).sees_instances(&all).await;
    for id in &all {
        assert_furnished(provider, id).await;
    }

    create_instance(provider, "host").await;
    let token = next_turn(provider, "host").await;
    let turn = pairs.iter().fold(Turn::new(&token), |turn, [gone, _]| turn.cancels(scheduled(gone, 3)));
    turn.commit(provider).await;
    for id in &all {
        enqueue(provider, raised(id, "poke", id)).await;
    }
    let deletes = provider.as_management_capability();
    if let Some(admin) = deletes {
        delete_the_first_ones(provider, admin, &pairs).await;
    }
    for (id, cancelled) in pairs.iter().flat_map(|[first, second]| [(first, true), (second, false)]) {
        if cancelled && deletes.is_some() {
            continue;
        }
        assert_furnished(provider, id).await;
        let (item, _, _) = must_fetch(provider, LONG).await;
        assert_eq!((&item.instance, item.messages), (id, vec![raised(id, "poke", id)]));
        assert_eq!(must_fetch_activity(provider, LONG).await.0, activity(id, 2));
        if !cancelled {
            assert_eq!(must_fetch_activity(provider, LONG).await.0, activity(id, 3));
        }
    }
    assert!(fetch(provider, LONG).await.is_none() && fetch_activity(provider, LONG).await.is_none());
}

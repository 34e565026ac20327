//! Ids, texts and numbers that callers should not send, or may send though few do.

use crate::ProviderFactory;
use crate::deletion::ended;
use crate::snapshot::snapshot;
use crate::support::*;
use outlast_provider::model::limits::{MAX_GENERATED_INSTANCE_ID_BYTES, MAX_INSTANCE_ID_BYTES};
use outlast_provider::model::{Event, EventKind};
use outlast_provider::{
    InstanceFilter, InstanceQuery, Provider, ProviderError, PruneOptions, StartPolicy, StartRequest,
    TagFilter, WorkItem, WorkRequest,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

fn child_completed(parent: &str) -> WorkItem {
    WorkItem::SubOrchCompleted {
        parent_instance: parent.to_string(),
        parent_execution_id: 1,
        parent_id: 2,
        result: String::new(),
    }
}

/// Tries to bring an instance id into the store, by every way there is, under leases on a turn and an activity.
async fn every_way_in(
    provider: &dyn Provider,
    id: &str,
    turn: &str,
    work: &str,
) -> Vec<(&'static str, Result<(), ProviderError>)> {
    let mut tried = Vec::new();
    for message in
        [start_item(id), cancel(id), raised(id, "event", ""), queue_message(id, "q", ""), child_completed(id)]
    {
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
    tried.push(("a completion", provider.ack_work_item(work, Some(completed(id, 1))).await));
    tried
}

/// An id that is empty, too long or holds a control character is refused for good on every way in, by a message that
/// says what is wrong.
pub async fn bad_instance_ids_are_refused(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "host").await;
    enqueue_work(provider, activity("host", 1)).await;
    let (_, work, _) = must_fetch_work(provider, LONG).await;
    let turn = next_turn(provider, "host").await;
    let untouched = snapshot(provider, &[]).await;
    let too_long = "x".repeat(MAX_INSTANCE_ID_BYTES + 1);
    let far_too_long = "x".repeat(1 << 20);
    let ids = ["", "\0", "a\0b", "tab\tbed", "line\nbreak", "\u{7f}", "\u{85}", &too_long, &far_too_long];
    for id in ids {
        let shown: String = id.escape_debug().take(20).collect();
        for (way, result) in every_way_in(provider, id, &turn, &work).await {
            let error = permanent(result, &format!("'{shown}' in {way}"));
            let message = error.message.to_lowercase();
            assert!(message.contains("instance id"), "'{shown}' in {way}: {message:.200}");
            assert!(message.len() < 1_000, "'{shown}' in {way}: a message of {} bytes", message.len());
        }
        assert_eq!(snapshot(provider, &[]).await, untouched, "after '{shown}'");
    }
    Turn::new(&turn).event(event("host", 2, scheduled_kind("Activity"))).commit(provider).await;
    provider.ack_work_item(&work, None).await.expect("the lease is live");
}

/// Ids that the runtime generates for children nest those of their ancestors, and may be longer.
pub async fn generated_ids_may_be_longer(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let prefix = "root::sub::2";
    let longest = format!("{prefix}{}", "x".repeat(MAX_GENERATED_INSTANCE_ID_BYTES - prefix.len()));
    create_instance(provider, &longest).await;
    assert_eq!(provider.read(&longest).await.unwrap().len(), 1);
    assert_eq!(admin(provider).list_instances().await.unwrap(), [longest.clone()]);
    let error = provider.enqueue_for_orchestrator(start_item(&format!("{longest}x")), None).await;
    permanent(error, "a generated id beyond its limit");
}

/// Ids that are easily mistaken for each other. The first of each pair is deleted, the second must not notice.
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

/// What a furnished instance's history holds.
fn furniture(id: &str) -> Vec<Event> {
    let value = EventKind::KeyValueSet {
        key: id.to_string(),
        value: format!("value of {id}"),
        last_updated_at_ms: 1,
    };
    let status = EventKind::CustomStatusUpdated { status: Some(format!("status of {id}")) };
    // Stamped alike, so that the same call makes the same events.
    [started_kind(), value, status]
        .into_iter()
        .zip(1..)
        .map(|(kind, n)| Event::at(7, n, id, 1, None, kind))
        .collect()
}

/// Checks all that belongs to a furnished instance.
async fn assert_furnished(provider: &dyn Provider, id: &str) {
    assert_eq!(provider.read(id).await.unwrap(), furniture(id), "history of '{id}'");
    let values = BTreeMap::from([(id.to_string(), format!("value of {id}"))]);
    let found: BTreeMap<_, _> = provider.get_kv_all_values(id).await.unwrap().into_iter().collect();
    assert_eq!(found, values, "values of '{id}'");
    let status = (Some(format!("status of {id}")), 1);
    assert_eq!(provider.get_custom_status(id, 0).await.unwrap(), Some(status));
    assert_eq!(admin(provider).get_instance_info(id).await.unwrap().instance_id, id);
    assert_eq!(
        provider.get_instance_stats(id).await.unwrap().map(|stats| stats.history_event_count),
        Some(3)
    );
    assert_eq!(
        provider.read_outcome(id).await.unwrap().map(|outcome| outcome.status).as_deref(),
        Some("Running")
    );
    let query =
        InstanceQuery { id_prefix: Some(id.to_string()), limit: Some(1_000), ..InstanceQuery::default() };
    let matching = admin(provider).query_instances(&query).await.unwrap().instances;
    assert!(matching.iter().any(|info| info.instance_id == id), "'{id}' is found by its own id");
    assert!(matching.iter().all(|info| info.instance_id.starts_with(id)), "and nothing else is");
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
    let listed: BTreeSet<String> = admin(provider).list_instances().await.unwrap().into_iter().collect();
    assert_eq!(listed, all.iter().map(ToString::to_string).collect());
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
    for [gone, stays] in &pairs {
        let deleted = admin(provider).delete_instance(gone, true).await.expect("force deletes");
        assert_eq!(
            (deleted.instances_deleted, deleted.events_deleted, deleted.queue_messages_deleted),
            (1, 3, 2),
            "'{gone}' had three events, a message and an activity"
        );
        assert!(
            provider.read(gone).await.unwrap().is_empty()
                && provider.get_kv_all_values(gone).await.unwrap().is_empty()
        );
        permanent(admin(provider).get_instance_info(gone).await, "info about a deleted instance");
        assert_furnished(provider, stays).await;
    }
    for [_, id] in &pairs {
        assert_furnished(provider, id).await;
        let (item, _, _) = must_fetch(provider, LONG).await;
        assert_eq!((&item.instance, item.messages), (id, vec![raised(id, "poke", id)]));
        for activity_id in [2, 3] {
            assert_eq!(must_fetch_work(provider, LONG).await.0, activity(id, activity_id));
        }
    }
    assert!(fetch(provider, LONG).await.is_none() && fetch_work(provider, LONG).await.is_none());
}

/// Each queue refuses for good what belongs into the other.
pub async fn each_queue_refuses_what_belongs_into_the_other(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "host").await;
    let untouched = snapshot(provider, &["new"]).await;
    for delay in [None, Some(LONG)] {
        permanent(
            provider.enqueue_for_orchestrator(activity("host", 1), delay).await,
            "an activity for the orchestrator queue",
        );
    }
    let continued = WorkItem::ContinueAsNew {
        instance: "host".to_string(),
        orchestration: "TestOrch".to_string(),
        input: "{}".to_string(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: vec![],
        initial_custom_status: None,
    };
    let messages = [
        start_item("new"),
        continued,
        completed("host", 1),
        timer("host", 1, 0),
        raised("host", "event", ""),
        queue_message("host", "queue", ""),
        cancel("host"),
        child_completed("host"),
    ];
    for message in messages {
        let what = format!("{} for the worker queue", message.kind_name());
        permanent(provider.enqueue_for_worker(message).await, &what);
    }
    assert_eq!(snapshot(provider, &["new"]).await, untouched);
    assert!(fetch(provider, LONG).await.is_none() && fetch_work(provider, LONG).await.is_none());
    enqueue_work(provider, activity("host", 1)).await;
    assert_eq!(must_fetch_work(provider, LONG).await.0, activity("host", 1));
}

/// Events are appended with ids as given, all or none, never with id 0 and never twice, within one call either.
pub async fn bad_event_ids_are_refused(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "strict").await;
    let numbered = |ids: &[u64]| -> Vec<Event> {
        ids.iter().map(|id| event("strict", *id, scheduled_kind("Activity"))).collect()
    };
    let token = next_turn(provider, "strict").await;
    let untouched = snapshot(provider, &[]).await;
    let bad: [&[u64]; 6] = [&[0], &[2, 0], &[0, 2], &[2, 3, 2], &[3, 2, 1], &[1]];
    for ids in bad {
        let what = format!("events {ids:?}");
        permanent(Turn::new(&token).events(numbered(ids)).try_commit(provider).await, &what);
        permanent(provider.append_with_execution("strict", 1, numbered(ids)).await, &what);
        assert_eq!(snapshot(provider, &[]).await, untouched, "after {what}");
    }
    provider.append_with_execution("strict", 1, numbered(&[10, 9])).await.expect("these ids are free");
    Turn::new(&token).events(numbered(&[100, 2])).commit(provider).await;
    let stored: Vec<_> = provider.read("strict").await.unwrap().iter().map(Event::event_id).collect();
    assert_eq!(stored, [1, 2, 9, 10, 100], "ascending by number, not by text");
}

/// Texts of any content and a hundred kilobytes come back exactly, wherever they are stored.
pub async fn texts_come_back_exactly(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let long = "0123456789 Ω\"\\".repeat(8_000);
    let texts = [
        "",
        "\0",
        "a\0b",
        "\u{1}\n\r\t\u{7f}",
        "NOT_JSON{{{",
        "\"}]\\'; --",
        "\u{2028}\u{feff}🦀",
        "null",
        &long,
    ];
    for (n, text) in texts.into_iter().enumerate() {
        let instance = &format!("text-{n}");
        let message = queue_message(instance, text, text);
        enqueue(provider, start_item(instance)).await;
        enqueue(provider, message.clone()).await;
        let (item, token, _) = must_fetch(provider, LONG).await;
        assert!(item.messages == [start_item(instance), message], "text {n} in a message");
        // A key is no longer than an id, a value not longer than its limit.
        let [key, value] = [200, 40_000].map(|most| text.chars().take(most).collect::<String>());
        let kinds = [
            started_kind(),
            EventKind::ActivityScheduled {
                name: text.to_string(),
                input: text.to_string(),
                session_id: Some(text.to_string()),
                tag: Some(text.to_string()),
            },
            EventKind::QueueEventDelivered { name: text.to_string(), data: text.to_string() },
            EventKind::KeyValueSet { key: key.clone(), value: value.clone(), last_updated_at_ms: 5 },
            EventKind::CustomStatusUpdated { status: Some(text.to_string()) },
            EventKind::OrchestrationCompleted { output: text.to_string() },
        ];
        let events: Vec<Event> = (1..).zip(kinds).map(|(id, kind)| event(instance, id, kind)).collect();
        let metadata = ended("Completed", text, None);
        Turn::new(&token).events(events.clone()).metadata(metadata).commit(provider).await;

        assert!(provider.read(instance).await.unwrap() == events, "text {n} in history");
        let found = provider.get_kv_value(instance, &key).await.unwrap();
        assert!(found.as_ref() == Some(&value), "text {n} as key and value");
        let status = provider.get_custom_status(instance, 0).await.unwrap();
        assert!(status == Some((Some(text.to_string()), 1)), "text {n} as custom status");
        let info = admin(provider).get_instance_info(instance).await.unwrap();
        assert!(info.output.as_deref() == Some(text), "text {n} as output");
        let outcome = provider.read_outcome(instance).await.unwrap().and_then(|outcome| outcome.output);
        assert!(outcome.as_deref() == Some(text), "text {n} in the outcome");
        enqueue(provider, raised(instance, "poke", "")).await;
        let (item, _, _) = must_fetch(provider, LONG).await;
        assert!(item.history == events, "text {n} in a fetched history");
        let snapshot = item.kv_snapshot.get(&key).map(|entry| (&entry.value, entry.last_updated_at_ms));
        assert!(snapshot == Some((&value, 5)), "text {n} in a snapshot");
    }
}

/// The largest numbers are numbers: nothing overflows, and nothing comes back as another one.
pub async fn the_largest_numbers_are_no_problem(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "large").await;
    let token = next_turn(provider, "large").await;
    let beyond_i32 = (1 << 33) + 1;
    let mut stamped = event("large", beyond_i32, EventKind::TimerCreated { fire_at_ms: u64::MAX });
    stamped.timestamp_ms = u64::MAX;
    let timer_of = timer("large", u64::MAX, u64::MAX);
    let work = activity("large", u64::MAX);
    let turn = Turn::new(&token).event(stamped.clone()).message(timer_of).activity(work.clone());
    turn.activity(activity("large", 1)).commit(provider).await;
    assert_eq!(provider.read("large").await.unwrap()[1..], [stamped]);
    assert!(fetch(provider, LONG).await.is_none(), "the timer is due at the end of time");
    let (item, token, _) = must_fetch_work(provider, LONG).await;
    assert_eq!(item, work);
    provider.abandon_work_item(&token, None, false).await.unwrap();

    let turn_token = next_turn(provider, "large").await;
    Turn::new(&turn_token).cancels(scheduled("large", u64::MAX)).commit(provider).await;
    let batch = WorkRequest {
        max_items: usize::MAX,
        lock_timeout: Duration::MAX,
        poll_timeout: NO_WAIT,
        session: None,
        tag_filter: &TagFilter::Any,
    };
    let left: Vec<_> =
        provider.fetch_work_items(batch).await.unwrap().into_iter().map(|work| work.item).collect();
    assert_eq!(left, [activity("large", 1)], "exactly the large one was cancelled");

    assert_eq!(provider.get_custom_status("large", u64::MAX).await.unwrap(), None);
    assert_eq!(provider.read_with_execution("large", u64::MAX).await.unwrap(), []);
    permanent(admin(provider).get_execution_info("large", u64::MAX).await, "an unknown execution");
    assert_eq!(admin(provider).list_dead_letters(usize::MAX).await.unwrap(), []);
    let all = InstanceQuery {
        limit: Some(u32::MAX),
        created_before: Some(u64::MAX),
        created_from: Some(0),
        ..InstanceQuery::default()
    };
    assert_eq!(admin(provider).query_instances(&all).await.unwrap().instances.len(), 1);
    let none = InstanceQuery { created_from: Some(u64::MAX), ..InstanceQuery::default() };
    assert_eq!(admin(provider).query_instances(&none).await.unwrap().instances.len(), 0);
    let filter =
        InstanceFilter { completed_before: Some(u64::MAX), limit: Some(u32::MAX), instance_ids: None };
    assert_eq!(admin(provider).delete_instance_bulk(filter.clone()).await.unwrap().instances_deleted, 0);
    let options = PruneOptions { keep_last: Some(u32::MAX), completed_before: Some(u64::MAX) };
    assert_eq!(
        admin(provider).prune_executions("large", options.clone()).await.unwrap().executions_deleted,
        0
    );
    create_completed(provider, "done", "out").await;
    let pruned = admin(provider).prune_executions_bulk(filter.clone(), options).await.unwrap();
    assert_eq!(pruned.instances_processed, 1, "one current execution has ended");
    let none = InstanceFilter { limit: Some(0), ..filter.clone() };
    assert_eq!(
        admin(provider).delete_instance_bulk(none).await.unwrap().instances_deleted,
        0,
        "at most none"
    );
    assert_eq!(admin(provider).delete_instance_bulk(filter).await.unwrap().instances_deleted, 1);
}

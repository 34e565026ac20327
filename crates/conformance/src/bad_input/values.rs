//! Message kinds, event ids, texts and numbers.

use crate::ProviderFactory;
use crate::snapshot::snapshot;
use crate::support::*;
use outlast_provider::model::{Event, EventKind};
use outlast_provider::{
    InstanceFilter, InstanceQuery, Provider, ProviderAdmin, PruneOptions, TagFilter, WorkRequest,
};
use std::time::Duration;

/// Each queue rejects items of the other queue with a permanent error.
pub async fn each_queue_refuses_items_of_the_other(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "host").await;
    let untouched = snapshot(provider, &["host", "new"]).await;
    for delay in [None, Some(LONG)] {
        permanent(
            provider.enqueue_for_orchestrator(activity("host", 1), delay).await,
            "an activity for the orchestrator queue",
        );
    }
    let messages = [
        start_item("new"),
        continue_item("host"),
        completed("host", 1),
        timer("host", 1, 0),
        raised("host", "event", ""),
        queue_message("host", "queue", ""),
        cancel("host"),
        child_completed("host", 2),
    ];
    for message in messages {
        let what = format!("{} for the worker queue", message.kind_name());
        permanent(provider.enqueue_for_worker(message).await, &what);
    }
    assert_eq!(snapshot(provider, &["host", "new"]).await, untouched);
    assert!(fetch(provider, LONG).await.is_none() && fetch_activity(provider, LONG).await.is_none());
    enqueue_activity(provider, activity("host", 1)).await;
    assert_eq!(must_fetch_activity(provider, LONG).await.0, activity("host", 1));
}

/// Events are appended with ids as given, all or none, never with id 0 and never twice, within one call either.
pub async fn bad_event_ids_are_refused(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "strict").await;
    let numbered = |ids: &[u64]| -> Vec<Event> {
        ids.iter().map(|id| event("strict", *id, scheduled_kind("Activity"))).collect()
    };
    let token = next_turn(provider, "strict").await;
    let untouched = snapshot(provider, &["strict"]).await;
    let bad: [&[u64]; 6] = [&[0], &[2, 0], &[0, 2], &[2, 3, 2], &[3, 2, 1], &[1]];
    for ids in bad {
        let what = format!("events {ids:?}");
        permanent(Turn::new(&token).events(numbered(ids)).try_commit(provider).await, &what);
        permanent(provider.append_with_execution("strict", 1, numbered(ids)).await, &what);
        assert_eq!(snapshot(provider, &["strict"]).await, untouched, "after {what}");
    }
    provider.append_with_execution("strict", 1, numbered(&[10, 9])).await.expect("these ids are free");
    Turn::new(&token).events(numbered(&[100, 2])).commit(provider).await;
    let stored = provider.read("strict").await.unwrap();
    assert_eq!(event_ids(&stored), [1, 2, 9, 10, 100], "ascending by number, not by text");
}

/// Texts of any content and a hundred kilobytes are read back exactly from every place of a store.
pub async fn texts_are_read_back_exactly(factory: &dyn ProviderFactory) {
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
            value_kind(&key, &value, 5),
            custom_status_kind(Some(text)),
            completed_kind(text),
        ];
        let events: Vec<Event> = (1..).zip(kinds).map(|(id, kind)| event(instance, id, kind)).collect();
        let metadata = ended("Completed", text, None);
        Turn::new(&token).events(events.clone()).metadata(metadata).commit(provider).await;

        assert!(provider.read(instance).await.unwrap() == events, "text {n} in history");
        let found = provider.get_kv_value(instance, &key).await.unwrap();
        assert!(found.as_ref() == Some(&value), "text {n} as key and value");
        let status = provider.get_custom_status(instance, 0).await.unwrap();
        assert!(status == Some((Some(text.to_string()), 1)), "text {n} as custom status");
        if let Some(admin) = provider.as_management_capability() {
            let output = admin.get_instance_info(instance).await.unwrap().output;
            assert!(output.as_deref() == Some(text), "text {n} as output");
        }
        let outcome = provider.read_outcome(instance).await.unwrap().and_then(|outcome| outcome.output);
        assert!(outcome.as_deref() == Some(text), "text {n} in the outcome");
        poke(provider, instance).await;
        let (item, _, _) = must_fetch(provider, LONG).await;
        assert!(item.history == events, "text {n} in a fetched history");
        let snapshot = item.kv_snapshot.get(&key).map(|entry| (&entry.value, entry.last_updated_at_ms));
        assert!(snapshot == Some((&value, 5)), "text {n} in a snapshot");
    }
}

/// The largest numbers are stored without overflow and read back unchanged.
pub async fn the_largest_numbers_are_read_back_unchanged(factory: &dyn ProviderFactory) {
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
    let (item, token, _) = must_fetch_activity(provider, LONG).await;
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
    if let Some(admin) = provider.as_management_capability() {
        largest_numbers_for_management(provider, admin).await;
    }
}

/// The same for management calls; instance `large` is running.
async fn largest_numbers_for_management(provider: &dyn Provider, admin: &dyn ProviderAdmin) {
    permanent(admin.get_execution_info("large", u64::MAX).await, "an unknown execution");
    assert_eq!(admin.list_dead_letters(usize::MAX).await.unwrap(), []);
    let all = InstanceQuery {
        limit: Some(u32::MAX),
        created_before: Some(u64::MAX),
        created_from: Some(0),
        ..InstanceQuery::default()
    };
    assert_eq!(admin.query_instances(&all).await.unwrap().instances.len(), 1);
    let none = InstanceQuery { created_from: Some(u64::MAX), ..InstanceQuery::default() };
    assert_eq!(admin.query_instances(&none).await.unwrap().instances.len(), 0);
    let filter =
        InstanceFilter { completed_before: Some(u64::MAX), limit: Some(u32::MAX), instance_ids: None };
    assert_eq!(admin.delete_instance_bulk(filter.clone()).await.unwrap().instances_deleted, 0);
    let options = PruneOptions { keep_last: Some(u32::MAX), completed_before: Some(u64::MAX) };
    assert_eq!(admin.prune_executions("large", options.clone()).await.unwrap().executions_deleted, 0);
    create_completed(provider, "done", "out").await;
    let pruned = admin.prune_executions_bulk(filter.clone(), options).await.unwrap();
    assert_eq!(pruned.instances_processed, 1, "one current execution has ended");
    let none = InstanceFilter { limit: Some(0), ..filter.clone() };
    assert_eq!(admin.delete_instance_bulk(none).await.unwrap().instances_deleted, 0, "at most none");
    assert_eq!(admin.delete_instance_bulk(filter).await.unwrap().instances_deleted, 1);
}

//! Tests of the exact millisecond at which a lease, delay or session ends, on the memory store. Validations cannot test it, because
//! stores may have their own clock.

use crate::factory::MemoryFactory;
use outlast_conformance::ProviderFactory;
use outlast_memory::{Defect, Rules};
use outlast_provider::model::{Event, EventKind};
use outlast_provider::{Provider, SessionFetchConfig, TagFilter, WorkItem};
use std::sync::Arc;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_millis(1);

async fn store() -> Arc<dyn Provider> {
    MemoryFactory::default().create_provider().await
}

fn session_work(id: u64) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: "i".to_string(),
        execution_id: 1,
        id,
        name: "A".to_string(),
        input: String::new(),
        session_id: Some("s".to_string()),
        tag: None,
    }
}

/// Fetches an activity of the session as this owner, with leases of ten seconds on both.
async fn takes(store: &dyn Provider, owner: &str) -> Option<String> {
    let session = SessionFetchConfig { owner_id: owner.to_string(), lock_timeout: 10 * SECOND };
    let fetched =
        store.fetch_work_item(10 * SECOND, Duration::ZERO, Some(&session), &TagFilter::DefaultOnly).await;
    fetched.unwrap().map(|(_, token, _)| token)
}

#[tokio::test(start_paused = true)]
async fn a_session_is_renewed_until_it_ends() {
    for (waited, renewed) in [(10 * SECOND - MOMENT, 1), (10 * SECOND, 0)] {
        let store = store().await;
        store.enqueue_for_worker(session_work(1)).await.unwrap();
        assert!(takes(&*store, "o").await.is_some());
        tokio::time::advance(waited).await;
        assert_eq!(
            store.renew_session_lock(&["o"], SECOND, 60 * SECOND).await.unwrap(),
            renewed,
            "{waited:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_expired_session_can_be_taken_by_another_owner() {
    for (waited, is_taken) in [(10 * SECOND - MOMENT, false), (10 * SECOND, true)] {
        let store = store().await;
        store.enqueue_for_worker(session_work(1)).await.unwrap();
        store.enqueue_for_worker(session_work(2)).await.unwrap();
        assert!(takes(&*store, "o").await.is_some());
        tokio::time::advance(waited).await;
        assert_eq!(takes(&*store, "p").await.is_some(), is_taken, "{waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_activity_is_settled_until_its_lease_ends() {
    for (waited, is_held) in [(10 * SECOND - MOMENT, true), (10 * SECOND, false)] {
        let store = store().await;
        store.enqueue_for_worker(session_work(1)).await.unwrap();
        let token = takes(&*store, "o").await.unwrap();
        tokio::time::advance(waited).await;
        assert_eq!(store.renew_work_item_lock(&token, MOMENT).await.is_ok(), is_held, "{waited:?}");
        let settled = store.ack_work_item(&token, None).await;
        assert_eq!(settled.is_ok(), is_held, "{waited:?}");
        // The token is invalid, and the error names it.
        let error = store.ack_work_item(&token, None).await.unwrap_err();
        assert!(error.message.contains(&token) && !error.is_retryable(), "{error}");
    }
}

/// A session that ends in this millisecond does not cause another fetch.
#[tokio::test(start_paused = true)]
async fn a_fetch_stays_parked_when_a_session_ends() {
    let store = store().await;
    store.enqueue_for_worker(session_work(1)).await.unwrap();
    let token = takes(&*store, "o").await.unwrap();
    store.ack_work_item(&token, None).await.unwrap();
    tokio::time::advance(10 * SECOND).await;
    let fetched = store.fetch_work_item(SECOND, SECOND, None, &TagFilter::DefaultOnly).await;
    assert!(fetched.unwrap().is_none());
}

fn noted(event_id: u64, text: &str) -> Event {
    let status = EventKind::CustomStatusUpdated { status: Some(text.to_string()) };
    Event::with_event_id(event_id, "i", 1, None, status)
}

/// The stored texts after an append of an existing event and a new one.
async fn after_a_second_time(rules: Rules) -> Result<Vec<String>, String> {
    let store = MemoryFactory::with_rules(rules).create_provider().await;
    store.append_with_execution("i", 1, vec![noted(1, "first")]).await.unwrap();
    let again = store.append_with_execution("i", 1, vec![noted(1, "second"), noted(2, "new")]).await;
    again.map_err(|error| error.message)?;
    let text = |event: Event| match event.kind {
        EventKind::CustomStatusUpdated { status } => status.unwrap(),
        other => panic!("{other:?}"),
    };
    Ok(store.read("i").await.unwrap().into_iter().map(text).collect())
}

/// Each defect violates only its own rule.
#[tokio::test(start_paused = true)]
async fn a_repeated_event_id_is_rejected_with_its_id() {
    let refused = after_a_second_time(Rules::default()).await.unwrap_err();
    assert_eq!(refused, "event 1 of 'i', execution 1, exists already");
    for (defect, stored) in [
        (Defect::DuplicateEventIgnored, ["first", "new"]),
        (Defect::DuplicateEventOverwrites, ["second", "new"]),
    ] {
        assert_eq!(after_a_second_time(Rules::with(defect)).await.unwrap(), stored, "{defect:?}");
    }
}

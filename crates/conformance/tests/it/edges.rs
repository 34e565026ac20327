//! The very millisecond at which something ends. Validations must hold for stores with a clock of their own, and cannot
//! ask for it; the specification answers here.

use crate::factory::MemoryFactory;
use outlast_conformance::ProviderFactory;
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

/// Takes work of the session as this owner, under a lease of ten seconds on both.
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
async fn a_session_is_another_owners_when_it_ends() {
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
        // What remains is a token of nobody, and the answer names it.
        let error = store.ack_work_item(&token, None).await.unwrap_err();
        assert!(error.message.contains(&token) && !error.is_retryable(), "{error}");
    }
}

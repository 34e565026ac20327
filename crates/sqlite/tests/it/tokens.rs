//! A token is valid for the row that it names only: its random part is valid for no other row.

use crate::support::*;
use outlast_provider::{Clock, Provider, ProviderError, SessionFetchConfig, TagFilter};
use outlast_sqlite::{SqliteOptions, SqliteProvider};
use std::fmt::Debug;
use std::sync::Arc;

/// The token with another last part, which names the instance of a turn or the row of an activity.
fn naming(token: &str, other: &str) -> String {
    let (rest, _) = token.rsplit_once('.').unwrap();
    format!("{rest}.{other}")
}

#[track_caller]
fn is_refused<T: Debug>(answer: Result<T, ProviderError>) {
    let error = answer.unwrap_err();
    assert!(error.message.contains("Invalid lock token") && !error.is_retryable(), "{error}");
}

#[tokio::test]
async fn a_token_of_a_turn_with_another_instance_is_refused() {
    let store = SqliteProvider::new_in_memory().await.unwrap();
    for instance in ["a", "b"] {
        store.enqueue_for_orchestrator(start(instance), None).await.unwrap();
    }
    let (item, token, _) = turn(&store).await;
    let (_, other, _) = turn(&store).await;
    assert_eq!(item.instance, "a");
    for forged in [naming(&token, "b"), naming(&token, "nobody"), naming(&other, "a")] {
        is_refused(ack(&store, &forged, vec![started("b")], vec![], named()).await);
        is_refused(store.renew_orchestration_item_lock(&forged, LONG).await);
        is_refused(store.abandon_orchestration_item(&forged, None, false).await);
    }
    for (token, instance) in [(&token, "a"), (&other, "b")] {
        ack(&store, token, vec![started(instance)], vec![], named()).await.unwrap();
        assert_eq!(store.read(instance).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_token_of_an_activity_with_another_row_is_refused() {
    let store = SqliteProvider::new_in_memory().await.unwrap();
    for id in [2, 3] {
        store.enqueue_for_worker(activity("a", id)).await.unwrap();
    }
    let (_, token, _) = work(&store).await;
    let (_, other, _) = work(&store).await;
    let row = |token: &str| token.rsplit_once('.').unwrap().1.to_string();
    for forged in [naming(&token, &row(&other)), naming(&token, "99"), naming(&other, &row(&token))] {
        is_refused(store.ack_work_item(&forged, Some(completed("a", 2))).await);
        is_refused(store.renew_work_item_lock(&forged, LONG).await);
        is_refused(store.abandon_work_item(&forged, None, false).await);
    }
    for (token, id) in [(&token, 2), (&other, 3)] {
        store.ack_work_item(token, Some(completed("a", id))).await.unwrap();
    }
}

struct At(u64);

impl Clock for At {
    fn now_ms(&self) -> u64 {
        self.0
    }
}

/// The idle window is longer than the time since the epoch, so the session is inside it.
#[tokio::test]
async fn a_session_is_renewed_if_its_idle_window_begins_before_the_epoch() {
    let (_folder, path) = fresh();
    let store = open_with(&path, SqliteOptions { clock: Arc::new(At(1)), ..SqliteOptions::default() }).await;
    let mut item = activity("a", 2);
    if let outlast_model::WorkItem::ActivityExecute { session_id, .. } = &mut item {
        *session_id = Some("s".to_string());
    }
    store.enqueue_for_worker(item).await.unwrap();
    let session = SessionFetchConfig { owner_id: "o".to_string(), lock_timeout: LONG };
    let fetched = store.fetch_work_item(LONG, NO_WAIT, Some(&session), &TagFilter::DefaultOnly).await;
    assert!(fetched.unwrap().is_some());
    assert_eq!(store.renew_session_lock(&["o"], LONG, LONG).await.unwrap(), 1);
}

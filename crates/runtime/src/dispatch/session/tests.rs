//! The limit of busy sessions, the notification when a session becomes idle, and the renewal of session leases.

use super::*;
use crate::observability::MetricsProvider;
use crate::options::RuntimeOptions;
use crate::registry::{ActivityRegistry, OrchestrationRegistry};
use outlast_memory::MemoryProvider;
use outlast_model::WorkItem;
use outlast_provider::{Clock, Provider, SessionFetchConfig, TagFilter};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);

/// Advances the paused clock of tokio; tasks run when their timers are due.
async fn pass(time: Duration) {
    let _ = tokio::time::timeout(time, std::future::pending::<()>()).await;
}

/// A clock that follows the paused time of tokio.
struct TokioClock(Instant);
impl Clock for TokioClock {
    fn now_ms(&self) -> u64 {
        1_000_000 + u64::try_from(self.0.elapsed().as_millis()).unwrap_or(0)
    }
}

#[tokio::test]
async fn a_session_counts_once_against_the_limit_with_any_number_of_activities() {
    let sessions = Sessions::new(2);
    let first = sessions.enter("a").unwrap();
    assert!(sessions.has_room());
    let second = sessions.enter("b").unwrap();
    assert!(!sessions.has_room());
    assert!(sessions.enter("c").is_none());
    let again = sessions.enter("a").expect("session a is busy already and needs no further place");

    let freed = sessions.freed.notified();
    tokio::pin!(freed);
    assert!(!freed.as_mut().enable());
    drop(first);
    assert!(!freed.as_mut().enable(), "session a is still busy");
    assert!(!sessions.has_room());
    drop(again);
    assert!(freed.as_mut().enable(), "session a is idle");
    assert!(sessions.has_room());

    let freed = sessions.freed.notified();
    tokio::pin!(freed);
    drop(second);
    assert!(!freed.as_mut().enable(), "the limit was not reached before, so there is no notification");
    assert!(sessions.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_first_tick_comes_after_a_whole_interval_and_intervals_are_clamped() {
    let begin = Instant::now();
    ticks(10 * SECOND).tick().await;
    assert_eq!(begin.elapsed(), 10 * SECOND);
    ticks(Duration::ZERO).tick().await;
    assert_eq!(begin.elapsed(), 10 * SECOND + Duration::from_millis(1));
    assert_eq!(ticks(Duration::MAX).period(), 30 * 24 * 60 * 60 * SECOND);
}

fn activity(id: u64) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: "i".into(),
        execution_id: 1,
        id,
        name: "A".into(),
        input: String::new(),
        session_id: Some("s".into()),
        tag: None,
    }
}

async fn fetch(store: &dyn Provider, owner: &str) -> Option<String> {
    let session = SessionFetchConfig { owner_id: owner.to_string(), lock_timeout: 10 * SECOND };
    let tags = TagFilter::DefaultOnly;
    let fetched = store.fetch_work_item(10 * SECOND, Duration::ZERO, Some(&session), &tags).await;
    fetched.unwrap().map(|(_, token, _)| token)
}

/// The runtime renews the session although no activity of it is leased. When the session is idle, another owner can take it.
#[tokio::test(start_paused = true)]
async fn a_session_is_renewed_until_it_is_idle_and_then_removed() {
    for node in [None, Some("node".to_string())] {
        let clock: Arc<dyn Clock> = Arc::new(TokioClock(Instant::now()));
        let store = Arc::new(MemoryProvider::with_clock(Arc::clone(&clock)));
        let options = RuntimeOptions {
            worker_node_id: node,
            worker_concurrency: 3,
            session_lock_timeout: 10 * SECOND,
            session_idle_timeout: 60 * SECOND,
            session_cleanup_interval: 45 * SECOND,
            clock,
            ..RuntimeOptions::default()
        };
        let core = Arc::new(Core::new(
            Arc::clone(&store) as Arc<dyn Provider>,
            ActivityRegistry::builder().build(),
            OrchestrationRegistry::builder().build(),
            options,
            Arc::new(MetricsProvider::default()),
        ));
        store.enqueue_for_worker(activity(2)).await.unwrap();
        let token = fetch(&*store, &core.session_owner(2)).await.expect("the last slot fetches activity 2");
        store.ack_work_item(&token, None).await.unwrap();
        store.enqueue_for_worker(activity(3)).await.unwrap();

        let mut tasks = JoinSet::new();
        tasks.spawn(manage_sessions(Arc::clone(&core)));
        for seconds in [9, 20, 30] {
            pass(seconds * SECOND).await;
            assert_eq!(fetch(&*store, "other").await, None, "the session belongs to the last slot");
        }
        pass(16 * SECOND).await;
        let token = fetch(&*store, "other")
            .await
            .expect("the session was idle for a minute and its lease has expired");
        store.ack_work_item(&token, None).await.unwrap();
        // No runtime renews the session for the other owner; the next cleanup of `manage_sessions` removes it.
        pass(60 * SECOND).await;
        assert_eq!(store.cleanup_orphaned_sessions(SECOND).await.unwrap(), 0);
        tasks.shutdown().await;
    }
}

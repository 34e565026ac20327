//! Who may enter, who is told that there is room, and who keeps a session.

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

/// Lets time pass, by tokio's clock, and everybody do what is due meanwhile.
async fn pass(time: Duration) {
    let _ = tokio::time::timeout(time, std::future::pending::<()>()).await;
}

/// Tokio's time, which a test can stop.
struct Tokio(Instant);
impl Clock for Tokio {
    fn now_ms(&self) -> u64 {
        1_000_000 + u64::try_from(self.0.elapsed().as_millis()).unwrap_or(0)
    }
}

#[tokio::test]
async fn a_session_takes_one_place_however_many_of_its_activities_run() {
    let sessions = Sessions::new(2);
    let first = sessions.enter("a").unwrap();
    assert!(sessions.has_room());
    let second = sessions.enter("b").unwrap();
    assert!(!sessions.has_room());
    assert!(sessions.enter("c").is_none());
    let again = sessions.enter("a").expect("it has its place already");

    let freed = sessions.freed.notified();
    tokio::pin!(freed);
    assert!(!freed.as_mut().enable());
    drop(first);
    assert!(!freed.as_mut().enable(), "it is still busy");
    assert!(!sessions.has_room());
    drop(again);
    assert!(freed.as_mut().enable(), "now there is room");
    assert!(sessions.has_room());

    let freed = sessions.freed.notified();
    tokio::pin!(freed);
    drop(second);
    assert!(!freed.as_mut().enable(), "there was room before: nobody waits for it");
    assert!(sessions.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn ticks_come_after_a_whole_interval_and_within_reason() {
    let begin = Instant::now();
    ticks(10 * SECOND).tick().await;
    assert_eq!(begin.elapsed(), 10 * SECOND);
    ticks(Duration::ZERO).tick().await;
    assert_eq!(begin.elapsed(), 10 * SECOND + Duration::from_millis(1));
    assert_eq!(ticks(Duration::MAX).period(), 30 * 24 * 60 * 60 * SECOND);
}

fn work(id: u64) -> WorkItem {
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

/// A session stays with its owner while it is used, without a lease of its work, and is free when it is idle.
#[tokio::test(start_paused = true)]
async fn a_session_is_renewed_until_it_is_idle_and_then_removed() {
    for node in [None, Some("node".to_string())] {
        let clock: Arc<dyn Clock> = Arc::new(Tokio(Instant::now()));
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
        store.enqueue_for_worker(work(2)).await.unwrap();
        let token = fetch(&*store, &core.session_owner(2)).await.expect("the last slot takes it");
        store.ack_work_item(&token, None).await.unwrap();
        store.enqueue_for_worker(work(3)).await.unwrap();

        let mut tasks = JoinSet::new();
        tasks.spawn(manage_sessions(Arc::clone(&core)));
        for seconds in [9, 20, 30] {
            pass(seconds * SECOND).await;
            assert_eq!(fetch(&*store, "other").await, None, "it is ours");
        }
        pass(16 * SECOND).await;
        let token = fetch(&*store, "other").await.expect("idle for a minute, and its lease is over");
        store.ack_work_item(&token, None).await.unwrap();
        // Nobody renews it for the other one; the next cleaning takes it away, and leaves nothing for us.
        pass(60 * SECOND).await;
        assert_eq!(store.cleanup_orphaned_sessions(SECOND).await.unwrap(), 0);
        tasks.shutdown().await;
    }
}

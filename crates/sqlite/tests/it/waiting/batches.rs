//! Calls that share a transaction.

use super::*;
use crate::factory::raw;
use outlast_model::EventKind;
use outlast_provider::{DispatcherCapabilityFilter, SessionFetchConfig};
use std::future::poll_fn;
use std::task::Poll;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_calls_share_commits() {
    let (_folder, path) = fresh();
    let provider = Arc::new(open(&path).await);
    let before = provider.stats();
    let mut calls = JoinSet::new();
    for n in 0..64 {
        let provider = Arc::clone(&provider);
        calls.spawn(async move {
            provider.enqueue_for_orchestrator(start(&format!("i{n}")), None).await.unwrap()
        });
    }
    calls.join_all().await;
    let after = provider.stats();
    assert_eq!(after.calls - before.calls, 64);
    assert!(after.commits - before.commits <= 16, "{} commits for 64 calls", after.commits - before.commits);
    assert_eq!(count(&path, "SELECT count(*) FROM orchestrator_queue"), 64);
}

/// Runs calls in one transaction: they arrive while another connection holds the lock.
async fn together<T: Send + 'static>(
    provider: &Arc<SqliteProvider>,
    path: &Path,
    calls: Vec<std::pin::Pin<Box<dyn Future<Output = T> + Send>>>,
) -> Vec<T> {
    let lock = raw(path);
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    // The writer takes this call alone and waits for the lock. The test cannot observe the wait and need not: if the writer takes
    // more calls with this one, they share its transaction.
    let own = Arc::clone(provider);
    let first = tokio::spawn(async move { own.enqueue_for_worker(activity("first", 1)).await });
    let submitted: Vec<_> = calls.into_iter().map(tokio::spawn).collect();
    let _ = timeout(Duration::from_millis(50), std::future::pending::<()>()).await;
    assert!(!first.is_finished());
    lock.execute_batch("ROLLBACK").unwrap();
    first.await.unwrap().unwrap();
    let mut answers = Vec::new();
    for call in submitted {
        answers.push(call.await.unwrap());
    }
    answers
}

type Answer = Result<(), outlast_provider::ProviderError>;
type Call = std::pin::Pin<Box<dyn Future<Output = Answer> + Send>>;

/// A commit that passes the fence and fails at its second event, which exists already.
fn bad_ack(provider: &Arc<SqliteProvider>, token: &str) -> Call {
    let (provider, token) = (Arc::clone(provider), token.to_string());
    Box::pin(async move {
        let status = EventKind::CustomStatusUpdated { status: Some("half".to_string()) };
        let events = vec![event("host", 2, status.clone()), event("host", 1, status)];
        ack(&*provider, &token, events, vec![activity("host", 3)], completed_metadata()).await
    })
}

fn enqueue(provider: &Arc<SqliteProvider>, instance: String) -> Call {
    let provider = Arc::clone(provider);
    Box::pin(async move { provider.enqueue_for_orchestrator(start(&instance), None).await })
}

/// A store with a leased turn of an instance.
async fn held(path: &Path) -> (Arc<SqliteProvider>, String) {
    let provider = open_alone(path).await;
    create(&*provider, "host").await;
    provider.enqueue_for_orchestrator(completed("host", 9), None).await.unwrap();
    let token = turn(&*provider).await.1;
    (provider, token)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_call_does_not_fail_its_batch() {
    let (_folder, path) = fresh();
    let (provider, token) = held(&path).await;
    let before = provider.stats();
    let mut calls: Vec<_> = (0..63).map(|n| enqueue(&provider, format!("i{n}"))).collect();
    calls.insert(31, bad_ack(&provider, &token));
    let answers = together(&provider, &path, calls).await;
    for (n, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.is_err(), n == 31, "{answer:?}");
        assert!(answer.err().is_none_or(|error| error.message.contains("event id 1 exists")));
    }
    let after = provider.stats();
    assert_eq!(after.batches_by_savepoints - before.batches_by_savepoints, 1);
    assert!(after.commits - before.commits <= 2, "the calls share a transaction");
    assert_eq!(count(&path, "SELECT count(*) FROM orchestrator_queue WHERE lock_token IS NULL"), 63);
    assert_eq!(
        count(&path, "SELECT count(*) FROM worker_queue"),
        1,
        "only the first call stores an activity"
    );
    assert_eq!(provider.read("host").await.unwrap().len(), 1);
    assert_eq!(provider.get_custom_status("host", 0).await.unwrap(), None);
    ack(&*provider, &token, vec![ended("host", 2)], vec![], completed_metadata()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parked_fetches_are_served_in_a_batch_with_a_failing_call() {
    let (_folder, path) = fresh();
    let (provider, token) = held(&path).await;
    let waiting = [parked_turn(&provider).await, parked_turn(&provider).await];
    let calls = vec![
        enqueue(&provider, "a".to_string()),
        bad_ack(&provider, &token),
        enqueue(&provider, "b".to_string()),
    ];
    let answers = together(&provider, &path, calls).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_err()).count(), 1, "{answers:?}");
    assert_eq!(provider.stats().batches_by_savepoints, 1);
    for waiting in waiting {
        Delays::default().soon("a start beside a failure", waiting).await;
    }
}

/// The value of a future, if it is ready.
async fn now<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
    poll_fn(|cx| match std::pin::Pin::new(&mut *future).poll(cx) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Parks fetches of the owners a, b and a, and commits activities with these sessions. The store searches activities for the
/// first and the third fetch together, before the second fetch takes some. Returns the activity of each fetch.
async fn shared_out(sessions: &[Option<&str>]) -> Vec<Option<u64>> {
    let (_folder, path) = fresh();
    let (provider, token) = held(&path).await;
    let mut fetches = Vec::new();
    for owner in ["a", "b", "a"] {
        let own = Arc::clone(&provider);
        let session = SessionFetchConfig { owner_id: owner.to_string(), lock_timeout: LONG };
        let mut fetch = Box::pin(async move {
            let fetched = own.fetch_work_item(LONG, PATIENCE, Some(&session), &ANY).await.unwrap();
            match fetched.expect("an activity is ready").0 {
                WorkItem::ActivityExecute { id, .. } => id,
                other => panic!("{other:?}"),
            }
        });
        // The fetches reach the writer in the order of their first polls.
        assert_eq!(now(&mut fetch).await, None);
        fetches.push(fetch);
    }
    let item = |(session, id): (&Option<&str>, u64)| match activity("host", id) {
        WorkItem::ActivityExecute { instance, execution_id, id, name, input, tag, .. } => {
            let session_id = session.map(str::to_string);
            WorkItem::ActivityExecute { instance, execution_id, id, name, input, session_id, tag }
        }
        other => other,
    };
    let work = sessions.iter().zip(2..).map(item).collect();
    ack(&*provider, &token, vec![], work, named()).await.unwrap();
    // The store answers parked fetches after the calls of their transaction, and before the calls of the next one.
    for instance in ["x", "y"] {
        provider.enqueue_for_orchestrator(start(instance), None).await.unwrap();
    }
    let mut got = Vec::new();
    for fetch in &mut fetches {
        got.push(now(fetch).await);
    }
    got
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn activities_and_sessions_have_one_owner_if_fetches_share_a_transaction() {
    assert_eq!(shared_out(&[None, None]).await, [Some(2), Some(3), None]);
    assert_eq!(shared_out(&[None, None, None]).await, [Some(2), Some(3), Some(4)]);
    let sessions = [Some("one"), Some("two"), Some("two")];
    assert_eq!(shared_out(&sessions).await, [Some(2), Some(3), None]);
    let sessions = [Some("one"), Some("two"), Some("one")];
    assert_eq!(shared_out(&sessions).await, [Some(2), Some(3), Some(4)]);
}

/// Two of the three fetches accept every version, and the one between them has a filter.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_is_leased_once_if_fetches_share_a_transaction() {
    let (_folder, path) = fresh();
    let (provider, token) = held(&path).await;
    let mut fetches = Vec::new();
    for filter in [None, Some(DispatcherCapabilityFilter::default_for_current_build()), None] {
        let own = Arc::clone(&provider);
        let mut fetch = Box::pin(async move {
            let fetched = own.fetch_orchestration_item(LONG, PATIENCE, filter.as_ref()).await.unwrap();
            fetched.expect("a turn is ready").0.instance
        });
        assert_eq!(now(&mut fetch).await, None);
        fetches.push(fetch);
    }
    let starts = vec![start("x"), start("y")];
    provider.ack_orchestration_item(&token, 1, vec![], vec![], starts, named(), vec![]).await.unwrap();
    for id in [8, 9] {
        provider.enqueue_for_worker(activity("host", id)).await.unwrap();
    }
    let mut got = Vec::new();
    for fetch in &mut fetches {
        got.push(now(fetch).await);
    }
    assert_eq!(got, [Some("x".to_string()), Some("y".to_string()), None]);
}

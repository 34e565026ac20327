//! Calls that share a transaction.

use super::*;
use crate::factory::raw;
use outlast_model::EventKind;
use outlast_provider::SessionFetchConfig;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_at_the_same_time_share_commits() {
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

/// Runs calls in one transaction: they come while another connection holds the lock.
async fn together<T: Send + 'static>(
    provider: &Arc<SqliteProvider>,
    path: &Path,
    calls: Vec<std::pin::Pin<Box<dyn Future<Output = T> + Send>>>,
) -> Vec<T> {
    let lock = raw(path);
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    // The writer takes this one alone and waits for the lock. It cannot be seen waiting, but it need not be: if it
    // takes more than this one, they are in one transaction all the same.
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

/// A commit that passes the fence and fails at its second event, which exists.
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

/// A store in which an instance's turn is held.
async fn held(path: &Path) -> (Arc<SqliteProvider>, String) {
    let provider = open_alone(path).await;
    create(&*provider, "host").await;
    provider.enqueue_for_orchestrator(completed("host", 9), None).await.unwrap();
    let token = turn(&*provider).await.1;
    (provider, token)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_fails_does_not_harm_its_neighbours() {
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
    assert_eq!(after.careful_batches - before.careful_batches, 1);
    assert!(after.commits - before.commits <= 2, "they shared a transaction");
    assert_eq!(count(&path, "SELECT count(*) FROM orchestrator_queue WHERE lock_token IS NULL"), 63);
    assert_eq!(count(&path, "SELECT count(*) FROM worker_queue"), 1, "the first call's alone");
    assert_eq!(provider.read("host").await.unwrap().len(), 1);
    assert_eq!(provider.get_custom_status("host", 0).await.unwrap(), None);
    ack(&*provider, &token, vec![ended("host", 2)], vec![], completed_metadata()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fetches_are_served_beside_a_call_that_fails() {
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
    assert_eq!(provider.stats().careful_batches, 1);
    for waiting in waiting {
        Delays::default().soon("a start beside a failure", waiting).await;
    }
}

/// The first fetch looks up work for itself and for the third, before the second takes a session of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_has_one_owner_however_many_fetches_share_a_transaction() {
    let (_folder, path) = fresh();
    let (provider, token) = held(&path).await;
    let fetch = |owner: &str| {
        let own = Arc::clone(&provider);
        let session = SessionFetchConfig { owner_id: owner.to_string(), lock_timeout: LONG };
        async move {
            let fetched = own.fetch_work_item(LONG, PATIENCE, Some(&session), &ANY).await.unwrap();
            match fetched.expect("work is ready").0 {
                WorkItem::ActivityExecute { id, .. } => id,
                other => panic!("{other:?}"),
            }
        }
    };
    let first = parked(&provider, fetch("a")).await;
    let second = parked(&provider, fetch("b")).await;
    let third = parked(&provider, fetch("a")).await;
    let mut work = Vec::new();
    for (id, session) in [(2, "one"), (3, "two"), (4, "two")] {
        let mut item = activity("host", id);
        if let WorkItem::ActivityExecute { session_id, .. } = &mut item {
            *session_id = Some(session.to_string());
        }
        work.push(item);
    }
    ack(&*provider, &token, vec![], work, named()).await.unwrap();
    assert_eq!((first.await.unwrap(), second.await.unwrap()), (2, 3));
    assert_eq!(fetch("b").await, 4, "it stays with the owner of its session");
    assert!(!third.is_finished());
    third.abort();
}

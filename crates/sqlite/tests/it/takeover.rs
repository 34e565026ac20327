//! The leases of a dead process end at once, and a living process keeps its leases.

use crate::processes::Process;
use crate::support::*;
use outlast_model::WorkItem;
use outlast_provider::{Provider, SessionFetchConfig, TagFilter};
use outlast_sqlite::SqliteProvider;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::time::Instant;

/// The time until another process runs the work of a killed process.
const SOON: Duration = Duration::from_secs(1);
/// Longer than four searches for dead processes.
const FOUR_SEARCHES: Duration = Duration::from_millis(1_200);

fn of_session(id: u64) -> WorkItem {
    let mut item = activity("held", id);
    if let WorkItem::ActivityExecute { session_id, .. } = &mut item {
        *session_id = Some("session".to_string());
    }
    item
}

/// Fetches an activity of the session for this worker.
async fn session_work(provider: &dyn Provider, worker: &str) -> (WorkItem, String, u32) {
    let session = SessionFetchConfig { owner_id: worker.to_string(), lock_timeout: LONG };
    let fetched = provider.fetch_work_item(LONG, PATIENCE, Some(&session), &TagFilter::DefaultOnly).await;
    fetched.unwrap().expect("an activity of the session")
}

/// Leases a session without its activity, an activity and a turn, for ten minutes each. Returns the token of the turn.
async fn hold_all(provider: &dyn Provider) -> String {
    provider.enqueue_for_worker(of_session(8)).await.unwrap();
    let (_, token, _) = session_work(provider, "first worker").await;
    provider.ack_work_item(&token, None).await.unwrap();
    provider.enqueue_for_worker(activity("held", 7)).await.unwrap();
    work(provider).await;
    provider.enqueue_for_orchestrator(start("held"), None).await.unwrap();
    turn(provider).await.1
}

/// Leases the turn, the activity and the session that a dead process held.
async fn take_all(provider: &SqliteProvider) {
    provider.enqueue_for_worker(of_session(9)).await.unwrap();
    let (turn, activity) = tokio::join!(turn(provider), work(provider));
    // A fetch with a session also takes activities without one, so it runs last.
    let of_session = session_work(provider, "second worker").await;
    assert_eq!((turn.0.instance.as_str(), turn.2), ("held", 2));
    assert_eq!((activity.0, activity.2), (crate::support::activity("held", 7), 2));
    assert_eq!((of_session.0, of_session.2), (crate::takeover::of_session(9), 1));
    assert_eq!(provider.stats().leases_of_dead_processes, 3);
    ack(provider, &turn.1, vec![started("held"), ended("held", 2)], vec![], completed_metadata())
        .await
        .unwrap();
}

/// The files of the owners of a store.
fn owner_files(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(beside(path, "-owners")) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn leases_of_a_process_that_ends_are_taken_over_within_a_second() {
    const TEST: &str = "takeover::leases_of_a_process_that_ends_are_taken_over_within_a_second";
    if let Some(path) = role(TEST) {
        return Runtime::new().unwrap().block_on(async {
            let provider = open(&path).await;
            hold_all(&provider).await;
            drop(provider);
            println!("\nHELD");
            std::io::stdin().read_line(&mut String::new()).unwrap();
        });
    }
    let _alone = ALONE.blocking_lock();
    let (_folder, path) = fresh();
    Runtime::new().unwrap().block_on(async {
        let mut process = Process::start(TEST, &path, "held");
        process.next("HELD").expect("the process holds leases");
        let provider = open(&path).await;
        let held = provider.fetch_orchestration_item(LONG, NO_WAIT, None).await.unwrap();
        assert!(held.is_none(), "a closed store of a living process keeps its leases");
        process.go();
        process.child.wait().unwrap();
        let ended = Instant::now();
        take_all(&provider).await;
        assert!(ended.elapsed() < SOON, "{:?}", ended.elapsed());
    });
}

#[test]
fn leases_of_a_killed_process_are_taken_over_within_a_second() {
    const TEST: &str = "takeover::leases_of_a_killed_process_are_taken_over_within_a_second";
    if let Some(path) = role(TEST) {
        return Runtime::new().unwrap().block_on(async {
            let provider = open(&path).await;
            hold_all(&provider).await;
            println!("\nHELD");
            std::future::pending::<()>().await;
        });
    }
    let _alone = ALONE.blocking_lock();
    for is_open_before in [true, false] {
        let (_folder, path) = fresh();
        let mut process = Process::start(TEST, &path, "held");
        process.next("HELD").expect("the process holds leases");
        Runtime::new().unwrap().block_on(async {
            let parked = is_open_before.then(|| {
                let path = path.clone();
                tokio::spawn(async move { take_all(&open(&path).await).await })
            });
            if is_open_before {
                // The fetches of the open store are parked, and it has searched once.
                while owner_files(&path).len() < 2 {
                    tokio::task::yield_now().await;
                }
            }
            process.child.kill().unwrap();
            let killed = Instant::now();
            process.child.wait().unwrap();
            match parked {
                Some(parked) => parked.await.unwrap(),
                None => take_all(&open(&path).await).await,
            }
            let took = killed.elapsed();
            println!("open before the death: {is_open_before}: taken over after {took:?}");
            assert!(took < SOON, "{took:?}");
        });
        assert_eq!(owner_files(&path).len(), 1, "the file of the dead process is removed");
    }
}

#[test]
fn a_living_process_keeps_its_leases() {
    const TEST: &str = "takeover::a_living_process_keeps_its_leases";
    if let Some(path) = role(TEST) {
        return Runtime::new().unwrap().block_on(async {
            let provider = open(&path).await;
            let token = hold_all(&provider).await;
            println!("\nHELD");
            std::io::stdin().read_line(&mut String::new()).unwrap();
            let events = vec![started("held"), ended("held", 2)];
            ack(&provider, &token, events, vec![], completed_metadata()).await.unwrap();
            println!("\nCOMMITTED");
        });
    }
    let _alone = ALONE.blocking_lock();
    let (_folder, path) = fresh();
    Runtime::new().unwrap().block_on(async {
        let provider = open(&path).await;
        let mut process = Process::start(TEST, &path, "held");
        process.next("HELD").expect("the process holds leases");
        provider.enqueue_for_worker(of_session(9)).await.unwrap();
        let session = SessionFetchConfig { owner_id: "second worker".to_string(), lock_timeout: LONG };
        let fetches = tokio::join!(
            provider.fetch_orchestration_item(LONG, FOUR_SEARCHES, None),
            provider.fetch_work_item(LONG, FOUR_SEARCHES, Some(&session), &TagFilter::DefaultOnly),
        );
        assert!(matches!(fetches, (Ok(None), Ok(None))), "{fetches:?}");
        assert_eq!(provider.stats().leases_of_dead_processes, 0);
        process.go();
        process.next("COMMITTED").expect("the lease is still valid");
    });
}

/// The seeded defect: a living process loses its lock, so that other processes take it for dead.
#[tokio::test]
async fn a_living_process_that_is_taken_for_dead_loses_its_leases_and_serves_later_calls() {
    let (_folder, path) = fresh();
    let (first, second) = (open(&path).await, open(&path).await);
    let stale = hold_all(&first).await;
    let [file] = &owner_files(&path)[..] else { panic!("one store fetched") };
    std::fs::remove_file(file).unwrap();
    std::fs::write(file, []).unwrap();
    take_all(&second).await;
    let late = ack(&first, &stale, vec![started("held")], vec![], named()).await.unwrap_err();
    assert!(!late.is_retryable(), "{late}");
    let renewed = first.renew_orchestration_item_lock(&stale, LONG).await.unwrap_err();
    assert!(!renewed.is_retryable(), "{renewed}");
    let ends = count(&path, "SELECT count(*) FROM history WHERE instance_id = 'held'");
    assert_eq!(ends, 2, "the second process wrote the history");
    hello(&first, "later").await;
}

#[tokio::test]
async fn a_store_that_is_closed_without_leases_leaves_no_file() {
    let (_folder, path) = fresh();
    let store = open(&path).await;
    store.enqueue_for_orchestrator(start("only"), None).await.unwrap();
    assert!(owner_files(&path).is_empty(), "a store that does not fetch has no file");
    let (_, token, _) = turn(&store).await;
    assert_eq!(owner_files(&path).len(), 1);
    let events = vec![started("only"), ended("only", 2)];
    ack(&store, &token, events, vec![], completed_metadata()).await.unwrap();
    drop(store);
    assert!(!beside(&path, "-owners").exists());
}

#[test]
fn without_lock_files_leases_end_by_time() {
    const TEST: &str = "takeover::without_lock_files_leases_end_by_time";
    const LEASE: Duration = Duration::from_millis(900);
    if let Some(path) = role(TEST) {
        return Runtime::new().unwrap().block_on(async {
            let store = open(&path).await;
            store.enqueue_for_orchestrator(start("held"), None).await.unwrap();
            store.fetch_orchestration_item(LEASE, PATIENCE, None).await.unwrap().expect("a turn");
            println!("\nHELD");
            std::future::pending::<()>().await;
        });
    }
    let (_folder, path) = fresh();
    // A file in place of the folder of lock files: the store cannot create the folder.
    std::fs::write(beside(&path, "-owners"), []).unwrap();
    let begun = Instant::now();
    let mut process = Process::start(TEST, &path, "held");
    process.next("HELD").expect("the process holds a lease");
    process.child.kill().unwrap();
    process.child.wait().unwrap();
    Runtime::new().unwrap().block_on(async {
        let store = open(&path).await;
        let (item, _, attempt) = turn(&store).await;
        assert_eq!((item.instance.as_str(), attempt), ("held", 2));
        assert!(begun.elapsed() >= LEASE, "{:?}", begun.elapsed());
        assert_eq!(store.stats().leases_of_dead_processes, 0);
    });
}

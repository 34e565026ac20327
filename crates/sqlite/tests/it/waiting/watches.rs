//! Watches: which commits resolve them, and with which outcome.

use super::*;
use crate::factory::raw;
use Interest::{Any, Ended};
use outlast_model::{ErrorDetails, EventKind};
use outlast_provider::{ExecutionMetadata, InstanceFilter, InstanceWatch, Interest, ProviderAdmin};
use std::task::{Context, Waker};
use tempfile::TempDir;

fn is_resolved(watch: &mut InstanceWatch) -> bool {
    watch.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

fn watch(provider: &SqliteProvider, instance: &str, interest: Interest) -> InstanceWatch {
    provider.watch_instance(instance, interest).expect("the store supports watches")
}

/// Whether a change resolves the watches `[Ended, Any]` on "i".
async fn answered(provider: &SqliteProvider, change: impl Future<Output = ()>) -> [bool; 2] {
    let mut watches = [Ended, Any].map(|interest| watch(provider, "i", interest));
    let mut other = watch(provider, "other", Any);
    change.await;
    assert!(!is_resolved(&mut other), "no commit concerns this instance");
    watches.each_mut().map(is_resolved)
}

/// Commits the next turn of "i", with one event and this status.
async fn commit(provider: &SqliteProvider, id: u64, status: Option<&str>) {
    let message = if id == 1 { start("i") } else { completed("i", 90) };
    provider.enqueue_for_orchestrator(message, None).await.unwrap();
    let (_, token, _) = turn(provider).await;
    let metadata = ExecutionMetadata { status: status.map(str::to_string), ..named() };
    ack(provider, &token, vec![scheduled("i", id)], vec![], metadata).await.unwrap();
}

/// An inline store, a store in memory and a store in a file; the folder is that of the file.
async fn stores() -> (TempDir, [SqliteProvider; 3]) {
    let inline = SqliteOptions { inline: true, ..SqliteOptions::default() };
    let (folder, path) = fresh();
    let stores = [
        SqliteProvider::new_in_memory_with_options(Some(inline)).await.unwrap(),
        SqliteProvider::new_in_memory().await.unwrap(),
        open(&path).await,
    ];
    (folder, stores)
}

#[tokio::test]
async fn each_interest_is_resolved_by_the_commits_that_concern_it() {
    let (none, any, both) = ([false, false], [false, true], [true, true]);
    let (_folder, stores) = stores().await;
    for p in &stores {
        let enqueue = async { p.enqueue_for_orchestrator(start("i"), Some(LONG)).await.unwrap() };
        assert_eq!(answered(p, enqueue).await, none, "a message is no commit of the instance");
        assert_eq!(answered(p, commit(p, 1, None)).await, any);
        assert_eq!(answered(p, commit(p, 2, Some("ContinuedAsNew"))).await, any, "the instance continues");
        assert_eq!(answered(p, commit(p, 3, Some("Completed"))).await, both);
        assert_eq!(answered(p, commit(p, 4, Some("Failed"))).await, both);
        let append = async { p.append_with_execution("i", 1, vec![scheduled("i", 5)]).await.unwrap() };
        assert_eq!(answered(p, append).await, any);
        let twice =
            async { assert!(p.append_with_execution("i", 1, vec![scheduled("i", 5)]).await.is_err()) };
        assert_eq!(answered(p, twice).await, none);
        let abandon = async {
            p.enqueue_for_orchestrator(completed("i", 2), None).await.unwrap();
            let (_, token, _) = turn(p).await;
            p.renew_orchestration_item_lock(&token, LONG).await.unwrap();
            p.abandon_orchestration_item(&token, None, true).await.unwrap();
            // The token is not valid after the turn was given back.
            assert!(ack(p, &token, vec![], vec![], completed_metadata()).await.is_err());
        };
        assert_eq!(answered(p, abandon).await, none);
    }
}

#[tokio::test]
async fn a_commit_that_ends_a_watched_instance_returns_its_outcome() {
    let (_folder, stores) = stores().await;
    for p in &stores {
        commit(p, 1, None).await;
        for (id, status) in [(2, "Completed"), (3, "Failed")] {
            let ended = watch(p, "i", Ended);
            commit(p, id, Some(status)).await;
            let outcome = timeout(PATIENCE, ended).await.expect("the commit resolves the watch");
            assert_eq!(outcome.as_ref().map(|outcome| outcome.status.as_str()), Some(status));
            assert_eq!(outcome, p.read_outcome("i").await.unwrap());
        }
        let any = watch(p, "i", Any);
        commit(p, 4, None).await;
        assert_eq!(timeout(PATIENCE, any).await.unwrap(), None, "the commit does not end the instance");
    }
}

#[tokio::test]
async fn a_deletion_resolves_the_watches_of_every_deleted_instance() {
    let (_folder, stores) = stores().await;
    for p in &stores {
        for way in 0..3 {
            create(p, "root").await;
            let child =
                ExecutionMetadata { parent_instance_id: Some("root".to_string()), ..completed_metadata() };
            p.enqueue_for_orchestrator(start("child"), None).await.unwrap();
            let (_, token, _) = turn(p).await;
            ack(p, &token, vec![started("child")], vec![], child).await.unwrap();
            let mut watches = ["root", "child"].map(|instance| watch(p, instance, Ended));
            let refused = p.delete_instance("root", false).await;
            assert!(refused.is_err() && watches.iter_mut().all(|watch| !is_resolved(watch)));
            let deleted = match way {
                0 => p.delete_instance("root", true).await.unwrap(),
                1 => {
                    p.delete_instances_atomic(&["root".to_string(), "child".to_string()], true).await.unwrap()
                }
                _ => {
                    p.enqueue_for_orchestrator(completed("root", 2), None).await.unwrap();
                    let (_, token, _) = turn(p).await;
                    ack(p, &token, vec![], vec![], completed_metadata()).await.unwrap();
                    watches[0] = watch(p, "root", Ended);
                    p.delete_instance_bulk(InstanceFilter::default()).await.unwrap()
                }
            };
            assert_eq!(deleted.instances_deleted, 2);
            assert_eq!(watches.each_mut().map(is_resolved), [true, true], "way {way}");
        }
    }
}

/// The caller of a commit may drop its future; the watches of other callers resolve nevertheless.
#[tokio::test]
async fn a_commit_whose_caller_dropped_it_resolves_watches() {
    let (_folder, stores) = stores().await;
    for p in &stores {
        create(p, "i").await;
        p.enqueue_for_orchestrator(completed("i", 2), None).await.unwrap();
        let (_, token, _) = turn(p).await;
        let told = watch(p, "i", Ended);
        let mut commit = Box::pin(ack(p, &token, vec![ended("i", 2)], vec![], completed_metadata()));
        let _ = commit.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        drop(commit);
        timeout(PATIENCE, told).await.expect("the commit resolves the watch");
        assert_eq!(p.read_outcome("i").await.unwrap().unwrap().status, "Completed");
    }
}

/// A client registers a watch, reads, and waits. At any time of the commit the read or the watch notices it, and every connection
/// can read a commit that a watch has noticed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_before_a_read_misses_no_commit() {
    let (_folder, path) = fresh();
    let provider = open_alone(&path).await;
    let conn = raw(&path);
    for n in 0..150 {
        let instance = format!("i{n}");
        provider.enqueue_for_orchestrator(start(&instance), None).await.unwrap();
        let (_, token, _) = turn(&*provider).await;
        let commit = || {
            let (provider, instance, token) = (Arc::clone(&provider), instance.clone(), token.clone());
            tokio::spawn(async move {
                let details = ErrorDetails::Infrastructure {
                    operation: "o".into(),
                    message: "m".into(),
                    retryable: false,
                };
                let failed = event(&instance, 2, EventKind::OrchestrationFailed { details });
                let metadata = ExecutionMetadata { status: Some("Failed".to_string()), ..named() };
                ack(&*provider, &token, vec![started(&instance), failed], vec![], metadata).await.unwrap();
            })
        };
        // The first commit is before the watch, the second one after the read, and the others are at any time.
        let mut committing = (n != 1).then(commit);
        if n == 0 {
            committing.take().unwrap().await.unwrap();
        }
        for _ in 0..n % 40 {
            yield_now().await;
        }
        let ended = watch(&provider, &instance, Ended);
        let is_read = provider.read_outcome(&instance).await.unwrap().is_some();
        assert!(n > 1 || is_read == (n == 0), "{n}");
        if n == 1 {
            committing = Some(commit());
        }
        if !is_read {
            timeout(PATIENCE, ended).await.expect("the commit resolves the watch");
            let sql = "SELECT status FROM executions WHERE instance_id = ?1";
            let status: String = conn.query_row(sql, [&instance], |row| row.get(0)).unwrap();
            assert_eq!(status, "Failed");
        }
        if let Some(committing) = committing {
            committing.await.unwrap();
        }
    }
}

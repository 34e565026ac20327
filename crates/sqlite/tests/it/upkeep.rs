//! Maintenance of a store: its log, its space, its backups, and reports of damage.

use crate::support::*;
use outlast_model::WorkItem;
use outlast_provider::{InstanceFilter, Provider};
use outlast_sqlite::{SqliteError, SqliteOptions, SqliteProvider};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::task::JoinSet;

/// Writes this many bytes of input from several tasks while other tasks read; returns the largest size of the log.
async fn largest_log(path: &Path, options: SqliteOptions, bytes: usize) -> u64 {
    const WRITERS: usize = 8;
    const PAYLOAD: usize = 32 << 10;
    let provider = Arc::new(open_with(path, options).await);
    hello(&*provider, "read").await;
    let largest = Arc::new(AtomicU64::new(0));
    let mut readers = JoinSet::new();
    for _ in 0..4 {
        let provider = Arc::clone(&provider);
        readers.spawn(async move {
            loop {
                assert_eq!(provider.read("read").await.unwrap().len(), 4);
            }
        });
    }
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let (provider, largest, log) = (Arc::clone(&provider), Arc::clone(&largest), beside(path, "-wal"));
        writers.spawn(async move {
            for n in 0..bytes / PAYLOAD / WRITERS {
                let item = start_with(&format!("{writer}-{n}"), &"x".repeat(PAYLOAD));
                provider.enqueue_for_orchestrator(item, None).await.unwrap();
                largest.fetch_max(size(&log), Ordering::Relaxed);
            }
        });
    }
    writers.join_all().await;
    largest.load(Ordering::Relaxed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_stays_within_twice_its_limit() {
    let _alone = ALONE.lock().await;
    let (_folder, path) = fresh();
    let wal_limit_bytes = 4 << 20;
    let options = SqliteOptions { wal_limit_bytes, ..SqliteOptions::default() };
    let largest = largest_log(&path, options, 32 << 20).await;
    assert!(largest >= wal_limit_bytes / 2, "{largest} bytes: the test wrote too little");
    assert!(largest <= 2 * wal_limit_bytes, "the log grew to {largest} bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_stays_below_64_mb() {
    let _alone = ALONE.lock().await;
    let (_folder, path) = fresh();
    let largest = largest_log(&path, SqliteOptions::default(), 80 << 20).await;
    assert!(largest >= 16 << 20, "{largest} bytes: the test wrote too little");
    assert!(largest < 64 << 20, "the log grew to {largest} bytes");
}

#[tokio::test]
async fn space_is_returned_after_a_bulk_delete() {
    let (_folder, path) = fresh();
    let provider = open(&path).await;
    for n in 0..100 {
        finish(&provider, &format!("i{n}"), 50_000).await;
    }
    provider.checkpoint().await.unwrap();
    let before = size(&path);
    assert!(before > 5_000_000, "{before} bytes");
    let admin = provider.as_management_capability().unwrap();
    let deleted = admin.delete_instance_bulk(InstanceFilter::default()).await.unwrap();
    assert_eq!(deleted.instances_deleted, 100);
    let after = size(&path);
    assert!(after < before / 10, "{before} bytes before, {after} after");
    assert_eq!(provider.integrity_check().await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn a_checkpoint_empties_the_log() {
    let (_folder, path) = fresh();
    let provider = open(&path).await;
    hello(&provider, "i").await;
    assert!(size(&beside(&path, "-wal")) > 0);
    provider.checkpoint().await.unwrap();
    assert_eq!(size(&beside(&path, "-wal")), 0);
    assert_eq!(provider.read("i").await.unwrap().len(), 4);
    SqliteProvider::new_in_memory().await.unwrap().checkpoint().await.unwrap();
}

/// The store's own checkpoints run too: its log has no room, so the writer checkpoints constantly.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_checkpoints_wait_for_each_other() {
    let (_folder, path) = fresh();
    let options = SqliteOptions { wal_limit_bytes: 0, ..SqliteOptions::default() };
    let provider = Arc::new(open_with(&path, options).await);
    let mut tasks = JoinSet::new();
    for task in 0..6 {
        let provider = Arc::clone(&provider);
        tasks.spawn(async move {
            for n in 0..10 {
                let item = start_with(&format!("{task}-{n}"), &"x".repeat(40_000));
                provider.enqueue_for_orchestrator(item, None).await.unwrap();
                provider.checkpoint().await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(waiting_starts(&path).len(), 60);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_during_writes_holds_every_acknowledged_write_without_gaps() {
    const WRITERS: usize = 4;
    let (folder, path) = fresh();
    let provider = Arc::new(open(&path).await);
    hello(&*provider, "before").await;
    let acknowledged: Arc<[AtomicU64; WRITERS]> = Arc::default();
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let (provider, acknowledged) = (Arc::clone(&provider), Arc::clone(&acknowledged));
        writers.spawn(async move {
            for n in 1.. {
                let item = start_with(&format!("{writer}-{n}"), &"x".repeat(2_000));
                provider.enqueue_for_orchestrator(item, None).await.unwrap();
                acknowledged[writer].store(n, Ordering::SeqCst);
            }
        });
    }
    for round in 0..5 {
        while acknowledged.iter().any(|n| n.load(Ordering::SeqCst) < 20 * (round + 1)) {
            tokio::task::yield_now().await;
        }
        let at_least: Vec<u64> = acknowledged.iter().map(|n| n.load(Ordering::SeqCst)).collect();
        let copy = folder.path().join(format!("copy{round}.db"));
        provider.backup_to(&copy).await.unwrap();
        let found = waiting_starts(&copy);
        for (writer, at_least) in at_least.into_iter().enumerate() {
            let own = found.iter().filter(|id| id.starts_with(&format!("{writer}-"))).count() as u64;
            assert!(own >= at_least, "writer {writer}: {own} in the copy, {at_least} acknowledged before");
            assert!(
                (1..=own).all(|n| found.contains(&format!("{writer}-{n}"))),
                "a gap in writer {writer}'s rows"
            );
        }
        let copied = open(&copy).await;
        assert_eq!(copied.integrity_check().await.unwrap(), [""; 0]);
        assert_eq!(copied.read("before").await.unwrap().len(), 4);
        hello(&copied, "after").await;
    }
    writers.abort_all();
}

#[tokio::test]
async fn a_backup_refuses_existing_files() {
    let (folder, path) = fresh();
    let provider = open(&path).await;
    hello(&provider, "i").await;
    let existing = folder.path().join("existing");
    std::fs::write(&existing, "theirs").unwrap();
    let missing = folder.path().join("missing/copy.db");
    for target in [&existing, &path, &missing] {
        let error = provider.backup_to(target).await.unwrap_err();
        assert!(matches!(&error, SqliteError::CannotOpen { path, .. } if path == target), "{error:?}");
    }
    assert_eq!(std::fs::read(&existing).unwrap(), b"theirs");
    assert_eq!(provider.read("i").await.unwrap().len(), 4);
}

#[tokio::test]
async fn a_backup_of_a_store_in_memory_is_a_store() {
    let (_folder, path) = fresh();
    for inline in [false, true] {
        let options = SqliteOptions { inline, ..SqliteOptions::default() };
        let provider = SqliteProvider::new_in_memory_with_options(Some(options)).await.unwrap();
        hello(&provider, "i").await;
        let copy = path.with_extension(inline.to_string());
        provider.backup_to(&copy).await.unwrap();
        assert_eq!(provider.integrity_check().await.unwrap(), [""; 0]);
        hello(&open(&copy).await, "j").await;
        assert_eq!(open(&copy).await.read("i").await.unwrap().len(), 4);
    }
}

#[tokio::test]
async fn a_dump_counts_rows_and_shows_no_payloads() {
    let (_folder, path) = fresh();
    let provider = open(&path).await;
    hello(&provider, "ended").await;
    for n in 0..12 {
        provider.enqueue_for_orchestrator(start_with(&format!("i{n}"), "SECRET"), None).await.unwrap();
    }
    let WorkItem::ActivityExecute { instance, execution_id, id, name, .. } = activity("worker", 3) else {
        unreachable!()
    };
    let (input, session_id, tag) = ("SECRET".to_string(), None, None);
    let item = WorkItem::ActivityExecute { instance, execution_id, id, name, input, session_id, tag };
    provider.enqueue_for_worker(item).await.unwrap();
    let dump = provider.debug_dump().await;
    for line in
        ["orchestrator_queue: 12 rows", "worker_queue: 1 rows", "history: 4 rows", "instances: 1 rows"]
    {
        assert!(dump.contains(line), "{line}: {dump}");
    }
    assert!(dump.contains("i0 ") && dump.contains("worker activity=3") && !dump.contains("i11 "), "{dump}");
    assert!(!dump.contains("SECRET"), "{dump}");
    // The dump counts every table that the migrations create.
    let tables = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name <> 'outlast_migrations'";
    assert_eq!(dump.matches(" rows\n").count(), usize::try_from(count(&path, tables)).unwrap(), "{dump}");
}

#[tokio::test]
async fn a_damaged_page_is_reported_with_its_number() {
    let (_folder, path) = fresh();
    let provider = open(&path).await;
    for n in 0..100 {
        finish(&provider, &format!("i{n}"), 500).await;
    }
    assert_eq!(provider.integrity_check().await.unwrap(), [""; 0]);
    drop(provider);
    let page = "SELECT pageno FROM dbstat WHERE name = 'history' AND pagetype = 'leaf' ORDER BY path LIMIT 1 OFFSET 9";
    let page = usize::try_from(count(&path, page)).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[(page - 1) * 4_096..][..4_096].fill(0x5A);
    std::fs::write(&path, bytes).unwrap();
    let provider = open(&path).await;
    let found = provider.integrity_check().await.unwrap();
    assert!(!found.is_empty() && found.concat().contains(&format!("{page}")), "page {page}: {found:?}");
    let mut damaged = 0;
    for n in 0..100 {
        match provider.read(&format!("i{n}")).await {
            Ok(history) => assert_eq!(history.len(), 2),
            Err(error) => {
                damaged += 1;
                assert!(!error.is_retryable() && error.message.contains("damaged"), "{error}");
            }
        }
    }
    assert!((1..20).contains(&damaged), "{damaged} of 100 instances are damaged");
    hello(&provider, "somebody else").await;
}

//! A file whose write lock another process holds.

use crate::factory::raw;
use crate::support::*;
use outlast_provider::Provider;
use outlast_sqlite::{ForeignLock, LockPatience, SqliteError, SqliteOptions, SqliteProvider};
use std::time::Duration;
use tokio::time::Instant;

/// An inline store that answers at once that its file is busy.
fn impatient() -> SqliteOptions {
    SqliteOptions { inline: true, lock_patience: LockPatience::Nothing, ..SqliteOptions::default() }
}

#[tokio::test]
async fn busy_file_refuses_a_write_which_is_not_stored_and_may_be_repeated() {
    let (_folder, path) = fresh();
    let store = open_with(&path, impatient()).await;
    for commits in [true, false] {
        let lock = ForeignLock::take(&path).unwrap();
        let refused = store.enqueue_for_worker(activity("i", 1)).await.unwrap_err();
        assert!(refused.is_retryable(), "{refused:?}");
        assert!(refused.message.contains("the store is busy"), "{refused:?}");
        match commits {
            true => lock.commit().unwrap(),
            false => drop(lock),
        }
        assert_eq!(count(&path, "SELECT count(*) FROM worker_queue"), 0);
    }
    store.enqueue_for_worker(activity("i", 1)).await.unwrap();
    assert_eq!(work(&store).await.0, activity("i", 1));
}

#[tokio::test]
async fn busy_file_disturbs_no_opening_and_no_read_of_a_store() {
    let (_folder, path) = fresh();
    let first = open_with(&path, impatient()).await;
    create(&first, "i").await;
    let _lock = ForeignLock::take(&path).unwrap();
    let second = open_with(&path, impatient()).await;
    let threaded = open(&path).await;
    first.disconnect();
    for store in [&first, &second, &threaded] {
        assert_eq!(store.read("i").await.unwrap().len(), 1);
    }
    assert_eq!(first.dump().await.unwrap(), second.dump().await.unwrap());
}

#[tokio::test]
async fn close_of_a_store_on_a_busy_file_does_not_wait_for_the_lock() {
    let (_folder, path) = fresh();
    let store = open(&path).await;
    create(&store, "i").await;
    let _lock = ForeignLock::take(&path).unwrap();
    let begun = Instant::now();
    drop(store);
    // The patience of this store is a minute.
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn opening_of_a_new_file_that_is_busy_ends_with_the_patience_for_the_lock() {
    let (_folder, path) = fresh();
    let holder = raw(&path);
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let begun = Instant::now();
    let opened = SqliteProvider::new(&url(&path), Some(impatient())).await;
    assert!(matches!(opened, Err(SqliteError::Busy { .. })), "{:?}", opened.err());
    // A lock that no connection waits for is refused within milliseconds; the usual patience is a minute.
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    holder.execute_batch("ROLLBACK").unwrap();
    open_with(&path, impatient()).await;
}

//! The guarantees of the file, which no validation checks.

use crate::FileStore;
use outlast_provider::{Provider, TagFilter, WorkItem};
use std::time::Duration;

fn activity(id: u64) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: "i".to_string(),
        execution_id: 1,
        id,
        name: "Charge".to_string(),
        input: String::new(),
        session_id: None,
        tag: None,
    }
}

async fn fetched(store: &FileStore) -> Option<WorkItem> {
    let fetched = store.fetch_work_item(Duration::from_secs(5), Duration::ZERO, None, &TagFilter::Any).await;
    fetched.unwrap().map(|(item, ..)| item)
}

#[tokio::test]
async fn reopened_store_holds_all_written_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.json");
    let store = FileStore::open(&path).unwrap();
    for id in [1, 2] {
        store.enqueue_for_worker(activity(id)).await.unwrap();
    }
    assert_eq!(fetched(&store).await, Some(activity(1)));
    drop(store);
    let store = FileStore::open(&path).unwrap();
    assert_eq!(fetched(&store).await, Some(activity(2)), "the lease on the first activity is stored too");
    assert_eq!(fetched(&store).await, None);
}

#[test]
fn a_store_that_is_open_cannot_be_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.json");
    let first = FileStore::open(&path).unwrap();
    assert!(FileStore::open(&path).is_err());
    drop(first);
    assert!(FileStore::open(&path).is_ok());
}

#[test]
fn a_damaged_file_is_an_error_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.json");
    std::fs::write(&path, "{").unwrap();
    assert!(FileStore::open(&path).is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{");
}

#[tokio::test]
async fn failed_write_is_retryable_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.json");
    let store = FileStore::open(&path).unwrap();
    // A folder in the place of the new file: it cannot be created.
    let blocked = path.with_extension("next");
    std::fs::create_dir(&blocked).unwrap();
    let error = store.enqueue_for_worker(activity(1)).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    assert_eq!(fetched(&store).await, None);
    std::fs::remove_dir(&blocked).unwrap();
    store.enqueue_for_worker(activity(2)).await.unwrap();
    assert_eq!(fetched(&store).await, Some(activity(2)));
}

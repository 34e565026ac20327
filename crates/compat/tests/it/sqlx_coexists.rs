//! sqlx and our SQLite store in one process. Both link the same native library, which Cargo allows only once: with incompatible
//! versions programs that use both would not build.

use duroxide::providers::Provider;
use duroxide::providers::WorkItem;
use duroxide::providers::sqlite::SqliteProvider;
use sqlx::ConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;

#[tokio::test]
async fn sqlx_reads_rows_that_our_store_wrote_in_the_same_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ours.db");
    let ours = SqliteProvider::new(&format!("sqlite:{}", path.display()), None).await.unwrap();
    let cancel = WorkItem::CancelInstance { instance: "order-1".to_string(), reason: "test".to_string() };
    ours.enqueue_for_orchestrator(cancel, None).await.unwrap();

    let mut theirs = SqliteConnectOptions::new().filename(&path).read_only(true).connect().await.unwrap();
    let query = "SELECT instance_id FROM orchestrator_queue";
    let waiting: String = sqlx::query_scalar(query).fetch_one(&mut theirs).await.unwrap();
    assert_eq!(waiting, "order-1");
}

//! Rows that do not decode, and a store that returns errors.

use super::{activities, orchestrations, secret};
use crate::support::{CallHook, Fault, LONGEST_WAIT};
use outlast::providers::Provider;
use outlast::providers::sqlite::{SqliteOptions, SqliteProvider};
use outlast::runtime::Runtime;
use outlast::{ActivityContext, Client, OrchestrationContext, RuntimeOptions};
use std::sync::Arc;
use std::time::Duration;

/// Statements that write undecodable rows into the history and the queues.
const DAMAGE: &str = "
    UPDATE history SET event_data = '{\"type\":\"' || ?1 || '\",\"event_id\":\"' || ?1 || '\"}' WHERE instance_id = 'waits';
    INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, available_at)
        VALUES ('waits', '{\"' || ?1 || '\":{}}', 0, 0), ('waits', ?1, 0, 0);
    INSERT INTO worker_queue (instance_id, execution_id, activity_id, work_item, visible_at)
        VALUES ('waits', 1, 7, '{\"ActivityExecute\":{\"instance\":7,\"input\":\"' || ?1 || '\"}}', 0)";

async fn start(store: Arc<dyn Provider>, max_attempts: u32, log_error_texts: bool) -> Arc<Runtime> {
    let waits = |ctx: OrchestrationContext, _: String| async move {
        ctx.schedule_activity("Echo", secret("activity")).await?;
        // A turn that is not run ahead.
        ctx.schedule_timer(Duration::from_millis(1)).await;
        ctx.set_custom_status(secret("status"));
        Ok(ctx.schedule_wait("go").await)
    };
    let echo = |_: ActivityContext, input: String| async move { Ok(input) };
    let options = RuntimeOptions { max_attempts, log_error_texts, ..RuntimeOptions::default() };
    let all = orchestrations().register("Waits", waits).build();
    Runtime::start_with_options(store, activities().register("Echo", echo).build(), all, options).await
}

pub(super) async fn run(log_error_texts: bool) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let url = format!("sqlite:{}", path.display());
    let store = Arc::new(SqliteProvider::new(&url, None).await.unwrap());
    // Every third call returns an error at first.
    let hook = CallHook::new(|_, nth| match nth % 3 {
        1 if nth < 20 => Fault::Transient,
        2 if nth < 20 => Fault::Panic,
        _ => Fault::None,
    });
    let runtime = start(hook.around(store.clone()), 100, log_error_texts).await;
    let client = Client::new(store.clone());
    client.start_orchestration("waits", "Waits", secret("input")).await.unwrap();
    client.wait_for_status_change("waits", 0, Duration::from_millis(5), LONGEST_WAIT).await.unwrap();
    runtime.shutdown(None).await;
    let conn = rusqlite::Connection::open(&path).unwrap();
    for statement in DAMAGE.split(';') {
        assert!(conn.execute(statement, [secret("damage")]).unwrap() > 0);
    }
    println!("{}", store.debug_dump().await);
    let runtime = start(store.clone(), 1, log_error_texts).await;
    client.raise_event("waits", "go", secret("event")).await.unwrap();
    client.wait_for_orchestration("waits", LONGEST_WAIT).await.unwrap();
    let until = tokio::time::Instant::now() + LONGEST_WAIT;
    while client.list_dead_letters(10).await.unwrap().len() < 3 {
        assert!(tokio::time::Instant::now() < until, "dead letters are missing");
        tokio::task::yield_now().await;
    }
    println!("{:?} {:?}", SqliteOptions::default(), store.stats());
    runtime.shutdown(None).await;
}

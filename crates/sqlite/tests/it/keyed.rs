//! Messages with a key, and dead letters that return to their queue, after failures and crashes: the store writes both parts of a
//! change, or neither.

use crate::support::*;
use outlast_model::WorkItem;
use outlast_provider::{
    AuditEntry, DeadLetter, DeadLetterOutcome, DeadLetterQueue, EnqueueOnce, Provider, ProviderAdmin,
};
use outlast_sqlite::{SqliteOptions, StatementFault, StatementFaults};
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// Lets some statements pass, then fails one.
struct FailsOne {
    /// The statements before the one that fails; negative if none fails.
    left: AtomicI64,
    how: StatementFault,
    failed: Mutex<Option<String>>,
}

impl StatementFaults for FailsOne {
    fn fault_of(&self, sql: &str) -> Option<StatementFault> {
        if self.left.load(SeqCst) < 0 || self.left.fetch_sub(1, SeqCst) != 0 {
            return None;
        }
        *self.failed.lock().unwrap() = Some(sql.to_string());
        Some(self.how)
    }
}

/// A store that fails one statement; `left` is the number of statements before it.
async fn failing(path: &Path, how: StatementFault) -> (Arc<FailsOne>, outlast_sqlite::SqliteProvider) {
    let faults = Arc::new(FailsOne { left: AtomicI64::new(-1), how, failed: Mutex::default() });
    let options = SqliteOptions { faults: Some(Arc::clone(&faults) as _), ..SqliteOptions::default() };
    (faults, open_with(path, options).await)
}

fn signal() -> WorkItem {
    WorkItem::ExternalRaised { instance: "i".into(), name: "e".into(), data: String::new() }
}

#[tokio::test]
async fn a_keyed_message_is_stored_once_whichever_statement_fails_and_after_a_restart() {
    for how in [StatementFault::Before, StatementFault::After] {
        let mut failures = 0;
        for nth in 0..12 {
            let (_folder, path) = fresh();
            let (faults, store) = failing(&path, how).await;
            create(&store, "i").await;
            faults.left.store(nth, SeqCst);
            let first = store.enqueue_once(signal(), "key", 100).await;
            faults.left.store(-1, SeqCst);
            let failed = faults.failed.lock().unwrap().take();
            let stored = count(&path, "SELECT count(*) FROM orchestrator_queue");
            let keys = count(&path, "SELECT count(*) FROM message_keys");
            assert_eq!(stored, keys, "{how:?} {failed:?}: {first:?}");
            failures += usize::from(first.is_err());
            // The process ends, and the sender repeats the call.
            drop(store);
            let store = open(&path).await;
            let again = store.enqueue_once(signal(), "key", 100).await.unwrap();
            let expected = if stored == 1 { EnqueueOnce::Repeated } else { EnqueueOnce::Stored };
            assert_eq!(again, expected, "{how:?} {failed:?}: {first:?}");
            assert_eq!(count(&path, "SELECT count(*) FROM orchestrator_queue"), 1);
            if failed.is_none() {
                assert_eq!(first, Ok(EnqueueOnce::Stored));
            }
        }
        assert!(failures > 1, "{how:?}: {failures} calls failed");
    }
}

#[tokio::test]
async fn a_requeue_is_moved_and_recorded_or_unchanged_whichever_statement_fails() {
    let entry = AuditEntry {
        actor: "ada".into(),
        action: "requeue".into(),
        target: "1".into(),
        reason: "r".into(),
        request: None,
        result: "done".into(),
    };
    for how in [StatementFault::Before, StatementFault::After] {
        let mut failures = 0;
        for nth in 0..12 {
            let (_folder, path) = fresh();
            let (faults, store) = failing(&path, how).await;
            create(&store, "i").await;
            let letter = DeadLetter {
                queue: DeadLetterQueue::Orchestrator,
                instance_id: Some("i".into()),
                work_item: outlast_model::json::encode_work_item(&signal()).unwrap(),
                reason: "r".into(),
                attempt_count: 1,
                dead_at: 1,
            };
            crate::factory::bury(&path, &letter);
            faults.left.store(nth, SeqCst);
            let requeued = store.requeue_dead_letter(1, &entry).await;
            faults.left.store(-1, SeqCst);
            failures += usize::from(requeued.is_err());
            let rows = |table: &str| count(&path, &format!("SELECT count(*) FROM {table}"));
            let found = (rows("dead_letters"), rows("orchestrator_queue"), rows("audit"));
            assert!(found == (1, 0, 0) || found == (0, 1, 1), "{how:?} {nth}: {requeued:?} {found:?}");
            if requeued == Ok(DeadLetterOutcome::Done) {
                assert_eq!(found, (0, 1, 1));
            }
        }
        assert!(failures > 1, "{how:?}: {failures} calls failed");
    }
}

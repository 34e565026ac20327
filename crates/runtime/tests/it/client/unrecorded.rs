//! Changes that were made, and that the audit could not record.

use super::*;
use async_trait::async_trait;
use outlast_provider::{AuditEntry, Clock, ProviderAdmin, ProviderError, forward_provider};
use outlast_runtime::{BulkChange, BulkVerb};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A store whose audit cannot be written.
struct FullAudit(MemoryProvider);

impl Provider for FullAudit {
    forward_provider!(Provider, |this| this.0, except(as_management_capability));

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }
}

#[async_trait]
impl ProviderAdmin for FullAudit {
    forward_provider!(ProviderAdmin, |this| this.0, except(append_audit));

    async fn append_audit(&self, _entry: &AuditEntry) -> Result<bool, ProviderError> {
        Err(ProviderError::retryable("append_audit", "the disk is full"))
    }
}

/// A clock on which no two calls are at the same time.
#[derive(Default)]
struct Ticks(AtomicU64);

impl Clock for Ticks {
    fn now_ms(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

/// A store whose audit fails to be written once.
struct FailsOnce {
    store: MemoryProvider,
    fails: AtomicBool,
}

impl Provider for FailsOnce {
    forward_provider!(Provider, |this| this.store, except(as_management_capability));

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }
}

#[async_trait]
impl ProviderAdmin for FailsOnce {
    forward_provider!(ProviderAdmin, |this| this.store, except(append_audit));

    async fn append_audit(&self, entry: &AuditEntry) -> Result<bool, ProviderError> {
        match self.fails.swap(false, Ordering::SeqCst) {
            true => Err(ProviderError::retryable("append_audit", "the disk is full")),
            false => self.store.append_audit(entry).await,
        }
    }
}

fn fails_once() -> Arc<FailsOnce> {
    let store = MemoryProvider::with_clock(Arc::new(Ticks::default()));
    Arc::new(FailsOnce { store, fails: AtomicBool::new(true) })
}

/// Actor and action of all records, oldest first.
async fn records(client: &Client) -> Vec<(String, String)> {
    let page = client.audit_page(None, 5_000).await.unwrap().unwrap();
    let of_changes = page.into_iter().rev().filter(|record| record.entry.action != "filler");
    of_changes.map(|record| (record.entry.actor, record.entry.action)).collect()
}

/// More records than a client reads at once.
async fn fill(client: &Client) {
    let filler =
        AuditEntry { action: "filler".to_string(), target: "Flow".to_string(), ..AuditEntry::default() };
    for _ in 0..1_200 {
        client.append_audit(&filler).await.unwrap();
    }
}

fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|(actor, action)| ((*actor).to_string(), (*action).to_string())).collect()
}

#[tokio::test(start_paused = true)]
async fn pause_of_an_orchestration_without_a_record_is_recorded_once_by_its_repetition() {
    let store = fails_once();
    let client = Client::new(store.clone());
    let unrecorded = client.pause_orchestration("Flow", "ada", "a test").await.unwrap_err();
    assert!(unrecorded.change_was_made(), "{unrecorded}");
    fill(&client).await;
    assert_eq!(client.pause_orchestration("Flow", "bob", "a test").await.unwrap(), 0);
    assert_eq!(client.pause_orchestration("Flow", "ada", "another one").await.unwrap(), 0);
    assert_eq!(records(&client).await, [], "these calls did not pause it");
    assert_eq!(client.pause_orchestration("Flow", "ada", "a test").await.unwrap(), 0);
    let once = [("ada", "orchestration.pause")];
    assert_eq!(records(&client).await, pairs(&once));
    fill(&client).await;
    assert_eq!(client.pause_orchestration("Flow", "ada", "a test").await.unwrap(), 0);
    assert_eq!(records(&client).await, pairs(&once), "the record is found behind others");
    // The record of an earlier pause is not that of a later one.
    client.resume_orchestration("Flow", "ada", "a test").await.unwrap();
    store.fails.store(true, Ordering::SeqCst);
    client.pause_orchestration("Flow", "ada", "a test").await.unwrap_err();
    client.pause_orchestration("Flow", "ada", "a test").await.unwrap();
    assert_eq!(records(&client).await, pairs(&[once[0], ("ada", "orchestration.resume"), once[0]]));
}

#[tokio::test]
async fn pause_of_an_instance_without_a_record_is_recorded_once_by_its_repetition() {
    let store = fails_once();
    let client = Client::new(store.clone());
    two_instances(&*store).await;
    check_error("pause", "running", client.pause_instance("running", "ada", "a test").await);
    assert!(!client.pause_instance("running", "bob", "a test").await.unwrap());
    assert_eq!(records(&client).await, [], "bob did not pause it");
    for _ in 0..2 {
        assert!(!client.pause_instance("running", "ada", "a test").await.unwrap());
        assert_eq!(records(&client).await, pairs(&[("ada", "instance.pause")]));
    }
}

/// The error says both: the change was made, and the audit has no record. It asks for no repetition.
fn check_error(what: &str, instance: &str, done: Result<bool, ClientError>) {
    let error = done.expect_err(what);
    let text = error.to_string();
    for part in [
        format!("the change of '{instance}' was made"),
        "the audit has no record of it".to_string(),
        "the disk is full".to_string(),
    ] {
        assert!(text.contains(&part), "{what}: {part} in {text}");
    }
    assert!(error.change_was_made(), "{what}: {text}");
    let ClientError::Provider(error) = error else { panic!("{what}: {text}") };
    assert!(!error.is_retryable(), "{what}: {text}");
}

/// Creates "done", which has ended, and "running".
async fn two_instances(store: &dyn Provider) {
    turn(store, "done", 1, 1, vec![started(), completed("out")]).await;
    turn(store, "running", 1, 1, vec![started()]).await;
}

async fn is_held(client: &Client, instance: &str) -> bool {
    client.held_instance(instance).await.unwrap().is_some()
}

#[tokio::test]
async fn bulk_change_without_a_record_says_that_it_was_made() {
    let store = Arc::new(FullAudit(MemoryProvider::new()));
    let client = Client::new(store.clone());
    two_instances(&*store).await;
    let apply = async |verb, instance: &str| {
        let change = BulkChange {
            verb,
            actor: "ada".into(),
            reason: "a test".into(),
            request: None,
            created_before: None,
        };
        client.bulk_apply(&change, instance).await
    };
    check_error("pause", "running", apply(BulkVerb::Pause, "running").await);
    assert!(is_held(&client, "running").await);
    check_error("resume", "running", apply(BulkVerb::Resume, "running").await);
    assert!(!is_held(&client, "running").await);
    check_error("cancel", "running", apply(BulkVerb::Cancel, "running").await);
    let waiting = client.pending_work("running", 10).await.unwrap().unwrap().messages;
    assert!(waiting.iter().any(|message| message.kind.as_deref() == Some("CancelInstance")), "{waiting:?}");
    check_error("terminate", "running", apply(BulkVerb::Terminate, "running").await);
    check_error("delete", "done", apply(BulkVerb::Delete, "done").await);
    assert!(client.get_instance_info("done").await.is_err(), "it is gone");
    // A change that was not made has no record, so nothing fails.
    assert!(!apply(BulkVerb::Delete, "done").await.unwrap());
}

#[tokio::test]
async fn single_change_without_a_record_says_that_it_was_made() {
    let store = Arc::new(FullAudit(MemoryProvider::new()));
    let client = Client::new(store.clone());
    two_instances(&*store).await;
    check_error("pause", "running", client.pause_instance("running", "ada", "a test").await);
    check_error("resume", "running", client.resume_instance("running", "ada", "a test").await);
    let missing = client.pause_instance("missing", "ada", "a test").await.unwrap_err();
    assert!(!missing.change_was_made(), "{missing}");
}

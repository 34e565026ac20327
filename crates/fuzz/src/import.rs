//! Snapshots of instances from an export file: refused, or imported by two stores alike.

use outlast_memory::MemoryProvider;
use outlast_model::{AuditEntry, InstanceSnapshot};
use outlast_provider::{ExportOutcome, ImportOutcome, Provider, ProviderAdmin};
use outlast_sqlite::{SqliteOptions, SqliteProvider};

/// Imports the lines of a file into the memory store and into a SQLite store. Both give the same answers. They refuse what
/// [`InstanceSnapshot::check`] refuses, and export what they imported unchanged.
pub fn import_file(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let snapshots: Vec<InstanceSnapshot> = text.lines().filter_map(snapshot).collect();
    if snapshots.is_empty() {
        return;
    }
    // No call here waits, so the runtime needs no clock.
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime can be built");
    runtime.block_on(import_all(&snapshots));
}

/// The snapshot in a line of a file: `{"instance": ..}`.
fn snapshot(line: &str) -> Option<InstanceSnapshot> {
    let mut line: serde_json::Value = serde_json::from_str(line).ok()?;
    let snapshot: InstanceSnapshot = serde_json::from_value(line.get_mut("instance")?.take()).ok()?;
    let text = serde_json::to_string(&snapshot).expect("a snapshot can be encoded");
    let again: InstanceSnapshot = serde_json::from_str(&text).expect("an encoded snapshot can be decoded");
    assert_eq!(snapshot, again, "stored as {text}");
    Some(snapshot)
}

async fn import_all(snapshots: &[InstanceSnapshot]) {
    let options = SqliteOptions { inline: true, ..SqliteOptions::default() };
    let sqlite = SqliteProvider::new_in_memory_with_options(Some(options)).await.expect("a store in memory");
    let memory = MemoryProvider::new();
    for snapshot in snapshots {
        let (ours, theirs) = (import(&memory, snapshot).await, import(&sqlite, snapshot).await);
        assert_eq!(ours, theirs, "{snapshot:?}");
        match snapshot.check() {
            Err(reason) => assert!(ours.is_none(), "imported, although {reason}"),
            Ok(()) => assert!(ours.is_some(), "refused, although it agrees with itself: {snapshot:?}"),
        }
        if ours == Some(ImportOutcome::Imported) {
            for store in [&memory as &dyn Provider, &sqlite] {
                assert_eq!(export(store, &snapshot.instance_id).await.as_ref(), Some(snapshot));
            }
        }
    }
}

fn admin(store: &dyn Provider) -> &dyn ProviderAdmin {
    store.as_management_capability().expect("both stores have management")
}

/// `None` if the store refuses the snapshot.
async fn import(store: &dyn Provider, snapshot: &InstanceSnapshot) -> Option<ImportOutcome> {
    let audit = AuditEntry {
        actor: "fuzz".to_string(),
        action: "instance.import".to_string(),
        target: snapshot.instance_id.clone(),
        reason: String::new(),
        request: None,
        result: "done".to_string(),
    };
    match admin(store).import_instance(snapshot, &audit).await {
        Ok(outcome) => Some(outcome),
        Err(error) => {
            assert!(!error.is_retryable(), "{error}");
            None
        }
    }
}

async fn export(store: &dyn Provider, instance: &str) -> Option<InstanceSnapshot> {
    match admin(store).export_instance(instance).await {
        Ok(ExportOutcome::Exported(snapshot)) => Some(*snapshot),
        other => panic!("{instance:?} was imported, and its export is {other:?}"),
    }
}

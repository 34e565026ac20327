//! `outlast retention`

use crate::program::Program;
use crate::support::run;
use outlast::providers::sqlite::SqliteProvider;
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread")]
async fn retention_counts_then_deletes_ended_instances_and_leaves_running_ones() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let place = path.to_str().unwrap();
    let program =
        Program::on(Arc::new(SqliteProvider::new(&format!("sqlite:{place}"), None).await.unwrap())).await;
    program.park("running", "1.0.0").await;
    program.park("ended", "1.0.0").await;
    program.client.cancel_instance("ended", "test").await.unwrap();
    let waited =
        program.client.wait_for_orchestration("ended", std::time::Duration::from_secs(20)).await.unwrap();
    assert!(matches!(waited, outlast::OrchestrationStatus::Failed { .. }), "{waited:?}");
    let retention = |args: &[&str]| run([&["retention", "run", "--store", place], args].concat());

    let young = retention(&["--ended-for", "1h", "--dry-run", "-o", "json"]).json();
    assert_eq!((&young["matched"], &young["examined"]), (&0.into(), &2.into()), "{young}");
    let kept = retention(&["--ended-for", "0s", "--failed-for", "1h", "--dry-run", "-o", "json"]).json();
    assert_eq!(kept["matched"], 0, "a cancelled instance has failed: {kept}");
    let dry = retention(&["--ended-for", "0s", "--dry-run"]).fine();
    assert!(dry.contains("trees         1      would be deleted, unless they are in use"), "{dry}");
    assert_eq!(program.client.list_all_instances().await.unwrap().len(), 2, "a dry run deletes nothing");

    let done = retention(&["--ended-for", "0s", "--by", "ada", "-o", "jsonl"]).fine();
    assert_eq!(done.lines().count(), 1, "{done}");
    let done: serde_json::Value = serde_json::from_str(&done).unwrap();
    assert_eq!((&done["instances"], &done["matched"]), (&1.into(), &1.into()), "{done}");
    assert_eq!(program.client.list_all_instances().await.unwrap(), ["running"]);
    let audit = program.client.audit_page(None, 10).await.unwrap().unwrap();
    let record = &audit[0].entry;
    assert_eq!((record.actor.as_str(), record.action.as_str()), ("ada", "retention.run"));
    assert_eq!(record.result, "deleted 1 instances, 0 records of the audit, 0 dead letters");

    let again = retention(&["--ended-for", "0s", "--audit-for", "1h", "--dead-letters-for", "1h"]).fine();
    assert!(again.contains("instances     0      deleted, descendants included"), "{again}");
    assert_eq!(
        program.client.audit_page(None, 10).await.unwrap().unwrap().len(),
        audit.len(),
        "nothing was deleted"
    );
    program.runtime.shutdown(None).await;
}

#[test]
fn retention_without_an_age_is_not_understood() {
    let said = run(["retention", "run", "--store", "missing.db"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("--ended-for"), "{said:?}");
    let said = run(["retention", "run", "--orchestration", "Invoice", "--store", "missing.db"]);
    assert!(said.code == Some(2) && said.err.contains("NAME=AGE"), "{said:?}");
}

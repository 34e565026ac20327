//! `outlast migrate-from duroxide`, on stores that the published crates wrote. The unfinished instances end with the code that began them.

use crate::peer_programs::{activities, orchestrations};
use crate::support::{damage, run};
use crate::transfer::text;
use outlast::client::Client;
use outlast::providers::sqlite::SqliteProvider;
use outlast::providers::{Provider, TagFilter};
use outlast::runtime::{OrchestrationStatus, Runtime, RuntimeOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

/// A copy of the store, because the command is not to write to it, and tests damage it.
fn old_store(dir: &Path) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/duroxide/sqlite-0.1.32.db");
    let copy = dir.join("old.db");
    std::fs::copy(source, &copy).unwrap();
    copy
}

/// Instances that wait for a message that the test sends, and all instances with their outcomes.
const OUTCOMES: [(&str, Result<&str, &str>); 18] = [
    ("hello-1", Ok("Hello, Ada!")),
    ("hello-2", Ok("Hello, a\"b\\c\u{1f980}\n!")),
    ("fails-1", Err("it is broken")),
    ("cancelled-1", Err("no longer needed")),
    ("counts-2", Ok("round 3, went, 3 keys")),
    ("detached-1", Ok("Hello, detached!")),
    ("family-1::sub::2", Ok("Hello, Eve!")),
    ("late-1", Ok("Hello, Lin!")),
    ("nap-short", Ok("slept short")),
    ("family-nap", Ok("slept short")),
    ("family-1", Ok("Hello, Eve!, slept short")),
    ("waits-1", Ok("approved by Ada")),
    ("waits-2", Ok("approved by Grace")),
    ("parent-1", Ok("child: approved by Eve")),
    ("counts-1", Ok("round 3, now, 3 keys")),
    ("reads-1", Ok("first,second,third,fourth")),
    ("work-1", Ok("did plain")),
    ("work-tag", Ok("did tag")),
];

/// Runs the programs of the old store on the new one, and checks how every instance ends.
pub(crate) async fn ends_correctly(store: Arc<dyn Provider>) {
    let client = Client::new(Arc::clone(&store));
    let before = client.read_execution_history("nap-long", 1).await.unwrap();
    let options = RuntimeOptions { worker_tag_filter: TagFilter::Any, ..RuntimeOptions::default() };
    let works = activities(|input| async move { Ok(format!("did {input}")) });
    let runtime = Runtime::start_with_options(store, works, orchestrations(), options).await;
    client.raise_event("waits-1", "approval", "Ada").await.unwrap();
    client.raise_event("parent-1::sub::2", "approval", "Eve").await.unwrap();
    client.raise_event("counts-1", "go", "now").await.unwrap();
    client.enqueue_event("reads-1", "orders", "fourth").await.unwrap();
    for (id, expected) in OUTCOMES.into_iter().chain([("work-session", Ok("did session"))]) {
        let found = client.wait_for_orchestration(id, LONG).await.unwrap();
        let fits = match (&found, expected) {
            (OrchestrationStatus::Completed { output, .. }, Ok(expected)) => output == expected,
            (OrchestrationStatus::Failed { details, .. }, Err(expected)) => {
                details.display_message().contains(expected)
            }
            _ => false,
        };
        assert!(fits, "{id}: {found:?}, not {expected:?}");
    }
    let asleep = client.get_orchestration_status("nap-long").await.unwrap();
    assert!(matches!(asleep, OrchestrationStatus::Running { .. }), "its timer is not due: {asleep:?}");
    assert_eq!(client.read_execution_history("nap-long", 1).await.unwrap(), before);
    assert_eq!(client.get_kv_value("waits-1", "state").await.unwrap().as_deref(), Some("answered"));
    assert_eq!(client.get_kv_value("counts-1", "round-1").await.unwrap().as_deref(), Some("1"));
    assert_eq!(client.list_executions("counts-1").await.unwrap(), [1, 2, 3]);
    let tree = client.get_instance_tree("family-1").await.unwrap();
    assert_eq!(tree.all_ids.len(), 3, "{tree:?}");
    runtime.shutdown(None).await;
}

pub(crate) fn check_report(report: &serde_json::Value) {
    let imported = &report["imported"];
    let names = ["instances", "unfinished", "executions", "events", "keys", "messages", "activities"];
    let counts = names.map(|name| imported[name].as_u64().unwrap());
    assert_eq!(counts, [21, 14, 24, 96, 14, 6, 3], "{report}");
    assert_eq!(report["activities_without_instance"], 0);
    assert_eq!(report["missing_parents"].as_array().unwrap().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn unfinished_instances_of_duroxide_end_after_the_migration() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (old_store(dir.path()), dir.path().join("new.db"));
    let before = std::fs::read(&old).unwrap();
    let from =
        ["migrate-from", "duroxide", "--store", text(&old), "--to", text(&new), "--create", "-o", "json"];
    let planned = run(from.iter().chain(&["--dry-run"])).json();
    check_report(&planned);
    assert!(!new.exists(), "a dry run creates no store");
    let done = run(from).json();
    check_report(&done);
    assert_eq!(std::fs::read(&old).unwrap(), before, "the old store is only read");
    let again = run(from);
    assert_eq!(again.code, Some(6), "{again:?}");
    assert!(again.err.contains("exist in the store"), "{again:?}");
    let store = SqliteProvider::new(&format!("sqlite:{}", new.display()), None).await.unwrap();
    ends_correctly(Arc::new(store)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_in_use_of_another_release_and_of_other_programs_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let new = dir.path().join("new.db");
    let migrate =
        |old: &Path| run(["migrate-from", "duroxide", "--store", text(old), "--to", text(&new), "--create"]);
    let missing = migrate(&dir.path().join("missing.db")).failed();
    assert!(missing.contains("there is no store at"), "{missing}");

    let old = old_store(dir.path());
    let far = "UPDATE worker_queue SET locked_until = 9000000000000 WHERE lock_token IS NOT NULL";
    damage(&old, far);
    let busy = migrate(&old);
    assert_eq!(busy.code, Some(6), "{busy:?}");
    assert!(busy.err.contains("2 live leases"), "{busy:?}");

    let old = old_store(dir.path());
    damage(
        &old,
        "UPDATE history SET event_data = '{\"s3cret\"' WHERE instance_id = 'waits-1' AND event_id = 2",
    );
    let undecodable = migrate(&old).failed();
    assert!(undecodable.contains("instance 'waits-1' cannot be exported: event 2"), "{undecodable}");
    assert!(!undecodable.contains("s3cret"), "{undecodable}");

    let old = old_store(dir.path());
    damage(&old, "DELETE FROM _sqlx_migrations WHERE version = 20240112000000");
    let other = migrate(&old);
    assert!(other.code == Some(6) && other.err.contains("20240111000000"), "{other:?}");

    std::fs::write(dir.path().join("text.db"), "no database").unwrap();
    let text_file = migrate(&dir.path().join("text.db"));
    assert!(matches!(text_file.code, Some(1 | 6)), "{text_file:?}");
    assert!(!new.exists(), "nothing is written");
}

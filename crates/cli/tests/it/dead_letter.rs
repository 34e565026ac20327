//! `outlast dead-letter`

use crate::program::{LONG, Program};
use crate::support::{damage, run};
use outlast::client::Client;
use outlast::providers::sqlite::SqliteProvider;
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_listed_requeued_and_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let store = Arc::new(SqliteProvider::new(&format!("sqlite:{}", path.display()), None).await.unwrap());
    let client = Client::new(store.clone());
    let place = path.to_str().unwrap();
    let letter = |args: &[&str]| run([&["dead-letter"], args, &["--store", place]].concat());
    assert_eq!(letter(&["list"]).fine(), "There are no dead letters.\n");
    for id in ["one", "two"] {
        client.start_orchestration(id, "Leaf", "s3cret").await.unwrap();
    }
    // The dead letters of a release that does not know the items. The newer release of this test does.
    for statement in [
        "INSERT INTO dead_letters (queue, instance_id, work_item, reason, attempt_count, dead_at)
         SELECT 'orchestrator', instance_id, work_item, 'unknown variant', 3, 1000 FROM orchestrator_queue",
        "DELETE FROM orchestrator_queue",
        "INSERT INTO dead_letters (queue, instance_id, work_item, reason, attempt_count, dead_at)
         VALUES ('orchestrator', 'three', 's3cret', 'damaged', 1, 2000)",
    ] {
        damage(&path, statement);
    }
    let listed = letter(&["list"]).fine();
    assert!(listed.contains("NUMBER  SINCE (UTC)") && listed.contains("2 x unknown variant"), "{listed}");
    assert!(!listed.contains("s3cret"), "{listed}");
    let page = letter(&["list", "--limit", "2", "-o", "json"]).json();
    assert_eq!((&page["dead_letters"][0]["instance"], &page["next"]), (&"three".into(), &2.into()), "{page}");
    let lines = letter(&["list", "--limit", "2", "-o", "jsonl"]).fine();
    let lines: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[..2], page["dead_letters"].as_array().unwrap()[..], "a line for each dead letter");
    assert_eq!(
        lines[2..],
        [serde_json::json!({ "next": "2" })],
        "the mark of the next page is the last line"
    );
    let rest = letter(&["list", "--before", "2", "-o", "json"]).json();
    assert_eq!(rest["dead_letters"][0]["number"], 1, "{rest}");

    let shown = letter(&["show", "3"]).fine();
    assert!(shown.contains("Reason:      damaged") && !shown.contains("s3cret"), "{shown}");
    assert!(letter(&["show", "3", "--payloads"]).fine().contains("s3cret"));
    assert!(letter(&["show", "9"]).not_found().contains("there is no dead letter 9"));

    let because = ["--by", "ada", "--reason", "decodes now"];
    assert_eq!(letter(&["requeue", "1"]).code, Some(2), "a requeue needs a reason");
    let requeue = |number: &str| letter(&[&["requeue", number][..], &because].concat());
    assert_eq!(requeue("1").fine(), "Dead letter 1 is back in its queue.\n");
    assert!(requeue("1").not_found().contains("there is no dead letter 1"));
    let refused = requeue("3");
    assert_eq!((refused.code, refused.out.as_str()), (Some(6), ""), "{refused:?}");
    assert!(refused.err.contains("dead letter 3 stays"), "{refused:?}");
    let dropped = letter(&["drop", "3", "--by", "ada", "--reason", "useless", "-o", "json"]).json();
    assert_eq!((&dropped["number"], &dropped["requeued"]), (&3.into(), &false.into()));

    let program = Program::on(store).await;
    program.client.wait_for_orchestration("one", LONG).await.unwrap();
    let left = program.client.dead_letter_page(None, 10).await.unwrap().unwrap();
    assert_eq!(left.iter().map(|record| record.id).collect::<Vec<_>>(), [2]);
    let audit = program.client.audit_page(None, 10).await.unwrap().unwrap();
    let records: Vec<_> =
        audit.iter().map(|record| (record.entry.action.as_str(), record.entry.reason.as_str())).collect();
    assert_eq!(records, [("dead-letter.drop", "useless"), ("dead-letter.requeue", "decodes now")]);
    program.runtime.shutdown(None).await;
}

//! `outlast execution`.

use crate::program::{LONG, Program};
use crate::support::run;
use std::path::Path;

/// Runs instances with executions: five of `a` and `b`, one of `single`.
async fn filled(path: &Path) -> Program {
    let program = Program::start(path).await;
    for (id, rounds) in [("a", 5), ("b", 5), ("single", 1)] {
        program.client.start_orchestration(id, "Rounds", rounds.to_string()).await.unwrap();
        for _ in 0..rounds {
            program.client.enqueue_event(id, "next", "").await.unwrap();
        }
        program.client.wait_for_orchestration(id, LONG).await.unwrap();
    }
    program
}

#[tokio::test(flavor = "multi_thread")]
async fn executions_are_listed_newest_first() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let program = filled(&path).await;
    program.runtime.shutdown(None).await;
    let list =
        |more: &[&str]| run(["execution", "list", "--store", path.to_str().unwrap()].iter().chain(more));
    let listed = list(&["a", "-o", "json"]).json();
    let ids: Vec<u64> = listed["executions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["execution"].as_u64().unwrap())
        .collect();
    assert_eq!(ids, [5, 4, 3, 2, 1]);
    let text = list(&["a", "--limit", "2"]).fine();
    assert!(text.starts_with("EXECUTION  STATUS          STARTED (UTC)"), "{text}");
    assert!(
        text.contains("\n5          Completed       ") && text.contains("\n4          ContinuedAsNew  "),
        "{text}"
    );
    assert!(text.ends_with("3 older executions not shown: --limit shows more\n"), "{text}");
    assert!(list(&["nobody"]).not_found().contains("there is no instance 'nobody'"));
}

#[tokio::test(flavor = "multi_thread")]
async fn old_executions_are_deleted_and_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let program = filled(&path).await;
    let prune =
        |more: &[&str]| run(["execution", "prune", "--store", path.to_str().unwrap()].iter().chain(more));
    let kept = async |id: &str| program.client.list_executions(id).await.unwrap();
    let shown = prune(&["a", "--keep", "2", "--dry-run"]).fine();
    assert!(
        shown.starts_with("3 executions with ")
            && shown.ends_with("would be deleted. Nothing was changed.\n  a\n"),
        "{shown}"
    );
    assert_eq!(kept("a").await, [1, 2, 3, 4, 5]);
    let done = prune(&["a", "--keep", "2", "--by", "ada", "--reason", "a test", "-o", "json"]).json();
    assert_eq!((&done["executions"], kept("a").await), (&3.into(), vec![4, 5]), "{done}");
    let nothing = "No execution is deleted: none matches the conditions.\n";
    assert_eq!(prune(&["b", "--older-than", "1h"]).fine(), nothing);
    assert_eq!(prune(&["single", "--keep", "1"]).fine(), nothing);
    assert_eq!(prune(&["b", "--older-than", "0ms", "--dry-run", "-o", "json"]).json()["executions"], 4);
    // Many instances: their number must be named.
    let many = ["--name", "Rounds", "--keep", "1"];
    let with = |more: &[&'static str]| many.iter().copied().chain(more.iter().copied()).collect::<Vec<_>>();
    let refused = prune(&many);
    assert!(
        refused.code == Some(6)
            && refused.err.contains("2 instances have such executions: nothing was deleted"),
        "{refused:?}"
    );
    let changed = prune(&with(&["--yes", "--expect", "3"]));
    assert!(changed.code == Some(6) && changed.err.contains("--expect names 3"), "{changed:?}");
    let done = prune(&with(&["--yes", "--expect", "2"])).fine();
    assert!(done.starts_with("Deleted 5 executions with ") && done.ends_with(" of 2 instances.\n"), "{done}");
    assert_eq!((kept("a").await, kept("b").await), (vec![5], vec![5]));
    let audit = program.client.audit_page(None, 10).await.unwrap().unwrap();
    let records: Vec<_> =
        audit.iter().map(|record| (record.entry.action.as_str(), record.entry.actor.as_str())).collect();
    assert_eq!(records[2], ("execution.prune", "ada"));
    assert_eq!(records.len(), 3, "{records:?}");
    for wrong in
        [&["a"][..], &["--keep", "1"], &["a", "--keep", "0"], &["a", "--keep", "1", "--yes", "--expect", "1"]]
    {
        assert_eq!(prune(wrong).code, Some(2), "{wrong:?}");
    }
    program.runtime.shutdown(None).await;
}

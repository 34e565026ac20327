//! `outlast audit`.

use crate::program::{LONG, Program};
use crate::support::{damage, run};
use std::collections::BTreeSet;
use std::path::Path;

#[tokio::test(flavor = "multi_thread")]
async fn records_are_listed_newest_first_and_page_by_page() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let program = Program::start(&path).await;
    let list = |more: &[&str]| run(["audit", "list", "--store", path.to_str().unwrap()].iter().chain(more));
    assert_eq!(list(&[]).fine(), "The audit has no records that match.\n");
    for (id, by) in [("a", "ada"), ("b", "bob"), ("c", "ada")] {
        program.park(id, "1.0.0").await;
        program.client.pause_instance(id, by, "a \u{1b}[31mtest").await.unwrap();
    }
    let text = list(&[]).fine();
    assert!(text.starts_with("NUMBER  TIME (UTC)               BY   ACTION"), "{text}");
    assert!(text.contains("a \\u{1b}[31mtest"), "control characters are escaped: {text}");
    let targets = |args: &[&str]| -> Vec<String> {
        let page = list(&[args, &["-o", "json"]].concat()).json();
        page["records"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["target"].as_str().unwrap().to_string())
            .collect()
    };
    assert_eq!(targets(&[]), ["c", "b", "a"]);
    assert_eq!(targets(&["--by", "ada"]), ["c", "a"]);
    assert_eq!(targets(&["--target", "b"]), ["b"]);
    assert_eq!(targets(&["--target", "nobody"]), [""; 0]);
    for condition in [&[][..], &["--by", "ada"]] {
        let first = list(&[condition, &["--limit", "1", "-o", "json"]].concat()).json();
        assert_eq!(first["records"][0]["target"], "c");
        let next = first["next"].to_string();
        let rest = targets(&[condition, &["--before", &next]].concat());
        assert_eq!(rest.last().map(String::as_str), Some("a"), "{condition:?}: {rest:?}");
        assert!(!rest.contains(&"c".to_string()), "{condition:?}: {rest:?}");
    }
    let last = list(&["--limit", "3", "-o", "json"]).json();
    assert!(last["next"].is_null(), "{last}");
    program.runtime.shutdown(None).await;
}

/// The record that a command must leave: its action and its target.
type Record = (&'static str, &'static str);

/// Every command that changes something in a store, in an order in which each of them can. `{file}` is the path of an export.
const CHANGES: [(&[&str], Record); 18] = [
    (&["instance", "start", "Parked", "new"], ("instance.start", "new")),
    (&["instance", "pause", "one"], ("instance.pause", "one")),
    (&["instance", "resume", "one"], ("instance.resume", "one")),
    (&["instance", "enqueue", "one", "orders", "s3cret"], ("instance.message", "one")),
    (&["instance", "fork", "one", "--to-event", "2", "--as", "copy"], ("instance.fork", "one")),
    (&["instance", "reset", "one", "--to-event", "2"], ("instance.reset", "one")),
    (&["instance", "signal", "one", "go", "s3cret"], ("instance.event", "one")),
    (&["instance", "cancel", "two"], ("instance.cancel", "two")),
    (&["instance", "cancel", "--prefix", "four", "--yes", "--expect", "1"], ("instance.cancel", "four")),
    (&["instance", "terminate", "three"], ("instance.terminate", "three")),
    (&["instance", "delete", "leaf"], ("instance.delete", "leaf")),
    (&["instance", "import", "--file", "{file}"], ("instance.import", "leaf")),
    (&["execution", "prune", "rounds", "--keep", "1"], ("execution.prune", "rounds")),
    (&["orchestration", "pause", "Leaf"], ("orchestration.pause", "Leaf")),
    (&["orchestration", "resume", "Leaf"], ("orchestration.resume", "Leaf")),
    (&["dead-letter", "requeue", "1"], ("dead-letter.requeue", "dead letter 1 of 'one'")),
    (&["dead-letter", "drop", "2"], ("dead-letter.drop", "dead letter 2 of 'one'")),
    (&["retention", "run", "--ended-for", "0s"], ("retention.run", "store")),
];

/// The commands whose name or reason for the audit can be given, by the reference of the page, which is made from the command itself.
fn commands_with_a_name() -> BTreeSet<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let page = std::fs::read_to_string(page).unwrap();
    let reference = page.split("<!-- begin of the generated reference -->").nth(1).unwrap();
    let parts = reference
        .split("\n### `outlast ")
        .filter(|part| part.contains("| `--by NAME` | `the command line` |"));
    parts
        .map(|part| {
            let words = part.split('`').next().unwrap().split_whitespace();
            words
                .take_while(|word| word.starts_with(|first: char| first.is_ascii_lowercase()))
                .collect::<Vec<_>>()
        })
        .map(|words| words.join(" "))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_command_that_changes_a_store_leaves_exactly_one_record() {
    let dir = tempfile::tempdir().unwrap();
    let (path, file) = (dir.path().join("jobs.db"), dir.path().join("leaf.jsonl"));
    let (store, export) = (path.to_str().unwrap(), file.to_str().unwrap());
    let program = Program::start(&path).await;
    for id in ["one", "two", "three", "four"] {
        program.park(id, "1.0.0").await;
    }
    program.run("leaf", "Leaf").await;
    program.client.start_orchestration("rounds", "Rounds", "2").await.unwrap();
    for _ in 0..2 {
        program.client.enqueue_event("rounds", "next", "").await.unwrap();
    }
    program.client.wait_for_orchestration("rounds", LONG).await.unwrap();
    run(["instance", "export", "leaf", "--file", export, "--store", store]).fine();
    damage(
        &path,
        "INSERT INTO dead_letters (queue, instance_id, work_item, reason, attempt_count, dead_at)
         SELECT 'orchestrator', 'one', '{\"CancelInstance\":{\"instance\":\"one\",\"reason\":\"r\"}}', 'unknown', 3, value
         FROM json_each('[1000, 2000]')",
    );
    let newest = async || {
        let page = program.client.audit_page(None, 100).await.unwrap().unwrap();
        (page.len(), page.into_iter().next().map(|record| record.entry))
    };
    for (count, (command, (action, target))) in CHANGES.into_iter().enumerate() {
        let args: Vec<&str> = command.iter().map(|arg| if *arg == "{file}" { export } else { arg }).collect();
        let mut named = vec!["--by", "ada", "--store", store];
        if command[0] != "retention" {
            named.extend(["--reason", "a test"]);
        }
        run(args.iter().chain(&named)).fine();
        let (records, entry) = newest().await;
        assert_eq!(records, count + 1, "one record of {command:?}: {entry:?}");
        let entry = entry.unwrap();
        assert_eq!((entry.action.as_str(), entry.target.as_str()), (action, target), "{command:?}");
        assert_eq!((entry.actor.as_str(), entry.result.is_empty()), ("ada", false), "{command:?}");
        assert!(command[0] == "retention" || entry.reason == "a test", "{command:?}: {entry:?}");
        if target == "three" {
            // The command after it deletes instances that have ended.
            program.client.wait_for_orchestration("three", LONG).await.unwrap();
        }
    }
    let again = run(["instance", "start", "Parked", "new", "--if-exists", "use-existing", "--store", store]);
    again.fine();
    assert_eq!(newest().await.0, CHANGES.len(), "nothing was started, and nothing is recorded");
    // An import from a store of another product: a record for each instance, as `instance import`.
    let elsewhere = ["migrate-from duroxide".to_string()];
    let tried = CHANGES.iter().map(|(command, _)| command[..2].join(" "));
    let tried: BTreeSet<String> = tried.chain(elsewhere).collect();
    assert_eq!(commands_with_a_name(), tried, "every command with --by is tried, or imports");
    program.runtime.shutdown(None).await;
}

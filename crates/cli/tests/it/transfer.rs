//! `outlast instance export` and `outlast instance import`.

use crate::program::{LONG, Program};
use crate::support::{Said, run};
use outlast::client::Client;
use outlast::providers::sqlite::SqliteProvider;
use outlast::runtime::OrchestrationStatus;
use outlast_testkit::rng::Rng;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) fn ask(args: &[&str]) -> Said {
    run(args)
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A folder with a store: finished instances, one that waits for an event, one that waits for everything, and one whose start waits.
async fn a_store() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("old.db");
    let program = Program::start(&path).await;
    program.client.start_orchestration("waits-1", "Waits", "s3cret input").await.unwrap();
    // The child of the instance that waits for everything has run.
    while program.client.get_orchestration_status("waits-1::sub::7").await.unwrap()
        == OrchestrationStatus::NotFound
    {
        tokio::task::yield_now().await;
    }
    program.fill_and_stop().await;
    let store = SqliteProvider::new(&format!("sqlite:{}", path.display()), None).await.unwrap();
    let client = Client::new(Arc::new(store));
    client.start_orchestration("late-1", "Greeting", "s3cret input").await.unwrap();
    client.enqueue_event("waits-1", "orders", "s3cret order").await.unwrap();
    (dir, path)
}

/// The lines of an export that are instances.
pub(crate) fn instances(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap();
    let lines: Vec<String> = text.lines().map(str::to_string).collect();
    lines[1..lines.len() - 1].to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn exported_instances_go_on_in_another_store() {
    let (dir, old) = a_store().await;
    let (file, new) = (dir.path().join("all.jsonl"), dir.path().join("new.db"));
    let done =
        ask(&["instance", "export", "--file", text(&file), "--store", text(&old), "-o", "json"]).json();
    let counts = [&done["instances"], &done["unfinished"], &done["activities"], &done["messages"]];
    assert_eq!(counts.map(|count| count.as_u64().unwrap()), [9, 4, 2, 3], "{done}");
    let import = ["instance", "import", "--file", text(&file), "--store", text(&new)];
    let said = ask(&[&import[..], &["--create", "--dry-run"]].concat()).fine();
    assert!(
        said.starts_with("Nothing was changed. An import would bring 9 instances (4 unfinished"),
        "{said}"
    );
    assert!(!new.exists(), "a dry run creates no store");
    let missing = ask(&import);
    assert!(missing.err.contains("there is no store at"), "{missing:?}");
    let said = ask(&[&import[..], &["--create"]].concat()).fine();
    assert!(said.starts_with("Imported 9 instances (4 unfinished, 0 held)"), "{said}");

    let again = dir.path().join("again.jsonl");
    ask(&["instance", "export", "--file", text(&again), "--store", text(&new)]).fine();
    assert_eq!(instances(&file), instances(&again), "the new store has the same instances");
    let list = |store: &Path| ask(&["instance", "list", "--store", text(store)]).fine();
    assert_eq!(list(&old), list(&new), "in the same order, with the same times");

    let program = Program::start(&new).await;
    program.client.raise_event("parked-1", "go", "went").await.unwrap();
    for (id, expected) in [("parked-1", "went"), ("late-1", "s3cret\u{1b}[31m result")] {
        let ended = program.client.wait_for_orchestration(id, LONG).await.unwrap();
        assert!(
            matches!(&ended, OrchestrationStatus::Completed { output, .. } if output == expected),
            "{ended:?}"
        );
    }
    program.runtime.shutdown(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn existing_instances_are_refused_or_skipped_and_imports_can_be_paused() {
    let (dir, old) = a_store().await;
    let (file, new) = (dir.path().join("some.jsonl"), dir.path().join("new.db"));
    ask(&["instance", "export", "hello-1", "--file", text(&file), "--store", text(&old)]).fine();
    assert_eq!(instances(&file).len(), 2, "a root takes its child along");
    let import = ["instance", "import", "--file", text(&file), "--store", text(&new)];
    ask(&[&import[..], &["--create"]].concat()).fine();
    let refused = ask(&import);
    assert_eq!(refused.code, Some(6), "{refused:?}");
    assert!(
        refused.err.contains("2 instances of the file") && refused.err.contains("'hello-1'"),
        "{refused:?}"
    );
    let said = ask(&[&import[..], &["--skip-existing"]].concat()).fine();
    assert!(said.starts_with("Imported 0 instances") && said.contains("Skipped 2 instances"), "{said}");

    let child = ask(&["instance", "export", "waits-1::sub::7", "--file", "x.jsonl", "--store", text(&old)]);
    assert_eq!(child.code, Some(6), "{child:?}");
    assert!(child.err.contains("is a child of 'waits-1'"), "{child:?}");
    ask(&["instance", "export", "unknown", "--file", "x.jsonl", "--store", text(&old)]).not_found();
    let exists = ask(&["instance", "export", "hello-1", "--file", text(&file), "--store", text(&old)]);
    assert_eq!(exists.code, Some(6), "{exists:?}");

    let running = dir.path().join("running.jsonl");
    ask(&["instance", "export", "--status", "running", "--file", text(&running), "--store", text(&old)])
        .fine();
    let paused = ["instance", "import", "--file", text(&running), "--store", text(&new), "--paused"];
    ask(&paused).fine();
    let held = ask(&["instance", "list", "--held", "--store", text(&new), "-o", "json"]).json();
    assert_eq!(held["held"].as_array().unwrap().len(), 3, "{held}");
    let audit = rusqlite::Connection::open(&new).unwrap();
    let count: i64 = audit
        .query_row("SELECT count(*) FROM audit WHERE action = 'instance.import'", (), |row| row.get(0))
        .unwrap();
    assert_eq!(count, 5);
}

/// Changes bytes, removes them, and moves lines: each file is refused before anything is written, and no message has a payload.
#[tokio::test(flavor = "multi_thread")]
async fn damaged_files_are_refused_and_nothing_is_written() {
    let (dir, old) = a_store().await;
    let (file, new) = (dir.path().join("all.jsonl"), dir.path().join("new.db"));
    ask(&["instance", "export", "--file", text(&file), "--store", text(&old)]).fine();
    let whole = std::fs::read(&file).unwrap();
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let mut damaged: Vec<(String, Vec<u8>)> = vec![
        ("empty".to_string(), Vec::new()),
        ("no end".to_string(), lines[..lines.len() - 1].concat()),
        ("no head".to_string(), lines[1..].concat()),
        ("a line twice".to_string(), [&lines[..2], &lines[1..]].concat().concat()),
        ("a line missing".to_string(), [&lines[..2], &lines[3..]].concat().concat()),
        ("more lines".to_string(), [&whole[..], lines[1]].concat()),
        (
            "a newer version".to_string(),
            String::from_utf8(whole.clone()).unwrap().replacen(":2,", ":3,", 1).into_bytes(),
        ),
        ("another program's JSON".to_string(), b"{\"a\":1}\n".to_vec()),
        ("not UTF-8".to_string(), [lines[0], b"\xff\n"].concat()),
    ];
    let mut rng = Rng::new(7);
    for _ in 0..40 {
        let (at, mut bytes) = (rng.index(whole.len()), whole.clone());
        match rng.below(3) {
            0 => bytes.truncate(at),
            1 => bytes[at] ^= 1 << rng.below(7),
            _ => drop(bytes.remove(at)),
        }
        damaged.push((format!("at byte {at}"), bytes));
    }
    let broken = dir.path().join("broken.jsonl");
    for (what, bytes) in damaged {
        std::fs::write(&broken, bytes).unwrap();
        let said = ask(&["instance", "import", "--file", text(&broken), "--store", text(&new), "--create"]);
        assert!(matches!(said.code, Some(1 | 6)) && said.out.is_empty(), "{what}: {said:?}");
        assert!(said.err.contains("broken.jsonl") && !said.err.contains("s3cret"), "{what}: {}", said.err);
        assert!(!new.exists(), "{what}: nothing is written");
    }
}

/// A file of version 1 has no keys of events.
#[tokio::test(flavor = "multi_thread")]
async fn files_of_version_1_are_imported() {
    let (dir, old) = a_store().await;
    let (file, new) = (dir.path().join("all.jsonl"), dir.path().join("new.db"));
    ask(&["instance", "export", "--file", text(&file), "--store", text(&old)]).fine();
    let written = std::fs::read_to_string(&file).unwrap();
    let (lines, _) = written.split_at(written.rfind("{\"end\"").unwrap());
    assert!(lines.contains("\"outlast_export\":2") && lines.contains(",\"message_keys\":[]"), "{lines}");
    let lines =
        lines.replace("\"outlast_export\":2", "\"outlast_export\":1").replace(",\"message_keys\":[]", "");
    let digest: String = Sha256::digest(&lines).iter().map(|byte| format!("{byte:02x}")).collect();
    let end = format!("{{\"end\":{{\"instances\":9,\"sha256\":\"{digest}\"}}}}\n");
    std::fs::write(&file, lines + &end).unwrap();
    let import = ["instance", "import", "--file", text(&file), "--store", text(&new), "--create"];
    assert!(ask(&import).fine().starts_with("Imported 9 instances"));
}

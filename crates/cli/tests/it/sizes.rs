//! `outlast instance count|tree|kv|stats|start`, `outlast queue peek` and `outlast metrics`.

use crate::program::{LONG, Program};
use crate::support::{damage, outlast, run, said};
use outlast::providers::sqlite::SqliteProvider;
use outlast::runtime::OrchestrationStatus;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

async fn empty(path: &Path) {
    drop(SqliteProvider::new(&format!("sqlite:{}", path.display()), None).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_are_counted_by_status_and_condition() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    empty(&path).await;
    let count =
        |more: &[&str]| run(["instance", "count", "--store", path.to_str().unwrap()].iter().chain(more));
    let none = "STATUS     INSTANCES\nRunning    0\nCompleted  0\nFailed     0\ntotal      0\n";
    assert_eq!(count(&[]).fine(), none);
    Program::start(&path).await.fill_and_stop().await;
    let all = "STATUS     INSTANCES\nRunning    1\nCompleted  4\nFailed     1\ntotal      6\n";
    assert_eq!(count(&[]).fine(), all);
    assert_eq!(count(&["--prefix", ""]).fine(), all, "the command counts as the store does");
    let greetings = count(&["--name", "Greeting", "-o", "json"]).json();
    assert_eq!((&greetings["total"], &greetings["completed"]), (&2.into(), &2.into()), "{greetings}");
    assert_eq!(count(&["--name", "Nothing"]).fine(), none);
}

#[tokio::test(flavor = "multi_thread")]
async fn tree_has_each_descendant_below_its_parent() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    Program::start(&path).await.fill_and_stop().await;
    let tree =
        |more: &[&str]| run(["instance", "tree", "--store", path.to_str().unwrap()].iter().chain(more));
    let whole = tree(&["hello-1"]).fine();
    let lines: Vec<&str> = whole.lines().collect();
    assert_eq!(lines[0], "hello-1  Greeting 1.0.0  Completed");
    assert!(
        lines.len() == 2
            && lines[1].starts_with("  hello-1::")
            && lines[1].ends_with("  Leaf 1.0.0  Completed"),
        "{whole}"
    );
    let child = lines[1].split_whitespace().next().unwrap();
    assert_eq!(tree(&[child]).fine().lines().count(), 1);
    assert_eq!(tree(&[child, "--root"]).fine(), whole);
    assert_eq!(tree(&["parked-1"]).fine(), "parked-1  Parked 1.0.0  Running\n");
    let lines = tree(&["hello-1", "-o", "jsonl"]).fine();
    assert_eq!(lines.lines().count(), 2, "{lines}");
    assert!(tree(&["nobody"]).not_found().contains("there is no instance 'nobody'"));
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_and_sizes_of_an_instance_are_shown() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    Program::start(&path).await.fill_and_stop().await;
    let ask =
        |args: &[&str]| run(["instance"].iter().chain(args).chain(&["--store", path.to_str().unwrap()]));
    assert_eq!(ask(&["kv", "hello-1"]).fine(), "KEY     VALUE\ncolour  blue\n");
    assert_eq!(ask(&["kv", "hello-1", "colour"]).fine(), "blue\n");
    assert_eq!(
        ask(&["kv", "hello-1", "colour", "-o", "jsonl"]).fine(),
        "{\"key\":\"colour\",\"value\":\"blue\"}\n"
    );
    assert_eq!(ask(&["kv", "parked-1"]).fine(), "Instance 'parked-1' has no keys.\n");
    assert!(ask(&["kv", "hello-1", "size"]).not_found().contains("instance 'hello-1' has no key 'size'"));
    let stats = ask(&["stats", "hello-1"]).fine();
    assert!(stats.starts_with("instance       hello-1\nexecution      1\nevents         "), "{stats}");
    assert!(stats.contains("\nkeys           1\nvalue bytes    4\n"), "{stats}");
    for verb in ["kv", "stats"] {
        assert!(ask(&[verb, "nobody"]).not_found().contains("there is no instance 'nobody'"), "{verb}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn started_instance_runs_once_with_its_input() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let program = Program::start(&path).await;
    let args = |more: &[&str]| {
        let start = ["instance", "start", "--store", path.to_str().unwrap()];
        start.iter().chain(more).map(|arg| arg.to_string()).collect::<Vec<_>>()
    };
    let said_by = |more: &[&str]| run(args(more));
    let started = said_by(&["Leaf", "leaf-1", "--input", "s3cret"]).fine();
    assert!(
        started.starts_with("Started instance 'leaf-1' of 'Leaf'.") && !started.contains("s3cret"),
        "{started}"
    );
    program.client.wait_for_orchestration("leaf-1", LONG).await.unwrap();
    let taken = said_by(&["Leaf", "leaf-1"]);
    assert_eq!((taken.code, taken.out.as_str()), (Some(6), ""), "{taken:?}");
    assert!(taken.err.contains("instance 'leaf-1' exists (Completed): nothing was started"), "{taken:?}");
    let used = said_by(&["Leaf", "leaf-1", "--if-exists", "use-existing"]).fine();
    assert_eq!(used, "Instance 'leaf-1' exists (Completed). Nothing was started.\n");
    let named = said_by(&["Leaf", "--token", "monday", "-o", "json"]).json();
    assert_eq!(named["instance"], "Leaf:monday");
    // The input comes from standard input.
    let mut child = outlast(args(&["Rounds", "rounds-1", "--input-file", "-"]))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"2").unwrap();
    said(child.wait_with_output().unwrap()).fine();
    for _ in 0..2 {
        program.client.enqueue_event("rounds-1", "next", "").await.unwrap();
    }
    let ended = program.client.wait_for_orchestration("rounds-1", LONG).await.unwrap();
    assert!(matches!(&ended, OrchestrationStatus::Completed { output, .. } if output == "over"), "{ended:?}");
    assert_eq!(program.client.list_executions("rounds-1").await.unwrap(), [1, 2], "the input was 2");
    for wrong in
        [&["Leaf"][..], &["Leaf", "a", "--token", "b"], &["Leaf", "a", "--input", "", "--input-file", "-"]]
    {
        assert_eq!(said_by(wrong).code, Some(2), "{wrong:?}");
    }
    assert!(
        said_by(&["Leaf", "a", "--input-file", "/nowhere/at/all"]).failed().contains("'/nowhere/at/all'")
    );
    program.runtime.shutdown(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn items_of_a_queue_are_shown_without_payloads() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let program = Program::start(&path).await;
    let peek = |queue: &str, more: &[&str]| {
        run(["queue", "peek", queue, "--store", path.to_str().unwrap()].iter().chain(more))
    };
    assert_eq!(peek("turns", &[]).fine(), "No item waits.\n");
    program.client.start_orchestration("waits-1", "Waits", "").await.unwrap();
    program.park("parked-1", "1.0.0").await;
    // The tag keeps this activity in the queue.
    let waiting = loop {
        let peeked = peek("activities", &["-o", "json"]).json();
        if peeked["items"].as_array().unwrap().iter().any(|item| item["tag"] == "gpu") {
            break peeked;
        }
    };
    let item = waiting["items"].as_array().unwrap().iter().find(|item| item["tag"] == "gpu").unwrap();
    assert_eq!((&item["instance"], &item["name"]), (&"waits-1".into(), &"Say".into()), "{item}");
    assert!(!waiting.to_string().contains("s3cret"), "{waiting}");
    program.runtime.shutdown(None).await;
    program.client.start_orchestration("later-1", "Parked", "s3cret").await.unwrap();
    let text = peek("turns", &[]).fine();
    assert!(text.starts_with("INSTANCE  KIND "), "{text}");
    assert!(text.contains("\nlater-1   StartOrchestration  Parked  due for "), "{text}");
    assert!(text.contains("\nwaits-1   TimerFired          -       delayed, due in 1h 59m"), "{text}");
    let bounded = peek("turns", &["--scan", "1", "--limit", "1"]).fine();
    assert!(bounded.ends_with("more run: --scan reads more.\n") && bounded.lines().count() == 3, "{bounded}");
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_have_the_same_figures_in_every_format() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    Program::start(&path).await.fill_and_stop().await;
    let metrics = |more: &[&str]| run(["metrics", "--store", path.to_str().unwrap()].iter().chain(more));
    let text = metrics(&[]).fine();
    assert!(
        text.starts_with("METRIC                        LABELS                            VALUE\n"),
        "{text}"
    );
    assert!(text.contains("\noutlast_instances             status=completed                  4\n"), "{text}");
    let prometheus = metrics(&["--prometheus"]).fine();
    assert!(
        prometheus.contains("# TYPE outlast_instances gauge\noutlast_instances{status=\"running\"} 1\n"),
        "{prometheus}"
    );
    assert!(prometheus.contains("\noutlast_dead_letters 0\n"), "{prometheus}");
    assert!(prometheus.contains("\noutlast_queue_oldest_seconds{queue=\"worker\"} 0\n"), "{prometheus}");
    let json = metrics(&["-o", "json"]).json();
    let lines = prometheus.lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(json["metrics"].as_array().unwrap().len(), lines);
    assert_eq!(metrics(&["-o", "jsonl"]).fine().lines().count(), lines);
    assert_eq!(metrics(&["--prometheus", "-o", "json"]).code, Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn new_commands_have_the_exit_status_of_the_store_s_state() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    empty(&path).await;
    let commands: &[&[&str]] = &[
        &["instance", "count"],
        &["instance", "tree", "i"],
        &["instance", "kv", "i"],
        &["instance", "stats", "i"],
        &["instance", "start", "Leaf", "i"],
        &["execution", "list", "i"],
        &["execution", "prune", "i", "--keep", "1"],
        &["queue", "peek", "turns"],
        &["audit", "list"],
        &["metrics"],
    ];
    let away = "postgres://me@127.0.0.1:1/db?sslmode=disable";
    damage(&path, "INSERT INTO outlast_migrations VALUES (99, 'later', 'x', 99, 0)");
    for (store, code) in [(path.to_str().unwrap(), 7), (away, 7), ("/nowhere/at/all.db", 1)] {
        for command in commands {
            let said = run(command.iter().chain(&["--store", store]));
            assert_eq!((said.code, said.out.as_str()), (Some(code), ""), "{command:?} on {store}: {said:?}");
        }
    }
}

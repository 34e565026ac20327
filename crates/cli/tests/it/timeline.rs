//! `outlast instance timeline` and `outlast instance diff`.

use crate::program::Program;
use crate::support::{Said, run};
use std::path::Path;

async fn a_store(path: &Path) {
    Program::start(path).await.fill_and_stop().await;
}

fn ask(store: &Path, args: &[&str]) -> Said {
    run(["instance"].iter().chain(args).chain(&["--store", store.to_str().unwrap()]))
}

#[tokio::test(flavor = "multi_thread")]
async fn timeline_draws_one_plain_line_per_operation() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("jobs.db");
    a_store(&store).await;
    let text = ask(&store, &["timeline", "hello-1"]).fine();
    assert!(text.starts_with("hello-1 execution 1, "), "{text}");
    let lines: Vec<&str> = text.lines().filter(|line| line.contains('#') || line.contains('-')).collect();
    assert!(lines.iter().any(|line| line.contains(" Say ")), "{text}");
    assert!(lines.iter().any(|line| line.contains(" child Leaf ")), "{text}");
    assert!(!text.contains('\u{1b}') && !text.contains("s3cret"), "plain, without payloads: {text:?}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");

    let json = ask(&store, &["timeline", "parked-1", "-o", "json"]).json();
    assert_eq!((&json["instance"], &json["execution"]), (&"parked-1".into(), &1.into()));
    assert_eq!((&json["is_running"], &json["is_grouped"]), (&true.into(), &false.into()));
    let span = &json["spans"][0];
    let found = [&span["kind"], &span["name"], &span["status"], &span["lane"]].map(ToString::to_string);
    assert_eq!(found, ["\"wait\"", "\"go\"", "\"running\"", "0"]);
    assert_eq!(json["bins"].as_array().unwrap().len(), 600);
    assert!(span["end_ms"].is_null() && json["gaps"].is_array());
    let error = ask(&store, &["timeline", "hello-1", "--execution", "7"]).not_found();
    assert!(error.contains("has no execution 7"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn diff_names_the_first_event_that_differs() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("jobs.db");
    a_store(&store).await;
    let text = ask(&store, &["diff", "hello-1", "hello-2"]).fine();
    assert!(text.contains("The histories are equal.\n"), "{text}");
    assert!(text.starts_with("left   hello-1 execution 1, "), "{text}");

    let text = ask(&store, &["diff", "hello-1", "broken-1"]).fine();
    assert!(text.contains("The histories differ first at event 1 (!)."), "{text}");
    let first = text.lines().nth(4).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(first, "! 1 OrchestrationStarted Greeting 1.0.0 OrchestrationStarted Broken 1.0.0");
    assert!(!text.contains("s3cret") && !text.contains("it is broken") && !text.contains("blue"), "{text}");

    let json = ask(&store, &["diff", "parked-1", "broken-1", "-o", "json"]).json();
    assert_eq!((&json["first_difference"], &json["left"]["instance"]), (&1.into(), &"parked-1".into()));
    assert_eq!(json["rows"][0]["comparison"], "different");
}

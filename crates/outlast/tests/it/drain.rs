//! A process that gets SIGTERM drains and exits with 0; another process continues its activity at once, uncounted.

use outlast::providers::sqlite::SqliteProvider;
use outlast::providers::{Provider, TagFilter};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

#[path = "../../examples/drain.rs"]
mod example;

/// The test below runs the example in a process of its own.
const WORKER: &str = "drain::worker_of_the_example";

#[test]
fn worker_of_the_example() {
    example::main().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn terminated_worker_gives_its_activity_back_uncounted_and_exits_with_zero() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("dinner.db");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([WORKER, "--exact", "--nocapture", "--test-threads", "1"])
        .env("DRAIN_STORE", &file)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.ends_with("begun")), "the activity runs");
    let begun = Instant::now();
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    assert!(lines.any(|line| line == "drained after SIGTERM"));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    // The grace period of the example is half a second, and the lease of the activity 30 s.
    let took = begun.elapsed();
    assert!(took > Duration::from_millis(400) && took < Duration::from_secs(10), "{took:?}");
    let store = Arc::new(SqliteProvider::new(&format!("sqlite:{}", file.display()), None).await.unwrap());
    let lease = Duration::from_secs(30);
    let fetched = store.fetch_work_item(lease, Duration::ZERO, None, &TagFilter::default()).await.unwrap();
    let (_, _, attempt) = fetched.expect("the activity waits for another worker");
    assert_eq!(attempt, 1, "the delivery before the drain is not counted");
}

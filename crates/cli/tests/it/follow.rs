//! `--follow` of `outlast instance list`, `show` and `history`.

use crate::program::{LONG, Program};
use crate::support::{damage, outlast, run};
use outlast::providers::Provider;
use outlast::providers::sqlite::SqliteProvider;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

/// A command that runs, and its output line by line.
struct Following {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Drop for Following {
    /// A test that fails leaves no process.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Following {
    fn start(args: &[&str], store: &[String]) -> Self {
        let args = args.iter().map(|arg| arg.to_string()).chain(store.iter().cloned());
        let mut child = outlast(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The next line, which the test waits for.
    fn line(&mut self) -> String {
        self.lines.next().expect("the command goes on").unwrap()
    }

    fn json(&mut self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    /// The remaining lines and the exit status of a command that ends.
    fn rest(mut self) -> (Vec<String>, Option<i32>) {
        let lines = self.lines.by_ref().map(Result::unwrap).collect();
        (lines, self.child.wait().unwrap().code())
    }

    /// The exit status after Ctrl-C.
    fn interrupted(mut self) -> Option<i32> {
        let sent = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
        self.child.wait().unwrap().code()
    }
}

fn sqlite(path: &std::path::Path) -> Vec<String> {
    vec!["--store".to_string(), path.to_str().unwrap().to_string()]
}

fn position(event: &Value) -> (u64, u64) {
    (event["execution_id"].as_u64().unwrap(), event["event_id"].as_u64().unwrap())
}

/// The ids of all stored events of an instance, with their executions.
async fn stored(program: &Program, instance: &str) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    for execution in program.client.list_executions(instance).await.unwrap() {
        let events = program.client.read_execution_history(instance, execution).await.unwrap();
        all.extend(events.iter().map(|event| (execution, event.event_id)));
    }
    all
}

/// Follows an instance that continues as new: twice while the command waits, and then often between two reads.
pub(crate) async fn prints_each_event_once(store: Arc<dyn Provider>, store_args: &[String]) {
    let program = Program::on(store).await;
    program.client.start_orchestration("rounds", "Rounds", "20").await.unwrap();
    let next = || program.client.enqueue_event("rounds", "next", "");
    next().await.unwrap();
    while program.client.list_executions("rounds").await.unwrap().len() < 2 {
        tokio::task::yield_now().await;
    }
    let args = ["instance", "history", "rounds", "--follow", "-o", "jsonl"];
    let mut following = Following::start(&args, store_args);
    let mut printed = vec![position(&following.json())];
    assert_eq!(printed, [(2, 1)], "the command begins with the newest execution");
    next().await.unwrap();
    while printed.last().is_none_or(|(execution, _)| *execution < 3) {
        printed.push(position(&following.json()));
    }
    for _ in 3..=20 {
        next().await.unwrap();
    }
    program.client.wait_for_orchestration("rounds", LONG).await.unwrap();
    let (rest, code) = following.rest();
    printed.extend(rest.iter().map(|line| position(&serde_json::from_str(line).unwrap())));
    assert_eq!(code, Some(0), "the command ends with the instance");
    let expected: Vec<_> =
        stored(&program, "rounds").await.into_iter().filter(|(execution, _)| *execution > 1).collect();
    assert_eq!(printed, expected);
    program.runtime.shutdown(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn followed_history_has_each_event_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let store = SqliteProvider::new(&format!("sqlite:{}", path.display()), None).await.unwrap();
    prints_each_event_once(Arc::new(store), &sqlite(&path)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn followed_table_appends_events_and_names_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let program = Program::start(&path).await;
    program.park("parked", "1.0.0").await;
    let mut following = Following::start(&["instance", "history", "parked", "--follow"], &sqlite(&path));
    assert_eq!(following.line(), "parked execution 1");
    assert!(
        following.line().starts_with("ID    TIME (UTC)               EVENT"),
        "the header is printed once"
    );
    let first = following.line();
    assert!(first.contains("  OrchestrationStarted "), "{first}");
    let second = following.line();
    assert_eq!(
        first.find("OrchestrationStarted"),
        second.find("ExternalSubscribed"),
        "{second} is aligned with {first}"
    );
    program.client.raise_event("parked", "go", "s3cret").await.unwrap();
    let (rest, code) = following.rest();
    assert_eq!((rest.len(), code), (3, Some(0)), "{rest:?}");
    assert_eq!(rest[2], "Instance 'parked' completed.");
    assert!(!rest.concat().contains("s3cret"), "payloads are hidden: {rest:?}");
    // An instance that has ended is printed, and the command ends.
    let (all, code) =
        Following::start(&["instance", "history", "parked", "--execution", "1", "--follow"], &sqlite(&path))
            .rest();
    assert_eq!((all.len(), code), (7, Some(0)), "{all:?}");
    assert_eq!(all[6], "Execution 1 of instance 'parked': Completed.");
    program.runtime.shutdown(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn followed_instance_is_shown_after_each_change_until_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let program = Program::start(&path).await;
    program.park("parked", "1.0.0").await;
    let mut following =
        Following::start(&["instance", "show", "parked", "--follow", "-o", "jsonl"], &sqlite(&path));
    // The first state may be that of the turn before its commit has been counted.
    while following.json()["why"]["rule"] != "event_not_sent" {}
    program.client.raise_event("parked", "go", "went").await.unwrap();
    let (rest, code) = following.rest();
    assert_eq!(code, Some(0));
    let last: Value = serde_json::from_str(rest.last().unwrap()).unwrap();
    assert_eq!((&last["status"], &last["output"]), (&"Completed".into(), &"went".into()), "{last}");
    let states: std::collections::HashSet<&String> = rest.iter().collect();
    assert_eq!(states.len(), rest.len(), "no state is printed twice in a row: {rest:?}");
    program.runtime.shutdown(None).await;
}

/// The terminal of the test has 24 rows.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn followed_instance_is_drawn_in_place_on_a_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let program = Program::start(&path).await;
    program.park("parked", "1.0.0").await;
    let args = ["instance", "show", "parked", "--follow", "--store", path.to_str().unwrap()];
    let mut terminal = crate::terminal::Terminal::start(&args, 24, 80);
    terminal.wait_for("waits for      event 'go': not sent yet");
    program.client.raise_event("parked", "go", "went").await.unwrap();
    let (code, text) = terminal.end();
    assert_eq!(code, Some(0), "{text}");
    assert!(text.starts_with("\u{1b}[2J\u{1b}[Hinstance       parked\u{1b}[K"), "{text:?}");
    let last = text.rsplit("\u{1b}[H").next().unwrap();
    assert!(
        last.contains("status         Completed\u{1b}[K") && last.contains("output         went"),
        "{last:?}"
    );
    program.runtime.shutdown(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn followed_list_has_starts_and_ends_until_ctrl_c() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let program = Program::start(&path).await;
    program.park("first", "1.0.0").await;
    let args = ["instance", "list", "--status", "running", "--limit", "2", "--follow", "-o", "jsonl"];
    let mut following = Following::start(&args, &sqlite(&path));
    assert_eq!(following.json()["instance"], "first");
    // More starts than a page has rows.
    let ids = ["a", "b", "c", "d", "e"];
    for id in ids {
        program.park(id, "1.0.0").await;
    }
    let mut seen: Vec<String> = Vec::new();
    while !ids.iter().all(|id| seen.iter().any(|seen| seen == id)) {
        seen.push(following.json()["instance"].as_str().unwrap().to_string());
    }
    program.client.raise_event("e", "go", "").await.unwrap();
    let ended = loop {
        let row = following.json();
        if row["status"] != "Running" {
            break row;
        }
    };
    assert_eq!((&ended["instance"], &ended["status"]), (&"e".into(), &"Completed".into()));
    assert_eq!(following.interrupted(), Some(130));
    program.runtime.shutdown(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_ends_a_followed_instance_with_130() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let program = Program::start(&path).await;
    program.park("parked", "1.0.0").await;
    program.runtime.shutdown(None).await;
    for verb in ["show", "history"] {
        let mut following = Following::start(&["instance", verb, "parked", "--follow"], &sqlite(&path));
        assert!(following.line().contains("parked"));
        assert_eq!(following.interrupted(), Some(130), "{verb}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_of_a_followed_instance_ends_the_command_with_3() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let program = Program::start(&path).await;
    program.park("parked", "1.0.0").await;
    let followed = ["show", "history"].map(|verb| {
        let mut following = Following::start(&["instance", verb, "parked", "--follow"], &sqlite(&path));
        assert!(following.line().contains("parked"));
        following
    });
    program.client.delete_instance("parked", true).await.unwrap();
    for following in followed {
        assert_eq!(following.rest().1, Some(3));
    }
    program.runtime.shutdown(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn store_that_cannot_be_followed_has_the_exit_status_of_its_state() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let store = path.to_str().unwrap();
    drop(SqliteProvider::new(&format!("sqlite:{store}"), None).await.unwrap());
    for verb in ["show", "history"] {
        let missing = run(["instance", verb, "nobody", "--follow", "--store", store]).not_found();
        assert!(missing.contains("there is no instance 'nobody'"), "{missing}");
    }
    for (more, part) in [
        (&["list", "-o", "json"][..], "use -o jsonl"),
        (&["show", "i", "-o", "json"], "use -o jsonl"),
        (&["history", "i", "-o", "json"], "use -o jsonl"),
        (&["list", "--after", "mark"], "cannot be used with"),
        (&["list", "--held"], "cannot be used with"),
        (&["list", "--idle-for", "1h"], "--idle-for selects instances without changes"),
    ] {
        let refused = run(["instance"].iter().chain(more).chain(&["--follow", "--store", store]));
        assert!(refused.code == Some(2) && refused.err.contains(part), "{more:?}: {refused:?}");
    }
    let away = "postgres://me@127.0.0.1:1/db?sslmode=disable";
    assert_eq!(run(["instance", "list", "--follow", "--store", away]).code, Some(7));
    assert_eq!(run(["instance", "list", "--follow", "--store", "/nowhere/at/all.db"]).code, Some(1));
    damage(&path, "INSERT INTO outlast_migrations VALUES (99, 'later', 'x', 99, 0)");
    assert_eq!(run(["instance", "list", "--follow", "--store", store]).code, Some(7));
}

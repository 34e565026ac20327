//! The page of the demo: orders, approvals, a killed worker, another batch, ports, and the refusal of other sites.

use crate::program::LONG;
use crate::support::{Running, demo, ended, outlast, run, wait_until};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

/// A demo with a page.
struct Shown {
    running: Running,
    address: String,
    /// The lines before the address.
    said: String,
}

impl Shown {
    fn start(dir: &Path, more: &[&str]) -> Self {
        let args = demo(dir, more);
        let running = Running::start(outlast(args).args(["--port", "0"]));
        let mut said = String::new();
        while !said.contains("/demo") {
            said.push_str(&running.line().unwrap_or_else(|| panic!("the demo ended: {said}")));
        }
        let address = said.split("http://").nth(1).unwrap().split("/demo").next().unwrap().to_string();
        Self { running, address, said }
    }

    /// The status and the body of an answer; `None` if the demo has ended.
    fn ask(&self, method: &str, path: &str, header: &str, body: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.set_read_timeout(Some(LONG)).unwrap();
        let host =
            if header.contains("host:") { String::new() } else { format!("host: {}\r\n", self.address) };
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\n{host}{header}connection: close\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        )
        .ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let (head, body) = text.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().unwrap(), body.to_string()))
    }

    fn state(&self) -> Option<Value> {
        let (status, body) = self.ask("GET", "/demo/state", "", "")?;
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).ok()
    }

    /// Waits until the state fulfils the condition.
    fn until(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        wait_until(what, || {
            last = self.state().unwrap_or_else(|| panic!("the demo ended before {what}: {last}"));
            is_so(&last)
        });
        last
    }

    fn post(&self, path: &str, body: &str) -> u16 {
        self.ask("POST", path, "", body).unwrap().0
    }

    /// The exit status, and the output after the first lines.
    fn end(mut self) -> (Option<i32>, String) {
        let (code, rest) = self.running.end();
        (code, self.said + &rest)
    }
}

/// Kills the worker that runs an activity, until one is killed in the middle of it. Returns the worker.
fn kill_one_at_work(shown: &Shown) -> u64 {
    for _ in 0..20 {
        let is_at_work = |worker: &&Value| worker["activities"].as_u64() > Some(0);
        let busy = |state: &Value| state["workers"].as_array().unwrap().iter().find(is_at_work).cloned();
        let state = shown.until("a worker runs an activity", |state| {
            // Without other orders, those of the visitor go on.
            for waiting in state["waiting"].as_array().unwrap() {
                if state["open"].as_array().unwrap().len() <= state["waiting"].as_array().unwrap().len() {
                    answer(shown, waiting);
                }
            }
            busy(state).is_some()
        });
        let victim = busy(&state).unwrap();
        let worker = victim["worker"].as_u64().unwrap();
        if shown.post("/demo/kill", &format!("{{\"worker\":{worker}}}")) != 202 {
            continue;
        }
        let state = shown.until("the worker is dead", |state| {
            state["kills"].as_array().unwrap().iter().any(|kill| kill["process"] == victim["process"])
        });
        if !state["kills"][0]["held"].as_array().unwrap().is_empty() {
            return worker;
        }
    }
    panic!("no worker was killed in the middle of an activity");
}

fn answer(shown: &Shown, waiting: &Value) {
    let body = format!("{{\"order\":{},\"approve\":true}}", waiting["order"]);
    shown.ask("POST", "/demo/answer", "", &body);
}

#[test]
fn killed_worker_is_replaced_and_the_other_one_takes_its_activities_over() {
    let dir = tempfile::tempdir().unwrap();
    let shown = Shown::start(dir.path(), &["--orders", "30", "--pace", "0.5"]);
    let (status, page) = shown.ask("GET", "/demo", "", "").unwrap();
    assert!(status == 200 && page.contains("A shop that loses no order"), "{page}");
    let (_, list) = shown.ask("GET", "/instances", "", "").unwrap();
    assert!(list.contains("href=\"/demo\""), "the dashboard links to the page: {list}");
    let worker = kill_one_at_work(&shown);
    let state = shown.until("the activities run again", |state| {
        state["kills"][0]["held"].as_array().unwrap().iter().all(|held| !held["taken"].is_null())
    });
    assert_eq!(state["charged_twice"], 0, "{state}");
    shown.until("the worker is replaced", |state| {
        let worker = state["workers"].as_array().unwrap().iter().find(|found| found["worker"] == worker);
        !worker.unwrap()["process"].is_null() || state["phase"] != "running"
    });
    let mut answered = 0;
    wait_until("the demo ends", || {
        let Some(state) = shown.state() else { return true };
        for waiting in state["waiting"].as_array().unwrap() {
            answer(&shown, waiting);
            answered += 1;
        }
        false
    });
    let (code, text) = shown.end();
    assert_eq!(code, Some(0), "{text}");
    assert!(answered > 0, "an order has waited for the visitor");
    for part in ["30 placed, 30 ended", " killed", "It holds"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn terminated_worker_drains_and_exits_with_zero() {
    let dir = tempfile::tempdir().unwrap();
    let _shown = Shown::start(dir.path(), &["--orders", "30", "--pace", "0.5"]);
    // Another worker on the same files. It reports its activities.
    let args = demo(dir.path(), &["--worker", "3"]);
    let mut worker = Running::start(outlast(args).stdin(Stdio::piped()));
    // `wait` would close it, by which a worker knows that its supervisor is dead.
    let orders = worker.child.stdin.take();
    assert!(worker.line().is_some(), "it runs an activity");
    let id = worker.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(worker.code(), Some(0), "it drains; a signal has no exit status");
    drop(orders);
}

#[test]
fn page_that_stays_starts_another_batch_and_ends_with_a_signal() {
    let dir = tempfile::tempdir().unwrap();
    let shown = Shown::start(dir.path(), &["--orders", "2", "--pace", "0", "--stay"]);
    let state = shown.until("the batch is proven", |state| {
        state["waiting"].as_array().unwrap().iter().for_each(|waiting| answer(&shown, waiting));
        state["phase"] == "proven"
    });
    assert!(state["proof"].as_str().unwrap().contains("It holds"), "{state}");
    let cross = "origin: http://evil.example\r\n";
    assert_eq!(shown.ask("POST", "/demo/again", cross, "{}").unwrap().0, 403);
    assert_eq!(shown.ask("POST", "/demo/again", "host: evil.example\r\n", "{}").unwrap().0, 421);
    assert_eq!(shown.post("/demo/kill", "{\"worker\":1}"), 409, "the workers have stopped");
    assert_eq!(shown.post("/demo/kill", "{\"worker\":3}"), 409);
    assert_eq!(shown.post("/demo/answer", "{\"order\":\"order-1-001\",\"approve\":true}"), 409);
    assert_eq!(shown.post("/demo/again", "{}"), 202);
    shown.until("the next batch is proven", |state| {
        state["waiting"].as_array().unwrap().iter().for_each(|waiting| answer(&shown, waiting));
        state["batch"] == 2 && state["phase"] == "proven"
    });
    let killed = Command::new("kill").args(["-INT", &shown.running.child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let (code, text) = shown.end();
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(text.matches("It holds").count(), 2, "{text}");
}

#[test]
fn busy_port_and_an_ssh_session_are_said() {
    let dir = tempfile::tempdir().unwrap();
    let busy = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = busy.local_addr().unwrap().port().to_string();
    let args = demo(dir.path(), &["--orders", "1", "--pace", "0", "--port", &port]);
    let mut command = outlast(args);
    command.env("SSH_CONNECTION", "10.0.0.9 50000 10.0.0.5 2222").env("USER", "ada");
    let out = ended(&mut command).fine();
    assert!(out.contains(&format!("; port {port} is in use)")), "{out}");
    let found = out.split("http://127.0.0.1:").nth(1).unwrap().split('/').next().unwrap();
    assert_ne!(found, port);
    assert!(out.contains(&format!("ssh -L {found}:127.0.0.1:{found} -p 2222 ada@10.0.0.5")), "{out}");
}

#[test]
fn demo_without_a_dashboard_serves_no_page() {
    let dir = tempfile::tempdir().unwrap();
    let out = run(demo(dir.path(), &["--orders", "1", "--pace", "0", "--no-dashboard"])).fine();
    assert!(!out.contains("http://") && out.contains("It holds"), "{out}");
}

//! `outlast check`. The checked program is this test binary under another name: its test `the_program` answers.

use crate::program::LONG;
use crate::support::{Said, damage, outlast, run, said};
use outlast::client::Client;
use outlast::providers::Provider;
use outlast::providers::sqlite::SqliteProvider;
use outlast::runtime::check::{Greeting, PREFIX, VARIABLE};
use outlast::runtime::registry::ActivityRegistry;
use outlast::runtime::{Runtime, RuntimeOptions};
use outlast::{OrchestrationContext, OrchestrationRegistry};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

type Answer = Result<String, String>;

/// The part of an order that changed.
#[derive(Clone, Copy)]
enum Change {
    Absent,
    Unpatched,
    Patched,
    /// Patched, with another old way than that of the history.
    Mispatched,
}

/// An order that stops at an event before the change, if its input says so, and at another event after the change.
async fn order(ctx: OrchestrationContext, input: String, change: Change) -> Answer {
    if input == "early" {
        ctx.schedule_wait("go").await;
    }
    ctx.schedule_activity("Reserve", "s3cret input").await?;
    let is_changed = match change {
        Change::Absent => false,
        Change::Unpatched => true,
        Change::Patched | Change::Mispatched => ctx.patched("fraud"),
    };
    if !is_changed && matches!(change, Change::Mispatched) {
        ctx.schedule_activity("CheckTwice", "").await?;
    }
    if is_changed {
        ctx.schedule_activity("CheckFraud", "").await?;
    }
    let paid = ctx.schedule_wait("paid");
    ctx.set_custom_status("reserved");
    Ok(paid.await)
}

/// The order with an input of another type.
#[outlast::orchestration(name = "Order")]
async fn numbered(_ctx: OrchestrationContext, number: u32) -> Result<u32, String> {
    Ok(number)
}

fn orders(version: &str) -> OrchestrationRegistry {
    if version == "numbered" {
        return outlast::module![numbered].build().unwrap().1;
    }
    let builder = OrchestrationRegistry::builder();
    match version {
        "v1" => builder.register("Order", |ctx, input| order(ctx, input, Change::Absent)),
        "unpatched" => builder.register("Order", |ctx, input| order(ctx, input, Change::Unpatched)),
        "patched" => builder.register("Order", |ctx, input| order(ctx, input, Change::Patched)),
        "mispatched" => builder.register("Order", |ctx, input| order(ctx, input, Change::Mispatched)),
        "panics" => builder.register("Order", |_, _: String| async { panic!("on purpose") }),
        _ => builder.register_versioned("Order", "2.0.0", |ctx, input| order(ctx, input, Change::Absent)),
    }
    .build()
}

/// Not a test, unless `outlast check` runs it: then it is the program that is checked.
#[test]
fn the_program() {
    let Some(path) = std::env::args().next().filter(|_| std::env::var_os(VARIABLE).is_some()) else { return };
    let version = Path::new(&path).file_stem().unwrap().to_string_lossy().into_owned();
    match version.as_str() {
        "silent" => return,
        "of-another-release" => {
            let greeting = Greeting { protocol: "99".to_string(), orchestrations: Vec::new() };
            let greeting = serde_json::to_string(&greeting).unwrap();
            // The test harness has printed a part of a line.
            writeln!(std::io::stdout(), "\n{PREFIX}{greeting}").unwrap();
            return;
        }
        _ => {}
    }
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio.block_on(async {
        let options = RuntimeOptions::default();
        match version.as_str() {
            "v1" => drop(Runtime::builder().orchestrations(orders("v1")).options(options).answer_check()),
            version => {
                let store = Arc::new(outlast::providers::memory::MemoryProvider::new());
                Runtime::start_with_store(store, ActivityRegistry::default(), orders(version)).await;
            }
        }
    });
    unreachable!("a program that is checked does not start its runtime");
}

/// This test binary under the name of a version.
fn program(version: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("checked");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("{version}{}", std::env::consts::EXE_SUFFIX));
    let this = std::env::current_exe().unwrap();
    let is_this =
        |path: &Path| path.metadata().is_ok_and(|linked| linked.len() == this.metadata().unwrap().len());
    // Tests run at the same time: another one may have made the link.
    let own = folder.join(format!("{version}-{}-{:?}", std::process::id(), std::thread::current().id()));
    std::fs::hard_link(&this, &own).unwrap();
    std::fs::rename(&own, &path).unwrap();
    let _ = std::fs::remove_file(&own);
    assert!(is_this(&path));
    path
}

/// The arguments with which this test binary is the checked program.
const THE_PROGRAM: [&str; 3] = ["--exact", "check::the_program", "--nocapture"];

/// Checks a store with a version.
fn check(store: &str, version: &str, more: &[&str]) -> Said {
    said(command(version, &[&["--store", store], more].concat()).output().unwrap())
}

/// The command that checks a store with a version.
pub(crate) fn command(version: &str, more: &[&str]) -> Command {
    let program = program(version);
    let mut args = vec!["check", "--bin", program.to_str().unwrap()];
    args.extend(more);
    args.push("--");
    args.extend(THE_PROGRAM);
    outlast(args)
}

/// Starts orders of the first version, one before the change and `late` after it, and stops.
pub(crate) async fn fill(store: Arc<dyn Provider>, late: usize) {
    let client = Client::new(store.clone());
    let reserve = |_, _: String| async { Ok("s3cret result".to_string()) };
    let activities = ActivityRegistry::builder().register("Reserve", reserve).build();
    let runtime = Runtime::start_with_store(store, activities, orders("v1")).await;
    client.start_orchestration("early", "Order", "early").await.unwrap();
    for number in 0..late {
        client.start_orchestration(format!("late-{number}"), "Order", "").await.unwrap();
    }
    client.start_orchestration("ended", "Order", "").await.unwrap();
    client.wait_for_status_change("ended", 0, Duration::from_millis(5), LONG).await.unwrap();
    client.raise_event("ended", "paid", "").await.unwrap();
    client.wait_for_orchestration("ended", LONG).await.unwrap();
    for number in 0..late {
        let instance = format!("late-{number}");
        client.wait_for_status_change(&instance, 0, Duration::from_millis(5), LONG).await.unwrap();
    }
    runtime.shutdown(None).await;
}

async fn filled(folder: &Path) -> String {
    let path = folder.join("orders.db");
    let store = SqliteProvider::new(&format!("sqlite:{}", path.display()), None).await.unwrap();
    fill(Arc::new(store), 3).await;
    path.to_str().unwrap().to_string()
}

#[track_caller]
pub(crate) fn breaks(said: Said) -> String {
    assert_eq!((said.code, said.err.as_str()), (Some(3), ""), "{}", said.out);
    assert!(!said.out.contains("s3cret"), "{}", said.out);
    said.out
}

#[tokio::test]
async fn unchanged_program_is_safe_and_the_store_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = filled(folder.path()).await;
    let before = std::fs::read(&store).unwrap();
    let out = check(&store, "v1", &[]).fine();
    assert!(out.contains("Checked 4 running instances"), "{out}");
    assert!(out.contains("4 safe, 0 diverge, 0 unregistered, 0 undecodable"), "{out}");
    assert!(std::fs::read(&store).unwrap() == before);
    let out = check(&store, "v1", &["--prefix", "late", "--output", "json"]).json();
    assert_eq!((&out["checked"], &out["is_safe"]), (&Value::from(3), &Value::from(true)));
}

#[tokio::test]
async fn changed_program_is_reported_with_both_places_in_the_source() {
    let folder = tempfile::tempdir().unwrap();
    let store = filled(folder.path()).await;
    let out = breaks(check(&store, "unpatched", &[]));
    assert!(out.contains("1 safe, 3 diverge"), "{out}");
    assert!(out.contains("diverges: 3 instances of Order 1.0.0"), "{out}");
    assert!(out.contains("recorded: event 4 is a wait for event 'paid'"), "{out}");
    assert!(out.contains("the code now asks for activity 'CheckFraud'"), "{out}");
    assert!(out.contains("instances: late-0, late-1, late-2"), "{out}");
    let hint = "give `--old PATH` with the build that wrote them";
    assert!(!out.contains("event 'paid' at ") && out.contains(hint), "{out}");
    let old = program("v1");
    let old_args = ["--old", old.to_str().unwrap()];
    let out = breaks(check(&store, "unpatched", &old_args));
    assert!(out.contains("recorded: event 4 is a wait for event 'paid' at ") && !out.contains(hint), "{out}");
    let out = breaks(check(&store, "other", &[]));
    assert!(!out.contains(hint), "an unregistered instance has no place: {out}");
    let json = breaks(check(&store, "unpatched", &["-o", "json"]));
    assert!(!json.contains("--old"), "{json}");
    let json = breaks(check(&store, "unpatched", &["-o", "json", "--old", old.to_str().unwrap()]));
    let json: Value = serde_json::from_str(&json).unwrap();
    let broken = &json["instances"][0];
    assert_eq!((&broken["instance"], &broken["finding"]), (&Value::from("late-0"), &Value::from("diverges")));
    assert_eq!(broken["event_id"], 4);
    assert_eq!(
        (&broken["recorded"], &broken["recorded_type"], &broken["now_type"]),
        (&Value::from("a wait for event 'paid'"), &"ExternalSubscribed".into(), &"ActivityScheduled".into())
    );
    let (now, recorded) = (broken["site"].as_str().unwrap(), broken["recorded_site"].as_str().unwrap());
    assert!(now.contains("check.rs:") && recorded.contains("check.rs:") && now != recorded, "{broken}");
}

#[tokio::test]
async fn patched_program_is_safe_and_the_instances_that_are_older_than_the_patch_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let store = filled(folder.path()).await;
    let out = check(&store, "patched", &[]).fine();
    assert!(
        out.contains("patch 'fraud': 3 running instances are older than it, and need its old code"),
        "{out}"
    );
    let json = check(&store, "patched", &["-o", "json"]).json();
    assert_eq!(json["patches"]["fraud"], serde_json::json!({"taken": 0, "older": 3, "diverging": 0}));
}

#[tokio::test]
async fn instances_that_diverge_without_a_record_of_a_patch_are_not_counted_as_older() {
    let folder = tempfile::tempdir().unwrap();
    let store = filled(folder.path()).await;
    let out = breaks(check(&store, "mispatched", &[]));
    let says = "patch 'fraud': no safe instance is older than it; 3 instances that are not safe have no record of it\n";
    assert!(out.contains(says) && !out.contains("can be removed"), "{out}");
    assert!(out.contains("; the history has no record of patch 'fraud', so its old way runs"), "{out}");
    let json: Value = serde_json::from_str(&breaks(check(&store, "mispatched", &["-o", "json"]))).unwrap();
    assert_eq!(json["patches"]["fraud"], serde_json::json!({"taken": 0, "older": 0, "diverging": 3}));
}

#[tokio::test]
async fn missing_versions_and_panics_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let store = filled(folder.path()).await;
    let out = breaks(check(&store, "other", &[]));
    assert!(out.contains("unregistered: 4 instances of Order 1.0.0"), "{out}");
    let said = check(&store, "panics", &["-o", "json"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    let json: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(json["instances"][0]["now"], "the code panics");
}

#[tokio::test]
async fn histories_and_inputs_that_do_not_decode_are_reported_without_their_text() {
    let folder = tempfile::tempdir().unwrap();
    let store = filled(folder.path()).await;
    let out = breaks(check(&store, "numbered", &[]));
    assert!(out.contains("0 safe, 0 diverge, 0 unregistered, 4 undecodable"), "{out}");
    assert!(out.contains("now: the input does not decode as the type of the code"), "{out}");
    let torn = "UPDATE history SET event_data = '{\"s3cret\"' WHERE instance_id = 'late-1' AND event_id = 2";
    damage(Path::new(&store), torn);
    let out = breaks(check(&store, "v1", &[]));
    assert!(out.contains("3 safe, 0 diverge, 0 unregistered, 1 undecodable"), "{out}");
    assert!(out.contains("undecodable: 1 instance of Order 1.0.0"), "{out}");
    assert!(out.contains("`outlast instance why` says more\n  instances: late-1\n"), "{out}");
    let json: Value = serde_json::from_str(&breaks(check(&store, "v1", &["-o", "json"]))).unwrap();
    assert_eq!((&json["undecodable"], &json["safe"]), (&Value::from(1), &Value::from(3)));
    assert_eq!(json["instances"][0]["finding"], "undecodable");
}

#[tokio::test]
async fn progress_is_on_standard_error_with_every_format_and_has_the_total_if_all_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let store = filled(folder.path()).await;
    for format in ["table", "json", "jsonl"] {
        let said = check(&store, "unpatched", &["--progress-every", "2", "-o", format]);
        assert_eq!(said.code, Some(3), "{said:?}");
        let lines: Vec<&str> = said.err.lines().collect();
        let [half, all] = lines[..] else { panic!("{said:?}") };
        assert!(half.starts_with("checked 2 of 4 running instances (50 %), not safe: "), "{half}");
        assert_eq!(all, "checked 4 of 4 running instances (100 %), not safe: 3");
        assert!(!said.out.contains("50 %"), "{}", said.out);
    }
    let said = check(&store, "v1", &["--progress-every", "2", "--prefix", "late"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), "checked 2 running instances, not safe: 0\n"));
}

#[tokio::test]
async fn a_program_and_a_command_of_different_releases_refuse_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let store = filled(folder.path()).await;
    let error = check(&store, "of-another-release", &[]).failed();
    assert!(error.contains("speaks version 99 of the protocol, and this command 1"), "{error}");
    assert!(error.contains("use the command of the same release"), "{error}");
    for version in ["v1", "patched"] {
        let mut program = Command::new(program(version));
        let error = said(program.args(THE_PROGRAM).env(VARIABLE, "99").output().unwrap()).failed();
        assert!(
            error.contains("OUTLAST_CHECK asks for protocol \"99\", and this program speaks 1"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_store_without_instances_and_a_copy_without_its_log_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.db");
    let in_use = SqliteProvider::new(&format!("sqlite:{}", path.display()), None).await.unwrap();
    let copy = folder.path().join("copy.db");
    std::fs::copy(&path, &copy).unwrap();
    let error = check(copy.to_str().unwrap(), "v1", &[]).failed();
    assert!(error.contains("its log is missing") && error.contains("'copy.db-wal'"), "{error}");
    drop(in_use);
    let out = check(path.to_str().unwrap(), "v1", &[]).fine();
    assert!(out.contains("The store has no instance: is it the right store?"), "{out}");
    let names = || {
        let found = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        found.map(|name| name.into_string().unwrap()).collect::<std::collections::BTreeSet<String>>()
    };
    assert_eq!(names(), ["copy.db", "new.db"].map(String::from).into());
}

#[tokio::test]
async fn program_that_does_not_answer_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let store = filled(folder.path()).await;
    let error = check(&store, "silent", &[]).failed();
    assert!(
        error.contains("ended without an answer, so it could not be asked") && error.contains("answer_check"),
        "{error}"
    );
    let missing = folder.path().join("no-such-program");
    let error = run(["check", "--store", &store, "--bin", missing.to_str().unwrap()]).failed();
    assert!(error.contains("cannot be started"), "{error}");
}

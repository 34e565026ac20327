//! The output of `outlast instance show` for an instance that waits.

use crate::program::Program;
use crate::support::run;
use outlast::client::Client;
use outlast::providers::Provider;
use outlast::providers::sqlite::SqliteProvider;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(60);

fn show(store: &[String], instance: &str) -> (Value, String) {
    let args = |more: &[&str]| {
        let own = ["instance", "show", instance].into_iter().chain(more.iter().copied()).map(str::to_string);
        own.chain(store.iter().cloned()).collect::<Vec<_>>()
    };
    (run(args(&["-o", "json"])).json()["waiting"].clone(), run(args(&[])).fine())
}

/// Kind, name and state of every wait.
fn states(waiting: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_string();
    let waits = waiting["waits"].as_array().unwrap().iter();
    waits.map(|wait| [&wait["kind"], &wait["name"], &wait["state"]].map(text).join(" ")).collect()
}

fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("s3cret"), "no payload: {text}");
}

/// Checks the output for an instance in each kind of wait.
pub(crate) async fn is_shown(store: Arc<dyn Provider>, named: &[String]) {
    let client = Client::new(store.clone());
    client.start_orchestration("waits-1", "Waits", "s3cret").await.unwrap();
    let args = ["instance", "show", "waits-1"].map(str::to_string);
    let error = run(args.iter().chain(named)).not_found();
    contains(&error, &["error: Instance 'waits-1' has had its first turn due for "]);

    let program = Program::on(store.clone()).await;
    // Waits until the activity is leased and the child has started.
    while client.get_instance_info("waits-1::sub::7").await.is_err()
        || !client
            .pending_work("waits-1", 9)
            .await
            .unwrap()
            .unwrap()
            .activities
            .iter()
            .any(|w| w.locked_until.is_some())
    {
        tokio::task::yield_now().await;
    }
    let (waiting, text) = show(named, "waits-1");
    let expected = [
        "activity Say queued",
        "activity Block leased",
        "timer - sleeping",
        "event approve outside",
        "queue orders outside",
        "child Parked outside",
    ];
    assert_eq!(states(&waiting), expected, "{text}");
    assert_eq!(waiting["turn"]["state"], "idle");
    assert_eq!((&waiting["waits"][0]["tag"], &waiting["waits"][1]["deliveries"]), (&"gpu".into(), &1.into()));
    assert!(waiting["waits"][1]["lease_until_ms"].as_u64() > waiting["now_ms"].as_u64());
    contains(
        &text,
        &[
            "waits for      activity Say tag gpu: queued, no worker has taken it (event 2, for ",
            "activity Block: a worker has it (delivery 1), its lease ends in ",
            "timer: due in 1h 59m, ",
            "event 'approve': not sent yet",
            "a message of queue 'orders': not sent yet",
            "child waits-1::sub::7 (Parked): Running",
            "messages       TimerFired of event 4, ",
        ],
    );
    program.runtime.shutdown(Some(0)).await;

    // The approval is queued, and no process runs a turn.
    client.raise_event("waits-1", "approve", "s3cret data").await.unwrap();
    let (waiting, text) = show(named, "waits-1");
    assert_eq!(states(&waiting)[3], "event approve answered", "{text}");
    assert_eq!((&waiting["turn"]["state"], &waiting["turn"]["messages"]), (&"due".into(), &1.into()));
    contains(
        &text,
        &[
            "turn           is due: 1 message waits for it, ",
            "event 'approve': its outcome is there and waits for the next turn",
            "messages       ExternalRaised approve, ",
        ],
    );

    // No process is missing while the instance is held.
    client.pause_instance("waits-1", "ann", "a look").await.unwrap();
    contains(&show(named, "waits-1").1, &["turn           is held: 1 message waits for the release\n"]);
    client.resume_instance("waits-1", "ann", "").await.unwrap();

    // The turn is leased and given back.
    let fetched = store.fetch_orchestration_item(LEASE, Duration::ZERO, None).await.unwrap();
    let (turn, token, _) = fetched.unwrap();
    assert_eq!(turn.instance, "waits-1");
    let (waiting, text) = show(named, "waits-1");
    assert_eq!(waiting["turn"]["state"], "leased", "{text}");
    contains(
        &text,
        &["turn           runs (delivery 1), its lease ends in 5", "in the turn that runs, delivered once"],
    );
    store.abandon_orchestration_item(&token, None, false).await.unwrap();
    let (waiting, text) = show(named, "waits-1");
    assert_eq!((&waiting["turn"]["state"], &waiting["turn"]["deliveries"]), (&"due".into(), &1.into()));
    contains(&text, &["delivered once without a commit"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn show_lists_the_waits_of_an_instance() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let store = Arc::new(SqliteProvider::new(&format!("sqlite:{}", path.display()), None).await.unwrap());
    is_shown(store, &["--store".to_string(), path.display().to_string()]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn show_lists_no_waits_of_an_ended_instance() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let program = Program::start(&path).await;
    program.run("hello-1", "Greeting").await;
    let (waiting, text) = show(&["--store".to_string(), path.display().to_string()], "hello-1");
    assert_eq!(waiting, Value::Null);
    assert!(!text.contains("waits for") && !text.contains("messages"), "{text}");
    program.runtime.shutdown(None).await;
}

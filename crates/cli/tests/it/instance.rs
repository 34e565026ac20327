//! `outlast instance` on a store that a program filled.

use crate::program::{LONG, Program};
use crate::support::{Said, run};
use outlast::prelude::*;
use outlast::providers::sqlite::SqliteProvider;
use outlast::runtime::OrchestrationStatus;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A folder with a store of six instances (two are children), one of them running, and without a runtime.
async fn a_store() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("some jobs.db");
    Program::start(&path).await.fill_and_stop().await;
    (dir, path)
}

fn ask(store: &Path, args: &[&str]) -> Said {
    let store = store.to_str().unwrap();
    run(["instance"].iter().chain(args).chain(&["--store", store]))
}

fn ids(page: &serde_json::Value) -> Vec<String> {
    let instances = page["instances"].as_array().unwrap();
    instances.iter().map(|instance| instance["instance"].as_str().unwrap().to_string()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_filtered_and_paged() {
    let (_dir, store) = a_store().await;
    let all = ids(&ask(&store, &["list", "-o", "json"]).json());
    assert_eq!(all.len(), 6, "{all:?}");
    assert_eq!((all[0].as_str(), all[5].as_str()), ("parked-1", "hello-1"), "newest first");
    for (filter, expected) in [
        (&["--status", "running"][..], &["parked-1"][..]),
        (&["--status", "Running"], &["parked-1"]),
        (&["--status", "FAILED"], &["broken-1"]),
        (&["--status", "ContinuedAsNew"], &[]),
        (&["--status", "unknown"], &[]),
        (&["--name", "Greeting"], &["hello-2", "hello-1"]),
        (&["--prefix", "broken"], &["broken-1"]),
        (&["--name", "Nobody"], &[]),
    ] {
        let args = [&["list", "--output", "json"], filter].concat();
        assert_eq!(ids(&ask(&store, &args).json()), expected, "{filter:?}");
    }

    let mut paged = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let mut args = vec!["list", "-o", "json", "--limit", "4"];
        args.extend(after.iter().flat_map(|after| ["--after", after]));
        let page = ask(&store, &args).json();
        paged.extend(ids(&page));
        match page["next"].as_str() {
            Some(next) => after = Some(next.to_string()),
            None => break,
        }
    }
    assert_eq!(paged, all);

    let table = ask(&store, &["list", "--limit", "1"]).fine();
    assert!(
        table.starts_with("INSTANCE") && table.contains("parked-1  Parked         1.0.0    Running"),
        "{table}"
    );
    assert!(table.contains("go on with --after '"), "{table}");
    assert_eq!(ask(&store, &["list", "--name", "Nobody"]).fine(), "No instance matches.\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn show_prints_all_data_of_an_instance() {
    let (_dir, store) = a_store().await;
    let shown = ask(&store, &["show", "hello-1", "-o", "json"]).json();
    assert_eq!((&shown["status"], &shown["custom_status"]), (&"Completed".into(), &"greets".into()));
    assert_eq!((&shown["kv"]["colour"], &shown["failure"]), (&"blue".into(), &serde_json::Value::Null));
    assert_eq!(shown["descendants"][0]["orchestration"], "Leaf");
    assert_eq!(shown["descendants"][0]["parent"], "hello-1");

    let text = ask(&store, &["show", "hello-1"]).fine();
    for part in ["Greeting 1.0.0", "Completed", "greets (version 1)", "colour = blue", "  hello-1::sub::"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains('\u{1b}') && text.contains("s3cret\\u{1b}[31m"), "spelled out: {text:?}");

    let failed = ask(&store, &["show", "broken-1", "-o", "json"]).json();
    assert_eq!(
        (&failed["failure"]["message"], &failed["output"]),
        (&"it is broken".into(), &serde_json::Value::Null)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_shows_payloads_only_on_request() {
    let (_dir, store) = a_store().await;
    let text = ask(&store, &["history", "hello-1"]).fine();
    for part in ["OrchestrationStarted", "ActivityScheduled", "Say", "OrchestrationCompleted"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let json = ask(&store, &["history", "hello-1", "-o", "json"]).fine();
    for hidden in [&text, &json] {
        assert!(!hidden.contains("s3cret") && !hidden.contains("blue"), "{hidden}");
    }
    assert!(ask(&store, &["history", "hello-1", "--payloads"]).fine().contains("input=s3cret input"));
    let events = ask(&store, &["history", "hello-1", "--payloads", "-o", "json"]).json();
    let events: Vec<outlast::Event> = serde_json::from_value(events["events"].clone()).unwrap();
    assert!(events.last().unwrap().is_terminal(), "whole events can be read back");

    let error = ask(&store, &["history", "hello-1", "--execution", "2"]).not_found();
    assert!(error.contains("has no execution 2: the newest is 1"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_subcommands_change_nothing() {
    let (_dir, store) = a_store().await;
    let before = std::fs::read(&store).unwrap();
    for args in [
        &["list"][..],
        &["show", "hello-1"],
        &["why", "hello-1"],
        &["history", "hello-1"],
        &["timeline", "hello-1"],
        &["diff", "hello-1", "hello-2"],
    ] {
        ask(&store, args).fine();
    }
    assert!(std::fs::read(&store).unwrap() == before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_instance_is_cancelled() {
    let (_dir, store) = a_store().await;
    let program = Program::start(&store).await;
    let out = ask(&store, &["cancel", "parked-1", "--reason", "no longer needed"]).fine();
    assert!(out.contains("Asked instance 'parked-1' to stop"), "{out}");
    let OrchestrationStatus::Failed { details, .. } =
        program.client.wait_for_orchestration("parked-1", LONG).await.unwrap()
    else {
        panic!("a cancelled instance fails");
    };
    assert!(details.display_message().contains("no longer needed"), "{details:?}");
    let error = ask(&store, &["cancel", "parked-1"]).failed();
    assert!(error.contains("instance 'parked-1' has failed already: there is nothing to cancel"), "{error}");
    program.runtime.shutdown(None).await;
}

#[outlast::orchestration(on_cancel = observe)]
async fn stubborn(ctx: OrchestrationContext) -> Result<(), String> {
    ctx.set_custom_status("waits");
    ctx.cancelled().await;
    ctx.set_custom_status("observed");
    ctx.schedule_timer(Duration::from_secs(3_600)).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_answers_cancellation_is_terminated() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("stubborn.db");
    let store = SqliteProvider::new(&format!("sqlite:{}", path.display()), None).await.unwrap();
    let store = Arc::new(store);
    let builder = Runtime::builder().store(store.clone()).register(outlast::module![stubborn]);
    let runtime = builder.start().await.unwrap();
    let client = Client::new(store);
    let instance = stubborn::start(&client).id("s").await.unwrap();
    client.wait_for_status_change("s", 0, Duration::from_millis(5), LONG).await.unwrap();
    ask(&path, &["cancel", "s"]).fine();
    client.wait_for_status_change("s", 1, Duration::from_millis(5), LONG).await.unwrap();
    let out = ask(&path, &["terminate", "s", "--reason", "enough", "-o", "json"]).json();
    assert_eq!((&out["termination_requested"], &out["reason"]), (&true.into(), &"enough".into()));
    let ended = instance.result().within(LONG).await;
    assert_eq!(ended, Err(CallError::Cancelled("enough".to_string())));
    let error = ask(&path, &["terminate", "s"]).failed();
    assert!(error.contains("has failed already: there is nothing to terminate"), "{error}");
    runtime.shutdown(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_is_paused_and_resumed() {
    let (_dir, store) = a_store().await;
    let program = Program::start(&store).await;
    let out = ask(&store, &["pause", "parked-1", "--by", "ann", "--reason", "a look"]).fine();
    assert!(out.contains("Paused instance 'parked-1'"), "{out}");
    let again = ask(&store, &["pause", "parked-1"]).fine();
    assert!(again.contains("was paused or parked before"), "{again}");
    let why = ask(&store, &["why", "parked-1"]).fine();
    assert!(
        why.contains("was paused by 'ann' at") && why.contains("`outlast instance resume parked-1`"),
        "{why}"
    );
    let out = ask(&store, &["resume", "parked-1", "--by", "ann"]).fine();
    assert!(out.contains("Resumed instance 'parked-1'"), "{out}");
    let json = ask(&store, &["resume", "parked-1", "-o", "json"]).json();
    assert_eq!((&json["held"], &json["changed"]), (&false.into(), &false.into()));
    let error = ask(&store, &["pause", "hello-1"]).failed();
    assert!(error.contains("there is nothing to pause"), "{error}");
    program.runtime.shutdown(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orchestration_is_paused_listed_and_resumed() {
    let (_dir, store) = a_store().await;
    let program = Program::start(&store).await;
    let path = store.to_str().unwrap();
    let ask_type = |args: &[&str]| run(["orchestration"].iter().chain(args).chain(&["--store", path]));
    assert_eq!(ask_type(&["list"]).fine(), "No orchestration is paused.\n");
    ask(&store, &["pause", "parked-1"]).fine();
    let out = ask_type(&["pause", "Parked"]).fine();
    let both = "is paused, with 0 running instances, and 1 that was held already. Instances";
    assert!(out.contains(both), "{out}");
    let json = ask_type(&["pause", "Parked", "-o", "json"]).json();
    assert_eq!((&json["instances"], &json["held_already"]), (&0.into(), &1.into()));
    let json = ask_type(&["resume", "Parked", "-o", "json"]).json();
    assert_eq!((&json["instances"], json.get("held_already")), (&1.into(), None));
    let out = ask_type(&["pause", "Parked", "--by", "ann", "--reason", "deploy"]).fine();
    assert!(out.starts_with("Orchestration 'Parked' is paused, with 1 running instance."), "{out}");
    program.client.start_orchestration("later", "Parked", "").await.unwrap();
    while program.client.held_instance("later").await.unwrap().is_none() {
        tokio::task::yield_now().await;
    }
    let listed = ask_type(&["list", "-o", "json"]).json();
    let paused = &listed["orchestrations"][0];
    assert_eq!((&paused["orchestration"], &paused["by"]), (&"Parked".into(), &"ann".into()));
    let table = ask_type(&["list"]).fine();
    assert!(table.starts_with("PAUSED ORCHESTRATION") && table.contains("deploy"), "{table}");
    let page = ask(&store, &["list", "--held", "--limit", "1", "-o", "json"]).json();
    assert_eq!((&page["held"][0]["instance"], &page["next"]), (&"later".into(), &"later".into()));
    let page = ask(&store, &["list", "--held", "--after", "later"]).fine();
    assert!(page.contains("parked-1") && page.contains("orchestration-paused"), "{page}");
    let why = ask(&store, &["why", "later"]).fine();
    assert!(why.contains("`outlast orchestration resume Parked`"), "{why}");
    let error = ask(&store, &["resume", "later"]).failed();
    assert!(error.contains("its orchestration 'Parked' is paused"), "{error}");
    let resumed = ask_type(&["resume", "Parked", "--by", "ann", "-o", "json"]).json();
    assert_eq!((&resumed["paused"], &resumed["instances"]), (&false.into(), &2.into()));
    assert_eq!(ask(&store, &["list", "--held"]).fine(), "No instance is paused or parked.\n");
    program.runtime.shutdown(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_to_a_name_of_the_other_kind_is_sent_with_a_hint() {
    let (_dir, store) = a_store().await;
    let program = Program::start(&store).await;
    program.client.start_orchestration("rounds", "Rounds", "1").await.unwrap();
    program.client.start_orchestration("waits", "Waits", "").await.unwrap();
    for instance in ["rounds", "waits"] {
        while program.client.get_orchestration_status(instance).await.unwrap()
            == OrchestrationStatus::NotFound
        {
            tokio::task::yield_now().await;
        }
    }
    program.runtime.shutdown(None).await;
    for (args, hint) in [
        (
            ["signal", "rounds", "next"],
            Some(
                "The instance reads queue 'next' and has not waited for an event of this name: `outlast instance enqueue` sends to the queue.",
            ),
        ),
        (["signal", "waits", "orders"], Some("The instance reads queue 'orders'")),
        (
            ["enqueue", "waits", "approve"],
            Some(
                "The instance waits for event 'approve' and has not read a queue of this name: `outlast instance signal` sends the event.",
            ),
        ),
        (["signal", "waits", "approve"], None),
        (["enqueue", "waits", "orders"], None),
        (["signal", "waits", "later"], None),
    ] {
        let out = ask(&store, &[&args[..], &["data"]].concat()).fine();
        let second = out.lines().nth(1);
        assert!(out.starts_with("Sent ") && second.is_some() == hint.is_some(), "{out}");
        assert!(second.unwrap_or_default().starts_with(hint.unwrap_or_default()), "{out}");
        let json = ask(&store, &[&args[..], &["data", "-o", "json"]].concat()).json();
        assert_eq!(json["hint"].as_str(), second);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_is_reset_and_forked() {
    let (_dir, store) = a_store().await;
    let out = ask(&store, &["reset", "hello-1", "--to-event", "4", "--dry-run"]).fine();
    let expected = "A reset of instance 'hello-1' would begin execution 2 with 4 events, without the 4 after them.\n  1 activity: scheduled again\n  1 completed activity: outcome left out; run again under other idempotency keys if the code asks for them\n";
    assert_eq!(out, expected);
    let dry_run = ["reset", "parked-1", "--dry-run", "--to-event"];
    let first = ask(&store, &[&dry_run[..], &["1", "-o", "json"]].concat()).json();
    let newest = (first["left_events"].as_u64().unwrap() + 1).to_string();
    let out = ask(&store, &[&dry_run[..], &[newest.as_str()]].concat()).fine();
    let all = format!("execution 2 with {newest} events, which are all events of the old one.");
    assert!(out.contains(&all), "{out}");
    let shown = ask(&store, &["show", "hello-1", "-o", "json"]).json();
    assert_eq!(shown["status"], "Completed", "a dry run changes nothing");
    let done = ask(&store, &["reset", "hello-1", "--to-event", "5", "--by", "ann", "-o", "json"]).json();
    assert_eq!(
        (&done["execution"], &done["kept_events"], &done["dry_run"]),
        (&2.into(), &5.into(), &false.into())
    );
    let out = ask(&store, &["fork", "hello-2", "--to-event", "5", "--as", "copy"]).fine();
    assert!(
        out.starts_with("Forked instance 'hello-2' as 'copy'. It begins execution 1 with 5 events"),
        "{out}"
    );
    let error = ask(&store, &["fork", "hello-2", "--to-event", "5", "--as", "copy"]).failed();
    assert!(error.contains("instance id 'copy' is taken"), "{error}");
    let error = ask(&store, &["reset", "hello-2", "--to-event", "99"]).failed();
    assert!(error.contains("event 99 is out of range: the newest execution has events 1 to 8"), "{error}");
    let program = Program::start(&store).await;
    for instance in ["hello-1", "copy"] {
        let ended = program.client.wait_for_orchestration(instance, LONG).await.unwrap();
        assert!(matches!(ended, OrchestrationStatus::Completed { .. }), "{instance}: {ended:?}");
    }
    let audit = program.client.audit_page(None, 10).await.unwrap().unwrap();
    let actions: Vec<&str> = audit.iter().map(|record| record.entry.action.as_str()).collect();
    assert_eq!(actions, ["instance.fork", "instance.reset"]);
    program.runtime.shutdown(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_whose_first_turn_is_queued_takes_messages() {
    let (_dir, store) = a_store().await;
    let provider = SqliteProvider::new(&format!("sqlite:{}", store.display()), None).await.unwrap();
    let client = Client::new(Arc::new(provider));
    client.start_orchestration("new-1", "Hello", "Ada").await.unwrap();
    let said = ask(&store, &["enqueue", "new-1", "orders", "one"]).fine();
    assert!(said.contains("Sent a message to queue 'orders' to instance 'new-1'"), "{said}");
    ask(&store, &["signal", "new-1", "go"]).fine();
    ask(&store, &["cancel", "new-1"]).fine();
    let pending = client.pending_work("new-1", 10).await.unwrap().unwrap();
    let kinds: Vec<_> = pending.messages.iter().filter_map(|message| message.kind.as_deref()).collect();
    assert_eq!(kinds, ["StartOrchestration", "QueueMessage", "ExternalRaised", "CancelInstance"]);
    ask(&store, &["enqueue", "new-2", "orders", "one"]).not_found();
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_name_the_cause_and_the_remedy() {
    let (dir, store) = a_store().await;
    for args in [
        &["show", "nobody"][..],
        &["why", "nobody"],
        &["history", "nobody"],
        &["timeline", "nobody"],
        &["diff", "hello-1", "nobody"],
        &["diff", "nobody", "hello-1"],
        &["signal", "nobody", "go"],
        &["enqueue", "nobody", "orders"],
        &["cancel", "nobody"],
        &["reset", "nobody", "--to-event", "1"],
        &["fork", "nobody", "--to-event", "1", "--as", "copy"],
    ] {
        let error = ask(&store, args).not_found();
        assert!(
            error.contains("there is no instance 'nobody' in") && error.contains("instance list"),
            "{error}"
        );
    }
    let missing = dir.path().join("missing.db");
    for args in [&["list"][..], &["cancel", "x"]] {
        let error = ask(&missing, args).failed();
        assert!(error.starts_with("error: there is no store at '") && error.contains("--store"), "{error}");
        assert!(!missing.exists(), "nothing is made by looking");
    }
    let foreign = dir.path().join("notes.txt");
    std::fs::write(&foreign, "dear diary, ".repeat(100)).unwrap();
    for args in [&["list"][..], &["cancel", "x"]] {
        let error = ask(&foreign, args).failed();
        assert!(
            error.contains("notes.txt' is not an Outlast store") && error.contains("untouched"),
            "{error}"
        );
    }
    let error = ask(&store, &["list", "--after", "bogus"]).failed();
    assert!(error.contains("'bogus'"), "{error}");
}

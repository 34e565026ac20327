//! `outlast instance why`: each test brings the state about with a SQLite file and a runtime, and checks the sentence.

use crate::program::LONG;
use crate::support::{Said, damage, run};
use outlast::client::Client;
use outlast::lens::{Evidence, Rule, diagnose};
use outlast::providers::sqlite::SqliteProvider;
use outlast::providers::{PendingWork, Provider, TagFilter};
use outlast::runtime::registry::ActivityRegistry;
use outlast::runtime::{Runtime, RuntimeOptions, UnregisteredBackoffConfig};
use outlast::{
    ActivityContext, BackoffStrategy, Event, OrchestrationContext, OrchestrationRegistry, RetryPolicy,
};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

/// A SQLite file, a client, and the command on the file.
struct Store {
    path: PathBuf,
    store: Arc<SqliteProvider>,
    client: Client,
    _dir: tempfile::TempDir,
}

impl Store {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("jobs.db");
        let store = Arc::new(SqliteProvider::new(&format!("sqlite:{}", path.display()), None).await.unwrap());
        Self { path, client: Client::new(store.clone()), store, _dir: dir }
    }

    fn ask(&self, args: &[&str]) -> Said {
        run(["instance"].iter().chain(args).chain(&["--store", self.path.to_str().unwrap()]))
    }

    /// The rule, the sentence and the command. `show` must have the same rule.
    fn why(&self, instance: &str) -> (String, String, Option<String>) {
        let why = self.ask(&["why", instance, "-o", "json"]).json();
        let text = |value: &Value| value.as_str().map(str::to_string);
        let (rule, sentence) = (text(&why["rule"]).unwrap(), text(&why["sentence"]).unwrap());
        assert!(
            sentence.starts_with(&format!("Instance '{instance}' ")) && sentence.ends_with('.'),
            "{sentence}"
        );
        assert!(!sentence.contains("s3cret") && !sentence.contains('\n'), "no payload: {sentence}");
        (rule, sentence, text(&why["command"]))
    }

    /// The rule for a store that does not report queue rows.
    async fn rule_without_queues(&self, instance: &str) -> Rule {
        let history = self.store.read(instance).await.unwrap();
        diagnose(&Evidence::new(instance, &history, history[0].timestamp_ms)).rule()
    }

    /// Checks rule and parts of the sentence.
    fn is_because(&self, instance: &str, rule: &str, parts: &[&str]) {
        let (found, sentence, _) = self.why(instance);
        assert_eq!(found, rule, "{sentence}");
        for part in parts {
            assert!(sentence.contains(part), "{part} in {sentence}");
        }
    }

    async fn runtime(&self, options: RuntimeOptions) -> Arc<Runtime> {
        let activities = ActivityRegistry::builder()
            .register("Block", |_, _: String| std::future::pending::<Result<String, String>>())
            .register("flaky", |_, _: String| std::future::pending::<Result<String, String>>())
            .register("Fails", |_, _: String| async { Err("s3cret error".to_string()) })
            .build();
        let orchestrations = OrchestrationRegistry::builder().register("Does", does).build();
        // The tests of nodes show the sentences that name live nodes. Here the first report would come at any time.
        let options = RuntimeOptions { node_heartbeat: None, ..options };
        Runtime::start_with_options(self.store.clone(), activities, orchestrations, options).await
    }

    /// Starts an instance of `Does`, and waits until its history and its queue rows fulfil the condition.
    async fn start(&self, instance: &str, input: &str, is_so: impl Fn(&[Event], &PendingWork) -> bool) {
        self.client.start_orchestration(instance, "Does", input).await.unwrap();
        self.until(instance, is_so).await;
    }

    async fn until(&self, instance: &str, is_so: impl Fn(&[Event], &PendingWork) -> bool) {
        loop {
            let history = self.store.read(instance).await.unwrap();
            let pending = self.client.pending_work(instance, 100).await.unwrap().unwrap();
            if is_so(&history, &pending) && pending.turn_locked_until.is_none() {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    fn damage(&self, statement: &str) {
        damage(&self.path, statement);
    }
}

/// Starts the operation that its input names, and waits for it.
async fn does(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    match input.as_str() {
        "activity" => ctx.schedule_activity("Block", "s3cret").await,
        "tagged" => ctx.schedule_activity("Block", "s3cret").with_tag("gpu").await,
        "session" => {
            let first = ctx.schedule_activity_on_session("Block", "s3cret", "film-7");
            let second = ctx.schedule_activity_on_session("Block", "s3cret", "film-7");
            first.await?;
            second.await
        }
        "missing" => ctx.schedule_activity("Nowhere", "s3cret").await,
        "timer" => {
            ctx.schedule_timer(2 * HOUR).await;
            Ok(String::new())
        }
        "event" => Ok(ctx.schedule_wait("the approval").await),
        "event or timer" => {
            ctx.select2(ctx.schedule_wait("approval"), ctx.schedule_timer(2 * HOUR)).await;
            Ok(String::new())
        }
        "two events" => {
            ctx.schedule_wait("first").await;
            Ok(ctx.schedule_wait("second").await)
        }
        "queue" => Ok(ctx.dequeue_event("orders").await),
        "child" => ctx.schedule_sub_orchestration("Does", "event").await,
        "nothing" => std::future::pending().await,
        "retry" => {
            let policy = RetryPolicy::new(5).with_backoff(BackoffStrategy::Fixed { delay: HOUR });
            ctx.schedule_activity_with_retry("Fails", "s3cret", policy).await
        }
        "continue" => ctx.continue_as_new_versioned("9.0.0", "s3cret").await,
        "unknown child" => ctx.schedule_sub_orchestration("Nowhere", "s3cret").await,
        "reserved key" => {
            ctx.set_kv_value("__outlast:patch:s3cret", "s3cret");
            Ok(String::new())
        }
        "error" => Err("s3cret error".to_string()),
        "panic" => panic!("s3cret panic"),
        _ => Ok("s3cret output".to_string()),
    }
}

/// `Does` of a later build, which does not match the histories of [`does`].
async fn does_otherwise(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.schedule_timer(HOUR).await;
    Ok(String::new())
}

/// Fails, and is tried again after an hour.
#[outlast::activity(retry = 5, backoff = "1h", max_backoff = "1h")]
async fn flaky(_ctx: ActivityContext) -> Result<(), String> {
    Err("s3cret error".to_string())
}

#[outlast::orchestration]
async fn calls_flaky(ctx: OrchestrationContext) -> Result<(), String> {
    Ok(flaky::call(&ctx).await?)
}

/// Unregistered handlers are given back for an hour.
fn patient() -> RuntimeOptions {
    let unregistered_backoff = UnregisteredBackoffConfig { base_delay: HOUR, max_delay: HOUR };
    RuntimeOptions { unregistered_backoff, ..RuntimeOptions::default() }
}

fn waits(history: &[Event], _: &PendingWork) -> bool {
    history.len() >= 2
}

#[tokio::test(flavor = "multi_thread")]
async fn why_explains_instances_without_a_turn() {
    let store = Store::new().await;
    let error = store.ask(&["why", "nobody"]).not_found();
    assert!(error.contains("there is no instance 'nobody'"), "{error}");

    store.client.raise_event("ghost", "go", "s3cret").await.unwrap();
    let error = store.ask(&["why", "ghost"]).not_found();
    assert!(error.contains("Instance 'ghost' does not exist, and 1 message for it is queued"), "{error}");

    let start = store.client.start_request("Does").instance("later").delay(2 * HOUR);
    assert!(start.send().await.unwrap().is_started());
    store.is_because("later", "start_delayed", &["does not begin until ", "in 1h 59m"]);

    store.client.start_orchestration("new", "Does", "s3cret").await.unwrap();
    store.is_because("new", "turn_due", &["has had its first turn due for ", "(1 message)."]);
    assert!(
        store.ask(&["show", "new"]).not_found().contains("has had its first turn due"),
        "the same sentence"
    );
    store.damage("UPDATE orchestrator_queue SET visible_at = visible_at - 60000 WHERE instance_id = 'new'");
    store.is_because(
        "new",
        "turn_due",
        &["no runtime has fetched it: start a runtime that registers 'Does'."],
    );

    // A process that holds the lease and does not commit.
    let fetched = store.store.fetch_orchestration_item(LEASE, Duration::ZERO, None).await.unwrap();
    let (turn, token, _) = fetched.unwrap();
    assert_eq!(turn.instance, "new");
    store.is_because(
        "new",
        "turn_leased",
        &["runs its first turn (delivery 1 of 10), whose lease ends in 5"],
    );
    store.store.abandon_orchestration_item(&token, None, false).await.unwrap();
    store.is_because("new", "turn_not_committed", &["was delivered 1 of 10 times without a commit"]);

    // The text of the start is damaged, so the next fetch makes it a dead letter.
    store.damage("UPDATE orchestrator_queue SET work_item = '{\"s3cret' WHERE instance_id = 'new'");
    let fetched = store.store.fetch_orchestration_item(LEASE, Duration::ZERO, None).await.unwrap();
    assert!(fetched.is_none());
    let error = store.ask(&["why", "new"]).not_found();
    assert!(error.contains("became a dead letter") && !error.contains("s3cret"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn why_explains_ended_instances() {
    let store = Store::new().await;
    let runtime = store.runtime(RuntimeOptions::default()).await;
    for (instance, rule, part) in [
        ("completes", "completed", "completed at 20"),
        ("error", "failed", ": its code returned an error."),
        ("panic", "failed", ": its code panicked."),
    ] {
        store.client.start_orchestration(instance, "Does", instance).await.unwrap();
        store.client.wait_for_orchestration(instance, LONG).await.unwrap();
        store.is_because(instance, rule, &[part]);
    }
    store.start("stopped", "event", waits).await;
    store.client.cancel_instance("stopped", "s3cret reason").await.unwrap();
    store.client.wait_for_orchestration("stopped", LONG).await.unwrap();
    store.is_because("stopped", "cancelled", &["was cancelled at 20"]);
    runtime.shutdown(None).await;

    let unregistered_backoff = UnregisteredBackoffConfig {
        base_delay: Duration::from_millis(1),
        max_delay: Duration::from_millis(1),
    };
    let options = RuntimeOptions { max_attempts: 1, unregistered_backoff, ..RuntimeOptions::default() };
    let runtime = store.runtime(options).await;
    store.client.start_orchestration("poisoned", "Nowhere", "s3cret").await.unwrap();
    store.client.wait_for_orchestration("poisoned", LONG).await.unwrap();
    let parts = ["and the limit is 1, because orchestration 'Nowhere'", "is not registered on node "];
    store.is_because("poisoned", "failed", &parts);
    runtime.shutdown(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn why_names_code_that_no_runtime_registers() {
    let store = Store::new().await;
    let runtime = store.runtime(patient()).await;
    let given_back = |_: &[Event], pending: &PendingWork| {
        let items = pending.messages.iter().chain(&pending.activities);
        items.into_iter().any(|item| item.attempt_count > 0 && item.visible_at > pending.now_ms)
    };
    store.client.start_orchestration("unknown", "Nowhere", "s3cret").await.unwrap();
    store.until("unknown", given_back).await;
    let parts = [
        "was delivered 1 of 10 times without a commit of its first turn",
        "is in 59m",
        "do not register 'Nowhere'",
    ];
    store.is_because("unknown", "turn_given_back", &parts);

    store.start("missing", "missing", given_back).await;
    let parts = ["for activity 'Nowhere'", "the next try is in 59m", "do not register 'Nowhere'"];
    store.is_because("missing", "activity_given_back", &parts);

    // The successor needs a version that the runtime lacks.
    store.start("continued", "continue", given_back).await;
    let parts = ["continued as new and was delivered 1 of 10 times", "the first turn of execution 2"];
    store.is_because("continued", "turn_given_back", &parts);
    store.damage("DELETE FROM orchestrator_queue WHERE instance_id = 'continued'");
    store.is_because("continued", "no_successor", &["no queued message starts its successor"]);
    runtime.shutdown(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn why_follows_an_activity() {
    let store = Store::new().await;
    let runtime = store.runtime(RuntimeOptions::default()).await;
    store
        .start("runs", "activity", |_, pending| pending.activities.iter().any(|a| a.locked_until.is_some()))
        .await;
    let parts =
        ["has waited ", "for activity 'Block': ", "it runs (delivery 1 of 10), and is delivered again in "];
    store.is_because("runs", "activity_leased", &parts);
    assert_eq!(store.rule_without_queues("runs").await, Rule::ActivityUnknown);

    store.start("tagged", "tagged", |_, pending| !pending.activities.is_empty()).await;
    store.is_because("tagged", "activity_queued", &[": it is queued."]);
    store.damage("UPDATE worker_queue SET visible_at = visible_at - 60000 WHERE instance_id = 'tagged'");
    let parts = ["no runtime has fetched it: start a runtime that registers 'Block' and takes tag 'gpu'"];
    store.is_because("tagged", "activity_queued", &parts);

    let tag = TagFilter::tags(["gpu"]);
    let fetch = || store.store.fetch_work_item(LEASE, Duration::ZERO, None, &tag);
    for delivery in 1..=7 {
        let (_, token, _) = fetch().await.unwrap().unwrap();
        store.store.abandon_work_item(&token, None, false).await.unwrap();
        if delivery == 7 {
            store.is_because(
                "tagged",
                "activity_not_committed",
                &["was delivered 7 of 10 times without an outcome"],
            );
        }
    }
    // A worker ends the activity without an outcome.
    let (_, token, _) = fetch().await.unwrap().unwrap();
    store.store.ack_work_item(&token, None).await.unwrap();
    store.is_because(
        "tagged",
        "operation_lost",
        &["no queued item can end it", "`outlast instance cancel tagged`"],
    );

    store.start("damaged", "tagged", |_, pending| !pending.activities.is_empty()).await;
    store.damage("UPDATE worker_queue SET work_item = '{\"s3cret' WHERE instance_id = 'damaged'");
    assert!(fetch().await.unwrap().is_none());
    store.is_because(
        "damaged",
        "set_aside",
        &["for activity 'Block'", "whose item became a dead letter at 20"],
    );
    runtime.shutdown(Some(0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn why_names_the_session_whose_owner_takes_no_further_activity() {
    let store = Store::new().await;
    // One activity at a time: the owner of the session has no room for its second activity.
    let runtime = store.runtime(RuntimeOptions { worker_concurrency: 1, ..RuntimeOptions::default() }).await;
    let first_runs = |_: &[Event], pending: &PendingWork| {
        let leased = pending.activities.iter().filter(|activity| activity.locked_until.is_some());
        (pending.activities.len(), leased.count()) == (2, 1)
    };
    store.start("on a session", "session", first_runs).await;
    store.is_because(
        "on a session",
        "activity_queued",
        &["for activity 'Block': it is queued (1 other operation open)."],
    );
    store.damage("UPDATE worker_queue SET visible_at = visible_at - 60000 WHERE lock_token IS NULL");
    let parts = [
        "it is queued, and the owner of session 'film-7' has not fetched it: start a runtime that registers 'Block', ",
        "or wait until the session has no owner (1 other operation open).",
    ];
    store.is_because("on a session", "activity_queued", &parts);
    runtime.shutdown(Some(0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn why_counts_the_failures_that_a_handler_has_reported() {
    let store = Store::new().await;
    let builder =
        Runtime::builder().store(store.store.clone()).register(outlast::module![flaky, calls_flaky]);
    let options = RuntimeOptions { node_heartbeat: None, ..RuntimeOptions::default() };
    let runtime = builder.options(options).start().await.unwrap();
    calls_flaky::start(&store.client).id("tried").await.unwrap();
    let has_failed = |_: &[Event], pending: &PendingWork| {
        pending.activities.iter().any(|activity| activity.failures == 1 && activity.locked_until.is_none())
    };
    store.until("tried", has_failed).await;
    let parts = ["for activity 'flaky': its handler failed once, and the next try is in "];
    store.is_because("tried", "activity_given_back", &parts);
    runtime.shutdown(None).await;

    store.damage("UPDATE worker_queue SET visible_at = visible_at - 7200000");
    let parts = ["for activity 'flaky': its handler failed once, and it is queued for its next try."];
    store.is_because("tried", "activity_queued", &parts);

    // The handler of this runtime does not end.
    let runtime = store.runtime(RuntimeOptions::default()).await;
    let runs = |_: &[Event], pending: &PendingWork| {
        pending.activities.iter().any(|activity| activity.locked_until.is_some())
    };
    store.until("tried", runs).await;
    let parts = ["its handler failed once before, it runs (delivery 1 of 10), and is delivered again in "];
    store.is_because("tried", "activity_leased", &parts);
    runtime.shutdown(Some(0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn why_explains_waits_and_its_commands_end_them() {
    let store = Store::new().await;
    let runtime = store.runtime(RuntimeOptions::default()).await;
    let timer =
        |_: &[Event], pending: &PendingWork| pending.messages.iter().any(|m| m.visible_at > pending.now_ms);
    store.start("sleeps", "timer", timer).await;
    store.is_because("sleeps", "sleeps", &["sleeps until 20", "UTC, in 1h 59m."]);
    store.start("tries", "retry", timer).await;
    store.is_because("tries", "retry_sleeps", &["in 59m", "after try 1 of activity 'Fails' failed."]);
    store.start("limited", "event or timer", timer).await;
    store.is_because("limited", "event_not_sent", &["event 'approval'", "(a timer fires in 1h 59m"]);
    store
        .start("stuck", "nothing", |history, pending| !history.is_empty() && pending.messages.is_empty())
        .await;
    store.is_because("stuck", "waits_for_nothing", &["waits for nothing that can happen", "cancel stuck`."]);

    assert_eq!(store.rule_without_queues("stuck").await, Rule::Unknown);

    store.start("parent", "child", waits).await;
    store.until("parent::sub::2", waits).await;
    let parts = ["for child 'parent::sub::2' ('Does'), which has waited ", "for event 'the approval'"];
    store.is_because("parent", "child", &parts);

    // Text and `show` have the same sentence.
    let (_, sentence, _) = store.why("stuck");
    assert_eq!(store.ask(&["why", "stuck"]).fine(), format!("{sentence}\n"));
    let shown = store.ask(&["show", "stuck"]).fine();
    assert!(shown.contains(&format!("why            {sentence}\n")), "{shown}");

    store.start("queue", "queue", waits).await;
    store.is_because("queue", "message_not_sent", &["a message of queue 'orders'"]);
    for (instance, waiting) in [("parent", "parent::sub::2"), ("queue", "queue")] {
        let (_, _, command) = store.why(instance);
        let command = command.unwrap();
        assert!(command.ends_with(" DATA"), "{command}");
        // As a shell does it: the command names the instance and the event.
        let script = format!("{command} --store '{}'", store.path.display()).replace("DATA", "'s3cret data'");
        let script = script.replacen("outlast", concat!("'", env!("CARGO_BIN_EXE_outlast"), "'"), 1);
        let sent = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        let said = crate::support::said(sent).fine();
        assert!(said.contains(waiting) && !said.contains("s3cret"), "{said}");
        store.client.wait_for_orchestration(instance, LONG).await.unwrap();
        store.is_because(instance, "completed", &[]);
    }
    let error = store.ask(&["signal", "queue", "go"]).failed();
    assert!(error.contains("instance 'queue' has completed already: there is nothing to signal"), "{error}");
    runtime.shutdown(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn why_explains_events_that_came_too_early_or_wait_for_a_turn() {
    let store = Store::new().await;
    let runtime = store.runtime(RuntimeOptions::default()).await;
    store.start("early", "two events", waits).await;
    store.client.raise_event("early", "second", "s3cret").await.unwrap();
    store.client.raise_event("early", "first", "s3cret").await.unwrap();
    let second = |history: &[Event], _: &PendingWork| {
        history.iter().filter(|event| event.kind.type_name() == "ExternalSubscribed").count() == 2
    };
    store.until("early", second).await;
    store.is_because(
        "early",
        "event_dropped",
        &["event 'second'", "the event was sent before the wait began"],
    );

    store.start("waits", "event", waits).await;
    runtime.shutdown(None).await;
    store.client.raise_event("waits", "the approval", "s3cret").await.unwrap();
    store.client.cancel_instance("waits", "s3cret").await.unwrap();
    store.is_because(
        "waits",
        "turn_due",
        &["has had a turn due for ", "(2 messages, one of them a request to cancel it)"],
    );
    for delivery in 1..=7 {
        let fetched = store.store.fetch_orchestration_item(LEASE, Duration::ZERO, None).await.unwrap();
        let (_, token, attempts) = fetched.unwrap();
        assert_eq!(attempts, delivery);
        store.store.abandon_orchestration_item(&token, None, false).await.unwrap();
    }
    let parts = ["was delivered 7 of 10 times without a commit", "do not register 'Does' 1.0.0"];
    store.is_because("waits", "turn_not_committed", &parts);
    let said = store.ask(&["why", "waits", "--max-attempts", "8"]).fine();
    assert!(said.contains("was delivered 7 of 8 times"), "{said}");

    // The clock of a machine that wrote the rows was an hour ahead.
    store.damage(
        "UPDATE orchestrator_queue SET visible_at = visible_at + 3600000, attempt_count = 0 WHERE instance_id = 'waits'",
    );
    store.is_because("waits", "outcome_delayed", &["has the outcome of event 'the approval' in its queue"]);
    store.damage("DELETE FROM history WHERE instance_id = 'waits'");
    store.is_because("waits", "no_history", &["the store is damaged"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn why_names_the_kind_of_each_failure() {
    let store = Store::new().await;
    let runtime = store.runtime(RuntimeOptions::default()).await;
    store.client.start_orchestration("refused", "Does", "reserved key").await.unwrap();
    store.client.wait_for_orchestration("refused", LONG).await.unwrap();
    store.is_because("refused", "failed", &[": the engine refused a call or a size, which its error names."]);
    for instance in ["changed", "damaged"] {
        store.start(instance, "event", waits).await;
    }
    runtime.shutdown(None).await;

    let unregistered_backoff = UnregisteredBackoffConfig {
        base_delay: Duration::from_millis(1),
        max_delay: Duration::from_millis(1),
    };
    let options = RuntimeOptions {
        max_attempts: 1,
        unregistered_backoff,
        node_heartbeat: None,
        ..RuntimeOptions::default()
    };
    let orchestrations = OrchestrationRegistry::builder()
        .register("Does", does_otherwise)
        .register("Asks", |ctx, _: String| async move { ctx.schedule_activity("Nowhere", "s3cret").await })
        .build();
    let activities = ActivityRegistry::default();
    let runtime = Runtime::start_with_options(store.store.clone(), activities, orchestrations, options).await;
    store.client.raise_event("changed", "the approval", "s3cret").await.unwrap();
    store.client.wait_for_orchestration("changed", LONG).await.unwrap();
    let parts = [": its code made other decisions than its history holds (nondeterministic)."];
    store.is_because("changed", "failed", &parts);

    store.client.start_orchestration("poisoned", "Asks", "s3cret").await.unwrap();
    store.client.wait_for_orchestration("poisoned", LONG).await.unwrap();
    let parts = [": activity 'Nowhere' was delivered ", ", and the limit is 1, because activity 'Nowhere'"];
    store.is_because("poisoned", "failed", &parts);

    store
        .damage("UPDATE history SET event_data = '{\"s3cret' WHERE instance_id = 'damaged' AND event_id = 2");
    let parts = [
        "has a history that does not decode: ",
        " after 10 deliveries of a turn, so run the release that wrote it",
    ];
    store.is_because("damaged", "undecodable", &parts);
    let shown = store.ask(&["show", "damaged"]).fine();
    assert!(shown.contains("has a history that does not decode") && !shown.contains("s3cret"), "{shown}");
    store.client.raise_event("damaged", "the approval", "s3cret").await.unwrap();
    store.client.wait_for_orchestration("damaged", LONG).await.unwrap();
    let parts = ["failed: a history that does not decode was delivered 2 times, and the limit is 1."];
    store.is_because("damaged", "failed", &parts);
    store.ask(&["show", "damaged"]).fine();
    runtime.shutdown(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn why_names_messages_that_are_lost_or_became_dead_letters() {
    let store = Store::new().await;
    let runtime = store.runtime(patient()).await;
    let has_timer = |_: &[Event], pending: &PendingWork| !pending.messages.is_empty();
    for (instance, input) in [("timed", "timer"), ("asks", "event"), ("parent", "unknown child")] {
        store.client.start_orchestration(instance, "Does", input).await.unwrap();
        store.until(instance, waits).await;
    }
    store.until("timed", has_timer).await;
    let child = "parent::sub::2";
    let given_back = |pending: &PendingWork| pending.messages.iter().any(|message| message.attempt_count > 0);
    while !store.client.pending_work(child, 1).await.unwrap().is_some_and(|pending| given_back(&pending)) {
        tokio::task::yield_now().await;
    }
    let parts = ["('Nowhere'), which was delivered 1 of 10 times without a commit of its first turn"];
    store.is_because("parent", "child", &parts);
    runtime.shutdown(None).await;

    store.damage("DELETE FROM orchestrator_queue WHERE instance_id = 'timed'");
    store.is_because(
        "timed",
        "operation_lost",
        &["for a timer, and no queued item can end it", "`outlast instance cancel timed`"],
    );

    // The next fetch finds texts that do not decode, and a message that is older than the life of an orphan.
    let fetch = async || {
        while store.store.fetch_orchestration_item(LEASE, Duration::ZERO, None).await.unwrap().is_some() {}
    };
    store.client.raise_event("asks", "the approval", "s3cret").await.unwrap();
    store.client.raise_event("ghost", "go", "s3cret").await.unwrap();
    store
        .damage("UPDATE orchestrator_queue SET visible_at = 0, available_at = 0 WHERE instance_id = 'ghost'");
    store.damage(
        "UPDATE orchestrator_queue SET work_item = '{\"s3cret', visible_at = available_at
         WHERE instance_id IN ('asks', 'parent::sub::2')",
    );
    fetch().await;
    let parts = ["for event 'the approval'", "(1 dead letter of it kept): `outlast instance signal asks"];
    store.is_because("asks", "event_not_sent", &parts);
    let parts = [
        "for child 'parent::sub::2' ('Nowhere'), which does not exist: its start, or a message that does not decode, \
         became a dead letter at 20",
    ];
    store.is_because("parent", "child", &parts);
    let error = store.ask(&["why", "ghost"]).not_found();
    assert!(error.contains("does not exist, and the store keeps 1 dead letter of it"), "{error}");
}

/// A process that was killed leaves leases behind.
#[cfg(unix)]
#[test]
fn why_explains_all_instances_of_a_killed_process() {
    use crate::support::{demo, ledger_lines, outlast, wait_until};
    let dir = tempfile::tempdir().unwrap();
    let mut child = outlast(demo(dir.path(), &["--orders", "30", "--pace", "0.5"]))
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the demo works", || ledger_lines(dir.path()).len() > 10);
    child.kill().unwrap();
    child.wait().unwrap();
    let store = dir.path().join("shop.db");
    let store = store.to_str().unwrap();
    let list = ["instance", "list", "--status", "running", "--limit", "200", "-o", "json", "--store", store];
    let instances = run(list).json()["instances"].as_array().unwrap().clone();
    let mut rules: Vec<String> = Vec::new();
    for instance in &instances {
        let id = instance["instance"].as_str().unwrap();
        let why = run(["instance", "why", id, "-o", "json", "--store", store]).json();
        let sentence = why["sentence"].as_str().unwrap();
        assert!(sentence.starts_with("Instance '") && sentence.ends_with('.'), "{sentence}");
        rules.push(why["rule"].as_str().unwrap().to_string());
    }
    // The leases of the demo end a second after the kill.
    let states = ["activity_leased", "turn_leased", "activity_not_committed", "turn_not_committed"];
    assert!(
        rules.iter().any(|rule| states.contains(&rule.as_str())),
        "activities ran at the kill: {rules:?}"
    );
    let damage = ["operation_lost", "waits_for_nothing", "no_successor", "set_aside", "no_history"];
    assert!(!rules.iter().any(|rule| damage.contains(&rule.as_str())), "nothing is lost: {rules:?}");
}

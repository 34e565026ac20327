//! Payloads and keys are not logged. All log lines of this thread are kept, at TRACE and with those of the SDK. The rig has a
//! thread of its own.

use crate::factory::fresh_config;
use outlast_cosmos::{CosmosDBOptions, CosmosDBProvider, CosmosDBProviderConfig};
use outlast_cosmos_rig::{Fault, Kind, Rig, Target};
use outlast_provider::model::{Event, EventKind, WorkItem};
use outlast_provider::{
    ExecutionMetadata, Provider, ProviderError, SessionFetchConfig, TagFilter, TurnCommit,
};
use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event as Line, Metadata, Subscriber};

/// The text that every payload holds. It is valid in a key too.
const CANARY: &str = "7f3acanary";

const LEASE: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_millis(300);

fn secret(what: &str) -> String {
    format!("{CANARY}-{what}")
}

/// Keeps every line and every field.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<String>>);

impl Kept {
    fn add(&self, line: &str) {
        let mut kept = self.0.lock().unwrap();
        kept.push_str(line);
        kept.push('\n');
    }

    fn record(&self, about: &str, fields: impl FnOnce(&mut Fields)) {
        let mut line = Fields(about.to_string());
        fields(&mut line);
        self.add(&line.0);
    }

    fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }

    fn has_all(&self, lines: &[&str]) -> bool {
        let text = self.text();
        lines.iter().all(|line| text.contains(line))
    }
}

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Subscriber for Kept {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.record(span.metadata().target(), |line| span.record(line));
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, values: &Record<'_>) {
        self.record("", |line| values.record(line));
    }
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Line<'_>) {
        self.record(event.metadata().target(), |line| event.record(line));
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

fn start(instance: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.into(),
        orchestration: "Flow".into(),
        input: secret("input"),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

fn activity() -> WorkItem {
    WorkItem::ActivityExecute {
        instance: "i".into(),
        execution_id: 1,
        id: 2,
        name: "Work".into(),
        input: secret("activity"),
        session_id: Some("session".into()),
        tag: None,
    }
}

/// A turn with a payload in an event, a key, a status, an activity and a message to another instance.
fn turn() -> TurnCommit {
    let set = EventKind::KeyValueSet { key: "k".into(), value: secret("value"), last_updated_at_ms: 7 };
    let status = EventKind::CustomStatusUpdated { status: Some(secret("status")) };
    TurnCommit {
        execution_id: 1,
        history_delta: vec![Event::at(7, 1, "i", 1, None, set), Event::at(7, 2, "i", 1, None, status)],
        worker_items: vec![activity()],
        orchestrator_items: vec![start("other")],
        metadata: ExecutionMetadata {
            orchestration_name: Some("Flow".into()),
            orchestration_version: Some("1".into()),
            ..ExecutionMetadata::default()
        },
        ..TurnCommit::default()
    }
}

/// Lets the rig refuse the requests that the faults choose, until the next call.
fn refuse(target: &Target, faults: impl IntoIterator<Item = Fault>) {
    let rig = target.rig().unwrap();
    rig.clear_faults();
    for fault in faults {
        rig.fault(fault.always().status(400));
    }
}

/// Runs an instance while parts of the account refuse requests that the store can do without.
async fn trouble(target: &Target, config: &CosmosDBProviderConfig, kept: &Kept) {
    let print = |error: ProviderError| kept.add(&format!("{error} {error:?}"));
    let client = CosmosDBProvider::new_with_config(config.clone()).await.unwrap();
    refuse(target, [Fault::on(Kind::Upsert), Fault::on(Kind::Query), Fault::on(Kind::ChangeFeed)]);
    let store = CosmosDBProvider::new_with_config(config.clone()).await.unwrap();
    kept.add(&format!("{config:?} {store:?}"));
    let deadline = Instant::now() + LEASE;
    while !kept.has_all(&LOGGED_BY_FETCHES) && Instant::now() < deadline {
        let fetched = store.fetch_orchestration_item(LEASE, PATIENCE, None).await;
        assert!(fetched.unwrap().is_none(), "nothing waits");
    }
    refuse(target, []);
    client.enqueue_for_orchestrator(start("i"), None).await.unwrap();
    let fetched = store.fetch_orchestration_item(LEASE, LEASE, None).await;
    let (_, token, _) = fetched.unwrap().expect("the instance starts");
    refuse(target, [Fault::any().partition("other")]);
    store.commit_turn(&token, turn()).await.unwrap();
    refuse(target, []);
    let session = SessionFetchConfig { owner_id: "worker".into(), lock_timeout: LEASE };
    let fetched = store.fetch_work_item(LEASE, LEASE, Some(&session), &TagFilter::DefaultOnly).await;
    let (_, token, _) = fetched.unwrap().expect("the activity waits");
    refuse(target, (0..4).map(|nth| Fault::any().partition(format!("~sess-{nth}"))));
    let result = secret("result");
    let outcome = WorkItem::ActivityCompleted { instance: "i".into(), execution_id: 1, id: 2, result };
    store.ack_work_item(&token, Some(outcome.clone())).await.unwrap();
    refuse(target, [Fault::any()]);
    for error in [
        store.ack_work_item(&token, Some(outcome)).await.unwrap_err(),
        store.enqueue_for_orchestrator(start("x"), None).await.unwrap_err(),
        store.enqueue_for_worker(activity()).await.unwrap_err(),
        store.read("i").await.unwrap_err(),
    ] {
        print(error);
    }
    refuse(target, []);
}

/// Keys that the account does not accept, and a key in the place of the address.
async fn refused(config: &CosmosDBProviderConfig, kept: &Kept) {
    let key = format!("{CANARY}k=");
    for (endpoint, key) in [
        (config.endpoint.clone(), key.clone()),
        (config.endpoint.clone(), secret("no base64: /#!")),
        ("http://127.0.0.1:1".to_string(), key.clone()),
        (key, config.key.clone()),
    ] {
        let config = CosmosDBProviderConfig { endpoint, key, ..config.clone() };
        let options =
            CosmosDBOptions { opening_pause: Duration::from_millis(1), ..CosmosDBOptions::default() };
        let error = CosmosDBProvider::open(config, options).await.expect_err("the account is not opened");
        kept.add(&format!("{error} {error:?}"));
        let error = ProviderError::from(error);
        kept.add(&format!("{error} {error:?}"));
    }
}

/// Lines that the store logs while the account refuses the requests of fetches and of background tasks.
const LOGGED_BY_FETCHES: [&str; 5] = [
    "no time of the service",
    "a heartbeat failed",
    "hints were not read",
    "repair failed",
    "reconciling failed",
];
/// Lines that the store logs when it commits a turn and when it stores an outcome.
const LOGGED_BY_COMMITS: [&str; 2] =
    ["a message to another instance is delivered later", "a session was not stamped"];

#[tokio::test]
async fn no_payload_no_key_and_no_signature_is_logged() {
    let kept = Kept::default();
    // With only one dispatcher, tracing lets the first thread that reaches a callsite decide for all threads.
    let _second = Dispatch::new(Kept::default());
    let _installed = tracing::subscriber::set_default(kept.clone());
    let target = Target::Rig(Box::new(Rig::start().await.unwrap()));
    let config =
        CosmosDBProviderConfig { reconciler_interval: Duration::from_millis(10), ..fresh_config(&target) };
    trouble(&target, &config, &kept).await;
    refused(&config, &kept).await;
    let text = kept.text();
    for secret in [CANARY, &config.key, "type=master", "type%3dmaster", "type%3Dmaster"] {
        let leaks: Vec<&str> = text.lines().filter(|line| line.contains(secret)).collect();
        assert!(leaks.is_empty(), "{} lines have {secret} in them:\n{}", leaks.len(), leaks.join("\n"));
    }
    for logged in LOGGED_BY_FETCHES.iter().chain(&LOGGED_BY_COMMITS) {
        assert!(text.contains(logged), "not logged: {logged}");
    }
    assert!(text.contains("azure_data_cosmos"), "the SDK has not logged anything");
}

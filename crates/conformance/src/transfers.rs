//! Exports and imports: an instance as a value, which another store continues. A store that cannot export or import instances says so,
//! and these validations end there.

use crate::ProviderFactory;
use crate::support::*;
use outlast_provider::model::{
    Event, INITIAL_EXECUTION_ID, SnapshotActivity, SnapshotExecution, SnapshotHold, SnapshotKey,
    SnapshotKeyChange, SnapshotMessage, SnapshotRow,
};
use outlast_provider::{
    AuditEntry, EnqueueOnce, ExportOutcome, Hold, HoldKind, HoldOutcome, ImportOutcome, InstanceSnapshot,
    Provider, ReleaseOutcome, StartOutcome, StartPolicy, StartRequest, TagFilter, WorkItem,
};
use std::collections::BTreeMap;
use std::time::Duration;

const ID: &str = "moved \u{1f980}";
/// A time that no test reaches.
const FAR: u64 = 4_000_000_000_000;

fn audit() -> AuditEntry {
    AuditEntry {
        actor: "operator".to_string(),
        action: "instance.import".to_string(),
        target: ID.to_string(),
        reason: "a\0b".to_string(),
        request: None,
        result: "done".to_string(),
    }
}

/// The item of an activity of the second execution.
fn activity_of_two(id: u64, session_id: Option<&str>, tag: Option<&str>) -> WorkItem {
    let mut item = activity_with(ID, id, session_id, tag);
    if let WorkItem::ActivityExecute { execution_id, .. } = &mut item {
        *execution_id = 2;
    }
    item
}

fn execution(execution_id: u64, events: Vec<Event>) -> SnapshotExecution {
    SnapshotExecution {
        execution_id,
        status: "Running".to_string(),
        output: None,
        started_at: 1_000 * execution_id,
        completed_at: None,
        pinned_version: Some("0.1.32".to_string()),
        events,
    }
}

fn message(item: WorkItem, available_at: u64, visible_at: u64, attempt_count: u32) -> SnapshotMessage {
    SnapshotMessage { item, available_at, visible_at, attempt_count }
}

/// A child in its second execution, with keys, messages, a timer and activities.
fn snapshot() -> InstanceSnapshot {
    let first = vec![started(ID), event(ID, 2, continued_kind("n\0ext"))];
    let second = [started_kind(), value_kind("changed", "new", 7), custom_status_kind(Some("s\0"))];
    let second = second.into_iter().zip(1..).map(|(kind, id)| event_in(ID, 2, id, kind)).collect();
    let key = |key: &str, value: &str| SnapshotKey {
        key: key.to_string(),
        value: value.to_string(),
        last_updated_at_ms: 5,
    };
    let change = |key: &str, value: Option<&str>| SnapshotKeyChange {
        key: key.to_string(),
        value: value.map(str::to_string),
        last_updated_at_ms: 7,
    };
    InstanceSnapshot {
        instance_id: ID.to_string(),
        row: Some(SnapshotRow {
            orchestration_name: "Moved".to_string(),
            orchestration_version: "1.2.0".to_string(),
            current_execution_id: 2,
            parent_instance_id: Some("the parent".to_string()),
            custom_status: Some("s\0".to_string()),
            custom_status_version: 9,
            created_at: 1_000,
            updated_at: 2_500,
        }),
        executions: vec![
            SnapshotExecution {
                status: "ContinuedAsNew".to_string(),
                output: Some("n\0ext".to_string()),
                completed_at: Some(1_900),
                ..execution(1, first)
            },
            execution(2, second),
        ],
        keys: vec![key("base", "b\0"), key("changed", "old"), key("removed", "x")],
        changed_keys: vec![change("changed", Some("new")), change("removed", None)],
        messages: vec![
            message(raised(ID, "one", "1"), 2_000, 2_000, 2),
            message(queue_message(ID, "q", &"2".repeat(20_000)), 2_001, 2_001, 0),
            message(timer(ID, 8, FAR), FAR, FAR, 0),
        ],
        activities: vec![
            SnapshotActivity {
                item: activity_of_two(9, None, None),
                visible_at: 2_100,
                attempt_count: 3,
                failures: 2,
                last_error: Some("refused\0".to_string()),
            },
            SnapshotActivity {
                item: activity_of_two(10, Some("session"), Some("tag")),
                visible_at: FAR,
                attempt_count: 0,
                failures: 0,
                last_error: None,
            },
        ],
        hold: None,
        message_keys: Vec::new(),
    }
}

async fn import(provider: &dyn Provider, snapshot: &InstanceSnapshot) -> ImportOutcome {
    admin(provider).import_instance(snapshot, &audit()).await.expect("import_instance succeeds")
}

/// Imports a snapshot whose id is free; returns whether the store can.
async fn is_imported(provider: &dyn Provider, snapshot: &InstanceSnapshot) -> bool {
    match import(provider, snapshot).await {
        ImportOutcome::Unsupported => false,
        outcome => {
            assert_eq!(outcome, ImportOutcome::Imported, "the id is free");
            true
        }
    }
}

/// The snapshot of an instance; `None` if the store cannot export.
async fn export(provider: &dyn Provider, instance: &str) -> Option<InstanceSnapshot> {
    match admin(provider).export_instance(instance).await.expect("export_instance succeeds") {
        ExportOutcome::Exported(snapshot) => Some(*snapshot),
        ExportOutcome::Unsupported => None,
        other => panic!("instance '{instance}' is exported: {other:?}"),
    }
}

/// A store with an instance, on which a store that keeps nothing fails.
async fn store(factory: &dyn ProviderFactory) -> std::sync::Arc<dyn Provider> {
    let provider = factory.create_provider().await;
    create_instance(&*provider, "other").await;
    provider
}

/// An export has everything that turns, messages, workers and operators left: a message and an activity under a lease as waiting ones.
pub async fn an_export_has_everything_of_an_instance(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let token = first_turn(provider, ID).await;
    let events = [started_kind(), value_kind("k", "v", 5), custom_status_kind(Some("s"))];
    let events: Vec<Event> = events.into_iter().zip(1..).map(|(kind, id)| event(ID, id, kind)).collect();
    let turn = Turn::new(&token).events(events.clone()).activity(activity(ID, 4)).metadata(named());
    turn.message(timer(ID, 5, FAR)).commit(provider).await;
    enqueue(provider, raised(ID, "one", "1")).await;
    let (_, lease, _) = must_fetch_activity(provider, LONG).await;
    let (_, turn, _) = must_fetch(provider, LONG).await;
    let Some(found) = export(provider, ID).await else { return };
    let row = found.row.as_ref().expect("the instance has a row");
    assert_eq!(row.orchestration_name, named().orchestration_name.unwrap_or_default());
    assert_eq!((row.current_execution_id, row.parent_instance_id.as_ref()), (1, None));
    assert_eq!((row.custom_status.as_deref(), row.custom_status_version), (Some("s"), 1));
    assert!(row.created_at > 0 && row.updated_at >= row.created_at, "{row:?}");
    let [execution] = &found.executions[..] else { panic!("one execution: {:?}", found.executions) };
    assert_eq!((execution.execution_id, execution.status.as_str()), (INITIAL_EXECUTION_ID, "Running"));
    assert_eq!(execution.events, events);
    assert_eq!((found.keys.len(), found.changed_keys.len()), (0, 1));
    assert_eq!(
        (found.changed_keys[0].key.as_str(), found.changed_keys[0].value.as_deref()),
        ("k", Some("v"))
    );
    let messages: Vec<_> = found.messages.iter().map(|one| (&one.item, one.attempt_count)).collect();
    assert_eq!(messages, [(&raised(ID, "one", "1"), 1), (&timer(ID, 5, FAR), 0)]);
    assert_eq!(found.messages[1].visible_at, FAR);
    let activities: Vec<_> = found.activities.iter().map(|one| (&one.item, one.attempt_count)).collect();
    assert_eq!(activities, [(&activity(ID, 4), 1)]);
    assert_eq!(found.check(), Ok(()));
    let later = Turn::new(&turn).event(event(ID, 6, scheduled_kind("Later"))).commit(provider);
    later.await;
    provider.renew_work_item_lock(&lease, LONG).await.expect("an export ends no lease");
    let unknown = admin(provider).export_instance("unknown").await.expect("export_instance succeeds");
    assert_eq!(unknown, ExportOutcome::NotFound);
}

/// A store exports an instance as it was imported.
pub async fn an_import_is_exported_unchanged(factory: &dyn ProviderFactory) {
    let provider = &*store(factory).await;
    let snapshot = snapshot();
    if !is_imported(provider, &snapshot).await {
        return;
    }
    assert_eq!(export(provider, ID).await.as_ref(), Some(&snapshot));
    let again = &*factory.create_provider().await;
    assert!(is_imported(again, &snapshot).await);
    assert_eq!(export(again, ID).await, Some(snapshot));
}

/// An imported instance gets its next turn with its history, keys and messages, and its activities run. A timer waits for its time.
pub async fn an_imported_instance_goes_on(factory: &dyn ProviderFactory) {
    let provider = &*store(factory).await;
    let snapshot = snapshot();
    if !is_imported(provider, &snapshot).await {
        return;
    }
    operator(provider).sees_name(ID, "Moved", "1.2.0").await;
    operator(provider).sees_executions(ID, &[1, 2]).await;
    operator(provider).sees_current(ID, 2, "Running", None).await;
    operator(provider).sees_only_child("the parent", ID).await;
    operator(provider).sees_history(ID, 1, &snapshot.executions[0].events).await;
    let keys = provider.get_kv_all_values(ID).await.expect("get_kv_all_values succeeds");
    let keys: BTreeMap<&str, &str> = keys.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(keys, BTreeMap::from([("base", "b\0"), ("changed", "new")]));
    let shown = provider.get_custom_status(ID, 8).await.expect("get_custom_status succeeds");
    assert_eq!(shown, Some((Some("s\0".to_string()), 9)));
    let (item, token, attempts) = must_fetch(provider, LONG).await;
    assert_eq!((item.instance.as_str(), item.execution_id, attempts), (ID, 2, 3));
    assert_eq!((item.orchestration_name.as_str(), item.version.as_str()), ("Moved", "1.2.0"));
    assert_eq!(item.history, snapshot.executions[1].events);
    let due: Vec<WorkItem> = snapshot.messages[..2].iter().map(|message| message.item.clone()).collect();
    assert_eq!(item.messages, due, "the timer is not due");
    let seen: BTreeMap<_, _> =
        item.kv_snapshot.iter().map(|(key, entry)| (key.as_str(), entry.value.as_str())).collect();
    assert_eq!(seen, BTreeMap::from([("base", "b\0"), ("changed", "old"), ("removed", "x")]));
    let next = event_in(ID, 2, 4, completed_kind("out"));
    let end = Turn::new(&token).execution(2).event(next).metadata(status("Completed", "out"));
    end.commit(provider).await;
    let outcome = provider.read_outcome(ID).await.expect("read_outcome succeeds").expect("it is known");
    assert_eq!((outcome.execution_id, outcome.status.as_str()), (2, "Completed"));
    let activities = drain_activities(provider, &TagFilter::Any).await;
    assert_eq!(activities, [(activity_of_two(9, None, None), 4)], "the other one is delayed");
    let keys = provider.get_kv_all_values(ID).await.expect("get_kv_all_values succeeds");
    assert_eq!(keys.len(), 2, "the end merges the changes: {keys:?}");
}

/// An id that an instance has, or that a start waits for, is refused, and nothing is changed. Other messages for the id stay.
pub async fn an_import_refuses_a_taken_id(factory: &dyn ProviderFactory) {
    let provider = &*store(factory).await;
    let snapshot = snapshot();
    let taken = InstanceSnapshot { instance_id: "other".to_string(), ..InstanceSnapshot::default() };
    let taken = InstanceSnapshot { messages: vec![message(raised("other", "x", ""), 1, 1, 0)], ..taken };
    match import(provider, &taken).await {
        ImportOutcome::Unsupported => return,
        outcome => assert_eq!(outcome, ImportOutcome::Taken, "an instance has the id"),
    }
    operator(provider).sees_waiting(0, 0, "a refused import stores no message").await;
    enqueue(provider, start_item("waits")).await;
    let waits = InstanceSnapshot { instance_id: "waits".to_string(), ..InstanceSnapshot::default() };
    let waits = InstanceSnapshot { messages: vec![message(raised("waits", "x", ""), 1, 1, 0)], ..waits };
    assert_eq!(import(provider, &waits).await, ImportOutcome::Taken, "a start waits for the id");
    operator(provider).sees_waiting(1, 0, "only the start waits").await;
    enqueue(provider, raised(ID, "early", "")).await;
    assert_eq!(import(provider, &snapshot).await, ImportOutcome::Imported, "an event takes no id");
    assert_eq!(import(provider, &snapshot).await, ImportOutcome::Taken, "the instance exists");
    let found = export(provider, ID).await.expect("the store exports");
    assert_eq!(found.messages.len(), 4, "the event that came before waits too");
    let (start, policy) = (start_item(ID), StartPolicy::FailIfExists);
    let start = StartRequest { start, policy, delay: None, messages: Vec::new() };
    let started = provider.start_orchestration(start).await.expect("start_orchestration succeeds");
    assert!(matches!(started, StartOutcome::AlreadyExists { .. }), "{started:?}");
}

/// A snapshot that contradicts itself is a permanent error, and nothing of it is stored.
pub async fn an_import_refuses_contradictions(factory: &dyn ProviderFactory) {
    let provider = &*store(factory).await;
    let whole = snapshot();
    if matches!(admin(provider).export_instance("other").await, Ok(ExportOutcome::Unsupported)) {
        return;
    }
    let mut broken: Vec<InstanceSnapshot> = Vec::new();
    broken.push(InstanceSnapshot { instance_id: "another".to_string(), ..whole.clone() });
    broken.push(InstanceSnapshot { executions: vec![whole.executions[0].clone()], ..whole.clone() });
    let twice = [&whole.messages[..], &[message(activity(ID, 3), 1, 1, 0)]].concat();
    broken.push(InstanceSnapshot { messages: twice, ..whole.clone() });
    let mut event = whole.clone();
    event.executions[1].events[2].event_id = 2;
    broken.push(event);
    for snapshot in broken {
        let refused = admin(provider).import_instance(&snapshot, &audit()).await;
        permanent(refused, "an import of a contradiction");
    }
    operator(provider).sees_instances(&["other"]).await;
    operator(provider).sees_waiting(0, 0, "a refused import stores nothing").await;
    assert!(is_imported(provider, &whole).await, "the id is still free");
}

/// An instance keeps the keys of its messages through an export and an import: it takes no message a second time.
pub async fn an_imported_instance_takes_no_message_twice(factory: &dyn ProviderFactory) {
    let (provider, target) = (&*store(factory).await, &*factory.create_provider().await);
    let known = ["a key\0", &"k".repeat(1_024)];
    for (key, n) in known.iter().zip(1..) {
        let stored = provider.enqueue_once(raised("other", "e", &n.to_string()), key, 100).await;
        match stored.expect("enqueue_once succeeds") {
            EnqueueOnce::Unsupported => return,
            outcome => assert_eq!(outcome, EnqueueOnce::Stored),
        }
    }
    let Some(exported) = export(provider, "other").await else { return };
    assert_eq!(exported.message_keys, known, "an export has the keys of messages");
    assert!(is_imported(target, &exported).await);
    assert_eq!(export(target, "other").await, Some(exported));
    for (key, outcome) in
        [known.map(|key| (key, EnqueueOnce::Repeated)).as_slice(), &[("new", EnqueueOnce::Stored)]].concat()
    {
        let sent = target.enqueue_once(raised("other", "e", "again"), key, 100).await;
        assert_eq!(sent.expect("enqueue_once succeeds"), outcome, "a key of {} bytes", key.len());
    }
    operator(target).sees_waiting(3, 0, "two messages came along, and one is new").await;
}

/// A held instance is held after the import, with its messages, and goes on after its release. A cancellation that waits for the id
/// lets no hold be.
pub async fn an_imported_instance_stays_held(factory: &dyn ProviderFactory) {
    let provider = &*store(factory).await;
    let hold = SnapshotHold {
        kind: "parked".to_string(),
        actor: "build".to_string(),
        reason: "does not fit\0".to_string(),
        held_at_ms: 2_600,
    };
    let held = InstanceSnapshot { hold: Some(hold), ..snapshot() };
    if !is_imported(provider, &held).await {
        return;
    }
    assert!(fetch(provider, LONG).await.is_none(), "the instance is held");
    let found = admin(provider).held_instance(ID).await.expect("held_instance succeeds");
    let found = found.expect("the instance is held");
    assert_eq!((found.hold.kind, found.held_at_ms), (HoldKind::Parked, 2_600));
    assert_eq!(export(provider, ID).await.as_ref(), Some(&held));
    let again = Hold { kind: HoldKind::Paused, actor: String::new(), reason: String::new() };
    let again = admin(provider).hold_instance(ID, &again).await;
    assert_eq!(again, Ok(HoldOutcome::AlreadyHeld));
    assert_eq!(admin(provider).release_instance(ID).await, Ok(ReleaseOutcome::Released));
    assert_eq!(must_fetch(provider, LONG).await.0.messages.len(), 2);

    let other = &*factory.create_provider().await;
    enqueue(other, cancel(ID)).await;
    assert_eq!(import(other, &held).await, ImportOutcome::Imported);
    let found = admin(other).held_instance(ID).await.expect("held_instance succeeds");
    assert_eq!(found, None, "a cancelled instance must be able to end");
}

/// An import ends the wait of parked fetches, and is in the audit.
pub async fn an_import_is_fetched_and_audited(factory: &dyn ProviderFactory) {
    let provider = &*store(factory).await;
    if !is_imported(provider, &snapshot()).await {
        return;
    }
    let records = admin(provider).audit_page(None, 10).await.expect("audit_page succeeds");
    if let Some(records) = records {
        let entries: Vec<_> = records.into_iter().map(|record| record.entry).collect();
        assert_eq!(entries, [audit()]);
    }
    let taken = import(provider, &snapshot()).await;
    assert_eq!(taken, ImportOutcome::Taken);
    let records = admin(provider).audit_page(None, 10).await.expect("audit_page succeeds");
    assert_eq!(records.map_or(1, |records| records.len()), 1, "a refused import is not recorded");
    let (item, _, _) = within(Duration::from_secs(20), || fetch(provider, LONG)).await;
    assert_eq!(item.instance, ID);
}

/// A long history with large values is imported whole.
pub async fn a_large_instance_is_imported_whole(factory: &dyn ProviderFactory) {
    let provider = &*store(factory).await;
    let mut large = snapshot();
    let text = "x".repeat(8_000);
    for id in 4..400 {
        large.executions[1].events.push(event_in(ID, 2, id, custom_status_kind(Some(&text))));
    }
    for id in 0..60 {
        let item = queue_message(ID, "q", &format!("{id}{text}"));
        large.messages.insert(2, message(item, 2_002 + id, 2_002 + id, 0));
    }
    large.messages.sort_by_key(|message| message.available_at);
    let value = |id: u32| SnapshotKey {
        key: format!("key-{id:03}"),
        value: text.clone(),
        last_updated_at_ms: u64::from(id),
    };
    large.keys.extend((0..100).map(value));
    large.keys.sort_by(|a, b| a.key.cmp(&b.key));
    assert_eq!(large.check(), Ok(()));
    if !is_imported(provider, &large).await {
        return;
    }
    assert_eq!(export(provider, ID).await.as_ref(), Some(&large));
    operator(provider).sees_history(ID, 2, &large.executions[1].events).await;
    let (item, _, _) = must_fetch(provider, LONG).await;
    assert_eq!((item.history.len(), item.kv_snapshot.len()), (399, 103));
}

/// Ids that messages wait for, and that no instance has, are listed by id, page by page. Such an id is exported without a row.
pub async fn ids_without_an_instance_are_listed(factory: &dyn ProviderFactory) {
    let provider = &*store(factory).await;
    if matches!(admin(provider).export_instance("other").await, Ok(ExportOutcome::Unsupported)) {
        return;
    }
    for id in ["c", "a", "b"] {
        enqueue(provider, start_item(id)).await;
        enqueue(provider, raised(id, "x", "")).await;
    }
    enqueue(provider, raised("other", "x", "")).await;
    let all = admin(provider).list_unstarted(None, 10).await.expect("list_unstarted succeeds");
    assert_eq!(all, ["a", "b", "c"]);
    let page = admin(provider).list_unstarted(Some("a"), 1).await.expect("list_unstarted succeeds");
    assert_eq!(page, ["b"]);
    let found = export(provider, "a").await.expect("the store exports");
    assert_eq!((found.row.as_ref(), found.executions.len(), found.messages.len()), (None, 0, 2));
    let target = &*factory.create_provider().await;
    assert_eq!(import(target, &found).await, ImportOutcome::Imported);
    let (item, _, _) = must_fetch(target, LONG).await;
    assert_eq!((item.instance.as_str(), item.messages.len()), ("a", 2));
}

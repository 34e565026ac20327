//! Resets and forks: a new execution begins with a copy of the first events of another one. A store that cannot reset instances says
//! so, and these validations end there.

use crate::ProviderFactory;
use crate::support::*;
use outlast_provider::model::{Event, EventKind, INITIAL_EXECUTION_ID, SystemStats};
use outlast_provider::{
    AuditEntry, Hold, HoldKind, HoldOutcome, Provider, ReleaseOutcome, ResetKey, ResetOutcome, ResetPlan,
    ScheduledActivityIdentifier, TurnCommit, WorkItem,
};
use std::collections::BTreeMap;
use std::time::Duration;

const ID: &str = "reset";
/// The last event that the plans keep.
const KEPT: usize = 4;
/// Longer than the resolution of the clock.
const A_MOMENT: Duration = Duration::from_millis(5);

/// The events of the instance: two turns, each with a status, a key and an activity.
fn events() -> Vec<Event> {
    [
        started_kind(),
        custom_status_kind(Some("one")),
        value_kind("kept", "old", 5),
        scheduled_kind("Activity4"),
        custom_status_kind(Some("two")),
        value_kind("kept", "new", 6),
        value_kind("lost", "x", 6),
        scheduled_kind("Activity8"),
    ]
    .into_iter()
    .zip(1..)
    .map(|(kind, id)| Event::at(100 + id, id, ID, INITIAL_EXECUTION_ID, None, kind))
    .collect()
}

/// Creates the instance with all its events.
async fn create(provider: &dyn Provider) -> Vec<Event> {
    let events = events();
    let (first, second) = events.split_at(KEPT);
    let token = first_turn(provider, ID).await;
    let turn = Turn::new(&token).events(first.to_vec()).activity(activity(ID, 4));
    turn.metadata(named()).commit(provider).await;
    let token = next_turn(provider, ID).await;
    Turn::new(&token).events(second.to_vec()).activity(activity(ID, 8)).commit(provider).await;
    events
}

/// The kept events as events of another execution.
fn copied(events: &[Event], target: &str, execution_id: u64) -> Vec<Event> {
    let copy = |event: &Event| Event { instance_id: target.to_string(), execution_id, ..event.clone() };
    events.iter().take(KEPT).map(copy).collect()
}

fn in_execution(mut item: WorkItem, target: &str, number: u64) -> WorkItem {
    if let WorkItem::ActivityExecute { instance, execution_id, .. } = &mut item {
        (*instance, *execution_id) = (target.to_string(), number);
    }
    item
}

/// The message that wakes the new execution.
fn wake(target: &str) -> WorkItem {
    WorkItem::TimerFired { instance: target.to_string(), execution_id: 0, id: 0, fire_at_ms: 0 }
}

fn audit() -> AuditEntry {
    AuditEntry {
        actor: "operator \u{1f980}".to_string(),
        action: "instance.reset".to_string(),
        target: ID.to_string(),
        reason: "a\0b".to_string(),
        request: None,
        result: "done".to_string(),
    }
}

/// A reset of the instance to its fourth event.
fn reset(events: &[Event]) -> ResetPlan {
    let last = events.last().map_or(0, |event| event.event_id);
    let cancelled = [4, 8].map(|activity_id| ScheduledActivityIdentifier {
        instance: ID.to_string(),
        execution_id: INITIAL_EXECUTION_ID,
        activity_id,
    });
    ResetPlan {
        source: ID.to_string(),
        execution_id: INITIAL_EXECUTION_ID,
        last_event_id: last,
        target: ID.to_string(),
        end: Some(event(ID, last + 1, continued_kind("{}"))),
        begin: TurnCommit {
            execution_id: 2,
            history_delta: copied(events, ID, 2),
            worker_items: vec![in_execution(activity(ID, 4), ID, 2)],
            orchestrator_items: vec![wake(ID)],
            metadata: named(),
            cancelled_activities: cancelled.to_vec(),
        },
        first_messages: Vec::new(),
        first_available_ms: 0,
        keys: BTreeMap::from([(
            "base".to_string(),
            ResetKey { value: "b".to_string(), last_updated_at_ms: 7 },
        )]),
        custom_status: Some("one".to_string()),
        audit: audit(),
    }
}

/// A fork of the instance at its fourth event.
fn fork(events: &[Event], target: &str) -> ResetPlan {
    let plan = reset(events);
    ResetPlan {
        target: target.to_string(),
        end: None,
        begin: TurnCommit {
            execution_id: INITIAL_EXECUTION_ID,
            history_delta: copied(events, target, INITIAL_EXECUTION_ID),
            worker_items: vec![in_execution(activity(ID, 4), target, INITIAL_EXECUTION_ID)],
            orchestrator_items: vec![wake(target)],
            metadata: named(),
            cancelled_activities: Vec::new(),
        },
        ..plan
    }
}

async fn apply(provider: &dyn Provider, plan: &ResetPlan) -> ResetOutcome {
    admin(provider).reset_instance(plan).await.expect("reset_instance succeeds")
}

/// Applies a plan that fits; returns whether the store can.
async fn is_done(provider: &dyn Provider, plan: &ResetPlan) -> bool {
    match apply(provider, plan).await {
        ResetOutcome::Unsupported => false,
        outcome => {
            assert_eq!(outcome, ResetOutcome::Done, "the plan fits");
            true
        }
    }
}

/// The execution ends as continued, and the next one begins with the copied events, its activity and its message. The activities of
/// the execution before are gone.
pub async fn a_reset_begins_the_next_execution(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let events = create(provider).await;
    let plan = reset(&events);
    if !is_done(provider, &plan).await {
        return;
    }
    operator(provider).sees_executions(ID, &[1, 2]).await;
    operator(provider).sees_current(ID, 2, "Running", None).await;
    let before = admin(provider).get_execution_info(ID, 1).await.expect("execution 1 is stored");
    let found = (before.status.as_str(), before.output.as_deref(), before.completed_at.is_some());
    assert_eq!(found, ("ContinuedAsNew", Some("{}"), true));
    let ended: Vec<Event> = events.iter().cloned().chain(plan.end.clone()).collect();
    operator(provider).sees_history(ID, 1, &ended).await;
    operator(provider).sees_history(ID, 2, &copied(&events, ID, 2)).await;
    let activities = drain_activities(provider, &outlast_provider::TagFilter::default()).await;
    assert_eq!(activities, [(in_execution(activity(ID, 4), ID, 2), 1)]);
    let (item, token, attempts) = must_fetch(provider, LONG).await;
    assert_eq!((item.instance.as_str(), item.execution_id, attempts), (ID, 2, 1));
    assert_eq!((item.history, item.messages), (copied(&events, ID, 2), vec![wake(ID)]));
    let next = event_in(ID, 2, 5, scheduled_kind("Activity5"));
    Turn::new(&token).execution(2).event(next).commit(provider).await;
    let metrics = admin(provider).get_system_metrics().await.expect("get_system_metrics succeeds");
    let found = [metrics.total_instances, metrics.total_executions, metrics.running_instances];
    assert_eq!((found, metrics.total_events), ([1, 2, 1], 14));
}

/// Keys and custom status are those after the last copied event, for clients and for replay.
pub async fn a_reset_puts_keys_and_status_back(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let events = create(provider).await;
    if !is_done(provider, &reset(&events)).await {
        return;
    }
    let keys = provider.get_kv_all_values(ID).await.expect("get_kv_all_values succeeds");
    let keys: BTreeMap<&str, &str> = keys.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(keys, BTreeMap::from([("base", "b"), ("kept", "old")]));
    assert_eq!(provider.get_kv_value(ID, "lost").await.expect("get_kv_value succeeds"), None);
    let shown = provider.get_custom_status(ID, 0).await.expect("get_custom_status succeeds");
    assert_eq!(shown, Some((Some("one".to_string()), 3)));
    let (item, token, _) = must_fetch(provider, LONG).await;
    let snapshot: Vec<_> = item.kv_snapshot.iter().map(|(key, entry)| (key.as_str(), entry)).collect();
    assert_eq!(snapshot.len(), 1, "replay repeats the changes of the copied events: {snapshot:?}");
    assert_eq!((snapshot[0].0, snapshot[0].1.value.as_str()), ("base", "b"));
    assert_eq!(snapshot[0].1.last_updated_at_ms, 7);
    let end = Turn::new(&token).execution(2).event(event_in(ID, 2, 5, continued_kind("next")));
    end.metadata(status("ContinuedAsNew", "next")).commit(provider).await;
    poke(provider, ID).await;
    let (item, _, _) = must_fetch(provider, LONG).await;
    let mut merged: Vec<_> = item.kv_snapshot.into_iter().map(|(key, entry)| (key, entry.value)).collect();
    merged.sort();
    let expected = [("base", "b"), ("kept", "old")].map(|(key, value)| (key.to_string(), value.to_string()));
    assert_eq!(merged, expected, "the end of the execution merges its changes");
}

/// A removal of all keys in the copied events counts for the keys of the plan too. The custom status is that of the plan, also if no
/// copied event has it.
pub async fn a_reset_repeats_the_removal_of_keys(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let kinds =
        [started_kind(), value_kind("a", "1", 5), EventKind::KeyValuesCleared, value_kind("b", "2", 6)];
    let events: Vec<Event> = kinds.into_iter().zip(1..).map(|(kind, id)| event(ID, id, kind)).collect();
    let token = first_turn(provider, ID).await;
    Turn::new(&token).events(events.clone()).metadata(named()).commit(provider).await;
    if !is_done(provider, &reset(&events)).await {
        return;
    }
    let keys = provider.get_kv_all_values(ID).await.expect("get_kv_all_values succeeds");
    let keys: Vec<_> = keys.into_iter().collect();
    assert_eq!(keys, [("b".to_string(), "2".to_string())]);
    let shown = provider.get_custom_status(ID, 0).await.expect("get_custom_status succeeds");
    assert_eq!(shown, Some((Some("one".to_string()), 1)));
    let stats = provider.get_instance_stats(ID).await.expect("get_instance_stats succeeds");
    let stats: SystemStats = stats.expect("the instance is known");
    assert_eq!((stats.history_event_count, stats.kv_user_key_count), (4, 1));
}

/// A reset changes nothing while a turn runs, and nothing if the execution has gone on since it was planned.
pub async fn a_reset_fits_the_newest_events(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let mut events = create(provider).await;
    let plan = reset(&events);
    let token = next_turn(provider, ID).await;
    match apply(provider, &plan).await {
        ResetOutcome::Unsupported => return,
        ResetOutcome::InTurn { locked_until_ms } => {
            assert!(locked_until_ms > factory.now_ms(), "the lease is live")
        }
        other => panic!("a turn runs: {other:?}"),
    }
    events.push(event(ID, 9, scheduled_kind("Activity9")));
    Turn::new(&token).events(events.last().cloned()).commit(provider).await;
    assert_eq!(apply(provider, &plan).await, ResetOutcome::Changed, "event 9 was stored since");
    operator(provider).sees_executions(ID, &[1]).await;
    operator(provider).sees_history(ID, 1, &events).await;
    operator(provider).sees_waiting(0, 2, "a refused reset enqueues nothing").await;
    assert_eq!(apply(provider, &reset(&events)).await, ResetOutcome::Done);
    assert_eq!(apply(provider, &reset(&events)).await, ResetOutcome::Changed, "execution 2 is the newest");
    let unknown = ResetPlan { source: "unknown".to_string(), target: "unknown".to_string(), ..plan };
    assert_eq!(apply(provider, &unknown).await, ResetOutcome::NotFound);
}

/// A lease that is over ends with a reset: its token is refused, and its messages are delivered with the new execution.
pub async fn an_expired_lease_ends_with_a_reset(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let events = create(provider).await;
    poke(provider, ID).await;
    let lease = factory.lock_timeout();
    let (_, late, _) = must_fetch(provider, lease).await;
    outlive(lease).await;
    if !is_done(provider, &reset(&events)).await {
        return;
    }
    let commit = Turn::new(&late).event(event(ID, 10, scheduled_kind("Late")));
    permanent(commit.try_commit(provider).await, "a commit of a lease that ended with a reset");
    let (item, _, _) = must_fetch(provider, LONG).await;
    assert_eq!(item.execution_id, 2);
    assert_eq!(item.messages, [raised(ID, "poke", ""), wake(ID)]);
}

/// The first messages of a plan are delivered before messages that wait, in their order.
pub async fn messages_of_a_reset_are_delivered_first(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let since = factory.now_ms();
    let events = create(provider).await;
    tokio::time::sleep(A_MOMENT).await;
    let waiting = queue_message(ID, "q", "3");
    enqueue(provider, waiting.clone()).await;
    tokio::time::sleep(A_MOMENT).await;
    let first = [queue_message(ID, "q", "1"), queue_message(ID, "q", "2")];
    let plan = ResetPlan { first_messages: first.to_vec(), first_available_ms: since, ..reset(&events) };
    if !is_done(provider, &plan).await {
        return;
    }
    let [one, two] = first;
    assert_eq!(must_fetch(provider, LONG).await.0.messages, [one, two, waiting, wake(ID)]);
}

/// The messages of a second reset are delivered before messages of the first one that wait, although both plans have the same time.
pub async fn messages_of_a_second_reset_are_delivered_first(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let since = factory.now_ms();
    let events = create(provider).await;
    let [one, two] = ["1", "2"].map(|data| queue_message(ID, "q", data));
    let plan = ResetPlan { first_messages: vec![two.clone()], first_available_ms: since, ..reset(&events) };
    if !is_done(provider, &plan).await {
        return;
    }
    let end = Event::at(110, 5, ID, 2, None, continued_kind("{}"));
    let again = ResetPlan {
        execution_id: 2,
        last_event_id: 4,
        end: Some(end),
        begin: TurnCommit {
            execution_id: 3,
            history_delta: copied(&events, ID, 3),
            worker_items: Vec::new(),
            orchestrator_items: Vec::new(),
            metadata: named(),
            cancelled_activities: Vec::new(),
        },
        first_messages: vec![one.clone()],
        ..plan
    };
    assert_eq!(apply(provider, &again).await, ResetOutcome::Done);
    assert_eq!(must_fetch(provider, LONG).await.0.messages, [one, two, wake(ID)]);
}

/// A held instance stays held, and its messages wait with the others.
pub async fn a_reset_instance_stays_held(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let events = create(provider).await;
    let hold =
        Hold { kind: HoldKind::Parked, actor: "build".to_string(), reason: "does not fit".to_string() };
    let held = admin(provider).hold_instance(ID, &hold).await.expect("hold_instance succeeds");
    if held == HoldOutcome::Unsupported || !is_done(provider, &reset(&events)).await {
        return;
    }
    assert!(fetch(provider, LONG).await.is_none(), "the instance is held");
    let held = admin(provider).held_instance(ID).await.expect("held_instance succeeds");
    assert_eq!(held.map(|held| held.hold), Some(hold));
    let released = admin(provider).release_instance(ID).await;
    assert_eq!(released, Ok(ReleaseOutcome::Released));
    let (item, _, _) = must_fetch(provider, LONG).await;
    assert_eq!((item.execution_id, item.messages), (2, vec![wake(ID)]));
}

/// An instance that has ended runs again, and its ended execution stays as it is.
pub async fn an_ended_instance_is_reset(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let mut events = create(provider).await;
    let token = next_turn(provider, ID).await;
    events.push(event(ID, 9, completed_kind("out")));
    let end = Turn::new(&token).events(events.last().cloned()).metadata(status("Completed", "out"));
    end.cancels(scheduled(ID, 4)).cancels(scheduled(ID, 8)).commit(provider).await;
    let plan = ResetPlan { end: None, ..reset(&events) };
    if !is_done(provider, &plan).await {
        return;
    }
    let outcome = provider.read_outcome(ID).await.expect("read_outcome succeeds").expect("it is known");
    assert_eq!((outcome.execution_id, outcome.status.as_str()), (2, "Running"));
    let before = admin(provider).get_execution_info(ID, 1).await.expect("execution 1 is stored");
    assert_eq!((before.status.as_str(), before.output.as_deref()), ("Completed", Some("out")));
    operator(provider).sees_history(ID, 1, &events).await;
    let (item, _, _) = must_fetch(provider, LONG).await;
    assert_eq!((item.execution_id, item.history.len()), (2, KEPT));
}

/// A fork is a new instance with the copied events. The source is unchanged, and an id that is taken is refused.
pub async fn a_fork_is_a_new_instance(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let events = create(provider).await;
    create_instance(provider, "exists").await;
    match apply(provider, &fork(&events, "exists")).await {
        ResetOutcome::Unsupported => return,
        outcome => assert_eq!(outcome, ResetOutcome::Taken, "an instance has the id"),
    }
    provider.enqueue_for_orchestrator(start_item("starts"), Some(LONG)).await.expect("the start is stored");
    assert_eq!(apply(provider, &fork(&events, "starts")).await, ResetOutcome::Taken, "a start has the id");
    assert_eq!(apply(provider, &fork(&events, "forked")).await, ResetOutcome::Done);
    operator(provider).sees_instances(&["exists", "forked", ID]).await;
    operator(provider).sees_history(ID, 1, &events).await;
    operator(provider).sees_current(ID, 1, "Running", None).await;
    operator(provider).sees_history("forked", 1, &copied(&events, "forked", 1)).await;
    assert_eq!(admin(provider).get_parent_id("forked").await, Ok(None));
    let shown = provider.get_custom_status("forked", 0).await.expect("get_custom_status succeeds");
    assert_eq!(shown, Some((Some("one".to_string()), 1)));
    assert_eq!(provider.get_kv_value("forked", "base").await, Ok(Some("b".to_string())));
    assert_eq!(provider.get_kv_value(ID, "kept").await, Ok(Some("new".to_string())));
    let mut activities = drain_activities(provider, &outlast_provider::TagFilter::default()).await;
    activities.retain(|(item, _)| item.target_instance() == "forked");
    assert_eq!(activities, [(in_execution(activity(ID, 4), "forked", 1), 1)]);
    let (item, token, _) = must_fetch(provider, LONG).await;
    assert_eq!((item.instance.as_str(), item.messages), ("forked", vec![wake("forked")]));
    Turn::new(&token).event(event("forked", 5, scheduled_kind("Activity5"))).commit(provider).await;
}

/// A reset is recorded in the audit, and a refused one is not.
pub async fn a_reset_is_in_the_audit(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let events = create(provider).await;
    let old = ResetPlan { last_event_id: 3, ..reset(&events) };
    match apply(provider, &old).await {
        ResetOutcome::Unsupported => return,
        outcome => assert_eq!(outcome, ResetOutcome::Changed),
    }
    assert_eq!(apply(provider, &reset(&events)).await, ResetOutcome::Done);
    let Some(page) = admin(provider).audit_page(None, 10).await.expect("audit_page succeeds") else { return };
    let records: Vec<AuditEntry> = page.into_iter().map(|record| record.entry).collect();
    assert_eq!(records, [audit()]);
}

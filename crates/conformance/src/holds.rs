//! Held instances: no fetch returns a turn of them, and their messages wait in their order. A store that cannot hold instances
//! says so, and these validations end there.

use crate::ProviderFactory;
use crate::support::*;
use outlast_provider::{
    AuditEntry, Completion, HeldCounts, Hold, HoldKind, HoldOutcome, Provider, ReleaseOutcome, TagFilter,
    TurnAhead, TurnCommit, WorkRequest,
};
use std::time::Duration;

const ID: &str = "held";

/// Longer than the resolution of the clock.
const A_MOMENT: Duration = Duration::from_millis(5);

/// The clock of a store and that of its factory differ by less.
const CLOCK_ERROR_MS: u64 = 100;

fn paused() -> Hold {
    Hold { kind: HoldKind::Paused, actor: "operator \u{1f980}".to_string(), reason: "a\0b \"c\"".to_string() }
}

async fn hold(provider: &dyn Provider, instance: &str) -> HoldOutcome {
    admin(provider).hold_instance(instance, &paused()).await.expect("hold_instance succeeds")
}

async fn release(provider: &dyn Provider, instance: &str) -> ReleaseOutcome {
    admin(provider).release_instance(instance).await.expect("release_instance succeeds")
}

/// Holds an instance that is at rest; returns whether the store can.
async fn is_held(provider: &dyn Provider, instance: &str) -> bool {
    match hold(provider, instance).await {
        HoldOutcome::Unsupported => false,
        outcome => {
            assert_eq!(outcome, HoldOutcome::Held, "no turn of '{instance}' runs");
            true
        }
    }
}

async fn assert_nothing_is_fetched(provider: &dyn Provider, why: &str) {
    assert!(fetch(provider, LONG).await.is_none(), "{why}");
}

/// A held instance is passed over, others are delivered, and the release delivers it with the first delivery count.
pub async fn a_held_instance_gets_no_turn(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, ID).await;
    create_instance(provider, "free").await;
    poke(provider, ID).await;
    if !is_held(provider, ID).await {
        return;
    }
    poke(provider, "free").await;
    let (item, token, _) = must_fetch(provider, LONG).await;
    assert_eq!(item.instance, "free");
    Turn::new(&token).commit(provider).await;
    assert_nothing_is_fetched(provider, "the instance is held").await;
    let held = admin(provider).held_instance(ID).await.unwrap().expect("the instance is held");
    assert_eq!((held.instance_id.as_str(), &held.hold), (ID, &paused()));
    assert!(held.held_at_ms.abs_diff(factory.now_ms()) < 60_000, "the time is the store's");
    assert_eq!(release(provider, ID).await, ReleaseOutcome::Released);
    assert_eq!(admin(provider).held_instance(ID).await, Ok(None));
    let (item, token, attempts) = must_fetch(provider, LONG).await;
    assert_eq!((item.instance.as_str(), attempts), (ID, 1));
    Turn::new(&token).commit(provider).await;
    assert_eq!(release(provider, ID).await, ReleaseOutcome::NotHeld);
}

/// Messages, outcomes of activities and timers that arrive for a held instance wait with the others, in their order.
pub async fn messages_for_a_held_instance_wait_in_order(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let token = first_turn(provider, ID).await;
    let turn = Turn::new(&token).event(started(ID)).event(event(ID, 2, scheduled_kind("Activity2")));
    turn.activity(activity(ID, 2)).metadata(named()).commit(provider).await;
    let first = raised(ID, "first", "1");
    enqueue(provider, first.clone()).await;
    tokio::time::sleep(A_MOMENT).await;
    if !is_held(provider, ID).await {
        return;
    }
    let delay = factory.lock_timeout();
    let due = timer(ID, 3, factory.now_ms() + u64::try_from(delay.as_millis()).unwrap());
    enqueue(provider, due.clone()).await;
    tokio::time::sleep(A_MOMENT).await;
    let (_, token, _) = must_fetch_activity(provider, LONG).await;
    provider.ack_work_item(&token, Some(completed(ID, 2))).await.expect("its lease is live");
    tokio::time::sleep(A_MOMENT).await;
    let second = queue_message(ID, "second", "2");
    assert!(provider.enqueue_within(second.clone(), 100).await.expect("enqueue_within succeeds"));
    outlive(delay).await;
    assert_nothing_is_fetched(provider, "every message of the instance waits").await;
    assert_eq!(release(provider, ID).await, ReleaseOutcome::Released);
    let (item, token, attempts) = must_fetch(provider, LONG).await;
    assert_eq!(item.messages, [first, completed(ID, 2), second, due]);
    assert_eq!(attempts, 1);
    Turn::new(&token).commit(provider).await;
    assert_nothing_is_fetched(provider, "each message is delivered once").await;
}

/// A hold changes nothing while a turn runs: the turn commits, and then the instance can be held.
pub async fn a_hold_waits_for_a_running_turn(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, ID).await;
    let token = next_turn(provider, ID).await;
    match hold(provider, ID).await {
        HoldOutcome::Unsupported => return,
        HoldOutcome::InTurn { locked_until_ms } => {
            assert!(locked_until_ms > factory.now_ms(), "the lease is live")
        }
        other => panic!("a turn runs: {other:?}"),
    }
    assert_eq!(admin(provider).held_instance(ID).await, Ok(None));
    poke(provider, ID).await;
    Turn::new(&token).event(event(ID, 2, scheduled_kind("Activity2"))).commit(provider).await;
    assert_eq!(hold(provider, ID).await, HoldOutcome::Held, "the turn is over");
    assert_nothing_is_fetched(provider, "the instance is held").await;
}

/// The holder of a turn gives it back and holds its instance in one step. The deliveries before it are not counted, and no late
/// call is accepted.
pub async fn a_turn_is_given_back_uncounted_for_a_hold(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, ID).await;
    poke(provider, ID).await;
    let (_, token, _) = must_fetch(provider, LONG).await;
    provider.abandon_orchestration_item(&token, None, false).await.expect("its lease is live");
    let (_, token, attempts) = must_fetch(provider, LONG).await;
    assert_eq!(attempts, 2);
    let parked = Hold { kind: HoldKind::Parked, ..paused() };
    match provider.hold_turn(&token, &parked).await.expect("its lease is live") {
        HoldOutcome::Unsupported => {
            // The caller still holds the lease.
            return Turn::new(&token).commit(provider).await;
        }
        outcome => assert_eq!(outcome, HoldOutcome::Held),
    }
    assert_eq!(admin(provider).held_instance(ID).await.unwrap().map(|held| held.hold), Some(parked.clone()));
    permanent(provider.hold_turn(&token, &parked).await, "the lease was given back");
    permanent(Turn::new(&token).try_commit(provider).await, "the lease was given back");
    permanent(provider.hold_turn("none", &parked).await, "a token of no lease");
    poke(provider, ID).await;
    assert_nothing_is_fetched(provider, "the instance is held").await;
    assert_eq!(release(provider, ID).await, ReleaseOutcome::Released);
    let (item, token, attempts) = must_fetch(provider, factory.lock_timeout()).await;
    assert_eq!((item.messages.len(), attempts), (2, 1), "the deliveries before the hold do not count");
    outlive(factory.lock_timeout()).await;
    permanent(provider.hold_turn(&token, &parked).await, "the lease is over");
    let (_, token, attempts) = must_fetch(provider, LONG).await;
    assert_eq!(attempts, 2);
    Turn::new(&token).commit(provider).await;
}

/// A turn that would begin an instance is given back: its start waits, and begins the instance after the release.
pub async fn a_new_instance_is_held_with_its_start(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let token = first_turn(provider, ID).await;
    if provider.hold_turn(&token, &paused()).await == Ok(HoldOutcome::Unsupported) {
        return;
    }
    enqueue(provider, raised(ID, "early", "")).await;
    assert_nothing_is_fetched(provider, "the start is held").await;
    assert_eq!(release(provider, ID).await, ReleaseOutcome::Released);
    let (item, token, attempts) = must_fetch(provider, LONG).await;
    assert_eq!(item.messages, [start_item(ID), raised(ID, "early", "")]);
    assert_eq!(attempts, 1);
    Turn::new(&token).event(started(ID)).metadata(named()).commit(provider).await;
    // A start that waits for its time is held before the instance exists.
    let later = factory.lock_timeout();
    provider.enqueue_for_orchestrator(start_item("later"), Some(later)).await.expect("enqueue succeeds");
    assert_eq!(hold(provider, "later").await, HoldOutcome::Held);
    outlive(later).await;
    assert_nothing_is_fetched(provider, "the delayed start is held").await;
    assert_eq!(release(provider, "later").await, ReleaseOutcome::Released);
    assert_eq!(must_fetch(provider, LONG).await.0.instance, "later");
}

/// A lease that is over ends with the hold: its holder can neither commit nor give the turn back.
pub async fn an_expired_lease_ends_with_a_hold(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, ID).await;
    poke(provider, ID).await;
    let (_, token, _) = must_fetch(provider, factory.lock_timeout()).await;
    outlive(factory.lock_timeout()).await;
    if !is_held(provider, ID).await {
        return;
    }
    permanent(Turn::new(&token).try_commit(provider).await, "the lease is over");
    permanent(provider.abandon_orchestration_item(&token, None, true).await, "the hold ended the lease");
    assert_nothing_is_fetched(provider, "the instance is held").await;
    assert_eq!(release(provider, ID).await, ReleaseOutcome::Released);
    let (_, token, attempts) = must_fetch(provider, LONG).await;
    assert_eq!(attempts, 2, "the hold changes no delivery count");
    Turn::new(&token).commit(provider).await;
}

/// A cancellation releases the instance that it is for, whether a client or a turn sends it, and a cancelled instance cannot be
/// held.
pub async fn a_cancellation_releases_a_held_instance(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, ID).await;
    create_instance(provider, "parent").await;
    poke(provider, ID).await;
    if !is_held(provider, ID).await {
        return;
    }
    enqueue(provider, cancel(ID)).await;
    assert_eq!(admin(provider).held_instance(ID).await, Ok(None));
    assert_eq!(hold(provider, ID).await, HoldOutcome::Cancelled);
    let (item, token, attempts) = must_fetch(provider, LONG).await;
    assert_eq!((item.messages, attempts), (vec![raised(ID, "poke", ""), cancel(ID)], 1));
    assert_eq!(provider.hold_turn(&token, &paused()).await, Ok(HoldOutcome::Cancelled));
    permanent(provider.hold_turn("none", &paused()).await, "a token of no lease");
    Turn::new(&token).commit(provider).await;
    assert_eq!(hold(provider, ID).await, HoldOutcome::Held);
    let token = next_turn(provider, "parent").await;
    Turn::new(&token).message(cancel(ID)).commit(provider).await;
    let (item, token, _) = must_fetch(provider, LONG).await;
    assert_eq!((item.instance.as_str(), item.messages), (ID, vec![cancel(ID)]));
    Turn::new(&token).commit(provider).await;
    assert_eq!(release(provider, ID).await, ReleaseOutcome::NotHeld);
}

/// A run-ahead turn of a held instance is not committed: the outcome of its activity waits.
pub async fn no_turn_runs_ahead_of_a_hold(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let token = first_turn(provider, ID).await;
    let turn = Turn::new(&token).event(started(ID)).event(event(ID, 2, scheduled_kind("Activity2")));
    turn.activity(activity(ID, 2)).metadata(named()).commit(provider).await;
    let request = WorkRequest {
        max_items: 1,
        lock_timeout: LONG,
        poll_timeout: NO_WAIT,
        session: None,
        tag_filter: &TagFilter::default(),
    };
    let work = provider.fetch_work_items(request).await.unwrap().pop().expect("there is an activity");
    if !is_held(provider, ID).await {
        return;
    }
    let commit = TurnCommit {
        execution_id: 1,
        history_delta: vec![event(ID, 3, scheduled_kind("Activity3"))],
        ..TurnCommit::default()
    };
    let ahead = TurnAhead { after_event_id: 2, ran_at_ms: work.now_ms.unwrap_or(0), commit };
    let completion = provider.complete_with_turn(&work.lock_token, completed(ID, 2), ahead).await;
    assert_eq!(completion, Ok(Completion::Queued));
    assert_nothing_is_fetched(provider, "the outcome waits").await;
    assert_eq!(provider.read(ID).await.expect("read succeeds").len(), 2);
    assert_eq!(release(provider, ID).await, ReleaseOutcome::Released);
    assert_eq!(must_fetch(provider, LONG).await.0.messages, [completed(ID, 2)]);
}

/// A held instance can be deleted, and a new instance with the same id is not held.
pub async fn a_deleted_instance_is_not_held(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, ID).await;
    poke(provider, ID).await;
    if !is_held(provider, ID).await {
        return;
    }
    let removed = admin(provider).delete_instance(ID, true).await.expect("a held instance can be deleted");
    assert_eq!((removed.instances_deleted, removed.queue_messages_deleted), (1, 1));
    assert_eq!(admin(provider).held_instance(ID).await, Ok(None));
    assert_eq!(admin(provider).count_held().await, Ok(Some(HeldCounts::default())));
    create_instance(provider, ID).await;
    assert_eq!(release(provider, ID).await, ReleaseOutcome::NotHeld);
}

/// Queue depths, gauges and held counts tell waiting messages from those of held instances.
pub async fn held_messages_are_counted_apart(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, ID).await;
    create_instance(provider, "free").await;
    let soon = factory.now_ms() + 3_600_000;
    enqueue_all(provider, &[raised(ID, "one", ""), timer(ID, 2, soon)]).await;
    enqueue_all(provider, &[raised("free", "one", ""), timer("free", 2, soon)]).await;
    if !is_held(provider, ID).await {
        return;
    }
    poke(provider, ID).await;
    let counts = HeldCounts { instances: 1, messages: 3 };
    assert_eq!(admin(provider).count_held().await, Ok(Some(counts)));
    let gauges = admin(provider).get_gauges().await.expect("get_gauges succeeds");
    assert_eq!(gauges.orchestrator_queue, 2);
    if let Some(backlog) = gauges.orchestrator_backlog {
        assert_eq!((backlog.due, backlog.delayed), (1, 1));
    }
    operator(provider).sees_waiting(2, 0, "the messages of the held instance are counted apart").await;
    assert_eq!(release(provider, ID).await, ReleaseOutcome::Released);
    assert_eq!(admin(provider).count_held().await, Ok(Some(HeldCounts::default())));
    operator(provider).sees_waiting(5, 0, "no instance is held").await;
}

/// The longest waits are those of items that a fetch may take. Delayed and leased items, and messages of held instances, do not count;
/// an item whose lease ended has waited since it became visible.
pub async fn the_oldest_due_item_may_be_fetched(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    let lease_ms = lease.as_millis() as u64;
    create_instance(provider, ID).await;
    let oldest = async || admin(provider).oldest_due().await.expect("oldest_due succeeds");
    if oldest().await.is_none() {
        return;
    }
    let waits =
        async || oldest().await.map(|oldest| (oldest.message_ms, oldest.activity_ms)).unwrap_or_default();
    assert_eq!(waits().await, (None, None), "no item waits");
    enqueue_all(provider, &[timer(ID, 2, factory.now_ms() + 3_600_000)]).await;
    assert_eq!(waits().await, (None, None), "the timer is delayed");
    let began = factory.now_ms();
    enqueue_all(provider, &[raised(ID, "one", "")]).await;
    enqueue_activity(provider, activity(ID, 2)).await;
    must_fetch(provider, lease).await;
    must_fetch_activity(provider, lease).await;
    poke(provider, ID).await;
    assert_eq!(waits().await, (None, None), "no fetch may take a message of a leased instance");
    outlive(lease).await;
    let (Some(message), Some(activity)) = waits().await else { panic!("both leases have ended") };
    let most = factory.now_ms().saturating_sub(began) + CLOCK_ERROR_MS;
    for waited in [message, activity] {
        assert!((lease_ms..=most).contains(&waited), "{waited} ms is not from {lease_ms} to {most}");
    }
    if is_held(provider, ID).await {
        let (message, activity) = waits().await;
        assert!(message.is_none() && activity.is_some(), "{message:?} {activity:?}: messages are held");
    }
}

/// Only an instance that exists and has not ended is held, once. Held instances are listed in the order of their ids.
pub async fn instances_are_held_once_and_listed(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_completed(provider, "ended", "done").await;
    for id in ["c", "a", "b"] {
        create_instance(provider, id).await;
    }
    if !is_held(provider, "c").await {
        return;
    }
    assert_eq!(hold(provider, "c").await, HoldOutcome::AlreadyHeld);
    assert_eq!(hold(provider, "ended").await, HoldOutcome::Ended);
    assert_eq!(hold(provider, "unknown").await, HoldOutcome::NotFound);
    enqueue(provider, raised("orphan", "early", "")).await;
    assert_eq!(hold(provider, "orphan").await, HoldOutcome::NotFound, "a message is no instance");
    enqueue(provider, cancel("orphan")).await;
    assert_eq!(hold(provider, "orphan").await, HoldOutcome::NotFound, "a request to cancel is no instance");
    assert_eq!(release(provider, "unknown").await, ReleaseOutcome::NotHeld);
    assert_eq!(hold(provider, "a").await, HoldOutcome::Held);
    assert_eq!(hold(provider, "b").await, HoldOutcome::Held);
    let page = async |after: Option<&str>, limit: usize| {
        let page = admin(provider).list_held(after, limit).await.expect("list_held succeeds");
        page.into_iter().map(|held| held.instance_id).collect::<Vec<_>>()
    };
    assert_eq!(page(None, 2).await, ["a", "b"]);
    assert_eq!(page(Some("b"), 2).await, ["c"]);
    assert_eq!(page(Some("c"), 2).await, Vec::<String>::new());
}

/// Pauses an orchestration; returns the answer.
async fn pause(provider: &dyn Provider, orchestration: &str, reason: &str) -> HoldOutcome {
    let paused = admin(provider).pause_orchestration(orchestration, "operator \u{1f980}", reason).await;
    paused.expect("pause_orchestration succeeds")
}

/// The paused orchestrations with their reasons, and the time of the first one.
async fn paused_orchestrations(provider: &dyn Provider) -> (Vec<(String, String)>, Option<u64>) {
    let paused = admin(provider).paused_orchestrations().await.expect("paused_orchestrations succeeds");
    let paused = paused.expect("the store pauses orchestrations");
    let first = paused.first().map(|paused| paused.paused_at_ms);
    assert!(paused.iter().all(|paused| paused.actor == "operator \u{1f980}"));
    (paused.into_iter().map(|paused| (paused.orchestration, paused.reason)).collect(), first)
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(one, other)| (one.to_string(), other.to_string())).collect()
}

/// An orchestration is paused once, with the first reason. Paused orchestrations are listed by name, and their instances are
/// delivered: runtimes hold them.
pub async fn orchestrations_are_paused_once_and_listed(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, ID).await;
    if pause(provider, "b \"ü\"", "a\0b").await == HoldOutcome::Unsupported {
        return assert_eq!(admin(provider).paused_orchestrations().await, Ok(None));
    }
    assert_eq!(pause(provider, "a", "").await, HoldOutcome::Held);
    assert_eq!(pause(provider, "b \"ü\"", "again").await, HoldOutcome::AlreadyHeld);
    let (listed, first) = paused_orchestrations(provider).await;
    assert_eq!(listed, pairs(&[("a", ""), ("b \"ü\"", "a\0b")]));
    assert!(first.is_some_and(|at| at.abs_diff(factory.now_ms()) < 60_000), "the time is the store's");
    assert_eq!(
        pause(provider, &named().orchestration_name.expect("it has a name"), "").await,
        HoldOutcome::Held
    );
    poke(provider, ID).await;
    let (item, _, _) = must_fetch(provider, LONG).await;
    assert_eq!(item.instance, ID);
    assert_eq!(admin(provider).held_instance(ID).await, Ok(None), "runtimes hold instances, not the pause");
}

/// A resumption ends the pause of one orchestration, and the orchestration can be paused again.
pub async fn a_resumption_ends_one_pause(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, ID).await;
    if pause(provider, "a", "1").await == HoldOutcome::Unsupported {
        return;
    }
    assert_eq!(pause(provider, "b", "2").await, HoldOutcome::Held);
    let resume = async |orchestration: &str| {
        let resumed = admin(provider).resume_orchestration(orchestration).await;
        resumed.expect("resume_orchestration succeeds")
    };
    assert_eq!(resume("c").await, ReleaseOutcome::NotHeld);
    assert_eq!(resume("a").await, ReleaseOutcome::Released);
    assert_eq!(paused_orchestrations(provider).await.0, pairs(&[("b", "2")]));
    assert_eq!(resume("a").await, ReleaseOutcome::NotHeld);
    assert_eq!(pause(provider, "a", "3").await, HoldOutcome::Held);
    assert_eq!(paused_orchestrations(provider).await.0, pairs(&[("a", "3"), ("b", "2")]));
}

/// The audit keeps records exactly and lists the newest first, also after their instance is deleted.
pub async fn the_audit_keeps_its_records(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, ID).await;
    let entry = |n: u32| AuditEntry {
        actor: "operator \u{1f980}".to_string(),
        action: format!("action-{n}"),
        target: ID.to_string(),
        reason: "a\0b \"c\"".to_string(),
        request: (n == 2).then(|| "request".to_string()),
        result: String::new(),
    };
    for n in 1..=3 {
        if !admin(provider).append_audit(&entry(n)).await.expect("append_audit succeeds") {
            return assert_eq!(admin(provider).audit_page(None, 10).await, Ok(None));
        }
    }
    admin(provider).delete_instance(ID, true).await.expect("the instance can be deleted");
    let page = async |before: Option<u64>, limit: usize| {
        let page = admin(provider).audit_page(before, limit).await.expect("audit_page succeeds");
        page.expect("the store keeps an audit")
    };
    let newest = page(None, 2).await;
    assert_eq!(newest.iter().map(|record| &record.entry).collect::<Vec<_>>(), [&entry(3), &entry(2)]);
    assert!(newest[0].id > newest[1].id && newest[1].at_ms.abs_diff(factory.now_ms()) < 60_000);
    let rest = page(Some(newest[1].id), 10).await;
    assert_eq!(rest.iter().map(|record| &record.entry).collect::<Vec<_>>(), [&entry(1)]);
}

//! Messages of an instance come in the order in which they became available, and instances in the order in which
//! they have waited (C13).

use crate::ProviderFactory;
use crate::support::*;
use outlast_provider::{Provider, WorkItem};
use std::time::Duration;
use tokio::time::sleep;

/// The time between two sends, long enough for a clock of milliseconds and a busy machine.
const STEP: Duration = Duration::from_millis(150);

/// Fetches the instance's turn, commits it without events, and returns its messages.
async fn batch(provider: &dyn Provider) -> Vec<WorkItem> {
    let (item, token, _) = must_fetch(provider, LONG).await;
    assert_eq!(item.instance, "ordered");
    Turn::new(&token).commit(provider).await;
    item.messages
}

/// Sends messages to an instance, one by one or with one commit.
async fn send(provider: &dyn Provider, messages: &[WorkItem], by_commit: bool) {
    if !by_commit {
        return enqueue_all(provider, messages).await;
    }
    let token = next_turn(provider, "ordered").await;
    Turn::new(&token).messages(messages.to_vec()).commit(provider).await;
}

/// Timers are hidden until they are due, and are then delivered between the messages that arrived before and after, in any order
/// of creation.
pub async fn timers_are_delivered_in_the_order_of_their_fire_times(factory: &dyn ProviderFactory) {
    for by_commit in [false, true] {
        let mut attempts = Attempts::default();
        while !timers_in_order(factory, by_commit, attempts.next()).await {}
    }
}

/// Steps of growing length. Some calls of a validation must end before the store's clock has advanced by a step. An attempt
/// whose calls took longer, on a busy machine, is not a result, and the next attempt takes longer steps.
#[derive(Default)]
struct Attempts(u32);

impl Attempts {
    /// The step of the next attempt.
    fn next(&mut self) -> Duration {
        const MOST: u32 = 6;
        assert!(self.0 < MOST, "a few calls of the store take longer than {:?}", STEP * 2u32.pow(MOST - 1));
        self.0 += 1;
        STEP * 2u32.pow(self.0 - 1)
    }
}

fn millis(time: Duration) -> u64 {
    time.as_millis() as u64
}

/// Waits until the store's clock shows this time, once: the clock of a factory may stand still while tokio's time is paused and
/// advances.
async fn wait_until(factory: &dyn ProviderFactory, time_ms: u64) {
    // Two clocks of milliseconds may be one apart.
    const ROUNDING: Duration = Duration::from_millis(2);
    let left = Duration::from_millis(time_ms.saturating_sub(factory.now_ms()));
    sleep(left + ROUNDING).await;
}

/// Returns whether the calls were fast enough for the step.
async fn timers_in_order(factory: &dyn ProviderFactory, by_commit: bool, step: Duration) -> bool {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "ordered").await;
    send(provider, &[timer("ordered", 1, factory.now_ms() + millis(LONG))], by_commit).await;
    assert!(fetch(provider, LONG).await.is_none(), "hidden until it is due");

    let begun = factory.now_ms();
    let after = |steps: u32| begun + millis(step * steps);
    let [later, sooner] = [timer("ordered", 2, after(5)), timer("ordered", 3, after(2))];
    let arrived = completed("ordered", 4);
    send(provider, &[later.clone(), sooner.clone(), arrived.clone()], by_commit).await;
    // One step before the sooner one is due, and one after it.
    if factory.now_ms() > after(1) {
        return false;
    }
    wait_until(factory, after(3)).await;
    let [between, newest] = ["between", "newest"].map(|name| raised("ordered", name, ""));
    enqueue(provider, between.clone()).await;
    // The same for the later one.
    if factory.now_ms() > after(4) {
        return false;
    }
    wait_until(factory, after(6)).await;
    enqueue(provider, newest.clone()).await;
    let expected = [arrived, sooner, between, later, newest];
    assert_eq!(batch(provider).await, expected, "by commit: {by_commit}");
    true
}

/// A fire time in the past counts as now: such a timer overtakes nothing that was enqueued before it.
pub async fn a_timer_in_the_past_overtakes_no_message(factory: &dyn ProviderFactory) {
    for by_commit in [false, true] {
        let provider = &*factory.create_provider().await;
        create_instance(provider, "ordered").await;
        let past = factory.now_ms() - 60_000;
        let messages = [
            raised("ordered", "first", ""),
            timer("ordered", 2, past),
            completed("ordered", 3),
            timer("ordered", 4, 0),
            timer("ordered", 5, past - 1),
            raised("ordered", "last", ""),
        ];
        send(provider, &messages, by_commit).await;
        assert_eq!(batch(provider).await, messages, "by commit: {by_commit}");
    }
}

/// A delay only hides messages: afterwards they are in their old order, before later ones.
pub async fn a_delayed_abandon_keeps_the_order_of_the_batch(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "ordered").await;
    let early = [completed("ordered", 9), raised("ordered", "z", ""), completed("ordered", 2)];
    enqueue_all(provider, &early).await;
    let (item, token, _) = must_fetch(provider, LONG).await;
    assert_eq!(item.messages, early);
    sleep(STEP / 10).await;
    let late = [raised("ordered", "b", ""), raised("ordered", "a", "")];
    enqueue_all(provider, &late[..1]).await;
    provider.abandon_orchestration_item(&token, Some(STEP), false).await.unwrap();
    sleep(STEP / 10).await;
    enqueue_all(provider, &late[1..]).await;
    sleep(2 * STEP).await;
    assert_eq!(batch(provider).await, [&early[..], &late[..]].concat());
}

/// While one instance is delayed, others are delivered; afterwards the instance has its old place.
pub async fn a_delayed_abandon_lets_other_instances_go_first(factory: &dyn ProviderFactory) {
    let mut attempts = Attempts::default();
    while !others_go_first(factory, attempts.next()).await {}
}

/// Returns whether the calls were fast enough for the step.
async fn others_go_first(factory: &dyn ProviderFactory, step: Duration) -> bool {
    let provider = &*factory.create_provider().await;
    enqueue(provider, start_item("first")).await;
    sleep(STEP / 10).await;
    enqueue(provider, start_item("second")).await;
    let (item, token, _) = must_fetch(provider, LONG).await;
    assert_eq!(item.instance, "first");
    let abandoned = factory.now_ms();
    provider.abandon_orchestration_item(&token, Some(step), false).await.unwrap();
    let (item, _, _) = must_fetch(provider, LONG).await;
    let nothing = fetch(provider, LONG).await.is_none();
    if factory.now_ms() >= abandoned + millis(step) {
        return false;
    }
    assert!(item.instance == "second" && nothing, "the first one is hidden");
    sleep(step * 4 / 3).await;
    let (item, _, attempt) = must_fetch(provider, LONG).await;
    assert_eq!((item.instance.as_str(), attempt), ("first", 2));
    true
}

/// An instance that is given back without delay keeps its place before those that came after it (7.2.24).
pub async fn an_abandon_without_delay_keeps_the_place_in_the_queue(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    for instance in ["first", "second", "third"] {
        enqueue(provider, start_item(instance)).await;
        sleep(STEP / 10).await;
    }
    for ignore_attempt in [false, true] {
        let (item, token, _) = must_fetch(provider, LONG).await;
        assert_eq!(item.instance, "first");
        sleep(STEP / 10).await;
        provider.abandon_orchestration_item(&token, None, ignore_attempt).await.unwrap();
    }
    for instance in ["first", "second", "third"] {
        assert_eq!(must_fetch(provider, LONG).await.0.instance, instance);
    }
}

/// An instance whose holder let the lease lapse keeps its place before those that came after it: the oldest visible
/// message goes first.
pub async fn an_expired_lease_keeps_the_place_in_the_queue(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let lease = factory.lock_timeout();
    enqueue(provider, start_item("first")).await;
    assert_eq!(must_fetch(provider, lease).await.0.instance, "first");
    sleep(lease / 4).await;
    enqueue(provider, start_item("second")).await;
    outlive(lease).await;
    let (item, _, attempt) = must_fetch(provider, LONG).await;
    assert_eq!((item.instance.as_str(), attempt), ("first", 2));
    assert_eq!(must_fetch(provider, LONG).await.0.instance, "second");
}

/// A delayed message is hidden for its delay, delays no other message, and comes before messages that arrive after it.
pub async fn a_delayed_message_is_delivered_after_its_delay(factory: &dyn ProviderFactory) {
    let mut attempts = Attempts::default();
    while !comes_after_its_delay(factory, attempts.next()).await {}
}

/// Returns whether the calls were fast enough for the step.
async fn comes_after_its_delay(factory: &dyn ProviderFactory, step: Duration) -> bool {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "ordered").await;
    let [before, delayed, after] = ["before", "delayed", "after"].map(|name| raised("ordered", name, ""));
    let sent = factory.now_ms();
    let is_hidden = || factory.now_ms() < sent + millis(2 * step);
    provider.enqueue_for_orchestrator(delayed.clone(), Some(2 * step)).await.unwrap();
    let nothing = fetch(provider, LONG).await.is_none();
    if !is_hidden() {
        return false;
    }
    assert!(nothing, "hidden at once");
    enqueue(provider, before.clone()).await;
    let batched = batch(provider).await;
    if !is_hidden() {
        return false;
    }
    assert_eq!(batched, [before]);
    wait_until(factory, sent + millis(step)).await;
    let nothing = fetch(provider, LONG).await.is_none();
    if !is_hidden() {
        return false;
    }
    assert!(nothing, "hidden until the delay is over");
    sleep(2 * step).await;
    enqueue(provider, after.clone()).await;
    assert_eq!(batch(provider).await, [delayed, after]);
    true
}

/// Many messages come in exactly the order in which they were sent, alone or by a commit.
pub async fn many_messages_keep_their_order(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "ordered").await;
    for by_commit in [false, true] {
        let messages: Vec<_> = (1..=50)
            .map(|n: u64| match n % 3 {
                0 => completed("ordered", 7 * n % 50),
                1 => raised("ordered", "event", &n.to_string()),
                _ => queue_message("ordered", "queue", &(99 - n).to_string()),
            })
            .collect();
        send(provider, &messages, by_commit).await;
        assert_eq!(batch(provider).await, messages, "by commit: {by_commit}");
    }
}

//! A fetch takes at most its bound of messages of an instance; the others are delivered with the next turns, and no message is lost,
//! repeated or overtaken. Stores without a bound deliver all messages in one turn, which these rules allow as well.

use crate::ProviderFactory;
use crate::support::*;
use outlast_provider::model::json;
use outlast_provider::{Completion, MessageBound, Provider, TurnAhead, TurnCommit, WorkItem};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// A small bound, so that a few messages exceed it.
const BOUND: MessageBound = MessageBound::new(4, 4_000);
const INSTANCE: &str = "crowded";
const DELAY: Duration = Duration::from_millis(400);

/// A store with the bound if the factory can create one, else a store without a bound.
async fn store(factory: &dyn ProviderFactory) -> (Arc<dyn Provider>, Option<MessageBound>) {
    match factory.create_bounded_provider(BOUND).await {
        Some(bounded) => (bounded, Some(BOUND)),
        None => (factory.create_provider().await, None),
    }
}

fn small(numbers: std::ops::Range<usize>) -> Vec<WorkItem> {
    numbers.map(|n| queue_message(INSTANCE, "queue", &n.to_string())).collect()
}

/// A message whose stored text has about this number of bytes.
fn large(n: usize, bytes: usize) -> WorkItem {
    queue_message(INSTANCE, "queue", &format!("{n}{}", "x".repeat(bytes)))
}

fn size(item: &WorkItem) -> usize {
    json::encode_work_item(item).expect("a message has a text").len()
}

/// Fails if a batch exceeds the bound; one message is always allowed.
fn check_bound(batch: &[WorkItem], bound: Option<MessageBound>) {
    let Some(bound) = bound else { return };
    let bytes: usize = batch.iter().map(size).sum();
    assert!(batch.len() <= bound.messages.max(1), "{} messages in one turn", batch.len());
    assert!(
        batch.len() == 1 || bytes <= bound.bytes,
        "{bytes} bytes in one turn of {} messages",
        batch.len()
    );
}

/// Commits turns until this number of messages was delivered; each turn is ready at once, and is a first delivery.
async fn drain(
    provider: &dyn Provider,
    execution: u64,
    wanted: usize,
    bound: Option<MessageBound>,
) -> Vec<WorkItem> {
    let mut delivered = Vec::new();
    while delivered.len() < wanted {
        let (item, token, attempt) = must_fetch(provider, LONG).await;
        assert_eq!((item.instance.as_str(), attempt), (INSTANCE, 1));
        check_bound(&item.messages, bound);
        assert!(fetch(provider, LONG).await.is_none(), "messages beyond the bound wait for the commit");
        Turn::new(&token).execution(execution).commit(provider).await;
        delivered.extend(item.messages);
    }
    assert!(fetch(provider, LONG).await.is_none(), "nothing is delivered twice");
    delivered
}

/// Many messages are delivered in several turns, in order, each once, and each turn is ready with the commit of the one before.
pub async fn a_fetch_takes_no_more_messages_than_its_bound(factory: &dyn ProviderFactory) {
    let (provider, bound) = store(factory).await;
    create_instance(&*provider, INSTANCE).await;
    let messages = small(0..11);
    enqueue_all(&*provider, &messages).await;
    assert_eq!(drain(&*provider, 1, messages.len(), bound).await, messages);
    // Exactly the bound of messages is one turn.
    let messages = small(0..BOUND.messages);
    enqueue_all(&*provider, &messages).await;
    let (item, token, _) = must_fetch(&*provider, LONG).await;
    assert_eq!(item.messages, messages);
    Turn::new(&token).commit(&*provider).await;
}

/// Large messages are delivered in several turns, and a message that is larger than the bound is delivered alone.
pub async fn a_fetch_takes_no_more_bytes_than_its_bound(factory: &dyn ProviderFactory) {
    let (provider, bound) = store(factory).await;
    create_instance(&*provider, INSTANCE).await;
    let messages =
        [large(1, 1_500), large(2, 1_500), large(3, 1_500), large(4, 9_000), large(5, 10), large(6, 10)];
    enqueue_all(&*provider, &messages).await;
    assert_eq!(drain(&*provider, 1, messages.len(), bound).await, messages);
}

/// The start of an execution is in its first turn, also after many earlier messages: without it no turn is possible.
pub async fn a_start_is_in_the_first_turn_before_older_messages(factory: &dyn ProviderFactory) {
    let (provider, bound) = store(factory).await;
    let early: Vec<_> = (0..6).map(|n| raised(INSTANCE, "early", &n.to_string())).collect();
    enqueue_all(&*provider, &early).await;
    enqueue(&*provider, start_item(INSTANCE)).await;
    let (item, token, _) = must_fetch(&*provider, LONG).await;
    check_bound(&item.messages, bound);
    assert!(item.messages.contains(&start_item(INSTANCE)), "{:?}", item.messages);
    Turn::new(&token).event(started(INSTANCE)).metadata(named()).commit(&*provider).await;
    let mut delivered = item.messages;
    delivered.retain(|message| *message != start_item(INSTANCE));
    let rest = early.len() - delivered.len();
    delivered.extend(drain(&*provider, 1, rest, bound).await);
    assert_eq!(delivered, early);
}

/// The start of a successor overtakes the messages that its predecessor left, and other starts.
pub async fn a_successor_starts_before_messages_beyond_the_bound(factory: &dyn ProviderFactory) {
    let (provider, bound) = store(factory).await;
    create_instance(&*provider, INSTANCE).await;
    let mut messages = small(0..9);
    messages.extend((0..6).map(|_| start_item(INSTANCE)));
    enqueue_all(&*provider, &messages).await;
    let (first, token, _) = must_fetch(&*provider, LONG).await;
    let end = event(INSTANCE, 2, continued_kind("next"));
    let turn = Turn::new(&token).event(end).metadata(status("ContinuedAsNew", "next"));
    turn.message(continue_item(INSTANCE)).commit(&*provider).await;
    let (second, token, _) = must_fetch(&*provider, LONG).await;
    check_bound(&second.messages, bound);
    assert!(second.messages.contains(&continue_item(INSTANCE)), "{:?}", second.messages);
    let turn = Turn::new(&token).execution(2).event(started_in(INSTANCE, 2)).metadata(named());
    turn.commit(&*provider).await;
    let mut delivered: Vec<_> = first.messages.into_iter().chain(second.messages).collect();
    delivered.retain(|message| *message != continue_item(INSTANCE));
    let rest = messages.len() - delivered.len();
    delivered.extend(drain(&*provider, 2, rest, bound).await);
    let is_queued = |message: &&WorkItem| matches!(message, WorkItem::QueueMessage { .. });
    assert!(delivered.iter().filter(is_queued).eq(messages.iter().filter(is_queued)), "{delivered:?}");
    assert_eq!(delivered.len(), messages.len());
}

/// A turn that is given back with a delay is delivered again with the same messages, before any message that the bound left out.
pub async fn a_delay_holds_messages_beyond_the_bound(factory: &dyn ProviderFactory) {
    let (provider, bound) = store(factory).await;
    create_instance(&*provider, INSTANCE).await;
    let messages = small(0..10);
    enqueue_all(&*provider, &messages).await;
    let (first, token, _) = must_fetch(&*provider, LONG).await;
    provider.abandon_orchestration_item(&token, Some(DELAY), false).await.expect("it is given back");
    assert!(
        fetch(&*provider, LONG).await.is_none(),
        "messages outside of the batch do not overtake the given-back messages"
    );
    sleep(DELAY + DELAY / 4).await;
    let (again, token, attempt) = must_fetch(&*provider, LONG).await;
    assert_eq!((&again.messages, attempt), (&first.messages, 2));
    Turn::new(&token).commit(&*provider).await;
    let mut delivered = again.messages;
    delivered.extend(drain(&*provider, 1, messages.len() - delivered.len(), bound).await);
    assert_eq!(delivered, messages);
}

/// A turn whose lease expires is delivered again, and only its messages have been delivered twice. Messages that the lost lease
/// covered and the next one does not are delivered later, even if no other message is left.
pub async fn a_takeover_frees_messages_beyond_the_bound(factory: &dyn ProviderFactory) {
    for count in [10, BOUND.messages] {
        taken_over(factory, count).await;
    }
}

async fn taken_over(factory: &dyn ProviderFactory, count: usize) {
    let (provider, bound) = store(factory).await;
    create_instance(&*provider, INSTANCE).await;
    let messages = small(0..count);
    enqueue_all(&*provider, &messages).await;
    let lease = factory.lock_timeout();
    let (first, lost, _) = must_fetch(&*provider, lease).await;
    sleep(lease + lease / 4).await;
    // A start is delivered before all others, so the next lease covers fewer of them.
    enqueue(&*provider, start_item(INSTANCE)).await;
    let (second, token, attempt) = must_fetch(&*provider, LONG).await;
    assert_eq!(attempt, 2, "the batch has messages that were delivered before");
    check_bound(&second.messages, bound);
    permanent(Turn::new(&lost).try_commit(&*provider).await, "a commit after a takeover");
    Turn::new(&token).commit(&*provider).await;
    let mut delivered = second.messages;
    while delivered.len() < messages.len() + 1 {
        let (item, token, attempt) = must_fetch(&*provider, LONG).await;
        let was_delivered = item.messages.iter().any(|message| first.messages.contains(message));
        assert_eq!(attempt, 1 + u32::from(was_delivered), "{:?}", item.messages);
        check_bound(&item.messages, bound);
        Turn::new(&token).commit(&*provider).await;
        delivered.extend(item.messages);
    }
    delivered.retain(|message| *message != start_item(INSTANCE));
    assert_eq!(delivered, messages);
    assert!(fetch(&*provider, LONG).await.is_none());
}

/// Messages for an instance that does not exist yet are kept together, for any number of messages.
pub async fn orphans_beyond_the_bound_are_kept_for_their_instance(factory: &dyn ProviderFactory) {
    let (provider, bound) = store(factory).await;
    let mut messages = small(0..7);
    messages.push(raised(INSTANCE, "event", "data"));
    messages.extend(small(8..10));
    enqueue_all(&*provider, &messages).await;
    assert!(fetch(&*provider, LONG).await.is_none(), "there is no such instance");
    enqueue(&*provider, start_item(INSTANCE)).await;
    let mut delivered = Vec::new();
    while delivered.len() < messages.len() + 1 {
        let longest_wait = Duration::from_secs(4);
        let (item, token, attempt) = within(longest_wait, || fetch(&*provider, LONG)).await;
        assert_eq!(attempt, 1, "looking at an orphan is no delivery");
        check_bound(&item.messages, bound);
        let turn = match delivered.is_empty() {
            true => Turn::new(&token).event(started(INSTANCE)).metadata(named()),
            false => Turn::new(&token),
        };
        turn.commit(&*provider).await;
        delivered.extend(item.messages);
    }
    delivered.retain(|message| *message != start_item(INSTANCE));
    assert_eq!(delivered, messages);
}

/// An outcome is queued behind messages that the bound left out, and a run-ahead turn is rejected.
pub async fn an_outcome_does_not_overtake_messages_beyond_the_bound(factory: &dyn ProviderFactory) {
    let (provider, bound) = store(factory).await;
    create_instance(&*provider, INSTANCE).await;
    let token = next_turn(&*provider, INSTANCE).await;
    let work = event(INSTANCE, 2, scheduled_kind("Activity2"));
    Turn::new(&token).event(work).activity(activity(INSTANCE, 2)).commit(&*provider).await;
    let (_, activity_token, _) = must_fetch_activity(&*provider, LONG).await;
    let messages = small(0..6);
    enqueue_all(&*provider, &messages).await;
    let (first, token, _) = must_fetch(&*provider, LONG).await;
    check_bound(&first.messages, bound);
    Turn::new(&token).commit(&*provider).await;
    let left = messages.len() - first.messages.len();
    // Earlier messages wait, so the run-ahead turn must not be stored.
    let ahead = TurnAhead {
        after_event_id: 2,
        ran_at_ms: factory.now_ms(),
        commit: TurnCommit { execution_id: 1, ..Default::default() },
    };
    let outcome = completed(INSTANCE, 2);
    let answer = provider.complete_with_turn(&activity_token, outcome.clone(), ahead).await;
    let mut delivered = first.messages;
    if left > 0 {
        assert_eq!(answer, Ok(Completion::Queued));
        delivered.extend(drain(&*provider, 1, left + 1, bound).await);
        assert_eq!(delivered, [&messages[..], &[outcome]].concat());
    }
}

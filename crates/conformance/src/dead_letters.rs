//! Items that do not decode become dead letters with a reason, and delay no other item.

use crate::ProviderFactory;
use crate::support::*;
use outlast_provider::model::json;
use outlast_provider::{DeadLetter, DeadLetterQueue, Provider, TagFilter, WorkRequest};

/// The only dead letter, which must be of this queue and instance and must have a reason.
async fn only_letter(provider: &dyn Provider, queue: DeadLetterQueue, instance: &str) -> DeadLetter {
    let letters = admin(provider).list_dead_letters(10).await.unwrap();
    let [letter] = &letters[..] else { panic!("one message was damaged: {letters:?}") };
    assert_eq!((letter.queue, letter.instance_id.as_deref()), (queue, Some(instance)));
    assert!(!letter.reason.is_empty(), "a reason is given");
    assert!(json::decode_work_item(&letter.work_item).is_err(), "the text is kept unchanged");
    letter.clone()
}

/// An undecodable message becomes a dead letter with text and reason, and the other messages of its batch are delivered in order (C12).
pub async fn a_damaged_message_is_a_dead_letter_and_others_are_delivered(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "damaged").await;
    let before = factory.now_ms();
    enqueue(provider, raised("damaged", "lost", "")).await;
    factory.corrupt_orchestrator_messages("damaged").await;
    let rest = [raised("damaged", "b", ""), completed("damaged", 3), raised("damaged", "a", "")];
    enqueue_all(provider, &rest).await;

    let (item, token, attempt) = must_fetch(provider, LONG).await;
    assert_eq!((item.messages.as_slice(), attempt), (rest.as_slice(), 1));
    assert_eq!((item.history.len(), item.history_error), (1, None), "history is not damaged");
    let letter = only_letter(provider, DeadLetterQueue::Orchestrator, "damaged").await;
    let now = factory.now_ms();
    assert!(
        (before..=now + 1).contains(&letter.dead_at),
        "{} is not within {before}..={now}",
        letter.dead_at
    );

    Turn::new(&token).commit(provider).await;
    assert!(fetch(provider, LONG).await.is_none(), "the batch is consumed");
    assert_eq!(
        only_letter(provider, DeadLetterQueue::Orchestrator, "damaged").await,
        letter,
        "and this is not"
    );
}

/// The dead letter of a message that was delivered before it was damaged has its delivery count.
pub async fn a_dead_letter_has_its_delivery_count(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "damaged").await;
    let token = next_turn(provider, "damaged").await;
    provider.abandon_orchestration_item(&token, None, false).await.unwrap();
    factory.corrupt_orchestrator_messages("damaged").await;
    assert!(fetch(provider, LONG).await.is_none(), "nothing is left to deliver");
    let letter = only_letter(provider, DeadLetterQueue::Orchestrator, "damaged").await;
    assert!((1..=2).contains(&letter.attempt_count), "delivered once, and tried once more: {letter:?}");
}

/// A batch of only undecodable messages does not delay instances behind it and takes no lease.
pub async fn a_batch_of_damaged_messages_blocks_no_other_instance(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    for instance in ["new", "known"] {
        if instance == "known" {
            create_instance(provider, instance).await;
        }
        enqueue(provider, start_item(instance)).await;
        poke(provider, instance).await;
        factory.corrupt_orchestrator_messages(instance).await;
        let other = format!("behind-{instance}");
        create_instance(provider, &other).await;

        assert!(fetch(provider, LONG).await.is_none(), "nothing of {instance} can be delivered");
        enqueue(provider, start_item(instance)).await;
        let (item, token, attempt) = must_fetch(provider, LONG).await;
        assert_eq!((item.messages, attempt), (vec![start_item(instance)], 1), "no lease was taken");
        Turn::new(&token).commit(provider).await;
    }
    let letters = admin(provider).list_dead_letters(10).await.unwrap();
    let of: Vec<_> = letters.iter().map(|letter| letter.instance_id.as_deref().unwrap()).collect();
    assert_eq!(of, ["known", "known", "new", "new"], "newest first");
    assert_eq!(admin(provider).list_dead_letters(3).await.unwrap(), letters[..3], "at most as many as asked");
}

/// An undecodable activity becomes a dead letter, and the fetch returns the next one.
pub async fn a_damaged_activity_is_a_dead_letter_and_the_next_is_delivered(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    enqueue_activity(provider, activity("damaged", 1)).await;
    enqueue_activity(provider, activity("healthy", 2)).await;
    factory.corrupt_work_items("damaged").await;
    let (item, token, attempt) = must_fetch_activity(provider, LONG).await;
    assert_eq!((item, attempt), (activity("healthy", 2), 1));
    only_letter(provider, DeadLetterQueue::Worker, "damaged").await;
    provider.ack_work_item(&token, None).await.unwrap();
    assert!(fetch_activity(provider, LONG).await.is_none(), "the damaged one is out of the queue");
    assert_eq!(admin(provider).get_queue_depths().await.unwrap().worker_queue, 0);
    only_letter(provider, DeadLetterQueue::Worker, "damaged").await;
}

/// A batch fetch skips undecodable activities at any place, and still fills its batch.
pub async fn a_batch_fetch_skips_damaged_activities(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    for id in 1..=6 {
        enqueue_activity(provider, activity(if id % 2 == 1 { "damaged" } else { "healthy" }, id)).await;
    }
    factory.corrupt_work_items("damaged").await;
    let fetched = provider
        .fetch_work_items(WorkRequest {
            max_items: 3,
            lock_timeout: LONG,
            poll_timeout: NO_WAIT,
            session: None,
            tag_filter: &TagFilter::DefaultOnly,
        })
        .await
        .expect("fetch_work_items succeeds");
    let items: Vec<_> = fetched.into_iter().map(|work| work.item).collect();
    assert_eq!(items, [2, 4, 6].map(|id| activity("healthy", id)));
    let mut letters = admin(provider).list_dead_letters(10).await.unwrap();
    // A fetch that stops at a full batch does not reach later activities; here the last one is decodable.
    letters.retain(|letter| letter.queue == DeadLetterQueue::Worker && !letter.reason.is_empty());
    assert_eq!(letters.len(), 3);
}

/// Queue messages for an instance whose history is damaged are delivered with the error and never dropped as orphans,
/// whether the instance has a row or not (7.2.8, 7.4.2).
pub async fn queue_messages_of_a_damaged_history_are_kept(factory: &dyn ProviderFactory) {
    for metadata in [named(), Default::default()] {
        let provider = &*factory.create_provider().await;
        create_with(provider, "damaged", metadata).await;
        factory.corrupt_instance_history("damaged").await;
        let message = queue_message("damaged", "q", "precious");
        enqueue(provider, message.clone()).await;
        for expected in [1, 2] {
            let (item, token, attempt) = must_fetch(provider, LONG).await;
            assert_eq!(
                (item.instance.as_str(), &item.messages, attempt),
                ("damaged", &vec![message.clone()], expected)
            );
            assert!(item.history.is_empty() && item.history_error.is_some(), "the damage is reported");
            provider.abandon_orchestration_item(&token, None, false).await.unwrap();
        }
        assert_eq!(admin(provider).get_queue_depths().await.unwrap().orchestrator_queue, 1, "it still waits");
        assert_eq!(admin(provider).list_dead_letters(10).await.unwrap(), [], "the message is not damaged");
    }
}

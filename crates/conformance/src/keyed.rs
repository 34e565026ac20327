//! A message with a key is stored once per instance; its key is deleted with the instance.

use crate::ProviderFactory;
use crate::support::*;
use futures::future::join_all;
use outlast_provider::model::WorkItem;
use outlast_provider::{EnqueueOnce, Provider};

const ID: &str = "keyed";

async fn once(provider: &dyn Provider, item: &WorkItem, key: &str) -> EnqueueOnce {
    provider.enqueue_once(item.clone(), key, 100).await.expect("enqueue_once succeeds")
}

/// A store with a running instance; `None` if the store keeps no keys.
async fn store(factory: &dyn ProviderFactory) -> Option<std::sync::Arc<dyn Provider>> {
    let provider = factory.create_provider().await;
    create_instance(&*provider, ID).await;
    let probe = provider.enqueue_once(raised("nobody", "e", ""), "key", 100).await;
    match probe.expect("enqueue_once succeeds") {
        EnqueueOnce::Unsupported => None,
        outcome => {
            assert_eq!(outcome, EnqueueOnce::NotFound, "no key without an instance");
            Some(provider)
        }
    }
}

/// The messages of the next turn, which is committed.
async fn delivered(provider: &dyn Provider) -> Vec<WorkItem> {
    let (item, token, attempt) = must_fetch(provider, LONG).await;
    assert_eq!(attempt, 1);
    Turn::new(&token).commit(provider).await;
    item.messages
}

/// A message with a key is delivered once, also if it is sent again before, during and after its turn.
pub async fn a_message_with_a_key_is_delivered_once(factory: &dyn ProviderFactory) {
    let Some(provider) = store(factory).await else { return };
    let (first, other) = (raised(ID, "e", "first"), queue_message(ID, "q", "other"));
    assert_eq!(once(&*provider, &first, "a").await, EnqueueOnce::Stored);
    assert_eq!(once(&*provider, &raised(ID, "e", "second"), "a").await, EnqueueOnce::Repeated);
    assert_eq!(once(&*provider, &other, "b").await, EnqueueOnce::Stored, "another key");
    let (item, token, _) = must_fetch(&*provider, LONG).await;
    assert_eq!(item.messages, [first.clone(), other]);
    assert_eq!(once(&*provider, &first, "a").await, EnqueueOnce::Repeated, "during the turn");
    Turn::new(&token).commit(&*provider).await;
    assert_eq!(once(&*provider, &first, "a").await, EnqueueOnce::Repeated, "after the turn");
    assert!(fetch(&*provider, LONG).await.is_none(), "nothing else is delivered");
}

/// Of concurrent senders with the same key one stores its message.
pub async fn concurrent_messages_with_one_key_are_stored_once(factory: &dyn ProviderFactory) {
    let Some(provider) = store(factory).await else { return };
    let messages: Vec<WorkItem> = (0..8).map(|nth| raised(ID, "e", &nth.to_string())).collect();
    let outcomes = join_all(messages.iter().map(|message| once(&*provider, message, "a"))).await;
    let stored: Vec<usize> = (0..8).filter(|nth| outcomes[*nth] == EnqueueOnce::Stored).collect();
    assert_eq!(stored.len(), 1, "{outcomes:?}");
    assert_eq!(delivered(&*provider).await, [messages[stored[0]].clone()]);
    assert!(fetch(&*provider, LONG).await.is_none());
}

/// Two instances take a message with the same key.
pub async fn a_key_belongs_to_one_instance(factory: &dyn ProviderFactory) {
    let Some(provider) = store(factory).await else { return };
    create_instance(&*provider, "another").await;
    for instance in [ID, "another"] {
        let message = raised(instance, "e", "");
        assert_eq!(once(&*provider, &message, "a").await, EnqueueOnce::Stored, "{instance}");
        assert_eq!(delivered(&*provider).await, [message]);
    }
}

/// A new instance with the id of a deleted one takes the message of the same key.
pub async fn keys_are_deleted_with_their_instance(factory: &dyn ProviderFactory) {
    let Some(provider) = store(factory).await else { return };
    let message = raised(ID, "e", "");
    assert_eq!(once(&*provider, &message, "a").await, EnqueueOnce::Stored);
    admin(&*provider).delete_instance(ID, true).await.expect("the instance can be deleted");
    assert_eq!(once(&*provider, &message, "a").await, EnqueueOnce::NotFound);
    create_instance(&*provider, ID).await;
    assert_eq!(once(&*provider, &message, "a").await, EnqueueOnce::Stored);
    assert_eq!(delivered(&*provider).await, [message]);
}

/// The key of a message for which the mailbox has no room stays free, and a stored key is known to a full mailbox.
pub async fn a_full_mailbox_keeps_no_key(factory: &dyn ProviderFactory) {
    let Some(provider) = store(factory).await else { return };
    let message = raised(ID, "e", "");
    let within = async |key: &str, most: usize| provider.enqueue_once(message.clone(), key, most).await;
    assert_eq!(within("a", 1).await, Ok(EnqueueOnce::Stored));
    assert_eq!(within("b", 1).await, Ok(EnqueueOnce::Full));
    assert_eq!(within("a", 1).await, Ok(EnqueueOnce::Repeated));
    assert_eq!(delivered(&*provider).await, std::slice::from_ref(&message));
    assert_eq!(within("b", 1).await, Ok(EnqueueOnce::Stored));
    assert_eq!(delivered(&*provider).await, std::slice::from_ref(&message));
}

/// An instance that has ended knows its keys and takes no other; an instance whose start waits takes messages.
pub async fn ended_and_starting_instances_answer_keys(factory: &dyn ProviderFactory) {
    let Some(provider) = store(factory).await else { return };
    let message = raised(ID, "e", "");
    assert_eq!(once(&*provider, &message, "a").await, EnqueueOnce::Stored);
    let (_, token, _) = must_fetch(&*provider, LONG).await;
    Turn::new(&token).metadata(status("Completed", "done")).commit(&*provider).await;
    assert_eq!(once(&*provider, &message, "a").await, EnqueueOnce::Repeated);
    assert_eq!(once(&*provider, &message, "b").await, EnqueueOnce::Ended);
    assert!(fetch(&*provider, LONG).await.is_none());
    enqueue(&*provider, start_item("starts")).await;
    let early = raised("starts", "e", "");
    assert_eq!(once(&*provider, &early, "a").await, EnqueueOnce::Stored);
    assert_eq!(once(&*provider, &early, "a").await, EnqueueOnce::Repeated);
    let (item, ..) = must_fetch(&*provider, LONG).await;
    assert_eq!(item.messages, [start_item("starts"), early]);
}

/// A key has a length, and its text is compared exactly.
pub async fn keys_are_compared_exactly(factory: &dyn ProviderFactory) {
    let Some(provider) = store(factory).await else { return };
    let message = raised(ID, "e", "");
    for key in ["", &"k".repeat(1_025)] {
        permanent(provider.enqueue_once(message.clone(), key, 100).await, "a key of a wrong length");
    }
    let longest = "k".repeat(1_024);
    let keys =
        ["k", "K", "k ", "a\0b", "a\u{1}0b", "a/b\\?#", "source\nid", "\u{1f980}", &longest, &longest[1..]];
    for key in keys {
        assert_eq!(once(&*provider, &message, key).await, EnqueueOnce::Stored, "{key:?}");
    }
    for key in keys {
        assert_eq!(once(&*provider, &message, key).await, EnqueueOnce::Repeated, "{key:?}");
    }
    assert_eq!(delivered(&*provider).await.len(), keys.len());
}

//! Events, queues and cancellation.

use super::stores::Plain;
use super::*;
use outlast_model::limits::Limits;
use outlast_provider::EnqueueOnce;

#[tokio::test]
async fn each_method_sends_its_message() {
    let (store, client) = memory();
    client.start_orchestration("i", "Order", "").await.unwrap();
    client.raise_event("i", "paid", "12").await.unwrap();
    client.raise_event_typed("i", "paid", &"raw").await.unwrap();
    client.try_raise_event_typed("i", "paid", &Some(3)).await.unwrap();
    client.enqueue_event("i", "items", "apple").await.unwrap();
    client.enqueue_event_typed("i", "items", &[1, 2]).await.unwrap();
    client.try_enqueue_event_typed("i", "items", &()).await.unwrap();
    #[allow(deprecated)]
    client.raise_event_persistent("i", "items", "pear").await.unwrap();
    client.cancel_instance("i", "too late").await.unwrap();
    let raised = |data: &str| WorkItem::ExternalRaised {
        instance: "i".into(),
        name: "paid".into(),
        data: data.into(),
    };
    let expected = [
        start_item("i", "Order", "", None),
        raised("12"),
        raised("raw"),
        raised("3"),
        queued("i", "items", "apple"),
        queued("i", "items", "[1,2]"),
        queued("i", "items", "null"),
        queued("i", "items", "pear"),
        WorkItem::CancelInstance { instance: "i".into(), reason: "too late".into() },
    ];
    assert_eq!(peek(&*store).await, expected);
}

#[cfg(feature = "replay-version-test")]
#[tokio::test]
async fn an_event_with_a_topic_is_sent_with_its_topic() {
    let (store, client) = memory();
    client.start_orchestration("i", "Order", "").await.unwrap();
    client.raise_event2("i", "paid", "cash", "12").await.unwrap();
    let expected = WorkItem::ExternalRaised2 {
        instance: "i".into(),
        name: "paid".into(),
        topic: "cash".into(),
        data: "12".into(),
    };
    assert_eq!(peek(&*store).await, [start_item("i", "Order", "", None), expected]);
    assert!(refusal(client.raise_event2("i", "n", "t".repeat(257), "").await).contains("the topic"));
}

#[tokio::test]
async fn sending_to_a_missing_or_ended_instance_is_ok() {
    let (store, client) = memory();
    turn(&*store, "done", 1, 1, vec![started(), completed("out")]).await;
    for instance in ["done", "unknown"] {
        client.raise_event(instance, "n", "d").await.unwrap();
        client.enqueue_event(instance, "q", "d").await.unwrap();
        client.cancel_instance(instance, "r").await.unwrap();
    }
}

#[tokio::test]
async fn an_error_of_the_store_is_returned() {
    let store = Arc::new(Plain::new());
    let client = Client::new(Arc::clone(&store) as Arc<dyn Provider>);
    store.notes.break_down("enqueue_for_orchestrator");
    let results = [
        client.start_orchestration("i", "Order", "").await,
        client.raise_event("i", "n", "d").await,
        client.enqueue_event("i", "q", "d").await,
        client.cancel_instance("i", "r").await,
    ];
    for result in results {
        let error = result.unwrap_err();
        assert!(matches!(&error, ClientError::Provider(inner) if inner.retryable), "{error}");
        assert_eq!(error.to_string(), "enqueue_for_orchestrator: the disk is away");
    }
}

#[tokio::test]
async fn events_with_a_key_are_sent_once() {
    let (store, client) = memory();
    let missing = client.raise_event_once("i", "paid", "12", "k").await;
    assert_eq!(missing.unwrap(), EnqueueOnce::NotFound);
    client.start_orchestration("i", "Order", "").await.unwrap();
    for expected in [EnqueueOnce::Stored, EnqueueOnce::Repeated] {
        assert_eq!(client.raise_event_once("i", "paid", "12", "a").await.unwrap(), expected);
        assert_eq!(client.enqueue_event_once("i", "items", "apple", "b").await.unwrap(), expected);
    }
    for key in ["", &"k".repeat(1_025)] {
        let refused = client.raise_event_once("i", "paid", "12", key).await.unwrap_err();
        assert!(refused.to_string().contains("the key of an event has 1 to 1024 bytes"), "{refused}");
    }
    let full = client.with_limits(Limits { mailbox_messages: 3, ..Limits::default() });
    let refused = full.raise_event_once("i", "paid", "12", "c").await.unwrap_err();
    assert!(refused.to_string().contains("which is the limit mailbox_messages"), "{refused}");
    assert_eq!(peek(&*store).await.len(), 3, "the start and two events");
}

#[tokio::test]
async fn a_store_without_keys_refuses_events_with_a_key() {
    let client = Client::new(Arc::new(Plain::new()));
    let refused = client.raise_event_once("i", "paid", "12", "k").await.unwrap_err();
    assert!(refused.to_string().contains("this store keeps no keys of events"), "{refused}");
}

//! The arguments that a client rejects without a call to the store.

use super::*;
use outlast_model::limits::Limits;

/// Calls every sending method with this id, name and payload.
async fn send_every_way(
    client: &Client,
    id: &str,
    name: &str,
    payload: &str,
) -> Vec<Result<(), ClientError>> {
    vec![
        client.start_orchestration(id, name, payload).await,
        client.start_orchestration_versioned(id, name, "1.0.0", payload).await,
        client.start_orchestration_typed(id, name, payload).await,
        client.start_orchestration_versioned_typed(id, name, "1.0.0", payload).await,
        client.start_request(name).instance(id).input(payload).send().await.map(drop),
        client.raise_event(id, name, payload).await,
        client.raise_event_typed(id, name, &payload).await,
        client.try_raise_event_typed(id, name, &payload).await,
        client.enqueue_event(id, name, payload).await,
        client.enqueue_event_typed(id, name, &payload).await,
        client.try_enqueue_event_typed(id, name, &payload).await,
        #[allow(deprecated)]
        client.raise_event_persistent(id, name, payload).await,
    ]
}

const STARTS: usize = 5;

#[tokio::test]
async fn invalid_instance_ids_are_rejected() {
    let (store, client) = memory();
    let long = "x".repeat(513);
    let cases = [
        ("", "instance id is empty: give it at least one character".to_string()),
        (
            long.as_str(),
            format!("instance id '{}...' has 513 bytes, the limit is 512: use a shorter id", "x".repeat(40)),
        ),
        ("a\0b", "instance id 'a\\0b' has a control character at byte 1: remove it".to_string()),
    ];
    for (id, text) in cases {
        for result in send_every_way(&client, id, "n", "p").await {
            assert_eq!(refusal(result), text);
        }
        assert_eq!(refusal(client.cancel_instance(id, "r").await), text);
    }
    assert!(is_idle(&*store).await, "nothing was stored");
    for result in send_every_way(&client, &"x".repeat(512), "n", "p").await {
        result.unwrap();
    }
}

#[tokio::test]
async fn instance_ids_reserved_for_children_are_rejected() {
    let (store, client) = memory();
    for id in ["sub::1", "parent::sub::2", "sub::"] {
        let mut results = send_every_way(&client, id, "n", "p").await;
        let sends = results.split_off(STARTS);
        for start in results {
            let text = format!("instance id '{id}' uses the reserved sub-orchestration marker 'sub::'");
            assert_eq!(refusal(start), text);
        }
        for send in sends {
            send.unwrap();
        }
        client.cancel_instance(id, "r").await.unwrap();
    }
    // Only the prefix and the infix are reserved.
    for id in ["xsub::1", "a::b", "sub:"] {
        client.start_orchestration(id, "n", "p").await.unwrap();
    }
    assert!(!is_idle(&*store).await);
}

#[tokio::test]
async fn payloads_above_the_limit_are_rejected() {
    let (_, client) = memory();
    let client = client.with_limits(Limits { payload_bytes: 10, ..Limits::default() });
    for result in send_every_way(&client, "order-1", "n", "0123456789").await {
        result.unwrap();
    }
    client.cancel_instance("order-1", "0123456789").await.unwrap();
    for bytes in [11, 10_000] {
        let text = |what: &str| {
            format!(
                "the {what} for instance 'order-1' has {bytes} bytes, the limit payload_bytes is 10: pass a reference \
                 to the data, or raise Limits::payload_bytes in the client and its runtimes"
            )
        };
        let results = send_every_way(&client, "order-1", "n", &"x".repeat(bytes)).await;
        for (nth, result) in results.into_iter().enumerate() {
            assert_eq!(refusal(result), text(if nth < STARTS { "input" } else { "event" }));
        }
        assert_eq!(refusal(client.cancel_instance("order-1", "x".repeat(bytes)).await), text("reason"));
        let start = client.start_request("Order").instance("order-1").with_event("q", "x".repeat(bytes));
        assert_eq!(refusal(start.send().await), text("event"));
    }
}

#[tokio::test]
async fn the_default_payload_limit_is_two_mebibytes() {
    let (_, client) = memory();
    let mut payload = "x".repeat(2 << 20);
    client.start_orchestration("i", "Order", payload.as_str()).await.unwrap();
    payload.push('x');
    let text = refusal(client.start_orchestration("i", "Order", payload).await);
    assert!(text.contains("2097153 bytes") && text.contains("2097152"), "{text}");
}

#[tokio::test]
async fn names_above_the_limit_are_rejected() {
    let (_, client) = memory();
    for result in send_every_way(&client, "order-1", &"n".repeat(256), "p").await {
        result.unwrap();
    }
    for bytes in [257, 256_000] {
        let name = "n".repeat(bytes);
        let text = |what: &str| {
            format!(
                "the {what} for instance 'order-1' has {bytes} bytes, the limit name_bytes is 256: use a shorter one, \
                 or raise Limits::name_bytes in the client and its runtimes"
            )
        };
        for (nth, result) in send_every_way(&client, "order-1", &name, "p").await.into_iter().enumerate() {
            assert_eq!(refusal(result), text(if nth < STARTS { "orchestration name" } else { "event name" }));
        }
        let versioned = client.start_orchestration_versioned("order-1", "n", name.as_str(), "p").await;
        assert_eq!(refusal(versioned), text("version"));
        let start = client.start_request("Order").instance("order-1").with_event(name, "d");
        assert_eq!(refusal(start.send().await), text("queue name"));
    }
}

#[tokio::test]
async fn unencodable_values_are_rejected() {
    let (store, client) = memory();
    let results = [
        client.start_orchestration_typed("i", "Order", Unencodable).await,
        client.start_orchestration_versioned_typed("i", "Order", "1.0.0", Unencodable).await,
        client.start_request("Order").instance("i").input_typed(&Unencodable).send().await.map(drop),
        client
            .start_request("Order")
            .instance("i")
            .with_event_typed("q", &Unencodable)
            .send()
            .await
            .map(drop),
        client.try_raise_event_typed("i", "n", &Unencodable).await,
        client.try_enqueue_event_typed("i", "q", &Unencodable).await,
    ];
    for result in results {
        assert_eq!(refusal(result), "encode: no form");
    }
    assert!(is_idle(&*store).await, "nothing was stored");
}

#[tokio::test]
#[should_panic(expected = "the value of a typed event must be encodable as JSON")]
async fn raise_event_typed_panics_on_an_unencodable_value() {
    let _ = memory().1.raise_event_typed("i", "n", &Unencodable).await;
}

#[tokio::test]
#[should_panic(expected = "the value of a typed event must be encodable as JSON")]
async fn enqueue_event_typed_panics_on_an_unencodable_value() {
    let _ = memory().1.enqueue_event_typed("i", "q", &Unencodable).await;
}

#[tokio::test]
async fn l3_a_full_mailbox_accepts_only_a_cancellation() {
    let (store, client) = memory();
    let client = client.with_limits(Limits { mailbox_messages: 3, ..Limits::default() });
    client.start_orchestration("order-1", "Order", "").await.unwrap();
    client.enqueue_event("order-1", "q", "1").await.unwrap();
    client.raise_event("order-1", "n", "2").await.unwrap();
    let text = "instance 'order-1' has 3 messages waiting, which is the limit mailbox_messages: wait until it has read \
                some, or raise Limits::mailbox_messages in the client";
    assert_eq!(refusal(client.enqueue_event("order-1", "q", "3").await), text);
    assert_eq!(refusal(client.raise_event("order-1", "n", "3").await), text);
    client.cancel_instance("order-1", "enough").await.unwrap();
    client.enqueue_event("order-2", "q", "other mailboxes have their own count").await.unwrap();
    let (item, _, _) =
        store.fetch_orchestration_item(Duration::from_secs(5), Duration::ZERO, None).await.unwrap().unwrap();
    assert_eq!(item.messages.len(), 4, "the start, two events, the cancellation");
}

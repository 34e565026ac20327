//! Starts, with and without a conflict policy.

use super::stores::Plain;
use super::*;
use outlast_provider::StartOutcome;
use outlast_runtime::{Conflict, StartReceipt};

fn exists(status: Option<&str>) -> StartOutcome {
    StartOutcome::AlreadyExists { status: status.map(str::to_string) }
}

#[tokio::test]
async fn a_start_is_queued_for_a_first_execution_without_parent() {
    #[derive(serde::Serialize)]
    struct Input {
        z: u32,
        a: &'static str,
    }
    let (store, client) = memory();
    client.start_orchestration("i1", "Order", "text").await.unwrap();
    client.start_orchestration_versioned("i2", "Order", "2.0.0", "text").await.unwrap();
    client.start_orchestration_typed("i3", "Order", &Input { z: 1, a: "b" }).await.unwrap();
    client.start_orchestration_versioned_typed("i4", "Order", "2.0.0", "raw").await.unwrap();
    let mut found = Vec::new();
    for _ in 0..4 {
        found.extend(fetch(&*store).await.0);
    }
    let expected = [
        start_item("i1", "Order", "text", None),
        start_item("i2", "Order", "text", Some("2.0.0")),
        start_item("i3", "Order", r#"{"a":"b","z":1}"#, None),
        start_item("i4", "Order", "raw", Some("2.0.0")),
    ];
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_second_start_is_ok_and_queued() {
    let (store, client) = memory();
    turn(&*store, "i", 1, 1, vec![started()]).await;
    client.start_orchestration("i", "Order", "again").await.unwrap();
    assert_eq!(peek(&*store).await, [start_item("i", "Order", "again", None)]);
}

#[tokio::test]
async fn a_start_request_carries_all_its_options() {
    let (store, client) = memory();
    let receipt = client
        .start_request("Order")
        .instance("order-1")
        .version("2.0.0")
        .input_typed(&vec![1, 2])
        .with_event("items", "apple")
        .with_event_typed("items", &7)
        .with_event("notes", "fragile")
        .send()
        .await
        .unwrap();
    assert_eq!((receipt.instance.as_str(), &receipt.outcome), ("order-1", &StartOutcome::Started));
    assert!(receipt.is_started());
    assert_eq!(receipt.started().unwrap(), "order-1");
    let expected = [
        start_item("order-1", "Order", "[1,2]", Some("2.0.0")),
        queued("order-1", "items", "apple"),
        queued("order-1", "items", "7"),
        queued("order-1", "notes", "fragile"),
    ];
    assert_eq!(peek(&*store).await, expected);
}

#[tokio::test]
async fn a_delayed_start_takes_its_id_at_once() {
    let (store, client) = memory();
    let request = || client.start_request("Order").instance("i");
    assert!(request().delay(Duration::from_secs(3_600)).send().await.unwrap().is_started());
    assert!(is_idle(&*store).await, "it is not due");
    assert_eq!(request().send().await.unwrap().outcome, exists(None));
    assert!(is_idle(&*store).await);
}

/// Starts an existing instance with an event. Returns the receipt and the messages that the instance gets.
async fn conflict(status: Option<EventKind>, conflict: Conflict) -> (StartReceipt, Vec<WorkItem>) {
    let (store, client) = memory();
    turn(&*store, "i", 1, 1, [started()].into_iter().chain(status).collect()).await;
    let request = client.start_request("Order").instance("i").with_event("q", "d").if_exists(conflict);
    let receipt = request.send().await.unwrap();
    let messages = if is_idle(&*store).await { vec![] } else { vec![queued("i", "q", "d")] };
    (receipt, messages)
}

#[tokio::test]
async fn a_start_of_an_existing_instance_fails_or_delivers_its_events() {
    let ends = [(None, "Running"), (Some(completed("out")), "Completed"), (Some(failed("no")), "Failed")];
    for (end, status) in ends {
        let (receipt, messages) = conflict(end.clone(), Conflict::Fail).await;
        assert_eq!((&receipt.outcome, messages), (&exists(Some(status)), vec![]));
        let error = receipt.started().unwrap_err();
        let text = format!(
            "instance 'i' exists already ({status}): choose another id, delete it first, or use the existing one"
        );
        assert_eq!((error.to_string(), error.status.as_deref()), (text, Some(status)));
        let (receipt, messages) = conflict(end, Conflict::UseExisting).await;
        assert_eq!((receipt.outcome, messages), (exists(Some(status)), vec![queued("i", "q", "d")]));
    }
    assert_eq!(Conflict::default(), Conflict::Fail);
}

#[tokio::test]
async fn a_queued_start_counts_as_existing() {
    let (store, client) = memory();
    client.start_orchestration("i", "Order", "first").await.unwrap();
    let receipt = client.start_request("Order").instance("i").input("second").send().await.unwrap();
    assert_eq!(receipt.outcome, exists(None));
    let text =
        "instance 'i' exists already (queued): choose another id, delete it first, or use the existing one";
    assert_eq!(receipt.started().unwrap_err().to_string(), text);
    assert_eq!(peek(&*store).await, [start_item("i", "Order", "first", None)]);
}

#[tokio::test]
async fn an_idempotency_token_determines_the_instance_id() {
    let (store, client) = memory();
    let request = || client.start_request("Order").idempotency_token("request-7");
    let first = request().send().await.unwrap();
    let again = request().if_exists(Conflict::UseExisting).send().await.unwrap();
    assert_eq!((first.instance.as_str(), first.is_started()), ("Order:request-7", true));
    assert_eq!((again.instance.as_str(), again.is_started()), ("Order:request-7", false));
    assert_eq!(peek(&*store).await, [start_item("Order:request-7", "Order", "", None)]);
    let other = client.start_request("Refund").idempotency_token("request-7").send().await.unwrap();
    assert!(other.is_started(), "tokens of different orchestrations do not meet");
}

#[tokio::test]
async fn a_start_request_needs_an_id_or_a_token_but_not_both() {
    let (_, client) = memory();
    assert_eq!(
        refusal(client.start_request("Order").send().await),
        "the start of 'Order' has no instance id: give it an instance id or an idempotency token"
    );
    assert_eq!(
        refusal(client.start_request("Order").instance("i").idempotency_token("t").send().await),
        "the start of instance 'i' has both an instance id and an idempotency token, from which an id is derived: give it \
         only one of the two"
    );
    // The derived id is checked like any other id.
    let token = "x".repeat(512);
    let text = refusal(client.start_request("Order").idempotency_token(token).send().await);
    assert!(text.contains("518 bytes, the limit is 512"), "{text}");
}

#[tokio::test]
async fn a_store_without_start_policies_gets_separate_calls() {
    let store = Arc::new(Plain::new());
    let client = Client::new(Arc::clone(&store) as Arc<dyn Provider>);
    let request = || client.start_request("Order").instance("i").with_event("q", "d");
    assert!(request().send().await.unwrap().is_started());
    assert_eq!(store.notes.calls(), ["read", "enqueue_for_orchestrator", "enqueue_for_orchestrator"]);
    let expected = [start_item("i", "Order", "", None), queued("i", "q", "d")];
    assert_eq!(peek(&*store).await, expected);
    store.notes.break_down("read");
    let error = request().send().await.unwrap_err();
    assert_eq!((error.to_string().as_str(), error.is_retryable()), ("read: the disk is away", true));
}

//! The limits of a client's messages.

use outlast::{Client, ClientError};

/// Sends a message, name or payload of this size to an instance.
pub(super) async fn send(
    client: &Client,
    what: &str,
    instance: &str,
    size: usize,
) -> Result<(), ClientError> {
    let text = "x".repeat(size);
    match what {
        "start-input" => client.start_orchestration(instance, "Length", text).await,
        "start-versioned-input" => {
            client.start_orchestration_versioned(instance, "Length", "1.0.0", text).await
        }
        "start-typed-input" => client.start_orchestration_typed(instance, "Length", text).await,
        "event-data" => client.raise_event(instance, "event", text).await,
        "event-typed-data" => client.raise_event_typed(instance, "event", &text).await,
        "queue-data" => client.enqueue_event(instance, "queue", text).await,
        "queue-typed-data" => client.enqueue_event_typed(instance, "queue", &text).await,
        "reason" => client.cancel_instance(instance, text).await,
        "request-input" => {
            client.start_request("Length").instance(instance).input(text).send().await.map(drop)
        }
        "request-data" => {
            let request = client.start_request("Length").instance(instance).with_event("queue", text);
            request.send().await.map(drop)
        }
        "start-name" => client.start_orchestration(instance, text, "").await,
        "start-version" => client.start_orchestration_versioned(instance, "Length", text, "").await,
        "event-name" => client.raise_event(instance, text, "").await,
        "queue-name" => client.enqueue_event(instance, text, "").await,
        "request-name" => client.start_request(text).instance(instance).send().await.map(drop),
        "request-queue" => {
            client.start_request("Length").instance(instance).with_event(text, "").send().await.map(drop)
        }
        other => panic!("nothing is called {other}"),
    }
}

/// The message of an `InvalidInput` error.
#[track_caller]
pub(super) fn words(error: ClientError) -> String {
    match error {
        ClientError::InvalidInput { message } => message,
        other => panic!("{other:?}"),
    }
}

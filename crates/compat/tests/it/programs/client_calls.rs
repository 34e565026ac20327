//! `Client`, `ClientError`, `OrchestrationStatus`, `AppErrorKind`: starting, waiting, reading.

use super::{failure, output, started};
use duroxide::providers::ProviderError;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    AppErrorKind, Client, ClientError, ErrorDetails, OrchestrationContext, OrchestrationRegistry,
    OrchestrationStatus,
};
use std::collections::HashMap;
use std::time::Duration;

const WAIT: Duration = Duration::from_secs(30);

fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register_typed::<Vec<u32>, u32, _, _>("Sum", |ctx, numbers| async move {
            ctx.set_custom_status("summing");
            ctx.set_kv_value_typed("numbers", &numbers);
            Ok(numbers.iter().sum())
        })
        .register("Fails", |_ctx: OrchestrationContext, input: String| async move { Err(input) })
        .register(
            "Waits",
            |ctx: OrchestrationContext, _: String| async move { Ok(ctx.schedule_wait("go").await) },
        )
        .build()
}

#[tokio::test]
async fn every_way_to_start_and_to_wait() {
    let (_store, rt, client) = started(ActivityRegistry::builder().build(), orchestrations()).await;
    client.start_orchestration("a", "Sum", "[1,2]").await.unwrap();
    client.start_orchestration_versioned(String::from("b"), "Sum", "1.0.0", "[3]").await.unwrap();
    client.start_orchestration_typed("c", "Sum", vec![4_u32]).await.unwrap();
    client.start_orchestration_versioned_typed("d", "Sum", "1.0.0", &[5_u32]).await.unwrap();
    for (instance, sum) in [("a", "3"), ("b", "3"), ("c", "4"), ("d", "5")] {
        assert_eq!(output(&client, instance).await, sum);
    }
    let typed: Result<u32, String> = client.wait_for_orchestration_typed("a", WAIT).await.unwrap();
    assert_eq!(typed, Ok(3));
    let wrong = client.wait_for_orchestration_typed::<Vec<String>>("a", WAIT).await;
    assert!(
        matches!(wrong, Err(ClientError::InvalidInput { message }) if message.starts_with("decode failed"))
    );
    match client.get_orchestration_status("a").await.unwrap() {
        OrchestrationStatus::Completed { output, custom_status, custom_status_version } => {
            assert_eq!(
                (output.as_str(), custom_status.as_deref(), custom_status_version),
                ("3", Some("summing"), 1)
            );
        }
        other => panic!("{other:?}"),
    }
    let changed = client.wait_for_status_change("a", 0, Duration::from_millis(10), WAIT).await.unwrap();
    assert!(matches!(changed, OrchestrationStatus::Completed { .. }));

    let numbers: Option<Vec<u32>> = client.get_kv_value_typed("a", "numbers").await.unwrap();
    assert_eq!(numbers, Some(vec![1, 2]));
    assert_eq!(client.get_kv_value("a", "numbers").await.unwrap().as_deref(), Some("[1,2]"));
    let all: HashMap<String, String> = client.get_kv_all_values("a").await.unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!(client.wait_for_kv_value("a", "numbers", WAIT).await.unwrap(), "[1,2]");
    assert_eq!(client.wait_for_kv_value_typed::<Vec<u32>>("a", "numbers", WAIT).await.unwrap(), [1, 2]);
    rt.shutdown(None).await;
}

#[tokio::test]
async fn clients_read_every_ending_and_error() {
    let (_store, rt, client) = started(ActivityRegistry::builder().build(), orchestrations()).await;
    client.start_orchestration("fails", "Fails", "because").await.unwrap();
    let details = failure(&client, "fails").await;
    assert!(
        matches!(&details, ErrorDetails::Application { kind: AppErrorKind::OrchestrationFailed, message, retryable: false } if message == "because"),
        "{details:?}"
    );
    let typed: Result<u32, String> = client.wait_for_orchestration_typed("fails", WAIT).await.unwrap();
    assert_eq!(typed, Err("because".to_string()));

    client.start_orchestration("waits", "Waits", "").await.unwrap();
    let timeout = client.wait_for_orchestration("waits", Duration::from_millis(50)).await;
    assert!(matches!(&timeout, Err(error @ ClientError::Timeout) if error.is_retryable()), "{timeout:?}");
    client.cancel_instance("waits", "tired").await.unwrap();
    let details = failure(&client, "waits").await;
    assert!(
        matches!(&details, ErrorDetails::Application { kind: AppErrorKind::Cancelled { reason }, .. } if reason == "tired"),
        "{details:?}"
    );
    assert_eq!(details.display_message(), "canceled: tired");

    assert_eq!(client.get_orchestration_status("nobody").await.unwrap(), OrchestrationStatus::NotFound);
    let reserved = client.start_orchestration("sub::1", "Sum", "[]").await.unwrap_err();
    assert_eq!(
        reserved.to_string(),
        "Invalid input: instance id 'sub::1' uses the reserved sub-orchestration marker 'sub::'"
    );
    rt.shutdown(None).await;
}

#[test]
fn errors_are_values_with_texts() {
    let error = ClientError::from(ProviderError::retryable("read", "disk"));
    assert!(error.is_retryable());
    assert_eq!(error.to_string(), "read: disk");
    let _: &dyn std::error::Error = &error;
    assert_eq!(ClientError::Timeout.to_string(), "Operation timed out");
    assert_eq!(
        ClientError::InstanceStillRunning { instance_id: "i".into() }.to_string(),
        "Instance i is still running. Use force=true or cancel first."
    );
    fn shareable<T: Clone + Send + Sync + 'static>() {}
    shareable::<Client>();
    shareable::<ClientError>();
}

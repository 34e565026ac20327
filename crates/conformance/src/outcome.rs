//! The outcome of an instance, read without its history.

use crate::ProviderFactory;
use crate::support::*;
use outlast_provider::model::{AppErrorKind, ErrorDetails, EventKind};
use outlast_provider::{ExecutionMetadata, InstanceOutcome, Interest, Provider};

fn outcome(execution_id: u64, status: &str, output: Option<&str>) -> InstanceOutcome {
    InstanceOutcome {
        execution_id,
        status: status.to_string(),
        output: output.map(str::to_string),
        failure: None,
        custom_status: None,
        custom_status_version: 0,
    }
}

async fn read(provider: &dyn Provider, instance: &str) -> Option<InstanceOutcome> {
    provider.read_outcome(instance).await.expect("read_outcome succeeds")
}

/// Commits the turn that ends an execution, with the event and the metadata that a runtime sends. Checks that a watch of the instance
/// resolves, and that the outcome it returns, if any, is correct.
async fn end(
    provider: &dyn Provider,
    instance: &str,
    execution_id: u64,
    kind: EventKind,
    state: &str,
    output: &str,
) {
    let token = next_turn(provider, instance).await;
    let watch = provider.watch_instance(instance, Interest::Ended);
    Turn::new(&token)
        .execution(execution_id)
        .event(event_in(instance, execution_id, 50, kind))
        .metadata(status(state, output))
        .commit(provider)
        .await;
    if let Some(watch) = watch.filter(|_| state != "ContinuedAsNew") {
        let outcome = tokio::time::timeout(LONG, watch).await.expect("the watch resolves");
        if outcome.is_some() {
            assert_eq!(outcome, read(provider, instance).await, "{instance} has another outcome");
        }
    }
}

/// A missing instance has no outcome, also while its start is queued.
pub async fn an_unknown_instance_has_no_outcome(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "known").await;
    enqueue(provider, start_item("queued")).await;
    assert_eq!(read(provider, "known").await, Some(outcome(1, "Running", None)));
    for instance in ["unknown", "queued", "KNOWN", "know"] {
        assert_eq!(read(provider, instance).await, None, "{instance}");
    }
}

/// A running instance is running, with or without a row, until its end is committed.
pub async fn a_running_instance_has_the_status_running(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    for (instance, metadata) in [("named", named()), ("rowless", ExecutionMetadata::default())] {
        create_with(provider, instance, metadata).await;
        let token = next_turn(provider, instance).await;
        Turn::new(&token).event(event(instance, 2, scheduled_kind("Activity"))).commit(provider).await;
        assert_eq!(read(provider, instance).await, Some(outcome(1, "Running", None)), "{instance}");
    }
}

/// A completed instance has its output, with any text.
pub async fn a_completed_instance_has_its_output(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    for (instance, output) in
        [("text", "done"), ("empty", ""), ("json", "{\"a\":[1,null]}"), ("unicode", "Ω🦀")]
    {
        create_instance(provider, instance).await;
        end(provider, instance, 1, completed_kind(output), "Completed", output).await;
        assert_eq!(read(provider, instance).await, Some(outcome(1, "Completed", Some(output))), "{instance}");
    }
}

/// A failed instance has its error text and the recorded failure.
pub async fn a_failed_instance_has_its_failure(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    let application =
        |kind| ErrorDetails::Application { kind, message: "out of stock".to_string(), retryable: true };
    let failures = [
        ("application", application(AppErrorKind::OrchestrationFailed)),
        ("cancelled", application(AppErrorKind::Cancelled { reason: "enough".to_string() })),
        (
            "infrastructure",
            ErrorDetails::Infrastructure {
                operation: "commit".to_string(),
                message: "disk full".to_string(),
                retryable: false,
            },
        ),
    ];
    for (instance, details) in failures {
        create_instance(provider, instance).await;
        let text = details.display_message();
        let kind = EventKind::OrchestrationFailed { details: details.clone() };
        end(provider, instance, 1, kind, "Failed", &text).await;
        let expected = InstanceOutcome { failure: Some(details), ..outcome(1, "Failed", Some(&text)) };
        assert_eq!(read(provider, instance).await, Some(expected), "{instance}");
    }
}

/// The newest execution counts, from its first commit on.
pub async fn the_newest_execution_counts(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "endless").await;
    for execution_id in 1..=3 {
        let input = format!("input {}", execution_id + 1);
        assert_eq!(read(provider, "endless").await, Some(outcome(execution_id, "Running", None)));
        end(provider, "endless", execution_id, continued_kind(&input), "ContinuedAsNew", &input).await;
        let between = outcome(execution_id, "ContinuedAsNew", Some(&input));
        assert_eq!(read(provider, "endless").await, Some(between));
        begin_execution(provider, "endless", execution_id + 1).await;
    }
    end(provider, "endless", 4, completed_kind("over"), "Completed", "over").await;
    assert_eq!(read(provider, "endless").await, Some(outcome(4, "Completed", Some("over"))));
}

/// The custom status and its version belong to the outcome, cleared ones and those of earlier executions included.
pub async fn the_custom_status_belongs_to_the_outcome(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "outcome").await;
    let expect = async |execution_id, state: &str, custom_status: Option<&str>, custom_status_version| {
        let found = read(provider, "outcome").await.expect("the instance is known");
        assert_eq!((found.execution_id, found.status.as_str()), (execution_id, state));
        assert_eq!(
            (found.custom_status.as_deref(), found.custom_status_version),
            (custom_status, custom_status_version)
        );
    };
    for (version, custom_status) in (1..).zip([Some("one"), None, Some("three")]) {
        let token = next_turn(provider, "outcome").await;
        let updated = event("outcome", 1 + version, custom_status_kind(custom_status));
        Turn::new(&token).event(updated).commit(provider).await;
        expect(1, "Running", custom_status, version).await;
    }
    end(provider, "outcome", 1, continued_kind("next"), "ContinuedAsNew", "next").await;
    begin_execution(provider, "outcome", 2).await;
    expect(2, "Running", Some("three"), 3).await;
    end(provider, "outcome", 2, completed_kind("done"), "Completed", "done").await;
    expect(2, "Completed", Some("three"), 3).await;
}

/// A damaged history makes the outcome an error or leaves it right, and never makes it wrong.
pub async fn a_damaged_history_makes_the_outcome_an_error_or_leaves_it_right(factory: &dyn ProviderFactory) {
    let provider = &*factory.create_provider().await;
    create_instance(provider, "running").await;
    create_instance(provider, "completed").await;
    end(provider, "completed", 1, completed_kind("done"), "Completed", "done").await;
    let expected =
        [("running", outcome(1, "Running", None)), ("completed", outcome(1, "Completed", Some("done")))];
    for (instance, expected) in expected {
        assert_eq!(read(provider, instance).await.as_ref(), Some(&expected), "{instance} before the damage");
        factory.corrupt_instance_history(instance).await;
        match provider.read_outcome(instance).await {
            Ok(found) => assert_eq!(found, Some(expected), "{instance}"),
            Err(error) => assert!(!error.is_retryable(), "{instance}: damage is permanent, got: {error}"),
        }
    }
}

//! `RuntimeOptions { .., ..Default::default() }`, `UnregisteredBackoffConfig`, `ObservabilityConfig`, `LogFormat`,
//! `SemverRange`, `kind_of`.

use duroxide::providers::WorkItem;
use duroxide::providers::sqlite::SqliteProvider;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::runtime::{self, LogFormat, ObservabilityConfig, RuntimeOptions, UnregisteredBackoffConfig};
use duroxide::{
    Client, ConfigErrorKind, OrchestrationContext, OrchestrationRegistry, SemverRange, TagFilter,
};
use duroxide::{ErrorDetails, PoisonMessageType};
use std::sync::Arc;
use std::time::Duration;

/// Every field by name, as code that sets them all writes it.
fn everything() -> RuntimeOptions {
    RuntimeOptions {
        dispatcher_min_poll_interval: Duration::from_millis(10),
        dispatcher_long_poll_timeout: Duration::from_secs(1),
        orchestration_concurrency: 1,
        worker_concurrency: 3,
        orchestrator_lock_timeout: Duration::from_secs(5),
        orchestrator_lock_renewal_buffer: Duration::from_secs(2),
        worker_lock_timeout: Duration::from_secs(30),
        worker_lock_renewal_buffer: Duration::from_secs(5),
        observability: ObservabilityConfig {
            log_format: LogFormat::Json,
            log_level: "debug".to_string(),
            service_name: "shop".to_string(),
            service_version: Some("1.0".to_string()),
            gauge_poll_interval: Duration::from_secs(60),
        },
        unregistered_backoff: UnregisteredBackoffConfig {
            base_delay: Duration::from_millis(10),
            max_delay: Duration::from_millis(20),
        },
        max_attempts: 3,
        activity_cancellation_grace_period: Duration::from_secs(1),
        supported_replay_versions: Some(SemverRange::default_for_current_build()),
        session_lock_timeout: Duration::from_secs(30),
        session_lock_renewal_buffer: Duration::from_secs(5),
        session_idle_timeout: Duration::from_secs(300),
        session_cleanup_interval: Duration::from_secs(300),
        max_sessions_per_runtime: 10,
        worker_node_id: Some("node".to_string()),
        worker_tag_filter: TagFilter::default_only(),
        ..Default::default()
    }
}

#[tokio::test]
async fn unregistered_names_are_poisoned_after_max_attempts() {
    let store = Arc::new(SqliteProvider::new_in_memory().await.unwrap());
    let activities = ActivityRegistry::builder().build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("Calls", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_activity("Missing", "").await
        })
        .build();
    let rt =
        runtime::Runtime::start_with_options(store.clone(), activities, orchestrations, everything()).await;
    let client = Client::new(store);
    client.start_orchestration("missing", "Nobody", "").await.unwrap();
    client.start_orchestration("calls", "Calls", "").await.unwrap();
    match super::failure(&client, "missing").await {
        ErrorDetails::Poison { attempt_count, max_attempts, message_type, .. } => {
            assert_eq!((attempt_count, max_attempts), (4, 3));
            assert!(matches!(message_type, PoisonMessageType::Orchestration { .. }));
        }
        other => panic!("{other:?}"),
    }
    let details = super::failure(&client, "calls").await;
    assert_eq!(details.category(), "poison");
    assert!(details.display_message().starts_with("poison: activity Missing#2 exceeded 4 attempts (max 3)"));
    rt.shutdown(Some(500)).await;
}

#[test]
fn defaults_match_the_contract() {
    let options = RuntimeOptions::default();
    assert_eq!(options.dispatcher_min_poll_interval, Duration::from_millis(100));
    assert_eq!((options.orchestration_concurrency, options.worker_concurrency), (2, 2));
    assert_eq!(
        (options.orchestrator_lock_timeout, options.worker_lock_timeout),
        (Duration::from_secs(5), Duration::from_secs(30))
    );
    assert_eq!((options.max_attempts, options.max_sessions_per_runtime), (10, 10));
    assert_eq!(options.observability.log_format, LogFormat::Pretty);
    assert_eq!(LogFormat::default(), LogFormat::Compact);
    let backoff = UnregisteredBackoffConfig::default();
    assert_eq!([0, 1, 2, 7, 99].map(|attempt| backoff.delay(attempt).as_secs()), [1, 1, 2, 60, 60]);
    assert!(format!("{options:?}").contains("worker_concurrency: 2"));
    let _: RuntimeOptions = options.clone();
    let message = WorkItem::QueueMessage { instance: "i".into(), name: "n".into(), data: "d".into() };
    assert_eq!(runtime::kind_of(&message), "ExternalRaisedPersistent");
    assert_eq!(ConfigErrorKind::Nondeterminism, ConfigErrorKind::Nondeterminism);
}

#[tokio::test]
#[should_panic(expected = "session_idle_timeout (")]
async fn a_session_that_idles_before_its_renewal_is_refused() {
    let store = Arc::new(SqliteProvider::new_in_memory().await.unwrap());
    let options = RuntimeOptions { session_idle_timeout: Duration::from_secs(25), ..Default::default() };
    let (a, o) = (ActivityRegistry::builder().build(), OrchestrationRegistry::builder().build());
    runtime::Runtime::start_with_options(store, a, o, options).await;
}

/// `Runtime::start` creates its own store.
#[tokio::test]
async fn runtime_starts_and_stops_without_a_store() {
    let (a, o) = (ActivityRegistry::builder().build(), OrchestrationRegistry::builder().build());
    let rt = runtime::Runtime::start(a, o).await;
    assert!(rt.get_orchestration_descriptor("nobody").await.is_none());
    rt.shutdown(Some(0)).await;
}

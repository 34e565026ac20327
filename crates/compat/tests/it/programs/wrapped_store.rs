//! A runtime on a store of the user's own: one that knows the contract's methods only, and a wrapper around one of ours
//! that does. A wrapper must work without the methods that Outlast added to the contract.

use crate::first_provider::MyProvider;
use crate::wrapper::Counting;
use duroxide::providers::sqlite::SqliteProvider;
use duroxide::providers::{ExecutionMetadata, Provider};
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::runtime::{Runtime, RuntimeOptions};
use duroxide::{ActivityContext, Client, Either2, OrchestrationContext, OrchestrationRegistry, TagFilter};
use std::sync::Arc;
use std::time::Duration;

/// An orchestration with activities, a timer, a child, events, state and continue-as-new.
async fn program(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    if input == "again" {
        return Ok(format!(
            "{} {}",
            ctx.get_kv_value("seen").unwrap_or_default(),
            ctx.dequeue_event("queue").await
        ));
    }
    let echoed = ctx.schedule_activity("Echo", input).await?;
    ctx.schedule_timer(Duration::from_millis(5)).await;
    let child = ctx.schedule_sub_orchestration("Child", echoed).await?;
    let lost = ctx.schedule_wait("never");
    match ctx.select2(ctx.schedule_timer(Duration::from_millis(5)), lost).await {
        Either2::First(()) => ctx.set_kv_value("seen", child),
        Either2::Second(event) => return Err(event),
    }
    ctx.set_custom_status("almost");
    ctx.continue_as_new("again").await
}

async fn runs_on(store: Arc<dyn Provider>) {
    let activities = ActivityRegistry::builder()
        .register("Echo", |_: ActivityContext, input: String| async move { Ok(input) })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("Program", program)
        .register(
            "Child",
            |_: OrchestrationContext, input: String| async move { Ok(format!("child of {input}")) },
        )
        .build();
    // Their fetches do not wait, so the runtime polls.
    let options =
        RuntimeOptions { dispatcher_min_poll_interval: Duration::from_millis(2), ..Default::default() };
    let rt = Runtime::start_with_options(store.clone(), activities, orchestrations, options).await;
    let client = Client::new(store);
    for n in 0..3 {
        client.start_orchestration(format!("p-{n}"), "Program", "in").await.unwrap();
    }
    for n in 0..3 {
        let instance = format!("p-{n}");
        client.wait_for_kv_value(&instance, "seen", Duration::from_secs(30)).await.unwrap();
        client.enqueue_event(&instance, "queue", "message").await.unwrap();
        assert_eq!(super::output(&client, &instance).await, "child of in message");
    }
    rt.shutdown(None).await;
}

#[tokio::test]
async fn runtime_completes_on_a_store_with_required_methods_only() {
    runs_on(Arc::new(MyProvider::default())).await;
}

#[tokio::test]
async fn runtime_completes_on_a_wrapper() {
    let store = Arc::new(Counting::around(SqliteProvider::new_in_memory().await.unwrap()));
    runs_on(store.clone()).await;
    let calls = store.calls();
    for call in ["fetch_orchestration_item", "ack_orchestration_item", "fetch_work_item", "ack_work_item"] {
        assert!(calls.contains(&call), "{call} did not go through the wrapper");
    }
}

/// A test that plays the worker itself: the metadata and the filter that such code builds.
#[tokio::test]
async fn calls_of_the_contract_work_without_a_runtime() {
    let store = SqliteProvider::new_in_memory().await.unwrap();
    let none =
        store.fetch_work_item(Duration::from_secs(1), Duration::ZERO, None, &TagFilter::DefaultOnly).await;
    assert!(none.unwrap().is_none());
    let metadata = ExecutionMetadata { status: Some("Running".into()), ..Default::default() };
    assert_eq!(metadata.output, None);
}

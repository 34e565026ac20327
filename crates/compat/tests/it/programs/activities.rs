//! `ActivityContext`, `TagFilter`, `runtime::RuntimeOptions` with tags: the methods of an activity context.

use super::output;
use duroxide::providers::sqlite::SqliteProvider;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::runtime::{self, RuntimeOptions};
use duroxide::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, TagFilter};
use std::sync::Arc;

#[tokio::test]
async fn an_activity_context_has_the_identity() {
    let activities = ActivityRegistry::builder()
        .register("Who", |ctx: ActivityContext, _input: String| async move {
            ctx.trace_info(format!("in {}", ctx.activity_name()));
            ctx.trace_warn("warn");
            ctx.trace_error("error");
            ctx.trace_debug("debug");
            assert!(!ctx.is_cancelled() && !ctx.cancellation_token().is_cancelled());
            assert_eq!(ctx.worker_id(), "work-0-node-1");
            assert!(format!("{ctx:?}").starts_with("ActivityContext"));
            let client: Client = ctx.get_client();
            client
                .enqueue_event(ctx.instance_id(), "news", "from the activity")
                .await
                .map_err(|e| e.to_string())?;
            Ok(format!(
                "{} {} {} {} {} {:?} {:?}",
                ctx.instance_id(),
                ctx.execution_id(),
                ctx.orchestration_name(),
                ctx.orchestration_version(),
                ctx.activity_name(),
                ctx.session_id(),
                ctx.tag()
            ))
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("Asks", |ctx: OrchestrationContext, _: String| async move {
            let answer = ctx.schedule_activity_on_session("Who", "", "s-1").with_tag("gpu").await?;
            Ok(format!("{answer}, {}", ctx.dequeue_event("news").await))
        })
        .build();
    let store = Arc::new(SqliteProvider::new_in_memory().await.unwrap());
    let options = RuntimeOptions {
        worker_concurrency: 1,
        worker_node_id: Some("node-1".to_string()),
        worker_tag_filter: TagFilter::default_and(["gpu"]),
        ..Default::default()
    };
    let rt = runtime::Runtime::start_with_options(store.clone(), activities, orchestrations, options).await;
    let client = Client::new(store);
    client.start_orchestration("asks", "Asks", "").await.unwrap();
    assert_eq!(
        output(&client, "asks").await,
        "asks 1 Asks 1.0.0 Who Some(\"s-1\") Some(\"gpu\"), from the activity"
    );
    rt.shutdown(None).await;
}

#[tokio::test]
async fn an_activity_listens_for_cancellation() {
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let activities = ActivityRegistry::builder()
        .register("Listens", move |ctx: ActivityContext, _: String| {
            let told = told.clone();
            async move {
                told.send("begun").unwrap();
                tokio::select! {
                    () = ctx.cancelled() => told.send("cancelled").unwrap(),
                    () = std::future::pending() => {}
                }
                Ok(String::new())
            }
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("Calls", |ctx: OrchestrationContext, _| async move {
            ctx.schedule_activity("Listens", "").await
        })
        .build();
    let (_store, rt, client) = super::started(activities, orchestrations).await;
    client.start_orchestration("calls", "Calls", "").await.unwrap();
    assert_eq!(heard.recv().await, Some("begun"));
    client.cancel_instance("calls", "no longer needed").await.unwrap();
    assert_eq!(heard.recv().await, Some("cancelled"));
    rt.shutdown(None).await;
}

//! The trace context of activities, on one node and on several.

use crate::collector::{Answer, Collector};
use crate::program::{Node, activities, exporting, stores};
use crate::shape::{only, tree};
use opentelemetry::Context;
use opentelemetry::trace::TraceContextExt;
use outlast::providers::Provider;
use outlast::providers::memory::MemoryProvider;
use outlast::runtime::Runtime;
use outlast::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions};
use std::sync::Arc;

/// Returns the `traceparent` of the context, and the ids of OpenTelemetry's current context after a wait.
async fn ids(ctx: ActivityContext, _: String) -> Result<String, String> {
    tokio::task::yield_now().await;
    let current = Context::current();
    let current = current.span().span_context().clone();
    let current = format!("00-{}-{}-{:02x}", current.trace_id(), current.span_id(), current.trace_flags());
    Ok(format!("{} {current}", ctx.traceparent().unwrap_or("none")))
}

fn asks() -> OrchestrationRegistry {
    let ask = |ctx: OrchestrationContext, _: String| async move { ctx.schedule_activity("Ids", "").await };
    OrchestrationRegistry::builder().register("Ask", ask).build()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_activity_runs_under_the_context_of_its_span() {
    for store in stores().await {
        let collector = Collector::start(Answer::Accept).await;
        let traces = exporting(&collector);
        let options = RuntimeOptions { observer: Some(traces.observe()), ..RuntimeOptions::default() };
        let runtime =
            Runtime::builder().store(Arc::clone(&store.provider)).orchestrations(asks()).options(options);
        let runtime = runtime.register_activities(activities().register("Ids", ids)).start().await.unwrap();
        let client = Client::new(Arc::clone(&store.provider));
        let receipt = client.start_request("Ask").instance("a").send().await.unwrap();
        assert!(receipt.is_started());
        let status = client.wait_for_orchestration("a", crate::program::WAIT).await.unwrap();
        runtime.shutdown(None).await;
        traces.shutdown(crate::program::WAIT).await.unwrap();
        let spans = collector.spans();
        let span = only(&spans, "activity Ids");
        let expected = format!("00-{}-{}-01", span.trace, span.id);
        let shown = format!("{status:?}");
        assert!(shown.contains(&format!("{expected} {expected}")), "{shown} has no {expected}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_observer_an_activity_has_no_traceparent_and_a_detached_instance_no_note() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let starts = |ctx: OrchestrationContext, _: String| async move {
        ctx.schedule_orchestration("Ask", "detached", "");
        Ok(String::new())
    };
    let ask = |ctx: OrchestrationContext, _: String| async move { ctx.schedule_activity("Ids", "").await };
    let orchestrations =
        OrchestrationRegistry::builder().register("Ask", ask).register("Starts", starts).build();
    let runtime = Runtime::builder().store(Arc::clone(&store)).orchestrations(orchestrations);
    let runtime = runtime.register_activities(activities().register("Ids", ids)).start().await.unwrap();
    let client = Client::new(Arc::clone(&store));
    client.start_orchestration("s", "Starts", "").await.unwrap();
    let status = client.wait_for_orchestration("s", crate::program::WAIT).await.unwrap();
    drop(status);
    let status = client.wait_for_orchestration("detached", crate::program::WAIT).await.unwrap();
    assert!(format!("{status:?}").contains("none 00-00000000000000000000000000000000"), "{status:?}");
    let history = client.read_execution_history("detached", 1).await.unwrap();
    assert_eq!(history.len(), 4, "{history:?}");
    runtime.shutdown(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_run_only_turns_or_only_activities_make_one_tree() {
    for store in stores().await {
        let collector = Collector::start(Answer::Accept).await;
        let turns = RuntimeOptions { worker_concurrency: 0, ..RuntimeOptions::default() };
        let work = RuntimeOptions { orchestration_concurrency: 0, ..RuntimeOptions::default() };
        let turns = Node::with_options(&store.provider, exporting(&collector), turns, activities()).await;
        let work = Node::with_options(&store.provider, exporting(&collector), work, activities()).await;
        turns.client.start_orchestration("p", "Ship", "").await.unwrap();
        turns.ended("p").await;
        turns.end().await;
        work.end().await;
        let expected = [
            "orchestration Ship",
            "  orchestration Pack",
            "    activity Work",
            "    orchestration.started",
            "  orchestration.started",
        ];
        assert_eq!(tree(&collector.spans()), expected);
    }
}

//! Orchestrations whose instances are in the stores of testdata/duroxide. The program that writes the stores compiles this file with
//! `duroxide`; the tests of `outlast migrate-from` compile it with Outlast, and let the unfinished instances end.

use crate::peer::runtime::registry::ActivityRegistry;
use crate::peer::{ActivityContext, OrchestrationContext, OrchestrationRegistry};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// A timer that is due when the tests read the store.
pub(crate) const SHORT: Duration = Duration::from_secs(5);
/// A timer that is not due during the life of the tests.
pub(crate) const LONG: Duration = Duration::from_secs(100 * 365 * 86_400);

/// The orchestrations.
pub(crate) fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Hello", |ctx: OrchestrationContext, name: String| async move {
            ctx.set_custom_status("greets");
            ctx.set_kv_value("colour", "blue");
            let greeting = ctx.schedule_activity("Greet", name).await?;
            ctx.set_kv_value("greeting", greeting.clone());
            Ok(greeting)
        })
        .register("Fails", |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_activity("Break", "now").await
        })
        .register("Sleeps", |ctx: OrchestrationContext, length: String| async move {
            let delay = if length == "long" { LONG } else { SHORT };
            ctx.schedule_timer(delay).await;
            Ok(format!("slept {length}"))
        })
        .register("Waits", |ctx: OrchestrationContext, _: String| async move {
            ctx.set_kv_value("state", "asked");
            ctx.set_custom_status("waits for approval");
            let answer = ctx.schedule_wait("approval").await;
            ctx.set_kv_value("state", "answered");
            Ok(format!("approved by {answer}"))
        })
        .register("Works", |ctx: OrchestrationContext, how: String| async move {
            let work = match how.as_str() {
                "tag" => ctx.schedule_activity("Work", how).with_tag("gpu"),
                "session" => ctx.schedule_activity_on_session("Work", how, "desk-1"),
                _ => ctx.schedule_activity("Work", how),
            };
            work.await
        })
        .register("Parent", |ctx: OrchestrationContext, input: String| async move {
            let child = ctx.schedule_sub_orchestration("Waits", input).await?;
            Ok(format!("child: {child}"))
        })
        .register("Family", |ctx: OrchestrationContext, input: String| async move {
            let done = ctx.schedule_sub_orchestration("Hello", input.clone()).await?;
            ctx.schedule_orchestration("Hello", "detached-1", "detached");
            let child = ctx.schedule_sub_orchestration_with_id("Sleeps", "family-nap", "short").await?;
            Ok(format!("{done}, {child}"))
        })
        .register("Counts", |ctx: OrchestrationContext, input: String| async move {
            let round: u64 = input.parse().map_err(|_| "no number".to_string())?;
            ctx.set_kv_value(format!("round-{round}"), round.to_string());
            if round < 3 {
                return ctx.continue_as_new((round + 1).to_string()).await;
            }
            let answer = ctx.schedule_wait("go").await;
            let keys = ctx.get_kv_length();
            Ok(format!("round {round}, {answer}, {keys} keys"))
        })
        .register("Reads", |ctx: OrchestrationContext, _: String| async move {
            let mut read = Vec::new();
            for _ in 0..4 {
                read.push(ctx.dequeue_event("orders").await);
            }
            Ok(read.join(","))
        })
        .build()
}

/// The activities. `work` is called by the activity that the writer of the stores never completes.
pub(crate) fn activities<F, Fut>(work: F) -> ActivityRegistry
where
    F: Fn(String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
{
    let work = Arc::new(work);
    ActivityRegistry::builder()
        .register("Greet", |_: ActivityContext, name: String| async move { Ok(format!("Hello, {name}!")) })
        .register("Break", |_: ActivityContext, _: String| async move { Err("it is broken".to_string()) })
        .register("Work", move |_: ActivityContext, input: String| {
            let work = Arc::clone(&work);
            async move { work(input).await }
        })
        .build()
}

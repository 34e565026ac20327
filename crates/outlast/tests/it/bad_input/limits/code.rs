//! The code of orchestrations and activities that meet a limit.

use super::client;
use super::{Node, activities, orchestrations};
use outlast::runtime::limits::Limits;
use outlast::{ActivityContext, OrchestrationContext, RetryPolicy};
use std::time::Duration;

fn parsed(input: &str) -> Result<(&str, usize), String> {
    let (what, size) = input.split_once(' ').ok_or("what and how much")?;
    Ok((what, size.parse().map_err(|_| "how much")?))
}

/// Performs one operation with a value of one size.
async fn attempt(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let (what, size) = parsed(&input)?;
    let text = "x".repeat(size);
    match what {
        "activity-name" => drop(ctx.schedule_activity(text, "")),
        "activity-input" => return ctx.schedule_activity("Length", text).await,
        "activity-tag" => drop(ctx.schedule_activity("Length", "").with_tag(text)),
        "session-id" => drop(ctx.schedule_activity_on_session("Length", "", text)),
        "session-input" => return ctx.schedule_activity_on_session("Length", text, "session").await,
        "retry-input" => return ctx.schedule_activity_with_retry("Length", text, RetryPolicy::new(2)).await,
        "event-name" => drop(ctx.schedule_wait(text)),
        "queue-name" => drop(ctx.dequeue_event(text)),
        "child-name" => drop(ctx.schedule_sub_orchestration(text, "")),
        "child-input" => return ctx.schedule_sub_orchestration("Length", text).await,
        "detached-name" => ctx.schedule_orchestration(text, "detached-name", ""),
        "detached-input" => ctx.schedule_orchestration("Length", "detached-input", text),
        "status" => ctx.set_custom_status(text),
        "key" => ctx.set_kv_value(text, ""),
        "cleared-key" => ctx.clear_kv_value(text),
        "value" => ctx.set_kv_value("key", text),
        "keys" => (0..size).for_each(|n| ctx.set_kv_value(n.to_string(), "")),
        "decisions" => (0..size).for_each(|_| drop(ctx.schedule_timer(Duration::from_secs(3_600)))),
        "output" => return Ok(text),
        "error" => return Err(text),
        "next-input" if ctx.execution_id() == 1 => {
            return ctx.continue_as_new(format!("{what} {}", "0".repeat(size))).await;
        }
        "next-input" => {}
        other => return Err(format!("nothing is called {other}")),
    }
    Ok("done".to_string())
}

/// Returns a value of one size, or sends it to another instance.
async fn does(ctx: ActivityContext, input: String) -> Result<String, String> {
    let (what, size) = parsed(&input)?;
    match what {
        "result" => Ok("x".repeat(size)),
        "failure" => Err("x".repeat(size)),
        _ => {
            let sent = client::send(&ctx.get_client(), what, &format!("{what}-{size}"), size).await;
            sent.map(|()| "xx".to_string()).map_err(client::words)
        }
    }
}

/// Calls the activity. Returns "fits" for a value within the limit, and the error otherwise.
async fn calls(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let text = ctx.schedule_activity("Does", input).await.unwrap_or_else(|error| error);
    Ok(if text.contains("xx") { "fits".to_string() } else { text })
}

pub(super) fn node(limits: &Limits) -> Node {
    let limits = limits.clone();
    let parent = |ctx: OrchestrationContext, input: String| async move {
        Ok(ctx.schedule_sub_orchestration("Attempt", input).await.unwrap_err())
    };
    let length = |input: String| async move { Ok(input.len().to_string()) };
    Node::new(
        orchestrations()
            .register("Attempt", attempt)
            .register("Length", move |_: OrchestrationContext, input: String| length(input))
            .register("Calls", calls)
            .register("Parent", parent),
        activities()
            .register("Length", move |_: ActivityContext, input: String| length(input))
            .register("Does", does),
    )
    .with(move |options| options.limits = limits.clone())
}

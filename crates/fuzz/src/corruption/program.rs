//! Orchestrations that use every durable operation that stores rows. Their outputs follow from the stored rows.

use outlast_engine::{Either2, OrchestrationContext};
use outlast_runtime::ActivityContext;
use outlast_runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use std::time::Duration;

/// The programs; each has a template for every time.
pub(super) const PROGRAMS: [&str; 10] =
    ["chain", "fan", "timer", "keys", "child", "queue", "signal", "session", "race", "fails"];

/// The program of the second instance in the store.
pub(super) const SECOND_PROGRAM: &str = "chain";

pub(crate) fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("chain", chain)
        .register("fan", fan)
        .register("timer", timer)
        .register("keys", keys)
        .register("child", child)
        .register("queue", queue)
        .register("signal", signal)
        .register("session", session)
        .register("race", race)
        .register("fails", fails)
        .build()
}

pub(crate) fn activities() -> ActivityRegistry {
    ActivityRegistry::builder().register("shout", shout).register("fail", fail).build()
}

type Returned = Result<String, String>;

async fn shout(_context: ActivityContext, input: String) -> Returned {
    tokio::time::sleep(Duration::from_secs(1)).await;
    Ok(format!("{input}!"))
}

async fn fail(_context: ActivityContext, input: String) -> Returned {
    Err(format!("no {input}"))
}

async fn chain(context: OrchestrationContext, input: String) -> Returned {
    let first = context.schedule_activity("shout", input).await?;
    context.set_custom_status("half");
    let second = context.schedule_activity("shout", first).await?;
    context.schedule_activity("shout", second).await
}

async fn fan(context: OrchestrationContext, input: String) -> Returned {
    let parts = ["p", "q", "r"].map(|part| context.schedule_activity("shout", format!("{input}{part}")));
    let parts: Result<Vec<String>, String> = context.join(parts.into()).await.into_iter().collect();
    let first = parts?.join(" ");
    context.schedule_activity("shout", first).await
}

async fn timer(context: OrchestrationContext, input: String) -> Returned {
    context.schedule_timer(Duration::from_secs(2)).await;
    let id = context.new_guid().await?.len();
    context.schedule_activity("shout", format!("{input}{id}")).await
}

/// Counts in a key over three executions.
async fn keys(context: OrchestrationContext, input: String) -> Returned {
    let before: u32 = context.get_kv_value("n").and_then(|text| text.parse().ok()).unwrap_or(0);
    context.set_kv_value("n", (before + 1).to_string());
    context.set_kv_value(format!("round {before}"), "seen");
    let said = context.schedule_activity("shout", input).await?;
    match before {
        2 => Ok(format!("{said} {} keys", context.get_kv_all_keys().len())),
        _ => context.continue_as_new(said).await,
    }
}

async fn child(context: OrchestrationContext, input: String) -> Returned {
    let said = context.schedule_sub_orchestration("chain", input).await?;
    context.schedule_activity("shout", format!("({said})")).await
}

/// Dequeues its messages in order.
async fn queue(context: OrchestrationContext, _input: String) -> Returned {
    let first = context.dequeue_event("in").await;
    let said = context.schedule_activity("shout", first).await?;
    let second = context.dequeue_event("in").await;
    let third = context.dequeue_event("in").await;
    context.schedule_activity("shout", format!("{said} {second} {third}")).await
}

async fn signal(context: OrchestrationContext, input: String) -> Returned {
    let wait = context.schedule_wait("go");
    let said = match context.select2(wait, context.schedule_timer(Duration::from_secs(4))).await {
        Either2::First(data) => data,
        Either2::Second(()) => "late".to_string(),
    };
    context.schedule_activity("shout", format!("{input} {said}")).await
}

async fn session(context: OrchestrationContext, input: String) -> Returned {
    let first = context.schedule_activity_on_session("shout", input, "s").await?;
    context.schedule_activity_on_session("shout", first, "s").await
}

/// An activity wins against a slow timer, and a fast timer against an activity.
async fn race(context: OrchestrationContext, input: String) -> Returned {
    let work = context.schedule_activity("shout", input);
    let first = match context.select2(work, context.schedule_timer(Duration::from_secs(600))).await {
        Either2::First(said) => said?,
        Either2::Second(()) => "late".to_string(),
    };
    let work = context.schedule_activity("shout", first.clone());
    match context.select2(work, context.schedule_timer(Duration::from_millis(10))).await {
        Either2::First(said) => said,
        Either2::Second(()) => Ok(format!("{first} late")),
    }
}

async fn fails(context: OrchestrationContext, input: String) -> Returned {
    let Err(reason) = context.schedule_activity("fail", input).await else {
        return Ok("it worked".to_string());
    };
    context.schedule_timer(Duration::from_secs(2)).await;
    Err(format!("as planned: {reason}"))
}

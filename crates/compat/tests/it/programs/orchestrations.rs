//! `OrchestrationContext`, `OrchestrationRegistry`, `runtime::{self}`, `OrchestrationStatus`, `RetryPolicy`,
//! `BackoffStrategy`, `EventKind`: every durable call with the argument types that callers use.

use super::{output, started};
use duroxide::providers::Provider;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    ActivityContext, BackoffStrategy, EventKind, OrchestrationContext, OrchestrationRegistry, RetryPolicy,
};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::time::{Duration, SystemTime};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Point {
    x: i32,
    y: i32,
}

fn echo() -> ActivityRegistry {
    ActivityRegistry::builder()
        .register("Echo", |_ctx: ActivityContext, input: String| async move { Ok(input) })
        .register("Fail", |_ctx: ActivityContext, input: String| async move { Err(input) })
        .register_typed("Swap", |_ctx: ActivityContext, p: Point| async move { Ok(Point { x: p.y, y: p.x }) })
        .build()
}

#[tokio::test]
async fn every_form_of_an_activity_call_completes() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Forms", |ctx: OrchestrationContext, input: String| async move {
            let name = String::from("Echo");
            let a = ctx.schedule_activity("Echo", "literal").await?;
            let b = ctx.schedule_activity(&name, &input).await?;
            let c = ctx.schedule_activity(name.as_str(), input.as_str()).await?;
            let d = ctx.schedule_activity(name, input).await?;
            let p: Point = ctx.schedule_activity_typed("Swap", &Point { x: 1, y: 2 }).await?;
            let q = ctx.schedule_activity_typed::<Point, Point>("Swap", &p).await?;
            let s = ctx.schedule_activity_on_session("Echo", "on a session", "s-1").await?;
            let t: Point = ctx.schedule_activity_on_session_typed("Swap", &q, "s-1").await?;
            let length =
                ctx.schedule_activity("Echo", "four").map(|result| result.map(|text| text.len())).await?;
            Ok(format!("{a} {b} {c} {d} {p:?} {t:?} {s} {length}"))
        })
        .build();
    let (_store, rt, client) = started(echo(), orchestrations).await;
    client.start_orchestration("forms", "Forms", "in").await.unwrap();
    assert_eq!(
        output(&client, "forms").await,
        "literal in in in Point { x: 2, y: 1 } Point { x: 2, y: 1 } on a session 4"
    );
    rt.shutdown(None).await;
}

#[tokio::test]
async fn retry_policies_repeat_failed_activities() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Retry", |ctx: OrchestrationContext, _input: String| async move {
            let policy = RetryPolicy::new(2)
                .with_backoff(BackoffStrategy::Fixed { delay: Duration::from_millis(5) })
                .with_timeout(Duration::from_secs(30));
            let error = ctx.schedule_activity_with_retry("Fail", "no", policy.clone()).await.unwrap_err();
            let typed: Point =
                ctx.schedule_activity_with_retry_typed("Swap", &Point { x: 1, y: 2 }, policy.clone()).await?;
            let bound = ctx.schedule_activity_with_retry_on_session("Echo", "x", policy.clone(), "s").await?;
            let both: Point = ctx
                .schedule_activity_with_retry_on_session_typed("Swap", &typed, RetryPolicy::default(), "s")
                .await?;
            Ok(format!("{error} {bound} {both:?}"))
        })
        .build();
    let (store, rt, client) = started(echo(), orchestrations).await;
    client.start_orchestration("retry", "Retry", "").await.unwrap();
    assert_eq!(output(&client, "retry").await, "no x Point { x: 1, y: 2 }");
    let history = store.read("retry").await.unwrap();
    let failed =
        history.iter().filter(|event| matches!(&event.kind, EventKind::ActivityFailed { .. })).count();
    assert_eq!(failed, 2);
    rt.shutdown(None).await;
}

#[tokio::test]
async fn timers_events_and_queues_resolve() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Waits", |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_timer(Duration::from_millis(5)).await;
            let first = ctx.schedule_wait("Text").await;
            let second: Point = ctx.schedule_wait_typed("Point").await;
            let third = ctx.dequeue_event("texts").await;
            let fourth: Point = ctx.dequeue_event_typed("points").await;
            #[allow(deprecated, reason = "older programs call it")]
            let fifth = ctx.schedule_wait_persistent("texts").await;
            #[allow(deprecated, reason = "older programs call it")]
            let sixth: Point = ctx.schedule_wait_persistent_typed("points").await;
            Ok(format!("{first} {} {third} {} {fifth} {}", second.x, fourth.x, sixth.x))
        })
        .build();
    let (_store, rt, client) = started(echo(), orchestrations).await;
    client.start_orchestration("waits", "Waits", "").await.unwrap();
    subscribed(&client, "waits", "Text").await;
    client.raise_event("waits", "Text", "one").await.unwrap();
    subscribed(&client, "waits", "Point").await;
    client.raise_event_typed("waits", "Point", &Point { x: 2, y: 0 }).await.unwrap();
    client.enqueue_event("waits", "texts", "three").await.unwrap();
    client.enqueue_event_typed("waits", "points", &Point { x: 4, y: 0 }).await.unwrap();
    #[allow(deprecated, reason = "older programs call it")]
    client.raise_event_persistent("waits", "texts", "five").await.unwrap();
    client.enqueue_event_typed("waits", "points", &Point { x: 6, y: 0 }).await.unwrap();
    assert_eq!(output(&client, "waits").await, "one 2 three 4 five 6");
    rt.shutdown(None).await;
}

/// Older programs wait for a subscription by reading the history.
async fn subscribed(client: &duroxide::Client, instance: &str, event: &str) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    while tokio::time::Instant::now() < deadline {
        let history = client.read_execution_history(instance, 1).await.unwrap();
        let found =
            |kind: &EventKind| matches!(kind, EventKind::ExternalSubscribed { name } if name == event);
        if history.iter().any(|event| found(&event.kind)) {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("{instance} never waited for {event}");
}

#[tokio::test]
async fn state_identity_and_system_calls_return_values() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("State", |ctx: OrchestrationContext, input: String| async move {
            ctx.set_custom_status(format!("at {input}"));
            let status = ctx.get_custom_status();
            ctx.reset_custom_status();
            ctx.set_kv_value("text", "value");
            ctx.set_kv_value_typed("point", &Point { x: 1, y: 1 });
            let text: Option<String> = ctx.get_kv_value("text");
            let point: Option<Point> = ctx.get_kv_value_typed("point")?;
            let all: HashMap<String, String> = ctx.get_kv_all_values();
            let keys: Vec<String> = ctx.get_kv_all_keys();
            let count: usize = ctx.get_kv_length();
            let pruned: usize = ctx.prune_kv_values_updated_before(0);
            ctx.clear_kv_value("text");
            let guid: String = ctx.new_guid().await?;
            let now: SystemTime = ctx.utc_now().await?;
            let other = ctx.get_kv_value_from_instance("nobody", "key").await?;
            let typed: Option<Point> = ctx.get_kv_value_from_instance_typed("nobody", "key").await?;
            ctx.clear_all_kv_values();
            ctx.trace_info("info");
            ctx.trace_warn("warn");
            ctx.trace_error("error");
            ctx.trace_debug("debug");
            ctx.trace("INFO", "by level");
            let _: (bool, bool) = (ctx.is_replaying(), ctx.is_logging_enabled());
            assert!(ctx.get_system_stats().is_none());
            assert!(now > SystemTime::UNIX_EPOCH && guid.len() == 36 && other.is_none() && typed.is_none());
            assert_eq!((text.as_deref(), all.len(), count, pruned), (Some("value"), 2, 2, 0));
            assert_eq!(keys, ["point", "text"]);
            let identity = (
                ctx.instance_id(),
                ctx.execution_id(),
                ctx.orchestration_name(),
                ctx.orchestration_version(),
            );
            Ok(format!("{status:?} {point:?} {identity:?}"))
        })
        .build();
    let (_store, rt, client) = started(echo(), orchestrations).await;
    client.start_orchestration("state", "State", "home").await.unwrap();
    assert_eq!(
        output(&client, "state").await,
        "Some(\"at home\") Some(Point { x: 1, y: 1 }) (\"state\", 1, \"State\", \"1.0.0\")"
    );
    rt.shutdown(None).await;
}

#[tokio::test]
async fn every_form_of_continue_as_new_starts_the_successor() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Again", |ctx: OrchestrationContext, input: String| async move {
            match ctx.execution_id() {
                1 => return ctx.continue_as_new("plain").await,
                2 => return ctx.continue_as_new_typed(&Point { x: 3, y: 0 }).await,
                3 => return ctx.continue_as_new_versioned("2.0.0", input).await,
                _ => Err("never".to_string()),
            }
        })
        .register_versioned("Again", "2.0.0", |ctx: OrchestrationContext, input: String| async move {
            Ok(format!("{} {input}", ctx.orchestration_version()))
        })
        .set_policy("Again", duroxide::runtime::VersionPolicy::Exact(semver::Version::new(1, 0, 0)))
        .build();
    let (_store, rt, client) = started(echo(), orchestrations).await;
    client.start_orchestration("again", "Again", "").await.unwrap();
    assert_eq!(output(&client, "again").await, "2.0.0 {\"x\":3,\"y\":0}");
    rt.shutdown(None).await;
}

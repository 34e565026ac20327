//! Every failure with a secret payload.

use super::{activities, orchestrations, secret};
use crate::support::{Cluster, Kind, Node};
use outlast::runtime::registry::ActivityRegistryBuilder;
use outlast::{ActivityContext, OrchestrationContext, OrchestrationRegistryBuilder, RetryPolicy};
use std::time::Duration;

/// Fails in the way that its input names. Every payload except the input is a secret.
async fn fails(ctx: OrchestrationContext, how: String) -> Result<String, String> {
    let large = secret("large").repeat(1_000);
    match how.as_str() {
        "error" => return Err(secret("error")),
        "panic" => panic!("{}", secret("panic")),
        "activity-error" => return ctx.schedule_activity("Fails", secret("error")).await,
        "activity-panic" => return ctx.schedule_activity("Panics", secret("panic")).await,
        "activity-input" => return ctx.schedule_activity("Number", secret("no number")).await,
        "activity-output" => {
            let number = ctx.schedule_activity_typed::<String, u64>("Echo", &secret("no number")).await?;
            return Ok(number.to_string());
        }
        "activity-large" => return ctx.schedule_activity("Large", "").await,
        "activity-unknown" => return ctx.schedule_activity("Nobody", secret("input")).await,
        "retries" => {
            let retries = RetryPolicy::new(2);
            return ctx.schedule_activity_with_retry("Fails", secret("error"), retries).await;
        }
        "child" => return ctx.schedule_sub_orchestration("Number", secret("no number")).await,
        "wait" => return Ok(ctx.schedule_wait_typed::<u64>("event").await.to_string()),
        "queue" => return Ok(ctx.dequeue_event_typed::<u64>("queue").await.to_string()),
        "large-input" => return ctx.schedule_activity("Echo", large).await,
        "large-output" => return Ok(large),
        "large-error" => return Err(large),
        "large-status" => ctx.set_custom_status(large.repeat(30)),
        "large-value" => ctx.set_kv_value("key", large.repeat(10)),
        "keys" => (0..200).for_each(|n| ctx.set_kv_value(n.to_string(), secret("value"))),
        "kv" => {
            ctx.set_kv_value("key", secret("no number"));
            return ctx.get_kv_value_typed::<u64>("key").map(|_| String::new());
        }
        "cancelled" => return Ok(ctx.schedule_wait("never").await),
        "foreign" => {
            let (_never, answer) = tokio::sync::oneshot::channel::<String>();
            return answer.await.map_err(|error| error.to_string());
        }
        other => return Err(format!("no failure is called {other}")),
    }
    Ok(String::new())
}

const HOW: [&str; 22] = [
    "error",
    "panic",
    "activity-error",
    "activity-panic",
    "activity-input",
    "activity-output",
    "activity-large",
    "activity-unknown",
    "retries",
    "child",
    "wait",
    "queue",
    "large-input",
    "large-output",
    "large-error",
    "large-status",
    "large-value",
    "keys",
    "kv",
    "cancelled",
    "foreign",
    "nobody",
];

fn code() -> (OrchestrationRegistryBuilder, ActivityRegistryBuilder) {
    (
        orchestrations()
            .register("Fails", fails)
            .register_typed("Number", |_: OrchestrationContext, number: u64| async move { Ok(number) }),
        activities()
            .register("Echo", |_: ActivityContext, input: String| async move { Ok(input) })
            .register("Fails", |_: ActivityContext, input: String| async move { Err(input) })
            .register(
                "Large",
                |_: ActivityContext, _: String| async move { Ok(secret("large").repeat(1_000)) },
            )
            .register("Panics", |_: ActivityContext, input: String| async move { panic!("{input}") })
            .register_typed("Number", |_: ActivityContext, number: u64| async move { Ok(number) }),
    )
}

pub(super) async fn run(kind: Kind, log_error_texts: bool) {
    let cluster = Cluster::real(kind).await;
    let (orchestrations, activities) = code();
    let node = Node::new(orchestrations, activities).with(move |options| {
        options.log_error_texts = log_error_texts;
        options.limits.payload_bytes = 5_000;
        options.max_attempts = 2;
        options.unregistered_backoff.base_delay = Duration::from_millis(5);
        options.unregistered_backoff.max_delay = Duration::from_millis(10);
    });
    cluster.start(&node).await;
    let client = &cluster.client;
    for how in HOW {
        let name = if how == "nobody" { "Nobody" } else { "Fails" };
        let input = if how == "nobody" { secret("input") } else { how.to_string() };
        client.start_orchestration(how, name, input).await.unwrap();
    }
    client.start_orchestration("number", "Number", secret("no number")).await.unwrap();
    client.cancel_instance("cancelled", secret("reason")).await.unwrap();
    client.enqueue_event("queue", "queue", secret("no number")).await.unwrap();
    // Rejected by the client: the errors are printed, as a program would print them.
    let large = secret("large").repeat(1_000_000);
    for refused in [
        client.enqueue_event("queue", "queue", large.clone()).await,
        client.start_orchestration("large", "Fails", large.clone()).await,
        client.cancel_instance("queue", large).await,
    ] {
        let error = refused.unwrap_err();
        println!("{error} {error:?}");
    }
    for instance in HOW.into_iter().chain(["number"]) {
        let looks = Duration::from_millis(10);
        while client.wait_for_orchestration(instance, looks).await.is_err() {
            // Only `wait` waits for this event.
            client.raise_event("wait", "event", secret("no number")).await.unwrap();
        }
        cluster.failure(instance).await;
    }
    changed(&cluster, log_error_texts).await;
    cluster.end().await;
}

/// Restarts an instance with code that does not match its history.
async fn changed(cluster: &Cluster, log_error_texts: bool) {
    let node = |changed: bool| {
        let code = move |ctx: OrchestrationContext, _: String| async move {
            let input = if changed { secret("other") } else { secret("first") };
            let key = if changed { "other" } else { "first" };
            ctx.set_kv_value(key, input.clone());
            ctx.schedule_activity("Held", input).await?;
            Ok(ctx.schedule_wait("go").await)
        };
        let held = |_: ActivityContext, input: String| async move { Ok(input) };
        let node = Node::new(orchestrations().register("Changes", code), activities().register("Held", held));
        node.with(move |options| options.log_error_texts = log_error_texts)
    };
    cluster.end().await;
    let first = cluster.start(&node(false)).await;
    cluster.begin("changes", "Changes", &secret("input")).await;
    let until = tokio::time::Instant::now() + crate::support::LONGEST_WAIT;
    while cluster.history("changes").await.len() < 5 {
        assert!(tokio::time::Instant::now() < until, "the instance never waits");
        tokio::task::yield_now().await;
    }
    cluster.stop(first).await;
    cluster.start(&node(true)).await;
    cluster.client.raise_event("changes", "go", secret("event")).await.unwrap();
    assert!(cluster.failure("changes").await.starts_with("nondeterministic"));
}

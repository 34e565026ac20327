//! Every limit through every entry: at it, one above, and a thousand times above.

use crate::support::{ALL, Kind, Node, World, activities, orchestrations};
use outlast::runtime::limits::Limits;
use outlast::{
    ActivityContext, AppErrorKind, Client, ClientError, ErrorDetails, OrchestrationContext,
    OrchestrationStatus,
};
use std::sync::Arc;

/// Small, so that a thousand times as much is little.
fn small() -> Limits {
    Limits {
        payload_bytes: 2_000,
        name_bytes: 100,
        custom_status_bytes: 50,
        tag_bytes: 20,
        kv_value_bytes: 60,
        kv_keys: 7,
        decisions_per_turn: 30,
        history_events: 200,
        history_events_warning: 100,
        ..Limits::default()
    }
}

fn sizes(limit: usize) -> [(usize, bool); 3] {
    [(limit, true), (limit + 1, false), (limit * 1_000, false)]
}

/// Does one thing with a value of one size.
async fn attempt(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let (what, size) = input.split_once(' ').ok_or("what and how much")?;
    let size: usize = size.parse().map_err(|_| "how much")?;
    let text = "x".repeat(size);
    match what {
        "activity-name" => drop(ctx.schedule_activity(text, "")),
        "activity-input" => return ctx.schedule_activity("Length", text).await,
        "activity-tag" => drop(ctx.schedule_activity("Length", "").with_tag(text)),
        "session-id" => drop(ctx.schedule_activity_on_session("Length", "", text)),
        "event-name" => drop(ctx.schedule_wait(text)),
        "queue-name" => drop(ctx.dequeue_event(text)),
        "child-name" => drop(ctx.schedule_sub_orchestration(text, "")),
        "child-input" => return ctx.schedule_sub_orchestration("Length", text).await,
        "detached-name" => ctx.schedule_orchestration(text, "detached-name", ""),
        "detached-input" => ctx.schedule_orchestration("Length", "detached-input", text),
        "status" => ctx.set_custom_status(text),
        "key" => ctx.set_kv_value(text, ""),
        "value" => ctx.set_kv_value("key", text),
        "keys" => (0..size).for_each(|n| ctx.set_kv_value(n.to_string(), "")),
        "decisions" => {
            (0..size).for_each(|_| drop(ctx.schedule_timer(std::time::Duration::from_secs(3_600))))
        }
        "output" => return Ok(text),
        "error" => return Err(text),
        // The next execution reads a zero of as many digits.
        "next-input" if ctx.execution_id() == 1 => {
            return ctx.continue_as_new(format!("{what} {}", "0".repeat(size))).await;
        }
        "history" => {
            for _ in 0..size {
                ctx.new_guid().await?;
                ctx.schedule_timer(std::time::Duration::ZERO).await;
            }
        }
        "next-input" => {}
        other => return Err(format!("nothing is called {other}")),
    }
    Ok("done".to_string())
}

fn node(limits: &Limits) -> Node {
    let limits = limits.clone();
    Node::new(
        orchestrations()
            .register("Attempt", attempt)
            .register("Length", |_: OrchestrationContext, input: String| async move {
                Ok(input.len().to_string())
            })
            .register("Makes", |ctx: OrchestrationContext, input: String| async move {
                let (activity, size) = input.split_once(' ').ok_or("what and how much")?;
                let text = ctx.schedule_activity(activity, size).await.unwrap_or_else(|error| error);
                Ok(if text.starts_with("xx") { text.len().to_string() } else { text })
            })
            .register("Parent", |ctx: OrchestrationContext, input: String| async move {
                Ok(ctx.schedule_sub_orchestration("Attempt", input).await.unwrap_err())
            }),
        activities()
            .register(
                "Length",
                |_: ActivityContext, input: String| async move { Ok(input.len().to_string()) },
            )
            .register("Make", |_: ActivityContext, size: String| async move {
                Ok("x".repeat(size.parse().map_err(|_| "how much")?))
            })
            .register("Fail", |_: ActivityContext, size: String| async move {
                Err("x".repeat(size.parse().map_err(|_| "how much")?))
            }),
    )
    .with(move |options| options.limits = limits.clone())
}

/// What is tried, its limit, and a word of the message.
type Row = (&'static str, fn(&Limits) -> usize, &'static str);

const ROWS: [Row; 18] = [
    ("activity-name", |limits| limits.name_bytes, "name_bytes"),
    ("activity-input", |limits| limits.payload_bytes, "payload_bytes"),
    ("activity-tag", |limits| limits.tag_bytes, "tag"),
    ("session-id", |limits| limits.name_bytes, "name_bytes"),
    ("event-name", |limits| limits.name_bytes, "name_bytes"),
    ("queue-name", |limits| limits.name_bytes, "name_bytes"),
    ("child-name", |limits| limits.name_bytes, "name_bytes"),
    ("child-input", |limits| limits.payload_bytes, "payload_bytes"),
    ("detached-name", |limits| limits.name_bytes, "name_bytes"),
    ("detached-input", |limits| limits.payload_bytes, "payload_bytes"),
    ("status", |limits| limits.custom_status_bytes, "Custom status size"),
    ("key", |limits| limits.name_bytes, "name_bytes"),
    ("value", |limits| limits.kv_value_bytes, "KV value for key"),
    ("keys", |limits| limits.kv_keys, "KV key count"),
    ("decisions", |limits| limits.decisions_per_turn, "decisions"),
    ("output", |limits| limits.payload_bytes, "payload_bytes"),
    ("error", |limits| limits.payload_bytes, "payload_bytes"),
    ("next-input", |limits| limits.payload_bytes - "next-input ".len(), "payload_bytes"),
];

#[tokio::test]
async fn an_orchestration_above_a_limit_fails_and_says_which() {
    for kind in ALL {
        let (world, limits) = (World::real(kind).await, small());
        world.start(&node(&limits)).await;
        for (what, limit, word) in ROWS {
            for (size, fits) in sizes(limit(&limits)) {
                let instance = format!("{what}-{size}");
                world.begin(&instance, "Attempt", &format!("{what} {size}")).await;
                let status = world.ended(&instance).await;
                match (status, fits) {
                    (OrchestrationStatus::Completed { .. }, true) => {}
                    (OrchestrationStatus::Failed { details, .. }, true) if what == "error" => {
                        assert_eq!(details.display_message().len(), size);
                    }
                    (OrchestrationStatus::Failed { details, .. }, false) => {
                        let ErrorDetails::Application {
                            kind: AppErrorKind::OrchestrationFailed,
                            message,
                            ..
                        } = details
                        else {
                            panic!("{kind:?}, {instance}: {details:?}")
                        };
                        assert!(
                            message.contains(word) && message.len() < 1_000,
                            "{kind:?}, {instance}: {message:.1000}"
                        );
                    }
                    (other, _) => panic!("{kind:?}, {instance}: {:.300}", format!("{other:?}")),
                }
            }
        }
        world.end().await;
    }
}

/// C6: the parent of an instance that breaks a limit is told.
#[tokio::test]
async fn c6_a_child_above_a_limit_fails_for_its_parent_too() {
    let (world, limits) = (World::real(Kind::Memory).await, small());
    world.start(&node(&limits)).await;
    for (what, limit, word) in ROWS {
        let instance = format!("parent-{what}");
        let error = world.run(&instance, "Parent", &format!("{what} {}", limit(&limits) + 1)).await;
        assert!(error.contains(word), "{instance}: {error:.300}");
    }
    world.end().await;
}

/// A history that grows without end: it fails before it is too large to handle, not at once.
#[tokio::test]
async fn a_history_above_its_limit_fails() {
    for kind in ALL {
        let (world, limits) = (World::real(kind).await, small());
        world.start(&node(&limits)).await;
        assert_eq!(world.run("short", "Attempt", "history 40").await, "done");
        world.begin("long", "Attempt", "history 1000").await;
        let failure = world.failure("long").await;
        assert!(failure.contains("limits.history_events") && failure.contains("long"), "{kind:?}: {failure}");
        let events = world.history("long").await.len();
        assert!(events <= limits.history_events + 10, "{kind:?}: {events} events");
        world.end().await;
    }
}

/// Results and error texts of activities are payloads too.
#[tokio::test]
async fn an_activity_that_returns_too_much_fails() {
    for kind in ALL {
        let (world, limits) = (World::real(kind).await, small());
        let limit = limits.payload_bytes;
        world.start(&node(&limits)).await;
        let tries =
            ["Make", "Fail"].into_iter().flat_map(|activity| sizes(limit).map(|size| (activity, size)));
        for (activity, (size, fits)) in tries {
            let instance = format!("{activity}-{size}");
            let output = world.run(&instance, "Makes", &format!("{activity} {size}")).await;
            match fits {
                true => assert_eq!(output, size.to_string(), "{kind:?}: {instance}"),
                false => assert!(output.contains("payload_bytes"), "{kind:?}: {instance}: {output:.200}"),
            }
        }
        world.end().await;
    }
}

#[tokio::test]
async fn the_client_refuses_what_is_above_a_limit() {
    for kind in ALL {
        let (world, limits) = (World::real(kind).await, small());
        let client = world.client.clone().with_limits(limits.clone());
        let (names, payloads) = (limits.name_bytes, limits.payload_bytes);
        for (size, fits) in sizes(names) {
            let name = "n".repeat(size);
            judge(client.start_orchestration("i", &name, "").await, fits, "name_bytes");
            judge(client.start_orchestration_versioned("i", "Length", &name, "").await, fits, "name_bytes");
            judge(client.raise_event("i", &name, "").await, fits, "name_bytes");
            judge(client.enqueue_event("i", &name, "").await, fits, "name_bytes");
            let request = client.start_request("Length").instance(format!("r-{size}")).with_event(&name, "");
            judge(request.send().await.map(|_| ()), fits, "name_bytes");
        }
        for (size, fits) in sizes(payloads) {
            let payload = "p".repeat(size);
            judge(client.start_orchestration("i", "Length", &payload).await, fits, "payload_bytes");
            judge(client.start_orchestration_typed("i", "Length", &payload).await, fits, "payload_bytes");
            judge(client.raise_event("i", "event", &payload).await, fits, "payload_bytes");
            judge(client.raise_event_typed("i", "event", &payload).await, fits, "payload_bytes");
            judge(client.enqueue_event("i", "queue", &payload).await, fits, "payload_bytes");
            judge(client.cancel_instance("i", &payload).await, fits, "payload_bytes");
            let request =
                client.start_request("Length").instance(format!("p-{size}")).with_event("q", &payload);
            judge(request.send().await.map(|_| ()), fits, "payload_bytes");
        }
        world.end().await;
    }
}

fn judge(result: Result<(), ClientError>, fits: bool, word: &str) {
    match (result, fits) {
        (Ok(()), true) => {}
        (Err(ClientError::InvalidInput { message }), false) => {
            assert!(message.contains(word) && message.len() < 1_000, "{message:.1000}");
        }
        (other, _) => panic!("{:.300}", format!("{other:?}")),
    }
}

/// The client of an activity has the limits of its runtime.
#[tokio::test]
async fn an_activitys_client_has_its_runtimes_limits() {
    let world = World::real(Kind::Memory).await;
    let limits = small();
    let sends = activities().register("Send", |ctx: ActivityContext, size: String| async move {
        let size: usize = size.parse().map_err(|_| "how much")?;
        let client: Client = ctx.get_client();
        client
            .enqueue_event(ctx.instance_id(), "queue", "p".repeat(size))
            .await
            .map_err(|error| error.to_string())?;
        Ok("sent".to_string())
    });
    let limit = Arc::new(limits.payload_bytes);
    let node =
        Node::new(crate::support::calls("Send"), sends).with(move |options| options.limits = limits.clone());
    world.start(&node).await;
    assert_eq!(world.run("fits", "Calls", &limit.to_string()).await, "sent");
    for size in [*limit + 1, *limit * 1_000] {
        let instance = format!("above-{size}");
        world.begin(&instance, "Calls", &size.to_string()).await;
        assert!(world.failure(&instance).await.contains("payload_bytes"));
    }
    world.end().await;
}

/// Waiting messages of one instance are counted, and one too many is refused at the sender. Others are not concerned.
#[tokio::test]
async fn a_mailbox_takes_no_more_than_its_limit() {
    for kind in ALL {
        let world = World::real(kind).await;
        let client = world.client.clone().with_limits(Limits { mailbox_messages: 20, ..Limits::default() });
        client.start_orchestration("i", "Reads", "").await.unwrap();
        let mut accepted = 0;
        for n in 0..200 {
            match client.enqueue_event("i", "queue", n.to_string()).await {
                Ok(()) => accepted += 1,
                Err(ClientError::InvalidInput { message }) => {
                    assert!(message.contains("mailbox_messages"), "{message}");
                }
                Err(other) => panic!("{other}"),
            }
        }
        assert!((19..=20).contains(&accepted), "{kind:?}: {accepted}");
        client.enqueue_event("another", "queue", "").await.unwrap();
        let reads = |ctx: OrchestrationContext, _: String| async move {
            let mut read = Vec::new();
            loop {
                match ctx.dequeue_event("queue").await.as_str() {
                    "end" => return Ok(read.len().to_string()),
                    other => read.push(other.to_string()),
                }
                ctx.set_custom_status(read.len().to_string());
            }
        };
        world.start(&Node::new(orchestrations().register("Reads", reads), activities())).await;
        world.says("i", &accepted.to_string()).await;
        client.enqueue_event("i", "queue", "end").await.unwrap();
        assert_eq!(world.output("i").await, accepted.to_string());
        world.end().await;
    }
}

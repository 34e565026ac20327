//! Every operation with a secret payload.

use super::{activities, orchestrations, secret};
use crate::support::{Cluster, Kind, Node};
use outlast::{ActivityContext, OrchestrationContext, RetryPolicy};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

async fn everything(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    if ctx.execution_id() > 1 {
        return Ok(input);
    }
    ctx.trace_info("the author's own words");
    ctx.set_custom_status(secret("status"));
    ctx.set_kv_value("key", secret("value"));
    ctx.schedule_activity("Echo", secret("activity")).await?;
    ctx.schedule_activity_on_session("Echo", secret("on-session"), "session").await?;
    ctx.schedule_activity_typed::<String, String>("Echo", &secret("typed")).await?;
    let retries = RetryPolicy::new(3);
    ctx.schedule_activity_with_retry("Third", secret("retried"), retries).await?;
    ctx.schedule_timer(Duration::from_millis(1)).await;
    ctx.schedule_sub_orchestration("Child", secret("child")).await?;
    ctx.schedule_orchestration("Child", "detached", secret("detached"));
    ctx.get_kv_value_from_instance(ctx.instance_id(), "key").await?;
    ctx.new_guid().await?;
    ctx.utc_now().await?;
    ctx.dequeue_event("queue").await;
    ctx.schedule_wait("event").await;
    ctx.clear_kv_value("key");
    ctx.reset_custom_status();
    ctx.continue_as_new(secret("next")).await
}

pub(super) async fn run(kind: Kind, log_error_texts: bool) {
    let cluster = Cluster::real(kind).await;
    let calls = AtomicU32::new(0);
    let third = move |_: ActivityContext, input: String| {
        let succeeds = calls.fetch_add(1, Ordering::Relaxed) >= 2;
        async move { if succeeds { Ok(input) } else { Err(secret("not yet")) } }
    };
    let node = Node::new(
        orchestrations()
            .register("Everything", everything)
            .register("Child", |_: OrchestrationContext, input: String| async move { Ok(input) }),
        activities()
            .register("Echo", |ctx: ActivityContext, input: String| async move {
                ctx.trace_info("the author's own words");
                Ok(input)
            })
            .register("Third", third),
    )
    .with(move |options| {
        options.log_error_texts = log_error_texts;
        // A message above the limit of carried messages.
        options.limits.carry_forward_events = 1;
    });
    cluster.start(&node).await;
    let client = &cluster.client;
    client.start_orchestration("all", "Everything", secret("input")).await.unwrap();
    for n in 0..4 {
        client.enqueue_event("all", "queue", secret(&format!("queue-{n}"))).await.unwrap();
    }
    let looks = Duration::from_millis(10);
    // The instance waits for the event after it has taken its message.
    loop {
        client.raise_event("all", "event", secret("event")).await.unwrap();
        if client.wait_for_orchestration("all", looks).await.is_ok() {
            break;
        }
    }
    assert_eq!(cluster.output("all").await, secret("next"));
    client.wait_for_orchestration("detached", crate::support::LONGEST_WAIT).await.unwrap();
    client.get_kv_all_values("all").await.unwrap();
    let request = client.start_request("Child").instance("requested").input(secret("requested")).send().await;
    request.unwrap().started().unwrap();
    assert_eq!(cluster.output("requested").await, secret("requested"));
    client.delete_instance("requested", true).await.unwrap();
    println!("{client:?} {:?} {:?}", cluster.options(), client.get_system_metrics().await.unwrap());
    cluster.end().await;
}

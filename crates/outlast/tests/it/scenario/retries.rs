//! Retries with backoff and with a timeout. The number of attempts is in the history, so a crash does not change it.

use crate::support::{Cluster, Node, activities, on_every_store, orchestrations};
use outlast::{ActivityContext, BackoffStrategy, OrchestrationContext, RetryPolicy};
use std::sync::Arc;
use std::time::Duration;

on_every_store! { retries: 60 }

async fn call(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let backoff = BackoffStrategy::Fixed { delay: Duration::from_millis(10) };
    let policy = RetryPolicy::new(3).with_backoff(backoff);
    let given_up = ctx.schedule_activity_with_retry("Refuse", "x", policy.clone()).await;
    let hung =
        ctx.schedule_activity_with_retry("Hang", "", policy.with_timeout(Duration::from_millis(50))).await;
    let fine = ctx.schedule_activity_with_retry("Work", "y", RetryPolicy::default()).await?;
    Ok(format!("{}; {}; {fine}", given_up.unwrap_err(), hung.unwrap_err()))
}

async fn retries(cluster: Arc<Cluster>) {
    let work = activities()
        .register("Refuse", |_: ActivityContext, input: String| async move { Err(format!("not {input}")) })
        .register("Hang", |ctx: ActivityContext, _: String| async move {
            ctx.cancelled().await;
            Err("nobody reads this".to_string())
        })
        .register("Work", |_: ActivityContext, input: String| async move { Ok(format!("did {input}")) });
    cluster.start(&Node::new(orchestrations().register("Call", call), work)).await;
    assert_eq!(cluster.run("call-1", "Call", "").await, "not x; timeout: activity timed out; did y");
    let history = cluster.history("call-1").await;
    let tries = history.iter().filter(|line| line.contains("ActivityScheduled { name: \"Refuse\"")).count();
    assert_eq!(tries, 3, "{history:#?}");
    let tries = history.iter().filter(|line| line.contains("ActivityScheduled { name: \"Hang\"")).count();
    assert_eq!(tries, 1, "a timeout is not retried");
}

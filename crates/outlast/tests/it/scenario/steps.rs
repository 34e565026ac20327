//! One activity, a chain of activities, and many activities at the same time.

use crate::support::{Cluster, Node, activities, on_every_store, orchestrations};
use outlast::{ActivityContext, OrchestrationContext};
use std::sync::Arc;

on_every_store! { hello: 100, chain: 100, fan_out: 9, random_and_time: 100 }

async fn hello(cluster: Arc<Cluster>) {
    let node = Node::new(
        orchestrations().register("Hello", |ctx: OrchestrationContext, name: String| async move {
            ctx.schedule_activity("Greet", name).await
        }),
        activities().register("Greet", |_: ActivityContext, name: String| async move {
            Ok(format!("Hello, {name}!"))
        }),
    );
    cluster.start(&node).await;
    assert_eq!(cluster.run("hello-1", "Hello", "Ada").await, "Hello, Ada!");
    let expected =
        ["OrchestrationStarted", "ActivityScheduled", "ActivityCompleted", "OrchestrationCompleted"];
    let history = cluster.history("hello-1").await;
    assert_eq!(history.len(), expected.len(), "{history:?}");
    for (line, kind) in history.iter().zip(expected) {
        assert!(line.contains(kind), "{line} is not {kind}");
    }
}

async fn chain(cluster: Arc<Cluster>) {
    let node = Node::new(
        orchestrations().register_typed("Chain", |ctx: OrchestrationContext, steps: u64| async move {
            let mut value = 0_u64;
            for _ in 0..steps {
                value = ctx.schedule_activity_typed::<u64, u64>("Increment", &value).await?;
            }
            Ok(value)
        }),
        activities()
            .register_typed("Increment", |_: ActivityContext, value: u64| async move { Ok(value + 1) }),
    );
    cluster.start(&node).await;
    cluster.client.start_orchestration_typed("chain-1", "Chain", 5_u64).await.unwrap();
    assert_eq!(cluster.output("chain-1").await, "5");
}

/// Hundreds of activities in one commit; `join` returns the results in the order of its arguments.
async fn fan_out(cluster: Arc<Cluster>) {
    let node = Node::new(
        orchestrations().register_typed("FanOut", |ctx: OrchestrationContext, width: u64| async move {
            let squares = (0..width).map(|n| ctx.schedule_activity_typed::<u64, u64>("Square", &n)).collect();
            let squares: Vec<u64> = ctx.join(squares).await.into_iter().collect::<Result<_, _>>()?;
            assert!(squares.is_sorted(), "join keeps the order of its arguments");
            Ok(squares.iter().sum::<u64>())
        }),
        activities().register_typed("Square", |_: ActivityContext, n: u64| async move { Ok(n * n) }),
    )
    .with(|options| options.worker_concurrency = 16);
    cluster.start(&node).await;
    let width = cluster.width();
    cluster.client.start_orchestration_typed("fan-1", "FanOut", width).await.unwrap();
    let squares: u64 = (0..width).map(|n| n * n).sum();
    assert_eq!(cluster.output("fan-1").await, squares.to_string());
}

/// Random values and times are recorded once: every replay returns the values that the activity got.
async fn random_and_time(cluster: Arc<Cluster>) {
    let node = Node::new(
        orchestrations().register("Draw", |ctx: OrchestrationContext, _: String| async move {
            let drawn = ctx.new_guid().await?;
            let now = ctx.utc_now().await?;
            let echoed = ctx.schedule_activity("Echo", drawn.clone()).await?;
            let again = ctx.new_guid().await?;
            let later = ctx.utc_now().await?;
            if echoed != drawn || again == drawn || later < now {
                return Err(format!("{drawn} {echoed} {again} {now:?} {later:?}"));
            }
            Ok(drawn)
        }),
        activities().register("Echo", |_: ActivityContext, text: String| async move { Ok(text) }),
    );
    cluster.start(&node).await;
    assert_eq!(cluster.run("draw-1", "Draw", "").await.len(), 36);
}

//! An endless loop with short histories: each round is a separate execution.

use crate::support::{Cluster, Node, activities, on_every_store, orchestrations};
use outlast::{ActivityContext, OrchestrationContext};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

on_every_store! { monitor: 100 }

#[derive(Serialize, Deserialize)]
struct Watch {
    round: u64,
    alarms: u64,
}

async fn watch(ctx: OrchestrationContext, mut watch: Watch) -> Result<String, String> {
    let degrees: u64 = ctx.schedule_activity_typed("Measure", &watch.round).await?;
    watch.alarms += u64::from(degrees > 30);
    watch.round += 1;
    ctx.set_custom_status(format!("round {}", watch.round));
    if watch.round == 5 {
        return Ok(format!("{} alarms", watch.alarms));
    }
    ctx.schedule_timer(Duration::from_millis(20)).await;
    ctx.continue_as_new_typed(&watch).await
}

async fn monitor(cluster: Arc<Cluster>) {
    let node = Node::new(
        orchestrations().register_typed("Monitor", watch),
        activities()
            .register_typed("Measure", |_: ActivityContext, round: u64| async move { Ok(20 + 5 * round) }),
    );
    cluster.start(&node).await;
    cluster
        .client
        .start_orchestration_typed("monitor-1", "Monitor", Watch { round: 0, alarms: 0 })
        .await
        .unwrap();
    assert_eq!(cluster.output("monitor-1").await, "2 alarms");

    assert_eq!(cluster.client.list_executions("monitor-1").await.unwrap(), [1, 2, 3, 4, 5]);
    for execution in 1..=5 {
        let history = cluster.client.read_execution_history("monitor-1", execution).await.unwrap();
        assert!(history.len() <= 7, "execution {execution} has {} events", history.len());
        assert!(history.iter().all(|event| event.execution_id == execution));
        assert!(history.last().unwrap().is_terminal());
    }
}

//! An orchestration that starts detached instances and continues as new: detached instances have no parent (C3).

use crate::support::{Cluster, LONGEST_WAIT, Node, activities, on_every_store, orchestrations};
use outlast::OrchestrationContext;
use std::sync::Arc;
use std::time::Duration;

on_every_store! { cron: 60 }

async fn every(ctx: OrchestrationContext, round: u64) -> Result<String, String> {
    ctx.schedule_timer(Duration::from_millis(10)).await;
    ctx.schedule_orchestration("Job", format!("job-{round}"), format!("round {round}"));
    if round == 3 {
        return Ok("rang 3 times".to_string());
    }
    ctx.continue_as_new_typed(&(round + 1)).await
}

async fn cron(cluster: Arc<Cluster>) {
    let job = |_: OrchestrationContext, input: String| async move { Ok(format!("did {input}")) };
    let both = orchestrations().register_typed("Cron", every).register("Job", job);
    cluster.start(&Node::new(both, activities())).await;
    cluster.client.start_orchestration_typed("cron-1", "Cron", 1_u64).await.unwrap();
    assert_eq!(cluster.output("cron-1").await, "rang 3 times");
    for round in 1..=3 {
        let status =
            cluster.client.wait_for_orchestration(&format!("job-{round}"), LONGEST_WAIT).await.unwrap();
        let expected = format!("did round {round}");
        assert!(
            matches!(&status, outlast::OrchestrationStatus::Completed { output, .. } if *output == expected),
            "{status:?}"
        );
        let info = cluster.client.get_instance_info(&format!("job-{round}")).await.unwrap();
        assert_eq!(info.parent_instance_id, None);
    }
}

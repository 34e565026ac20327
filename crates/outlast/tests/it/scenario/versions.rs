//! An upgrade while instances run: two runtimes on one store. The old runtime does not have the new version.

use crate::support::{Cluster, Node, activities, on_every_store, orchestrations};
use outlast::{OrchestrationContext, OrchestrationStatus};
use std::sync::Arc;
use std::time::Duration;

on_every_store! { versions: 60 }

async fn first(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.set_custom_status("ready");
    match ctx.schedule_wait("go").await.as_str() {
        "upgrade" => ctx.continue_as_new_versioned("2.0.0", "").await,
        _ => Ok(format!("done by {}", ctx.orchestration_version())),
    }
}

async fn second(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    Ok(format!("done by {} in execution {}", ctx.orchestration_version(), ctx.execution_id()))
}

async fn versions(cluster: Arc<Cluster>) {
    // With a short delay for versions that the old node does not have and gives back.
    let tune = |options: &mut outlast::RuntimeOptions| {
        options.unregistered_backoff.base_delay = Duration::from_millis(5);
        options.unregistered_backoff.max_delay = Duration::from_millis(20);
        options.max_attempts = 10_000;
    };
    let old = Node::new(orchestrations().register("Job", first), activities()).with(tune);
    let both = orchestrations().register("Job", first).register_versioned("Job", "2.0.0", second);
    let new = Node::new(both, activities()).with(tune);

    let old = cluster.start(&old).await;
    for instance in ["stays", "moves"] {
        cluster.begin(instance, "Job", "").await;
        cluster.says(instance, "ready").await;
    }
    cluster.start(&new).await;
    cluster.client.start_orchestration_versioned("asks", "Job", "2.0.0", "").await.unwrap();
    cluster.client.raise_event("moves", "go", "upgrade").await.unwrap();
    if cluster.is_paused() {
        // Parked fetches are woken in the same order each time, so the old node could fetch the same message every time.
        cluster.stop(old).await;
    }
    assert_eq!(cluster.output("asks").await, "done by 2.0.0 in execution 1");
    assert_eq!(cluster.output("moves").await, "done by 2.0.0 in execution 2");

    cluster.stop(old).await;
    cluster.client.raise_event("stays", "go", "on").await.unwrap();
    assert_eq!(cluster.output("stays").await, "done by 1.0.0", "a running instance keeps its version");
    assert_eq!(
        cluster.run("fresh", "Job", "").await,
        "done by 2.0.0 in execution 1",
        "a new instance gets the latest version"
    );
    let status = cluster.client.get_orchestration_status("fresh").await.unwrap();
    assert!(matches!(status, OrchestrationStatus::Completed { .. }));
}

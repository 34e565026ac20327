//! An upgrade while instances run: two runtimes on one store, the old one without the new version.

use crate::support::{Node, World, activities, on_every_store, orchestrations};
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

async fn versions(world: Arc<World>) {
    // Two nodes take turns, and what the old one cannot run it gives back soon.
    let tune = |options: &mut outlast::RuntimeOptions| {
        options.unregistered_backoff.base_delay = Duration::from_millis(5);
        options.unregistered_backoff.max_delay = Duration::from_millis(20);
        options.max_attempts = 10_000;
    };
    let old = Node::new(orchestrations().register("Job", first), activities()).with(tune);
    let both = orchestrations().register("Job", first).register_versioned("Job", "2.0.0", second);
    let new = Node::new(both, activities()).with(tune);

    let old = world.start(&old).await;
    for instance in ["stays", "moves"] {
        world.begin(instance, "Job", "").await;
        world.says(instance, "ready").await;
    }
    world.start(&new).await;
    world.client.start_orchestration_versioned("asks", "Job", "2.0.0", "").await.unwrap();
    world.client.raise_event("moves", "go", "upgrade").await.unwrap();
    if world.is_paused() {
        // Those who wait for the same message wake in the same order each time: the old node could have it for ever.
        world.stop(old).await;
    }
    assert_eq!(world.output("asks").await, "done by 2.0.0 in execution 1");
    assert_eq!(world.output("moves").await, "done by 2.0.0 in execution 2");

    world.stop(old).await;
    world.client.raise_event("stays", "go", "on").await.unwrap();
    assert_eq!(world.output("stays").await, "done by 1.0.0", "a running instance keeps its version");
    assert_eq!(
        world.run("fresh", "Job", "").await,
        "done by 2.0.0 in execution 1",
        "a new one gets the latest"
    );
    let status = world.client.get_orchestration_status("fresh").await.unwrap();
    assert!(matches!(status, OrchestrationStatus::Completed { .. }));
}

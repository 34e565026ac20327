//! A rolling upgrade: an old and a new node share a store, and each runs the versions that it has.

use crate::support::{Cluster, Kind, Node, activities, orchestrations};
use outlast::{ActivityContext, OrchestrationContext};

/// Instances of each kind.
const EACH: usize = 6;

async fn first(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let step = ctx.schedule_activity("Step", "").await?;
    ctx.set_custom_status("ready");
    match ctx.schedule_wait("go").await.as_str() {
        "upgrade" => ctx.continue_as_new_versioned("2.0.0", "").await,
        _ => Ok(format!("{step} by {}", ctx.orchestration_version())),
    }
}

/// Calls an activity that only the new node has.
async fn second(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let step = ctx.schedule_activity("Step", "").await?;
    let added = ctx.schedule_activity("Added", "").await?;
    Ok(format!("{step} and {added} by {} in execution {}", ctx.orchestration_version(), ctx.execution_id()))
}

/// With default options, so `max_attempts` is ten: a node without a handler must not use up the deliveries.
pub(crate) async fn versions_run_on_nodes_that_have_them(kind: Kind) {
    let step = |_: ActivityContext, _: String| async move { Ok("stepped".to_string()) };
    let added = |_: ActivityContext, _: String| async move { Ok("added".to_string()) };
    let old = Node::new(orchestrations().register("Job", first), activities().register("Step", step));
    let new = Node::new(
        orchestrations().register("Job", first).register_versioned("Job", "2.0.0", second),
        activities().register("Step", step).register("Added", added),
    );
    let cluster = Cluster::real(kind).await;
    let old = cluster.start(&old).await;
    let each = |sort: &'static str| (0..EACH).map(move |n| format!("{sort}-{n}"));
    for instance in each("stays").chain(each("moves")) {
        cluster.begin(&instance, "Job", "").await;
        cluster.says(&instance, "ready").await;
    }
    cluster.start_on(cluster.other_process().await, &new).await;
    for instance in each("asks") {
        cluster.client.start_orchestration_versioned(&instance, "Job", "2.0.0", "").await.unwrap();
    }
    for instance in each("moves") {
        cluster.client.raise_event(&instance, "go", "upgrade").await.unwrap();
    }
    for instance in each("stays") {
        cluster.client.raise_event(&instance, "go", "on").await.unwrap();
    }
    for instance in each("asks") {
        assert_eq!(cluster.output(&instance).await, "stepped and added by 2.0.0 in execution 1");
    }
    for instance in each("moves") {
        assert_eq!(cluster.output(&instance).await, "stepped and added by 2.0.0 in execution 2");
    }
    for instance in each("stays") {
        assert_eq!(
            cluster.output(&instance).await,
            "stepped by 1.0.0",
            "a running instance keeps its version"
        );
    }
    cluster.stop(old).await;
    let fresh = cluster.run("fresh", "Job", "").await;
    assert_eq!(fresh, "stepped and added by 2.0.0 in execution 1", "a new instance gets the latest version");
    let metrics = cluster.client.get_system_metrics().await.unwrap();
    assert_eq!((metrics.failed_instances, metrics.completed_instances), (0, 3 * EACH as u64 + 1));
    assert!(cluster.client.list_dead_letters(1).await.unwrap().is_empty());
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_version_of_an_orchestration_runs_on_a_node_that_has_it_on_cosmos() {
    versions_run_on_nodes_that_have_them(Kind::Cosmos).await;
}

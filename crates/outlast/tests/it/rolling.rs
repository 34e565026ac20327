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

/// The code of an orchestration before and after a patch.
async fn before(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let step = ctx.schedule_activity("Step", "").await?;
    ctx.set_custom_status("ready");
    ctx.schedule_wait("go").await;
    Ok(step)
}

async fn patched(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let mut step = ctx.schedule_activity("Step", "").await?;
    if ctx.patched("add a step") {
        step = ctx.schedule_activity("Added", step).await?;
    }
    ctx.set_custom_status("ready");
    ctx.schedule_wait("go").await;
    Ok(step)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_before_and_after_a_patch_run_all_instances_on_one_sqlite_file() {
    let step = |_: ActivityContext, _: String| async move { Ok("stepped".to_string()) };
    let added = |_: ActivityContext, said: String| async move { Ok(format!("{said}, added")) };
    let quick = |options: &mut outlast::RuntimeOptions| {
        options.unregistered_backoff.base_delay = std::time::Duration::from_millis(20);
    };
    let old =
        Node::new(orchestrations().register("Job", before), activities().register("Step", step)).with(quick);
    let all = activities().register("Step", step).register("Added", added);
    let new = Node::new(orchestrations().register("Job", patched), all).with(quick);
    let cluster = Cluster::real(Kind::SqliteFile).await;
    let each = |sort: &'static str| (0..EACH).map(move |n| format!("{sort}-{n}"));
    let first = cluster.start(&old).await;
    for instance in each("older") {
        cluster.begin(&instance, "Job", "").await;
        cluster.says(&instance, "ready").await;
    }
    cluster.stop(first).await;
    let second = cluster.start(&new).await;
    for instance in each("newer") {
        cluster.begin(&instance, "Job", "").await;
        cluster.says(&instance, "ready").await;
    }
    cluster.stop(second).await;
    // The old node gets the first chance to take the turns.
    cluster.start(&old).await;
    for instance in each("newer").chain(each("older")) {
        cluster.client.raise_event(&instance, "go", "").await.unwrap();
    }
    for instance in each("older") {
        assert_eq!(cluster.output(&instance).await, "stepped");
    }
    cluster.start_on(cluster.other_process().await, &new).await;
    for instance in each("mixed") {
        cluster.begin(&instance, "Job", "").await;
    }
    for instance in each("mixed") {
        cluster.says(&instance, "ready").await;
        cluster.client.raise_event(&instance, "go", "").await.unwrap();
    }
    for instance in each("newer") {
        assert_eq!(cluster.output(&instance).await, "stepped, added");
    }
    for instance in each("mixed") {
        let output = cluster.output(&instance).await;
        assert!(["stepped", "stepped, added"].contains(&output.as_str()), "{output}");
    }
    let metrics = cluster.client.get_system_metrics().await.unwrap();
    assert_eq!((metrics.failed_instances, metrics.completed_instances), (0, 3 * EACH as u64));
    cluster.end().await;
}

//! A rolling upgrade: an old and a new node share a database, and each runs the versions that it has.

use crate::support::{Cluster, Kind, Node, activities, orchestrations, postgres};
use outlast::{ActivityContext, OrchestrationContext, SemverRange, current_build_version};

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
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_version_of_an_orchestration_runs_on_a_node_that_has_it() {
    let step = |_: ActivityContext, _: String| async move { Ok("stepped".to_string()) };
    let added = |_: ActivityContext, _: String| async move { Ok("added".to_string()) };
    let old = Node::new(orchestrations().register("Job", first), activities().register("Step", step));
    let new = Node::new(
        orchestrations().register("Job", first).register_versioned("Job", "2.0.0", second),
        activities().register("Step", step).register("Added", added),
    );
    let cluster = Cluster::real(Kind::Postgres).await;
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

/// A node whose orchestration waits and then returns the name of the node on which it ends.
fn node(name: &'static str, versions: SemverRange) -> Node {
    let waits = move |ctx: OrchestrationContext, _: String| async move {
        ctx.set_custom_status("ready");
        ctx.schedule_wait("go").await;
        Ok(format!("ended at {name}"))
    };
    let at_once = |_: OrchestrationContext, _: String| async move { Ok(String::new()) };
    let all = orchestrations().register("Waits", waits).register("AtOnce", at_once);
    Node::new(all, activities()).with(move |options| {
        options.supported_replay_versions = Some(versions.clone());
    })
}

/// Changes the stored versions of an instance to those of the previous release.
async fn make_older(cluster: &Cluster, instance: &str) {
    let (newest, schema) = (current_build_version(), cluster.schema());
    let older = format!("{}.{}.{}", newest.major, newest.minor, newest.patch - 1);
    let key = format!("{:020}{:020}{:020}~", newest.major, newest.minor, newest.patch - 1);
    let client = postgres::raw().await;
    let pin = format!(
        "UPDATE {schema}.executions SET pinned_version = $2, pinned_key = $3
         WHERE instance_id = $1 AND pinned_version = $4"
    );
    let newest = newest.to_string();
    assert_eq!(client.execute(&pin, &[&instance, &older, &key, &newest]).await.unwrap(), 1);
    let stamp = format!(
        "UPDATE {schema}.history SET event_data = replace(event_data, $2, $3) WHERE instance_id = $1"
    );
    let [before, after] = [newest, older].map(|version| format!("\"duroxide_version\":\"{version}\""));
    assert!(client.execute(&stamp, &[&instance, &before, &after]).await.unwrap() > 0);
}

/// The deliveries of each waiting message of an instance, and whether it is leased or delayed.
async fn deliveries(cluster: &Cluster, instance: &str) -> Vec<(i32, bool)> {
    let sql = format!(
        "SELECT attempt_count, lock_token IS NOT NULL OR visible_at <> available_at
         FROM {}.orchestrator_queue WHERE instance_id = $1",
        cluster.schema()
    );
    let rows = postgres::raw().await.query(&sql, &[&instance]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn executions_end_on_a_node_that_replays_their_contract_version() {
    let newest = current_build_version();
    let mut before = newest.clone();
    before.patch -= 1;
    let mut oldest = before.clone();
    oldest.patch = 0;
    let new = node("the new node", SemverRange::new(newest.clone(), newest));
    let old = node("the old node", SemverRange::new(oldest, before));

    let cluster = Cluster::real(Kind::Postgres).await;
    let first = cluster.start(&new).await;
    for instance in ["legacy", "late", "waits"] {
        cluster.begin(instance, "Waits", "").await;
        cluster.says(instance, "ready").await;
    }
    cluster.stop(first).await;
    make_older(&cluster, "legacy").await;

    // The old node runs other instances and does not fetch the ones that it cannot replay: no delivery is counted.
    let processes = [cluster.other_process().await, cluster.other_process().await];
    cluster.start_on(processes[0].clone(), &old).await;
    cluster.client.raise_event("late", "go", "").await.unwrap();
    for n in 0..10 {
        cluster.run(&format!("at-once-{n}"), "AtOnce", "").await;
    }
    assert_eq!(deliveries(&cluster, "late").await, [(0, false)]);

    // With both nodes running every instance ends, each on a node that can replay it.
    cluster.start_on(processes[1].clone(), &new).await;
    assert_eq!(cluster.output("late").await, "ended at the new node");
    for instance in ["waits", "legacy"] {
        cluster.client.raise_event(instance, "go", "").await.unwrap();
    }
    assert_eq!(cluster.output("waits").await, "ended at the new node");
    assert_eq!(cluster.output("legacy").await, "ended at the old node");
    assert_eq!(cluster.client.get_system_metrics().await.unwrap().failed_instances, 0);
    cluster.end().await;
}

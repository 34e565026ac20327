//! A rolling upgrade: an old and a new node share a database, and each runs the versions that it has.

use crate::support::{Cluster, Kind, Node, activities, orchestrations, postgres};
use outlast::{OrchestrationContext, SemverRange, current_build_version};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_version_of_an_orchestration_runs_on_a_node_that_has_it() {
    crate::rolling::versions_run_on_nodes_that_have_them(Kind::Postgres).await;
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

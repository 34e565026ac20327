//! A rolling upgrade: an old node and a new one share a database, and each takes what it may.

use crate::support::{Kind, Node, World, activities, orchestrations, postgres};
use outlast::{ActivityContext, OrchestrationContext, SemverRange, current_build_version};

/// Instances of each sort.
const EACH: usize = 6;

async fn first(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let step = ctx.schedule_activity("Step", "").await?;
    ctx.set_custom_status("ready");
    match ctx.schedule_wait("go").await.as_str() {
        "upgrade" => ctx.continue_as_new_versioned("2.0.0", "").await,
        _ => Ok(format!("{step} by {}", ctx.orchestration_version())),
    }
}

/// With an activity that only the new node knows.
async fn second(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let step = ctx.schedule_activity("Step", "").await?;
    let added = ctx.schedule_activity("Added", "").await?;
    Ok(format!("{step} and {added} by {} in execution {}", ctx.orchestration_version(), ctx.execution_id()))
}

/// Options are those of every runtime, so ten deliveries are too many here as well: nodes that know less must leave the work
/// to those who know more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_version_of_the_code_runs_where_it_is_known() {
    let step = |_: ActivityContext, _: String| async move { Ok("stepped".to_string()) };
    let added = |_: ActivityContext, _: String| async move { Ok("added".to_string()) };
    let old = Node::new(orchestrations().register("Job", first), activities().register("Step", step));
    let new = Node::new(
        orchestrations().register("Job", first).register_versioned("Job", "2.0.0", second),
        activities().register("Step", step).register("Added", added),
    );
    let world = World::real(Kind::Postgres).await;
    let old = world.start(&old).await;
    let each = |sort: &'static str| (0..EACH).map(move |n| format!("{sort}-{n}"));
    for instance in each("stays").chain(each("moves")) {
        world.begin(&instance, "Job", "").await;
        world.says(&instance, "ready").await;
    }
    world.start_on(world.other_process().await, &new).await;
    for instance in each("asks") {
        world.client.start_orchestration_versioned(&instance, "Job", "2.0.0", "").await.unwrap();
    }
    for instance in each("moves") {
        world.client.raise_event(&instance, "go", "upgrade").await.unwrap();
    }
    for instance in each("stays") {
        world.client.raise_event(&instance, "go", "on").await.unwrap();
    }
    for instance in each("asks") {
        assert_eq!(world.output(&instance).await, "stepped and added by 2.0.0 in execution 1");
    }
    for instance in each("moves") {
        assert_eq!(world.output(&instance).await, "stepped and added by 2.0.0 in execution 2");
    }
    for instance in each("stays") {
        assert_eq!(world.output(&instance).await, "stepped by 1.0.0", "a running instance keeps its version");
    }
    world.stop(old).await;
    let fresh = world.run("fresh", "Job", "").await;
    assert_eq!(fresh, "stepped and added by 2.0.0 in execution 1", "a new one gets the latest");
    let metrics = world.client.get_system_metrics().await.unwrap();
    assert_eq!((metrics.failed_instances, metrics.completed_instances), (0, 3 * EACH as u64 + 1));
    assert!(world.client.list_dead_letters(1).await.unwrap().is_empty());
    world.end().await;
}

/// Waits, and says in the end where it ends: what comes after the wait has not been replayed anywhere.
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

/// Makes an instance one that the release before this one has started.
async fn make_older(world: &World, instance: &str) {
    let (newest, schema) = (current_build_version(), world.schema());
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

/// Deliveries of what waits for an instance, and whether somebody holds it or has put it off.
async fn deliveries(world: &World, instance: &str) -> Vec<(i32, bool)> {
    let sql = format!(
        "SELECT attempt_count, lock_token IS NOT NULL OR visible_at <> available_at
         FROM {}.orchestrator_queue WHERE instance_id = $1",
        world.schema()
    );
    let rows = postgres::raw().await.query(&sql, &[&instance]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn executions_end_where_their_contract_is_replayed() {
    let newest = current_build_version();
    let mut before = newest.clone();
    before.patch -= 1;
    let mut oldest = before.clone();
    oldest.patch = 0;
    let new = node("the new node", SemverRange::new(newest.clone(), newest));
    let old = node("the old node", SemverRange::new(oldest, before));

    let world = World::real(Kind::Postgres).await;
    let first = world.start(&new).await;
    for instance in ["legacy", "late", "waits"] {
        world.begin(instance, "Waits", "").await;
        world.says(instance, "ready").await;
    }
    world.stop(first).await;
    make_older(&world, "legacy").await;

    // The old node works, and leaves alone what it cannot replay: not even a delivery is counted.
    let processes = [world.other_process().await, world.other_process().await];
    world.start_on(processes[0].clone(), &old).await;
    world.client.raise_event("late", "go", "").await.unwrap();
    for n in 0..10 {
        world.run(&format!("at-once-{n}"), "AtOnce", "").await;
    }
    assert_eq!(deliveries(&world, "late").await, [(0, false)]);

    // With both at work everything ends, each where it can.
    world.start_on(processes[1].clone(), &new).await;
    assert_eq!(world.output("late").await, "ended at the new node");
    for instance in ["waits", "legacy"] {
        world.client.raise_event(instance, "go", "").await.unwrap();
    }
    assert_eq!(world.output("waits").await, "ended at the new node");
    assert_eq!(world.output("legacy").await, "ended at the old node");
    assert_eq!(world.client.get_system_metrics().await.unwrap().failed_instances, 0);
    world.end().await;
}

//! `outlast node list`, and what `instance why` and `doctor` say about nodes. Each test brings the state about with a SQLite file and
//! runtimes that report ten times per second.

use crate::support::{Said, damage, run};
use outlast::client::{Client, ListedNode};
use outlast::providers::TagFilter;
use outlast::providers::sqlite::SqliteProvider;
use outlast::runtime::registry::ActivityRegistry;
use outlast::runtime::{Runtime, RuntimeOptions, UnregisteredBackoffConfig};
use outlast::{OrchestrationContext, OrchestrationRegistry};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

struct Store {
    path: PathBuf,
    store: Arc<SqliteProvider>,
    client: Client,
    _dir: tempfile::TempDir,
}

async fn blocks(ctx: OrchestrationContext, tag: String) -> Result<String, String> {
    let activity = ctx.schedule_activity("Block", "s3cret");
    match tag.is_empty() {
        true => activity.await,
        false => activity.with_tag(tag).await,
    }
}

/// Waits for an event. The newer code waits for another one than the older code, by a patch.
async fn waits(ctx: OrchestrationContext, is_newer: bool) -> Result<String, String> {
    let event = if is_newer && ctx.patched("fraud") { "checked" } else { "go" };
    Ok(ctx.schedule_wait(event).await)
}

impl Store {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("jobs.db");
        let store = Arc::new(SqliteProvider::new(&format!("sqlite:{}", path.display()), None).await.unwrap());
        Self { path, client: Client::new(store.clone()), store, _dir: dir }
    }

    fn ask(&self, args: &[&str]) -> Said {
        run([args, &["--store", self.path.to_str().unwrap()]].concat())
    }

    fn why(&self, instance: &str) -> String {
        self.ask(&["instance", "why", instance]).fine()
    }

    /// Starts a node, and waits for its first report.
    async fn node(&self, id: &str, build: &str, change: impl FnOnce(&mut RuntimeOptions)) -> Arc<Runtime> {
        let orchestrations = OrchestrationRegistry::builder().register("Blocks", blocks).build();
        self.node_of(id, build, orchestrations, change).await
    }

    /// Starts a node with these orchestrations, and waits for its first report.
    async fn node_of(
        &self,
        id: &str,
        build: &str,
        orchestrations: OrchestrationRegistry,
        change: impl FnOnce(&mut RuntimeOptions),
    ) -> Arc<Runtime> {
        let mut options = RuntimeOptions {
            worker_node_id: Some(id.to_string()),
            build_id: build.to_string(),
            node_heartbeat: Some(Duration::from_millis(100)),
            ..RuntimeOptions::default()
        };
        change(&mut options);
        let activities = ActivityRegistry::builder()
            .register("Block", |_, _: String| std::future::pending::<Result<String, String>>())
            .build();
        let runtime =
            Runtime::start_with_options(self.store.clone(), activities, orchestrations, options).await;
        self.until(|nodes| nodes.iter().any(|node| node.record.report.node_id == id)).await;
        runtime
    }

    async fn until(&self, is_so: impl Fn(&[ListedNode]) -> bool) {
        while !is_so(&self.client.list_nodes().await.unwrap().unwrap()) {
            tokio::task::yield_now().await;
        }
    }

    /// Waits until the history of the instance has this number of events.
    async fn events(&self, instance: &str, count: usize) {
        loop {
            let history = self.client.history_page(instance, 1, 0, 10).await.unwrap();
            if history.len() >= count {
                return;
            }
            tokio::task::yield_now().await;
        }
    }
}

fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "'{part}' in:\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn running_and_lost_nodes_are_listed_with_their_leases() {
    let store = Store::new().await;
    let list = |format: &str| store.ask(&["node", "list", "-o", format]);
    contains(&list("table").fine(), &["No node reports to this store"]);
    let runtime = store.node("a1", "9f3c", |options| options.worker_concurrency = 7).await;
    store.client.start_orchestration("one", "Blocks", "").await.unwrap();
    store.until(|nodes| !nodes[0].record.report.leases.is_empty()).await;
    let text = list("table").fine();
    let pid = std::process::id().to_string();
    contains(&text, &["NODE  HOST", "SEEN", "a1", &pid, "9f3c", "1/7", "live"]);
    assert!(!text.contains("s3cret") && !text.contains("lost"), "{text}");
    let node = &list("json").json()["nodes"][0];
    assert_eq!((&node["id"], &node["state"]), (&"a1".into(), &"live".into()), "{node}");
    assert_eq!(node["leases"][0]["instance"], "one", "{node}");
    assert_eq!(node["orchestrations"][0]["versions"][0], "1.0.0", "{node}");
    let lines = list("jsonl").fine();
    assert_eq!(
        (lines.lines().count(), lines.contains("\"activity_names\":[\"Block\"]")),
        (1, true),
        "{lines}"
    );
    contains(&store.why("one"), &["it runs on node a1 (", &format!("pid {pid}) (delivery 1 of 10)")]);
    // A shutdown without grace is a crash: the report and the lease stay.
    runtime.shutdown(Some(0)).await;
    store.until(|nodes| nodes[0].record.is_lost()).await;
    contains(&list("table").fine(), &["lost: 1 lease ends in ", "1 of 1 node lost."]);
    contains(
        &store.why("one"),
        &["it runs on lost node a1 (", ", silent for ", "and is delivered again in "],
    );
    let doctor = store.ask(&["doctor"]);
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    contains(
        &doctor.out,
        &["FINDING  nodes", "node a1 (", "is lost: its last report was", "1 lease left, until "],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_removes_the_node_from_the_list() {
    let store = Store::new().await;
    let runtime = store.node("a1", "", |_| ()).await;
    runtime.shutdown(None).await;
    contains(&store.ask(&["node", "list"]).fine(), &["No node reports to this store"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_code_and_tags_are_certain_when_nodes_report() {
    let store = Store::new().await;
    let runtime = store.node("a1", "", |_| ()).await;
    store.client.start_orchestration("tagged", "Blocks", "gpu").await.unwrap();
    store.events("tagged", 2).await;
    damage(&store.path, "UPDATE worker_queue SET visible_at = visible_at - 60000");
    contains(&store.why("tagged"), &["and no runtime has fetched it: no live node takes tag 'gpu'."]);
    runtime.shutdown(None).await;
    contains(&store.why("tagged"), &["start a runtime that registers 'Block' and takes tag 'gpu'."]);

    // A node that runs no turns, and takes the tag.
    let worker = store
        .node("w1", "", |options| {
            options.orchestration_concurrency = 0;
            options.worker_tag_filter = TagFilter::tags(["cpu"]);
        })
        .await;
    store.client.start_orchestration("due", "Blocks", "").await.unwrap();
    damage(&store.path, "UPDATE orchestrator_queue SET visible_at = visible_at - 60000");
    contains(&store.why("due"), &["and no runtime has fetched it: no live node registers 'Blocks'"]);
    let doctor = store.ask(&["doctor"]);
    contains(
        &doctor.out,
        &["FINDING  versions", "no live node registers orchestration 'Blocks' version 1.0.0"],
    );
    worker.shutdown(None).await;
    contains(&store.why("due"), &["start a runtime that registers 'Blocks'"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_reports_nodes_of_different_builds() {
    let store = Store::new().await;
    let first = store.node("a1", "9f3c", |_| ()).await;
    contains(&store.ask(&["doctor", "--min-free", "0"]).fine(), &["1 live node, no lost one"]);
    let second = store.node("a2", "77aa", |_| ()).await;
    let doctor = store.ask(&["doctor", "--min-free", "0"]);
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    contains(&doctor.out, &["live nodes run 2 builds: 77aa (a2); 9f3c (a1)"]);
    first.shutdown(None).await;
    second.shutdown(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn turn_that_needs_a_patch_waits_for_a_node_with_newer_code() {
    let store = Store::new().await;
    let code = |is_newer: bool| {
        let waits = move |ctx, _: String| waits(ctx, is_newer);
        OrchestrationRegistry::builder().register("Waits", waits).build()
    };
    let newer = store.node_of("new", "", code(true), |_| ()).await;
    store.client.start_orchestration("one", "Waits", "").await.unwrap();
    store.events("one", 3).await;
    newer.shutdown(None).await;

    let hour = Duration::from_secs(3_600);
    let older = store
        .node_of("old", "", code(false), |options| {
            options.unregistered_backoff = UnregisteredBackoffConfig { base_delay: hour, max_delay: hour };
        })
        .await;
    store.client.raise_event("one", "checked", "s3cret").await.unwrap();
    store.until(|nodes| nodes.iter().any(|node| node.record.report.misses("Waits", "fraud"))).await;
    let sentence = [
        "waits for newer code, and the next delivery of a turn is in 59m",
        "its history takes patch 'fraud', which no live node's code asks for: start the build that has the patch.",
    ];
    contains(&store.why("one"), &sentence);
    let doctor = store.ask(&["doctor"]);
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    contains(&doctor.out, &["FINDING  versions", "takes patch 'fraud'"]);

    let newer = store.node_of("new", "", code(true), |_| ()).await;
    let has_newer = "which the code of 1 live node does not ask for: a node with newer code takes it.";
    contains(&store.why("one"), &["waits for newer code", has_newer]);
    newer.shutdown(None).await;
    older.shutdown(None).await;
}

//! A paused orchestration: no turn of its instances runs, whichever way they start, until it is resumed.

use crate::support::{ALL, Cluster, Kind, Node, activities, orchestrations};
use outlast::providers::HoldKind;
use outlast::{ClientError, OrchestrationContext, OrchestrationStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How long an instance may take until it is held.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until the instance is held.
async fn held(cluster: &Cluster, instance: &str) {
    let held = async {
        loop {
            if let Some(held) = cluster.client.held_instance(instance).await.unwrap() {
                return held;
            }
            tokio::task::yield_now().await;
        }
    };
    let held = tokio::time::timeout(PATIENCE, held).await;
    let hold = held.unwrap_or_else(|_| panic!("'{instance}' is not held")).hold;
    assert_eq!(hold.kind, HoldKind::OrchestrationPaused);
    assert_eq!((hold.actor.as_str(), hold.reason.as_str()), ("ann", "deploy"));
}

/// `Held` waits for a message, `Parent` for a child of `Held`, and `Other` for nothing. A second delivery poisons an instance.
fn node(runs: &Arc<AtomicUsize>) -> Node {
    let runs = Arc::clone(runs);
    let held = move |ctx: OrchestrationContext, _: String| {
        runs.fetch_add(1, Ordering::SeqCst);
        async move { Ok(ctx.dequeue_event("go").await) }
    };
    let parent = |ctx: OrchestrationContext, _: String| async move {
        ctx.schedule_sub_orchestration_with_id("Held", "child", "").await
    };
    let other = |_: OrchestrationContext, _: String| async move { Ok("other".to_string()) };
    let orchestrations = orchestrations()
        .register("Held", held.clone())
        .register_versioned("Held", "2.0.0", held)
        .register("Parent", parent)
        .register("Other", other);
    Node::new(orchestrations, activities()).with(|options| options.max_attempts = 1)
}

pub(crate) async fn a_paused_orchestration_holds_all_its_instances(cluster: &Cluster) {
    let runs = Arc::new(AtomicUsize::new(0));
    let client = &cluster.client;
    cluster.start(&node(&runs)).await;
    assert_eq!(cluster.run("first", "Other", "").await, "other");
    cluster.begin("before", "Held", "").await;
    while client.get_orchestration_status("before").await.unwrap() == OrchestrationStatus::NotFound {
        tokio::task::yield_now().await;
    }
    assert_eq!(client.pause_orchestration("Held", "ann", "deploy").await.unwrap(), 1);
    assert_eq!(client.pause_orchestration("Held", "bob", "again").await.unwrap(), 0);
    held(cluster, "before").await;
    let before = runs.load(Ordering::SeqCst);

    cluster.begin("later", "Held", "").await;
    client.start_orchestration_versioned("old", "Held", "1.0.0", "").await.unwrap();
    cluster.begin("parent", "Parent", "").await;
    cluster.begin("doomed", "Held", "").await;
    for instance in ["later", "old", "child", "doomed"] {
        held(cluster, instance).await;
    }
    assert_eq!(cluster.run("other", "Other", "").await, "other", "other orchestrations run");
    assert_eq!(client.count_held().await.unwrap().unwrap().instances, 5);
    let why = client.diagnose_instance("later", 10).await.unwrap().sentence();
    assert!(why.contains("paused its orchestration") && why.contains("orchestration resume Held"), "{why}");
    let why = client.diagnose_instance("parent", 10).await.unwrap().sentence();
    assert!(why.contains("paused its orchestration"), "{why}");
    let refused = client.resume_instance("later", "ann", "").await;
    assert!(
        matches!(&refused, Err(ClientError::InvalidInput { message }) if message.contains("'Held' is paused")),
        "{refused:?}"
    );
    client.cancel_instance("doomed", "enough").await.unwrap();
    assert!(matches!(cluster.ended("doomed").await, OrchestrationStatus::Failed { .. }));

    cluster.restart_all().await;
    cluster.begin("restarted", "Held", "").await;
    held(cluster, "restarted").await;
    let ran = runs.load(Ordering::SeqCst) - before;
    assert!(ran <= 1, "only the cancelled instance may have run: {ran} runs");

    let waiting = ["before", "later", "old", "child", "restarted"];
    for instance in waiting {
        client.enqueue_event(instance, "go", format!("{instance} went")).await.unwrap();
    }
    assert_eq!(client.resume_orchestration("Held", "ann", "deployed").await.unwrap(), 5);
    for instance in waiting {
        assert_eq!(cluster.output(instance).await, format!("{instance} went"));
    }
    assert_eq!(cluster.output("parent").await, "child went");
    assert_eq!(client.count_held().await.unwrap().unwrap().instances, 0);
    assert_eq!(client.paused_orchestrations().await.unwrap(), Some(Vec::new()));
    let audit = client.audit_page(None, 100).await.unwrap().unwrap();
    let of_types = audit.iter().filter(|record| record.entry.action.starts_with("orchestration."));
    let of_types: Vec<_> =
        of_types.map(|record| (record.entry.action.as_str(), record.entry.reason.as_str())).collect();
    assert_eq!(of_types, [("orchestration.resume", "deployed"), ("orchestration.pause", "deploy")]);
    cluster.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_orchestration_holds_all_its_instances_under_paused_time() {
    for kind in ALL {
        a_paused_orchestration_holds_all_its_instances(&*Cluster::paused(kind).await).await;
    }
}

#[tokio::test]
async fn a_paused_orchestration_holds_all_its_instances_on_sqlite() {
    a_paused_orchestration_holds_all_its_instances(&*Cluster::real(Kind::SqliteFile).await).await;
}

#[tokio::test]
async fn a_paused_orchestration_holds_all_its_instances_on_cosmos_db() {
    a_paused_orchestration_holds_all_its_instances(&*Cluster::real(Kind::Cosmos).await).await;
}

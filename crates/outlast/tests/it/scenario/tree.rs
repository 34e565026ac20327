//! Nested children, and a failure of a child that its parent gets as an error.

use crate::support::{Cluster, Kind, Node, activities, on_every_store, orchestrations, survives_crashes};
use outlast::OrchestrationContext;
use std::sync::Arc;

on_every_store! { tree: 20, child_with_an_explicit_id: 100 }

/// The other crashes of this scenario run under paused time; a rig has real time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crashes_on_cosmos() {
    survives_crashes(Kind::Cosmos, |cluster| Box::pin(child_with_an_explicit_id(cluster)), 4).await;
}

async fn branch(ctx: OrchestrationContext, depth: u64) -> Result<u64, String> {
    if depth == 0 {
        return Ok(1);
    }
    let children = (0..3).map(|_| ctx.schedule_sub_orchestration_typed::<u64, u64>("Branch", &(depth - 1)));
    let leaves = ctx.join(children.collect()).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(leaves.into_iter().sum())
}

async fn tree(cluster: Arc<Cluster>) {
    cluster.start(&Node::new(orchestrations().register_typed("Branch", branch), activities())).await;
    cluster.client.start_orchestration_typed("tree-1", "Branch", 2_u64).await.unwrap();
    assert_eq!(cluster.output("tree-1").await, "9");
    let tree = cluster.client.get_instance_tree("tree-1").await.unwrap();
    assert_eq!((tree.root_id.as_str(), tree.size()), ("tree-1", 13));
    assert!(tree.all_ids.iter().any(|id| id == "tree-1::sub::2::sub::4"), "{tree:?}");
    let deleted = cluster.client.delete_instance("tree-1", false).await.unwrap();
    assert_eq!(deleted.instances_deleted, 13);
}

async fn parent(ctx: OrchestrationContext, child: String) -> Result<String, String> {
    let first = ctx.schedule_sub_orchestration_with_id("Child", child.clone(), "one").await?;
    let taken = ctx.schedule_sub_orchestration_with_id("Child", child.clone(), "two").await;
    let failed = ctx.schedule_sub_orchestration("Child", "fail").await;
    let reserved = ctx.schedule_sub_orchestration_with_id("Child", "sub::x", "three").await;
    let errors = [taken, failed, reserved].map(|result| result.unwrap_err());
    if !errors[0].contains("already exists") || !errors[2].contains("reserved marker") {
        return Err(format!("{errors:?}"));
    }
    Ok(format!("{first}, {}", errors[1]))
}

async fn child_with_an_explicit_id(cluster: Arc<Cluster>) {
    let child = |_: OrchestrationContext, input: String| async move {
        if input == "fail" { Err("the child said no".to_string()) } else { Ok(format!("did {input}")) }
    };
    let both = orchestrations().register("Parent", parent).register("Child", child);
    cluster.start(&Node::new(both, activities())).await;
    assert_eq!(cluster.run("parent-1", "Parent", "parcel-7").await, "did one, the child said no");
    let info = cluster.client.get_instance_info("parcel-7").await.unwrap();
    assert_eq!(info.parent_instance_id.as_deref(), Some("parent-1"));
}

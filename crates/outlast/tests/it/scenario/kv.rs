//! Counters in the key-value store: read, changed and written over many turns and executions.

use crate::support::{Cluster, Node, activities, on_every_store, orchestrations};
use outlast::{ActivityContext, OrchestrationContext};
use std::collections::BTreeMap;
use std::sync::Arc;

on_every_store! { counters: 80 }

fn add(ctx: &OrchestrationContext, key: &str) -> Result<(), String> {
    let count: u64 = ctx.get_kv_value_typed(key)?.unwrap_or(0);
    ctx.set_kv_value_typed(key, &(count + 1));
    Ok(())
}

async fn count(ctx: OrchestrationContext, round: u64) -> Result<String, String> {
    for _ in 0..2 {
        add(&ctx, "before")?;
        ctx.schedule_activity("Nothing", "").await?;
        add(&ctx, "after")?;
    }
    ctx.set_kv_value("scratch", "gone with the next line");
    ctx.clear_kv_value("scratch");
    if round < 3 {
        return ctx.continue_as_new_typed(&(round + 1)).await;
    }
    Ok(ctx.get_kv_all_keys().join("+"))
}

async fn counters(cluster: Arc<Cluster>) {
    let reads = |ctx: OrchestrationContext, other: String| async move {
        let count: Option<u64> = ctx.get_kv_value_from_instance_typed(other, "before").await?;
        let nobody = ctx.get_kv_value_from_instance("nobody", "before").await?;
        Ok(format!("{count:?} {nobody:?}"))
    };
    let node = Node::new(
        orchestrations().register_typed("Count", count).register("Read", reads),
        activities().register("Nothing", |_: ActivityContext, _: String| async move { Ok(String::new()) }),
    );
    cluster.start(&node).await;
    cluster.client.start_orchestration_typed("counters-1", "Count", 1_u64).await.unwrap();
    assert_eq!(cluster.output("counters-1").await, "after+before");
    let values: BTreeMap<_, _> =
        cluster.client.get_kv_all_values("counters-1").await.unwrap().into_iter().collect();
    assert_eq!(
        values.into_iter().collect::<Vec<_>>(),
        [("after".into(), "6".into()), ("before".into(), "6".to_string())]
    );
    assert_eq!(cluster.run("reader-1", "Read", "counters-1").await, "Some(6) None");
}

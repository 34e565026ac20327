//! Placement of activities on two nodes by sessions and tags.

use crate::support::{Cluster, Node, activities, on_every_store, orchestrations};
use outlast::{ActivityContext, OrchestrationContext, RuntimeOptions, TagFilter};
use std::sync::Arc;

on_every_store! { sessions: 12, tags: 60 }

fn named(name: &'static str) -> impl Fn(&mut RuntimeOptions) + Clone {
    move |options| options.worker_node_id = Some(name.to_string())
}

/// Returns the node on which it runs: `work-{slot}-{node}` without the slot.
async fn place(ctx: ActivityContext, _: String) -> Result<String, String> {
    let node = ctx.worker_id().rsplit('-').next().unwrap_or_default().to_string();
    let bound = ctx.session_id().or(ctx.tag()).unwrap_or("nothing");
    Ok(format!("{bound} on {node}"))
}

/// All activities of a session run on the node that ran the first, also after a restart of that node.
async fn sessions(cluster: Arc<Cluster>) {
    let orchestration = |ctx: OrchestrationContext, _: String| async move {
        let mut places = Vec::new();
        for _ in 0..3 {
            let calls = (0..3).map(|n| ctx.schedule_activity_on_session("Place", "", format!("session-{n}")));
            let round = ctx.join(calls.collect()).await.into_iter().collect::<Result<Vec<_>, _>>()?;
            places.push(round);
        }
        if places.iter().any(|round| *round != places[0]) {
            return Err(format!("{places:?}"));
        }
        Ok(places[0].join(", "))
    };
    for name in ["left", "right"] {
        let work = activities().register("Place", place);
        let node = Node::new(orchestrations().register("Sessions", orchestration), work).with(named(name));
        cluster.start(&node).await;
    }
    let output = cluster.run("sessions-1", "Sessions", "").await;
    for n in 0..3 {
        assert!(output.contains(&format!("session-{n} on ")), "{output}");
    }
}

async fn tags(cluster: Arc<Cluster>) {
    let orchestration = |ctx: OrchestrationContext, _: String| async move {
        let plain = ctx.schedule_activity("Place", "");
        let tagged = ctx.schedule_activity("Place", "").with_tag("gpu");
        let (plain, tagged) = ctx.join2(plain, tagged).await;
        Ok(format!("{}, {}", plain?, tagged?))
    };
    let cpu =
        Node::new(orchestrations().register("Tags", orchestration), activities().register("Place", place))
            .with(named("cpu"));
    let gpu = Node::new(orchestrations(), activities().register("Place", place)).with(|options| {
        named("gpu")(options);
        options.worker_tag_filter = TagFilter::tags(["gpu"]);
    });
    cluster.start(&cpu).await;
    cluster.start(&gpu).await;
    assert_eq!(cluster.run("tags-1", "Tags", "").await, "nothing on cpu, gpu on gpu");
}

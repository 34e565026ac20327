//! Changes of attributes while instances run.

use crate::support::{Cluster, Kind, Node};
use outlast::TagFilter;
use outlast::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, outlast::Message)]
struct Go;

mod before {
    use super::*;

    #[outlast::activity(tag = "small")]
    pub(super) async fn work(_ctx: ActivityContext, number: u32) -> Result<u32, String> {
        Ok(number)
    }

    #[outlast::orchestration(version = "1.0.0")]
    pub(super) async fn part(_ctx: OrchestrationContext, number: u32) -> Result<u32, String> {
        Ok(number)
    }

    #[outlast::orchestration(accepts(Go))]
    pub(super) async fn whole(ctx: OrchestrationContext) -> Result<u32, String> {
        let one = work::call(&ctx, 1).await?;
        let two = part::child(&ctx, 2).await?;
        let _: Go = ctx.next().await?;
        Ok(one + two + work::call(&ctx, 4).await?)
    }
}

mod after {
    use super::*;

    /// Another tag, retries and a timeout.
    #[outlast::activity(tag = "large", retry = 3, timeout = "60s")]
    pub(super) async fn work(ctx: ActivityContext, number: u32) -> Result<u32, String> {
        assert_eq!(ctx.tag(), Some("large"), "new calls have the new tag");
        Ok(number)
    }

    #[outlast::orchestration(version = "2.0.0")]
    pub(super) async fn part(_ctx: OrchestrationContext, number: u32) -> Result<u32, String> {
        Ok(number)
    }

    #[outlast::orchestration(accepts(Go))]
    pub(super) async fn whole(ctx: OrchestrationContext) -> Result<u32, String> {
        let one = work::call(&ctx, 1).await?;
        let two = part::child(&ctx, 2).await?;
        let _: Go = ctx.next().await?;
        Ok(one + two + work::call(&ctx, 4).await?)
    }
}

#[tokio::test]
async fn a_running_instance_survives_changed_attributes() {
    let cluster = Cluster::real(Kind::SqliteFile).await;
    let any_tag = |node: Node| node.with(|options| options.worker_tag_filter = TagFilter::Any);
    let old = outlast::module![before::work, before::part, before::whole];
    let old = cluster.start(&any_tag(Node::of(old))).await;
    let whole = after::whole::start(&cluster.client).id("w").await.unwrap();
    while !cluster.history("w").await.iter().any(|event| event.contains("QueueSubscribed")) {
        tokio::task::yield_now().await;
    }
    cluster.stop(old).await;
    let new = outlast::module![after::work, after::part, before::part, after::whole];
    cluster.start(&any_tag(Node::of(new))).await;
    whole.send(Go).await.unwrap();
    assert_eq!(whole.result().await, Ok(7));
    let history = cluster.history("w").await.join("\n");
    assert!(history.contains("\"small\"") && history.contains("\"large\""), "{history}");
    cluster.end().await;
}

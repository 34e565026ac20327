//! C16: two runtimes never have the same worker identity.

use crate::support::{Cluster, Kind, Node, activities, calls};
use outlast::ActivityContext;
use std::collections::BTreeSet;

#[tokio::test]
async fn c16_runtimes_have_identities_of_128_bits() {
    let mut ids = BTreeSet::new();
    for _ in 0..20 {
        let cluster = Cluster::real(Kind::Memory).await;
        let work = activities()
            .register("Who", |ctx: ActivityContext, _: String| async move { Ok(ctx.worker_id().into()) });
        cluster.start(&Node::new(calls("Who"), work)).await;
        let worker = cluster.run("i", "Calls", "").await;
        let id = worker.rsplit('-').next().unwrap().to_string();
        assert!(worker.starts_with("work-"), "{worker}");
        assert!(id.len() == 32 && id.chars().all(|c| c.is_ascii_hexdigit()), "{worker}");
        assert!(ids.insert(id), "{worker} occurred before");
        cluster.end().await;
    }
}

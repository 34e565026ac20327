//! C16: two runtimes never believe that they are the same worker.

use crate::support::{Kind, Node, World, activities, calls};
use outlast::ActivityContext;
use std::collections::BTreeSet;

#[tokio::test]
async fn c16_runtimes_have_identities_of_128_bits() {
    let mut ids = BTreeSet::new();
    for _ in 0..20 {
        let world = World::real(Kind::Memory).await;
        let work = activities()
            .register("Who", |ctx: ActivityContext, _: String| async move { Ok(ctx.worker_id().into()) });
        world.start(&Node::new(calls("Who"), work)).await;
        let worker = world.run("i", "Calls", "").await;
        let id = worker.rsplit('-').next().unwrap().to_string();
        assert!(worker.starts_with("work-"), "{worker}");
        assert!(id.len() == 32 && id.chars().all(|c| c.is_ascii_hexdigit()), "{worker}");
        assert!(ids.insert(id), "{worker} was there before");
        world.end().await;
    }
}

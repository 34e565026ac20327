//! Large commits that a store delays keep no small commit back.

use crate::support::{Cluster, Hook, Hooked, Kind, LONGEST_WAIT, Node, activities, calls};
use async_trait::async_trait;
use outlast::providers::ProviderError;
use outlast::{ActivityContext, OrchestrationContext};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Delays the commits of activities until the test releases them.
struct DelaysOutcomes {
    begun: Semaphore,
    released: Semaphore,
}

#[async_trait]
impl Hook for DelaysOutcomes {
    async fn before(&self, call: &'static str) -> Result<(), ProviderError> {
        if call == "ack_work_item" {
            self.begun.add_permits(1);
            self.released.acquire().await.unwrap().forget();
        }
        Ok(())
    }
}

#[tokio::test]
async fn turns_commit_while_the_store_delays_all_commits_of_large_outputs() {
    // As many as a runtime has in progress at a time.
    const DELAYED: u32 = 64;
    let cluster = Cluster::real(Kind::Memory).await;
    let hook = Arc::new(DelaysOutcomes { begun: Semaphore::new(0), released: Semaphore::new(0) });
    let large =
        activities().register("Large", |_: ActivityContext, _: String| async { Ok("x".repeat(256 << 10)) });
    let program = calls("Large")
        .register("Small", |_: OrchestrationContext, _: String| async { Ok("small".to_string()) });
    let store = Hooked::around(cluster.store(), Arc::clone(&hook));
    cluster.start_on(store, &Node::new(program, large)).await;
    for number in 0..DELAYED {
        cluster.client.start_orchestration(format!("large-{number}"), "Calls", "").await.unwrap();
    }
    let begun = tokio::time::timeout(LONGEST_WAIT, hook.begun.acquire_many(DELAYED)).await;
    begun.unwrap().unwrap().forget();

    assert_eq!(cluster.run("small", "Small", "").await, "small");

    hook.released.add_permits(Semaphore::MAX_PERMITS / 2);
    for number in 0..DELAYED {
        let ended = cluster.client.wait_for_orchestration(&format!("large-{number}"), LONGEST_WAIT).await;
        assert!(ended.is_ok(), "{ended:?}");
    }
    cluster.end().await;
}

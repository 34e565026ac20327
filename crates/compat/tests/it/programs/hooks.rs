//! `runtime::test_hooks`.

use duroxide::runtime::registry::ActivityRegistry;
use duroxide::runtime::test_hooks;
use duroxide::{OrchestrationContext, OrchestrationRegistry};
use std::time::Duration;
use tokio::time::Instant;

/// One test, because the hook is process-wide.
#[tokio::test]
async fn turns_of_chosen_instances_are_slow() {
    let delay = Duration::from_millis(150);
    test_hooks::set_orch_processing_delay(delay, Some("slow-"));
    assert_eq!(test_hooks::get_orch_processing_delay("slow-1"), Some(delay));
    assert_eq!(test_hooks::get_orch_processing_delay("quick-1"), None);
    let orchestrations = OrchestrationRegistry::builder()
        .register("Quick", |_: OrchestrationContext, input: String| async move { Ok(input) })
        .build();
    let (_store, rt, client) = super::started(ActivityRegistry::builder().build(), orchestrations).await;
    let since = Instant::now();
    client.start_orchestration("slow-1", "Quick", "x").await.unwrap();
    assert_eq!(super::output(&client, "slow-1").await, "x");
    assert!(since.elapsed() >= delay, "{:?}", since.elapsed());
    test_hooks::clear_orch_processing_delay();
    assert_eq!(test_hooks::get_orch_processing_delay("slow-1"), None);
    rt.shutdown(None).await;
}

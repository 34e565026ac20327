//! `use duroxide::*` together with `use proptest::prelude::*`, as one program does.

use duroxide::*;
use proptest::prelude::*;
use std::sync::Arc;

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn ids_of_children_are_recognised(parent in "[a-z]{1,8}", n in any::<u64>()) {
        let generated = format!("{SUB_ORCH_AUTO_PREFIX}{n}");
        prop_assert!(is_auto_generated_sub_orch_id(&generated));
        prop_assert_eq!(build_child_instance_id(&parent, &generated), format!("{parent}::{generated}"));
        prop_assert_eq!(build_child_instance_id(&parent, &parent), parent);
    }

    /// An orchestration returns the same result for the same input, for any input.
    #[test]
    fn text_comes_back_as_it_was(input in ".{0,40}") {
        let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let result = tokio.block_on(async {
            let store: ProviderRef = Arc::new(providers::memory::MemoryProvider::new());
            let activities = runtime::registry::ActivityRegistry::builder()
                .register("Echo", |_: ActivityContext, input: String| async move { Ok(input) })
                .build();
            let orchestrations = OrchestrationRegistry::builder()
                .register("Echo", |ctx: OrchestrationContext, input: String| async move {
                    ctx.schedule_activity("Echo", input).await
                })
                .build();
            let rt = runtime::Runtime::start_with_store(store.clone(), activities, orchestrations).await;
            let client = Client::new(store);
            client.start_orchestration("echo", "Echo", input.clone()).await.unwrap();
            let output = super::output(&client, "echo").await;
            rt.shutdown(Some(0)).await;
            output
        });
        prop_assert_eq!(result, input);
    }
}

use super::*;
use crate::dispatch::fixture::{core, start as start_of};
use crate::dispatch::warm::Lookup;
use crate::registry::OrchestrationRegistry;
use outlast_provider::{Clock, SystemClock, TagFilter};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// A core that has orchestration O, which calls an activity, and knows the time of its store.
async fn ready() -> Arc<Core> {
    let mut core = core();
    let orchestrations = OrchestrationRegistry::builder().register(
        "O",
        |ctx: outlast_engine::OrchestrationContext, input: String| async move {
            ctx.schedule_activity("A", input).await
        },
    );
    core.orchestrations = orchestrations.build_result().unwrap();
    core.store_time.reported(Some(SystemClock.now_ms()));
    Arc::new(core)
}

async fn started(core: &Arc<Core>, instance: &str) -> Option<Result<bool, ProviderError>> {
    let item = start_of(instance);
    Some(FirstTurn::run(core, &item)?.commit(&core.store, &item).await)
}

#[tokio::test]
async fn a_start_commits_its_first_turn_and_keeps_the_execution_warm() {
    let core = ready().await;
    assert_eq!(started(&core, "i").await, Some(Ok(true)));
    let history = core.store.read("i").await.unwrap();
    assert_eq!(history.len(), 2, "{history:?}");
    let position = Position { execution_id: 1, last_event_id: 2 };
    let fetched = core.store.fetch_work_item(SECOND, Duration::ZERO, None, &TagFilter::default()).await;
    assert!(fetched.unwrap().is_some(), "the activity is scheduled");
    assert!(core.warm.knows("i"));
    let created_at =
        core.store.as_management_capability().unwrap().get_instance_info("i").await.unwrap().created_at;
    assert!(matches!(core.warm.take("i", position, Some(created_at)), Lookup::Found(_)));
}

#[tokio::test]
async fn the_turn_of_a_start_that_the_store_refused_is_thrown_away() {
    let core = ready().await;
    let message = WorkItem::QueueMessage { instance: "i".into(), name: "q".into(), data: "early".into() };
    core.store.enqueue_for_orchestrator(message, None).await.unwrap();
    assert_eq!(started(&core, "i").await, Some(Ok(false)));
    assert!(!core.warm.knows("i"), "its events are not stored");
    assert_eq!(core.store.read("i").await.unwrap(), []);
    core.store.enqueue_for_orchestrator(start_of("i"), None).await.unwrap();
    let fetched = core.store.fetch_orchestration_item(SECOND, Duration::ZERO, None).await.unwrap();
    let (item, _, attempt_count) = fetched.expect("the start waits");
    assert_eq!((item.messages.len(), attempt_count), (2, 1), "the refused start is not stored");
    assert!(started(&core, "j").await.is_none(), "the next start is an ordinary one");
    assert!(started(&core, "j").await.is_some());
}

#[tokio::test]
async fn a_runtime_that_cannot_run_the_turn_now_leaves_the_start_to_the_queue() {
    let core = ready().await;
    let permits = [core.permits(Kind::Turn).try_take(0), core.permits(Kind::Turn).try_take(1)];
    assert!(FirstTurn::run(&core, &start_of("i")).is_none(), "no permit is free");
    drop(permits);
    assert_eq!(started(&core, "i").await, Some(Ok(true)));
    assert!(FirstTurn::run(&core, &start_of("i")).is_none(), "the instance exists");
    let mut unknown = start_of("j");
    if let WorkItem::StartOrchestration { orchestration, .. } = &mut unknown {
        *orchestration = "Unknown".to_string();
    }
    assert!(FirstTurn::run(&core, &unknown).is_none());
    core.stopping.cancel();
    assert!(FirstTurn::run(&core, &start_of("j")).is_none(), "the runtime stops");
    assert!(FirstTurn::run(&Arc::new(crate::dispatch::fixture::core()), &start_of("k")).is_none());
}

//! Names and versions that nobody knows: they wait for a node that does, with growing pauses, and are poison in the end.

use crate::support::{ALL, Node, World, activities, calls, orchestrations, pass};
use outlast::{ActivityContext, ErrorDetails, OrchestrationContext, OrchestrationStatus, PoisonMessageType};
use std::time::Duration;
use tokio::time::Instant;

async fn poison(world: &World, instance: &str) -> (PoisonMessageType, u32, u32) {
    match world.ended(instance).await {
        OrchestrationStatus::Failed {
            details: ErrorDetails::Poison { message_type, attempt_count, max_attempts, .. },
            ..
        } => (message_type, attempt_count, max_attempts),
        other => panic!("{instance}: {other:?}"),
    }
}

/// With default options: ten deliveries, 1 s to 60 s apart.
#[tokio::test(start_paused = true)]
async fn an_unknown_orchestration_is_poison_after_five_minutes() {
    for kind in ALL {
        let world = World::paused(kind).await;
        let named =
            |options: &mut outlast::RuntimeOptions| options.worker_node_id = Some("worker-1".to_string());
        world.start(&Node::new(orchestrations(), activities()).with(named)).await;
        let since = Instant::now();
        world.begin("i", "Nobody", "").await;
        let (message_type, attempts, most) = poison(&world, "i").await;
        assert_eq!(message_type, PoisonMessageType::Orchestration { instance: "i".into(), execution_id: 1 });
        assert_eq!((attempts, most), (11, 10));
        let waited = since.elapsed().as_secs();
        assert!((290..=320).contains(&waited), "{kind:?}: {waited} s");
        let text = world.failure("i").await;
        assert_eq!(
            text,
            "poison: orchestration i exceeded 11 attempts (max 10): orchestration 'Nobody' is not registered on node \
             worker-1, which has no orchestration of that name"
        );
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_activity_is_poison_and_fails_its_instance() {
    for kind in ALL {
        let world = World::paused(kind).await;
        let catches = |ctx: OrchestrationContext, _: String| async move {
            let _ = ctx.schedule_activity("Nobody", "").await;
            Ok("caught what cannot be caught".to_string())
        };
        world.start(&Node::new(orchestrations().register("Catches", catches), activities())).await;
        world.begin("i", "Catches", "").await;
        let (message_type, attempts, _) = poison(&world, "i").await;
        let expected = PoisonMessageType::Activity {
            instance: "i".into(),
            execution_id: 1,
            activity_name: "Nobody".into(),
            activity_id: 2,
        };
        assert_eq!((message_type, attempts), (expected, 11), "{kind:?}");
        world.end().await;
    }
}

fn impatient(options: &mut outlast::RuntimeOptions) {
    options.unregistered_backoff.base_delay = Duration::from_millis(2);
    options.unregistered_backoff.max_delay = Duration::from_millis(5);
    options.max_attempts = 3;
}

#[tokio::test]
async fn unknown_and_malformed_versions_are_poison() {
    for kind in ALL {
        let world = World::real(kind).await;
        let quick = |ctx: OrchestrationContext, _: String| async move { Ok(ctx.orchestration_version()) };
        let again = |ctx: OrchestrationContext, version: String| async move {
            ctx.continue_as_new_versioned(version, "").await
        };
        let all = orchestrations().register("Quick", quick).register("Again", again);
        world.start(&Node::new(all, activities()).with(impatient)).await;
        for (instance, version) in [("unknown", "9.9.9"), ("malformed", "the newest"), ("empty", "")] {
            world.client.start_orchestration_versioned(instance, "Quick", version, "").await.unwrap();
            assert_eq!(poison(&world, instance).await.1, 4, "{kind:?}: {instance}");
            world.begin(&format!("again-{instance}"), "Again", version).await;
            let (message_type, ..) = poison(&world, &format!("again-{instance}")).await;
            assert!(
                matches!(message_type, PoisonMessageType::Orchestration { execution_id: 2, .. }),
                "{message_type:?}"
            );
        }
        assert_eq!(world.run("fine", "Quick", "").await, "1.0.0");
        world.end().await;
    }
}

/// The parent fails with its child's poison: it could not do anything about it.
#[tokio::test]
async fn an_unknown_child_fails_its_parent() {
    for kind in ALL {
        let world = World::real(kind).await;
        let parent = |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_sub_orchestration("Nobody", "").await
        };
        world
            .start(&Node::new(orchestrations().register("Parent", parent), activities()).with(impatient))
            .await;
        world.begin("parent", "Parent", "").await;
        let (message_type, ..) = poison(&world, "parent").await;
        let expected =
            PoisonMessageType::Orchestration { instance: "parent::sub::2".into(), execution_id: 1 };
        assert_eq!(message_type, expected, "{kind:?}");
        world.end().await;
    }
}

/// A node that knows the name may come before it is too late.
#[tokio::test(start_paused = true)]
async fn a_node_that_comes_later_finds_the_work() {
    for kind in ALL {
        let world = World::paused(kind).await;
        let old = world.start(&Node::new(orchestrations(), activities())).await;
        world.begin("i", "Calls", "").await;
        pass(Duration::from_secs(100)).await;
        world.stop(old).await;
        let work = activities()
            .register("Work", |_: ActivityContext, _: String| async move { Ok("worked".to_string()) });
        world.start(&Node::new(calls("Work"), work)).await;
        assert_eq!(world.output("i").await, "worked", "{kind:?}");
        world.end().await;
    }
}

/// A start without a name is no start; nobody else is held up.
#[tokio::test]
async fn an_empty_name_starts_nothing_and_blocks_nobody() {
    for kind in ALL {
        let world = World::real(kind).await;
        let quick = |_: OrchestrationContext, _: String| async move { Ok("done".to_string()) };
        world
            .start(&Node::new(orchestrations().register("Quick", quick), activities()).with(impatient))
            .await;
        let started = world.client.start_orchestration("nameless", "", "").await;
        assert_eq!(world.run("i", "Quick", "").await, "done", "{kind:?}");
        if started.is_ok() {
            let status = world.client.wait_for_orchestration("nameless", Duration::from_millis(300)).await;
            assert!(!matches!(status, Ok(OrchestrationStatus::Completed { .. })), "{status:?}");
        }
        world.end().await;
    }
}

//! Messages for instances that have ended, never were, or are gone: they do no harm, to anybody.

use crate::support::{ALL, Held, Node, World, activities, calls, orchestrations};
use outlast::{ClientError, OrchestrationContext, OrchestrationStatus};
use std::time::Duration;
use tokio::time::Instant;

fn quick() -> outlast::OrchestrationRegistryBuilder {
    orchestrations().register("Quick", |_: OrchestrationContext, input: String| async move { Ok(input) })
}

async fn pester(world: &World, instance: &str) {
    world.client.raise_event(instance, "event", "data").await.unwrap();
    world.client.enqueue_event(instance, "queue", "data").await.unwrap();
    world.client.cancel_instance(instance, "reason").await.unwrap();
}

#[tokio::test]
async fn messages_for_an_instance_that_has_ended_change_nothing() {
    for kind in ALL {
        let world = World::real(kind).await;
        world.start(&Node::new(quick(), activities())).await;
        assert_eq!(world.run("i", "Quick", "first").await, "first");
        let before = world.history("i").await;
        pester(&world, "i").await;
        world.begin("i", "Quick", "second").await;
        assert_eq!(world.run("j", "Quick", "").await, "");
        while world.client.get_queue_depths().await.unwrap().orchestrator_queue > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(world.history("i").await, before, "{kind:?}");
        assert_eq!(world.output("i").await, "first");
        world.end().await;
    }
}

/// C1: a message for nobody, many times over, and everybody else goes on as if it were not there.
#[tokio::test]
async fn messages_for_nobody_hold_up_nobody() {
    for kind in ALL {
        let world = World::real(kind).await;
        for n in 0..50 {
            pester(&world, &format!("nobody-{n}")).await;
        }
        world.start(&Node::new(quick(), activities())).await;
        let since = Instant::now();
        for n in 0..20 {
            assert_eq!(world.run(&format!("i-{n}"), "Quick", "x").await, "x");
        }
        assert!(since.elapsed() < Duration::from_secs(10), "{kind:?}: {:?}", since.elapsed());
        let status = world.client.get_orchestration_status("nobody-1").await.unwrap();
        assert_eq!(status, OrchestrationStatus::NotFound);
        world.end().await;
    }
}

/// Deleted by force while its activity runs: the activity is told, nothing comes back to life, and the id is free.
#[tokio::test(start_paused = true)]
async fn a_deleted_instance_stays_deleted_and_its_id_is_free() {
    for kind in ALL {
        let world = World::paused(kind).await;
        let (held, mut begun) = Held::new();
        let all = calls("Held")
            .register("Quick", |_: OrchestrationContext, _: String| async move { Ok("new life".into()) });
        world.start(&Node::new(all, held.activity(activities(), "Held"))).await;
        world.begin("i", "Calls", "").await;
        let running = begun.recv().await.unwrap();
        let refused = world.client.delete_instance("i", false).await;
        assert!(matches!(refused, Err(ClientError::InstanceStillRunning { .. })), "{refused:?}");
        world.client.delete_instance("i", true).await.unwrap();
        running.cancelled().await;
        pester(&world, "i").await;
        crate::support::pass(Duration::from_secs(5)).await;
        assert_eq!(world.client.get_orchestration_status("i").await.unwrap(), OrchestrationStatus::NotFound);
        let gone = world.client.delete_instance("i", true).await;
        assert!(matches!(gone, Err(ClientError::InstanceNotFound { .. })), "{gone:?}");
        world.end().await;
    }
}

/// The same id again, with nothing of the old instance in it.
#[tokio::test]
async fn an_id_can_be_used_again_after_a_delete() {
    for kind in ALL {
        let world = World::real(kind).await;
        let all = quick().register("Counts", |ctx: OrchestrationContext, _: String| async move {
            let count = ctx.get_kv_value_typed::<u64>("count")?.unwrap_or(0) + 1;
            ctx.set_kv_value_typed("count", &count);
            ctx.set_custom_status(count.to_string());
            Ok(count.to_string())
        });
        world.start(&Node::new(all, activities())).await;
        for _ in 0..3 {
            assert_eq!(world.run("i", "Counts", "").await, "1", "{kind:?}");
            world.client.delete_instance("i", false).await.unwrap();
        }
        assert_eq!(world.run("i", "Quick", "other code").await, "other code");
        world.end().await;
    }
}

/// Starts that come twice, before and after the end: the first one counts.
#[tokio::test]
async fn a_second_start_is_ignored() {
    for kind in ALL {
        let world = World::real(kind).await;
        world.begin("i", "Quick", "first").await;
        world.begin("i", "Quick", "second").await;
        world.begin("i", "Nobody", "third").await;
        world.start(&Node::new(quick(), activities())).await;
        assert_eq!(world.output("i").await, "first", "{kind:?}");
        let again = world.client.start_request("Quick").instance("i").send().await.unwrap();
        assert!(!again.is_started(), "{again:?}");
        world.end().await;
    }
}

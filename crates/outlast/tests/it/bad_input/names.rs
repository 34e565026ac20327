//! Names and versions that no node has: instances wait for a node that has them, with growing delays, and are then poisoned.

use crate::support::{ALL, Cluster, Node, activities, calls, orchestrations, pass};
use outlast::{ActivityContext, ErrorDetails, OrchestrationContext, OrchestrationStatus, PoisonMessageType};
use std::time::Duration;
use tokio::time::Instant;

async fn poison(cluster: &Cluster, instance: &str) -> (PoisonMessageType, u32, u32) {
    match cluster.ended(instance).await {
        OrchestrationStatus::Failed {
            details: ErrorDetails::Poison { message_type, attempt_count, max_attempts, .. },
            ..
        } => (message_type, attempt_count, max_attempts),
        other => panic!("{instance}: {other:?}"),
    }
}

/// With default options: ten deliveries, 1 s to 60 s apart.
#[tokio::test(start_paused = true)]
async fn an_unregistered_orchestration_is_poisoned_after_five_minutes() {
    for kind in ALL {
        let cluster = Cluster::paused(kind).await;
        let named =
            |options: &mut outlast::RuntimeOptions| options.worker_node_id = Some("worker-1".to_string());
        cluster.start(&Node::new(orchestrations(), activities()).with(named)).await;
        let since = Instant::now();
        cluster.begin("i", "Nobody", "").await;
        let (message_type, attempts, most) = poison(&cluster, "i").await;
        assert_eq!(message_type, PoisonMessageType::Orchestration { instance: "i".into(), execution_id: 1 });
        assert_eq!((attempts, most), (11, 10));
        let waited = since.elapsed().as_secs();
        assert!((290..=320).contains(&waited), "{kind:?}: {waited} s");
        let text = cluster.failure("i").await;
        assert_eq!(
            text,
            "poison: orchestration i exceeded 11 attempts (max 10): orchestration 'Nobody' is not registered on node \
             worker-1, which has no orchestration of that name"
        );
        cluster.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_unregistered_activity_is_poisoned_and_fails_its_instance() {
    for kind in ALL {
        let cluster = Cluster::paused(kind).await;
        let catches = |ctx: OrchestrationContext, _: String| async move {
            let _ = ctx.schedule_activity("Nobody", "").await;
            Ok("caught what cannot be caught".to_string())
        };
        cluster.start(&Node::new(orchestrations().register("Catches", catches), activities())).await;
        cluster.begin("i", "Catches", "").await;
        let (message_type, attempts, _) = poison(&cluster, "i").await;
        let expected = PoisonMessageType::Activity {
            instance: "i".into(),
            execution_id: 1,
            activity_name: "Nobody".into(),
            activity_id: 2,
        };
        assert_eq!((message_type, attempts), (expected, 11), "{kind:?}");
        cluster.end().await;
    }
}

fn impatient(options: &mut outlast::RuntimeOptions) {
    options.unregistered_backoff.base_delay = Duration::from_millis(2);
    options.unregistered_backoff.max_delay = Duration::from_millis(5);
    options.max_attempts = 3;
}

#[tokio::test]
async fn unregistered_and_malformed_versions_are_poisoned() {
    for kind in ALL {
        let cluster = Cluster::real(kind).await;
        let quick = |ctx: OrchestrationContext, _: String| async move { Ok(ctx.orchestration_version()) };
        let again = |ctx: OrchestrationContext, version: String| async move {
            ctx.continue_as_new_versioned(version, "").await
        };
        let all = orchestrations().register("Quick", quick).register("Again", again);
        cluster.start(&Node::new(all, activities()).with(impatient)).await;
        for (instance, version) in [("unknown", "9.9.9"), ("malformed", "the newest"), ("empty", "")] {
            cluster.client.start_orchestration_versioned(instance, "Quick", version, "").await.unwrap();
            assert_eq!(poison(&cluster, instance).await.1, 4, "{kind:?}: {instance}");
            cluster.begin(&format!("again-{instance}"), "Again", version).await;
            let (message_type, ..) = poison(&cluster, &format!("again-{instance}")).await;
            assert!(
                matches!(message_type, PoisonMessageType::Orchestration { execution_id: 2, .. }),
                "{message_type:?}"
            );
        }
        assert_eq!(cluster.run("fine", "Quick", "").await, "1.0.0");
        cluster.end().await;
    }
}

/// The parent fails with the poison error of its child.
#[tokio::test]
async fn an_unregistered_child_fails_its_parent() {
    for kind in ALL {
        let cluster = Cluster::real(kind).await;
        let parent = |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_sub_orchestration("Nobody", "").await
        };
        cluster
            .start(&Node::new(orchestrations().register("Parent", parent), activities()).with(impatient))
            .await;
        cluster.begin("parent", "Parent", "").await;
        let (message_type, ..) = poison(&cluster, "parent").await;
        let expected =
            PoisonMessageType::Orchestration { instance: "parent::sub::2".into(), execution_id: 1 };
        assert_eq!(message_type, expected, "{kind:?}");
        cluster.end().await;
    }
}

/// A node that has the name is started before `max_attempts` deliveries.
#[tokio::test(start_paused = true)]
async fn a_node_that_starts_later_runs_the_waiting_instance() {
    for kind in ALL {
        let cluster = Cluster::paused(kind).await;
        let old = cluster.start(&Node::new(orchestrations(), activities())).await;
        cluster.begin("i", "Calls", "").await;
        pass(Duration::from_secs(100)).await;
        cluster.stop(old).await;
        let work = activities()
            .register("Work", |_: ActivityContext, _: String| async move { Ok("worked".to_string()) });
        cluster.start(&Node::new(calls("Work"), work)).await;
        assert_eq!(cluster.output("i").await, "worked", "{kind:?}");
        cluster.end().await;
    }
}

/// A start with an empty name starts no instance and delays no other instance.
#[tokio::test]
async fn an_empty_name_starts_no_instance_and_delays_no_other() {
    for kind in ALL {
        let cluster = Cluster::real(kind).await;
        let quick = |_: OrchestrationContext, _: String| async move { Ok("done".to_string()) };
        cluster
            .start(&Node::new(orchestrations().register("Quick", quick), activities()).with(impatient))
            .await;
        let started = cluster.client.start_orchestration("nameless", "", "").await;
        assert_eq!(cluster.run("i", "Quick", "").await, "done", "{kind:?}");
        if started.is_ok() {
            let status = cluster.client.wait_for_orchestration("nameless", Duration::from_millis(300)).await;
            assert!(!matches!(status, Ok(OrchestrationStatus::Completed { .. })), "{status:?}");
        }
        cluster.end().await;
    }
}

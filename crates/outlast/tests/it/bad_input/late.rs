//! Messages for instances that have ended, never existed, or were deleted have no effect.

use crate::support::{ALL, Cluster, Held, Node, activities, calls, orchestrations};
use outlast::{ClientError, OrchestrationContext, OrchestrationStatus};
use std::time::Duration;
use tokio::time::Instant;

fn quick() -> outlast::OrchestrationRegistryBuilder {
    orchestrations().register("Quick", |_: OrchestrationContext, input: String| async move { Ok(input) })
}

async fn send_messages(cluster: &Cluster, instance: &str) {
    cluster.client.raise_event(instance, "event", "data").await.unwrap();
    cluster.client.enqueue_event(instance, "queue", "data").await.unwrap();
    cluster.client.cancel_instance(instance, "reason").await.unwrap();
}

#[tokio::test]
async fn messages_for_an_ended_instance_have_no_effect() {
    for kind in ALL {
        let cluster = Cluster::real(kind).await;
        cluster.start(&Node::new(quick(), activities())).await;
        assert_eq!(cluster.run("i", "Quick", "first").await, "first");
        let before = cluster.history("i").await;
        send_messages(&cluster, "i").await;
        cluster.begin("i", "Quick", "second").await;
        assert_eq!(cluster.run("j", "Quick", "").await, "");
        while cluster.client.get_queue_depths().await.unwrap().orchestrator_queue > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(cluster.history("i").await, before, "{kind:?}");
        assert_eq!(cluster.output("i").await, "first");
        cluster.end().await;
    }
}

/// C1: many messages for instances that do not exist do not delay other instances.
#[tokio::test]
async fn messages_for_missing_instances_delay_no_other_instance() {
    for kind in ALL {
        let cluster = Cluster::real(kind).await;
        for n in 0..50 {
            send_messages(&cluster, &format!("nobody-{n}")).await;
        }
        cluster.start(&Node::new(quick(), activities())).await;
        let since = Instant::now();
        for n in 0..20 {
            assert_eq!(cluster.run(&format!("i-{n}"), "Quick", "x").await, "x");
        }
        assert!(since.elapsed() < Duration::from_secs(10), "{kind:?}: {:?}", since.elapsed());
        let status = cluster.client.get_orchestration_status("nobody-1").await.unwrap();
        assert_eq!(status, OrchestrationStatus::NotFound);
        cluster.end().await;
    }
}

/// An instance is deleted by force while its activity runs: the activity is cancelled, its outcome is dropped, and the id is free.
#[tokio::test(start_paused = true)]
async fn a_deleted_instance_stays_deleted_and_its_id_is_free() {
    for kind in ALL {
        let cluster = Cluster::paused(kind).await;
        let (held, mut begun) = Held::new();
        let all = calls("Held")
            .register("Quick", |_: OrchestrationContext, _: String| async move { Ok("new life".into()) });
        cluster.start(&Node::new(all, held.activity(activities(), "Held"))).await;
        cluster.begin("i", "Calls", "").await;
        let running = begun.recv().await.unwrap();
        let refused = cluster.client.delete_instance("i", false).await;
        assert!(matches!(refused, Err(ClientError::InstanceStillRunning { .. })), "{refused:?}");
        cluster.client.delete_instance("i", true).await.unwrap();
        running.cancelled().await;
        send_messages(&cluster, "i").await;
        crate::support::pass(Duration::from_secs(5)).await;
        assert_eq!(
            cluster.client.get_orchestration_status("i").await.unwrap(),
            OrchestrationStatus::NotFound
        );
        let gone = cluster.client.delete_instance("i", true).await;
        assert!(matches!(gone, Err(ClientError::InstanceNotFound { .. })), "{gone:?}");
        cluster.end().await;
    }
}

/// A new instance with the same id has no data of the deleted instance.
#[tokio::test]
async fn an_id_can_be_used_again_after_a_delete() {
    for kind in ALL {
        let cluster = Cluster::real(kind).await;
        let all = quick().register("Counts", |ctx: OrchestrationContext, _: String| async move {
            let count = ctx.get_kv_value_typed::<u64>("count")?.unwrap_or(0) + 1;
            ctx.set_kv_value_typed("count", &count);
            ctx.set_custom_status(count.to_string());
            Ok(count.to_string())
        });
        cluster.start(&Node::new(all, activities())).await;
        for _ in 0..3 {
            assert_eq!(cluster.run("i", "Counts", "").await, "1", "{kind:?}");
            cluster.client.delete_instance("i", false).await.unwrap();
        }
        assert_eq!(cluster.run("i", "Quick", "other code").await, "other code");
        cluster.end().await;
    }
}

/// Repeated starts, before and after the end of the instance, are ignored.
#[tokio::test]
async fn a_second_start_is_ignored() {
    for kind in ALL {
        let cluster = Cluster::real(kind).await;
        cluster.begin("i", "Quick", "first").await;
        cluster.begin("i", "Quick", "second").await;
        cluster.begin("i", "Nobody", "third").await;
        cluster.start(&Node::new(quick(), activities())).await;
        assert_eq!(cluster.output("i").await, "first", "{kind:?}");
        let again = cluster.client.start_request("Quick").instance("i").send().await.unwrap();
        assert!(!again.is_started(), "{again:?}");
        cluster.end().await;
    }
}

//! Invalid instance ids are rejected at every entry point.

use crate::support::{ALL, Cluster, Node, activities, orchestrations};
use outlast::{ClientError, OrchestrationContext};

/// Invalid ids.
fn impossible() -> Vec<String> {
    vec![String::new(), "x".repeat(513), "x".repeat(512 * 1_000), "a\0b".into(), "line\nbreak".into()]
}

/// Ids that are reserved for generated children.
const RESERVED: [&str; 3] = ["sub::1", "a::sub::1", "sub::"];

fn refused<T: std::fmt::Debug>(result: Result<T, ClientError>, id: &str) {
    match result {
        Err(error @ ClientError::InvalidInput { .. }) => {
            assert!(error.to_string().len() < 1_000, "the message does not quote the whole id");
            assert!(!error.is_retryable());
        }
        other => panic!("{:.40}: {other:?}", id.escape_debug().to_string()),
    }
}

#[tokio::test]
async fn the_client_rejects_invalid_ids() {
    for kind in ALL {
        let cluster = Cluster::real(kind).await;
        let client = &cluster.client;
        for id in impossible() {
            refused(client.start_orchestration(&id, "Quick", "").await, &id);
            refused(client.start_orchestration_versioned(&id, "Quick", "1.0.0", "").await, &id);
            refused(client.start_orchestration_typed(&id, "Quick", 1).await, &id);
            refused(client.start_orchestration_versioned_typed(&id, "Quick", "1.0.0", 1).await, &id);
            refused(client.start_request("Quick").instance(&id).send().await, &id);
            refused(client.raise_event(&id, "event", "").await, &id);
            refused(client.raise_event_typed(&id, "event", &1).await, &id);
            refused(client.enqueue_event(&id, "queue", "").await, &id);
            refused(client.enqueue_event_typed(&id, "queue", &1).await, &id);
            refused(client.cancel_instance(&id, "").await, &id);
        }
        for id in RESERVED {
            refused(client.start_orchestration(id, "Quick", "").await, id);
            refused(client.start_request("Quick").instance(id).send().await, id);
        }
        assert_eq!(client.list_all_instances().await.unwrap(), [""; 0]);
        cluster.end().await;
    }
}

#[tokio::test]
async fn ids_at_the_limit_and_in_any_script_are_accepted() {
    for kind in ALL {
        let cluster = Cluster::real(kind).await;
        let quick = |ctx: OrchestrationContext, _: String| async move { Ok(ctx.instance_id()) };
        cluster.start(&Node::new(orchestrations().register("Quick", quick), activities())).await;
        for id in [&*"x".repeat(512), "a", "Ünïcode 🦀", "a::b", "'; DROP TABLE instances; --", "%", "sub"]
        {
            assert_eq!(cluster.run(id, "Quick", "").await, id, "{kind:?}");
        }
        cluster.end().await;
    }
}

/// A read with an invalid id finds nothing and returns no error.
#[tokio::test]
async fn reading_an_invalid_id_finds_nothing() {
    for kind in ALL {
        let cluster = Cluster::real(kind).await;
        for id in impossible().iter().map(String::as_str).chain(RESERVED) {
            let status = cluster.client.get_orchestration_status(id).await.unwrap();
            assert_eq!(status, outlast::OrchestrationStatus::NotFound);
            assert_eq!(cluster.client.get_kv_value(id, "key").await.unwrap(), None);
            assert!(cluster.client.list_executions(id).await.unwrap().is_empty());
            assert!(cluster.client.delete_instance(id, true).await.is_err());
        }
        cluster.end().await;
    }
}

/// A child with an invalid id is an error of that call, and the code continues.
#[tokio::test]
async fn a_child_with_an_invalid_id_is_an_error_of_the_call() {
    for kind in ALL {
        let cluster = Cluster::real(kind).await;
        let parent = |ctx: OrchestrationContext, _: String| async move {
            for id in impossible().iter().map(String::as_str).chain(["sub::1", "sub::"]) {
                let error = ctx.schedule_sub_orchestration_with_id("Quick", id, "").await.unwrap_err();
                if error.len() > 1_000 {
                    return Err(format!("a message of {} bytes", error.len()));
                }
                ctx.try_schedule_orchestration("Quick", None, id, "").unwrap_err();
            }
            ctx.schedule_sub_orchestration_with_id("Quick", "x".repeat(512), "").await
        };
        let quick = |_: OrchestrationContext, _: String| async move { Ok("child".to_string()) };
        let all = orchestrations().register("Parent", parent).register("Quick", quick);
        cluster.start(&Node::new(all, activities())).await;
        assert_eq!(cluster.run("parent", "Parent", "").await, "child", "{kind:?}");
        assert_eq!(cluster.client.list_all_instances().await.unwrap().len(), 2);
        cluster.end().await;
    }
}

/// A detached start with a reserved id fails the instance that requested it, with the reason.
#[tokio::test]
async fn a_detached_start_with_a_reserved_id_fails_the_instance() {
    for kind in ALL {
        let cluster = Cluster::real(kind).await;
        let detaches = |ctx: OrchestrationContext, id: String| async move {
            ctx.schedule_orchestration("Quick", id, "");
            Ok(String::new())
        };
        cluster.start(&Node::new(orchestrations().register("Detaches", detaches), activities())).await;
        for (instance, id) in ["a", "b", "c"].into_iter().zip(RESERVED) {
            cluster.begin(instance, "Detaches", id).await;
            let failure = cluster.failure(instance).await;
            assert!(
                failure.contains("reserved sub-orchestration marker") && failure.contains(id),
                "{failure}"
            );
        }
        cluster.begin("d", "Detaches", &"y".repeat(600)).await;
        let failure = cluster.failure("d").await;
        assert!(failure.contains("600 bytes"), "{failure}");
        cluster.end().await;
    }
}

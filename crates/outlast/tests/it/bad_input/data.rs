//! Payloads that do not decode as the type that the code expects.

use crate::support::{ALL, Cluster, Node, activities, orchestrations};
use outlast::{ActivityContext, ClientError, OrchestrationContext};
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Debug, Serialize, Deserialize)]
struct Order {
    total: u64,
}

const BAD: [&str; 5] = ["", "{", "{\"total\":\"much\"}", "[]", "\u{0}"];

/// A typed wait that panics fails the instance, with the reason and the name of the event.
#[tokio::test]
async fn typed_waits_that_panic_fail_the_instance_with_a_reason() {
    for kind in ALL {
        let cluster = Cluster::real(kind).await;
        let waits = |ctx: OrchestrationContext, _: String| async move {
            let wait = ctx.schedule_wait_typed::<Order>("order");
            ctx.set_custom_status("waiting");
            Ok(wait.await.total.to_string())
        };
        let takes = |ctx: OrchestrationContext, _: String| async move {
            Ok(ctx.dequeue_event_typed::<Order>("orders").await.total.to_string())
        };
        let all = orchestrations().register("Waits", waits).register("Takes", takes);
        cluster.start(&Node::new(all, activities())).await;
        for (n, bad) in BAD.into_iter().enumerate() {
            let (waits, takes) = (format!("waits-{n}"), format!("takes-{n}"));
            cluster.begin(&waits, "Waits", "").await;
            cluster.says(&waits, "waiting").await;
            cluster.client.raise_event(&waits, "order", bad).await.unwrap();
            cluster.begin(&takes, "Takes", "").await;
            cluster.client.enqueue_event(&takes, "orders", bad).await.unwrap();
            for (instance, name) in [(waits, "order"), (takes, "orders")] {
                let failure = cluster.failure(&instance).await;
                assert!(failure.contains("panicked") && failure.contains(name), "{kind:?}: {failure}");
            }
        }
        cluster.end().await;
    }
}

/// A `try_` wait returns an error, and the code can wait for the next message.
#[tokio::test]
async fn typed_try_waits_return_errors() {
    for kind in ALL {
        let cluster = Cluster::real(kind).await;
        let takes = |ctx: OrchestrationContext, _: String| async move {
            let mut refused = 0;
            loop {
                match ctx.try_dequeue_event_typed::<Order>("orders").await {
                    Ok(order) => return Ok(format!("{} after {refused} bad ones", order.total)),
                    Err(error) if error.contains("orders") => refused += 1,
                    Err(error) => return Err(error),
                }
            }
        };
        let waits = |ctx: OrchestrationContext, _: String| async move {
            let wait = ctx.try_schedule_wait_typed::<Order>("order");
            ctx.set_custom_status("waiting");
            Ok(wait.await.unwrap_err())
        };
        let all = orchestrations().register("Takes", takes).register("Waits", waits);
        cluster.start(&Node::new(all, activities())).await;
        cluster.begin("takes", "Takes", "").await;
        for bad in BAD {
            cluster.client.enqueue_event("takes", "orders", bad).await.unwrap();
        }
        cluster.client.enqueue_event_typed("takes", "orders", &Order { total: 7 }).await.unwrap();
        assert_eq!(cluster.output("takes").await, "7 after 5 bad ones", "{kind:?}");
        cluster.begin("waits", "Waits", "").await;
        cluster.says("waits", "waiting").await;
        cluster.client.raise_event("waits", "order", "{").await.unwrap();
        assert!(cluster.output("waits").await.contains("order"));
        cluster.end().await;
    }
}

#[tokio::test]
async fn typed_handlers_return_errors_for_undecodable_input() {
    for kind in ALL {
        let cluster = Cluster::real(kind).await;
        let typed = |ctx: OrchestrationContext, order: Order| async move {
            let bad_input = ctx.schedule_activity("Typed", "{").await.unwrap_err();
            let bad_output = ctx.schedule_activity_typed::<Order, Order>("Lies", &order).await.unwrap_err();
            Ok(bad_input.len().min(1) + bad_output.len().min(1))
        };
        let work = activities()
            .register_typed("Typed", |_: ActivityContext, order: Order| async move { Ok(order) })
            .register("Lies", |_: ActivityContext, _: String| async move { Ok("[1".to_string()) });
        let all = orchestrations().register_typed("Typed", typed);
        cluster.start(&Node::new(all, work)).await;
        for (n, bad) in BAD.into_iter().enumerate() {
            cluster.begin(&format!("bad-{n}"), "Typed", bad).await;
            assert!(!cluster.failure(&format!("bad-{n}")).await.is_empty(), "{kind:?}");
        }
        assert_eq!(cluster.run("good", "Typed", "{\"total\":1}").await, "2");
        let decoded = cluster.client.wait_for_orchestration_typed::<Order>("good", Duration::ZERO).await;
        assert!(matches!(decoded, Err(ClientError::InvalidInput { .. })), "{decoded:?}");
        let failed = cluster.client.wait_for_orchestration_typed::<Order>("bad-0", Duration::ZERO).await;
        assert!(matches!(failed, Ok(Err(_))), "{failed:?}");
        cluster.end().await;
    }
}

/// A value that does not encode as JSON.
struct Unwritable;

impl Serialize for Unwritable {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("has no JSON"))
    }
}

#[tokio::test]
async fn unencodable_values_are_invalid_input_at_the_client() {
    let cluster = Cluster::real(crate::support::Kind::Memory).await;
    let client = &cluster.client;
    let results = [
        client.start_orchestration_typed("i", "Quick", Unwritable).await,
        client.try_raise_event_typed("i", "event", &Unwritable).await,
        client.try_enqueue_event_typed("i", "queue", &Unwritable).await,
        client.start_request("Quick").instance("i").input_typed(&Unwritable).send().await.map(|_| ()),
    ];
    for result in results {
        match result {
            Err(ClientError::InvalidInput { message }) => {
                assert!(message.contains("has no JSON"), "{message}")
            }
            other => panic!("{other:?}"),
        }
    }
    cluster.end().await;
}

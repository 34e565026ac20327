//! Data of another shape than the code expects.

use crate::support::{ALL, Node, World, activities, orchestrations};
use outlast::{ActivityContext, ClientError, OrchestrationContext};
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Debug, Serialize, Deserialize)]
struct Order {
    total: u64,
}

const BAD: [&str; 5] = ["", "{", "{\"total\":\"much\"}", "[]", "\u{0}"];

/// Waits that panic fail the instance, with the reason and the name of the event.
#[tokio::test]
async fn typed_waits_that_panic_fail_the_instance_and_say_why() {
    for kind in ALL {
        let world = World::real(kind).await;
        let waits = |ctx: OrchestrationContext, _: String| async move {
            let wait = ctx.schedule_wait_typed::<Order>("order");
            ctx.set_custom_status("waiting");
            Ok(wait.await.total.to_string())
        };
        let takes = |ctx: OrchestrationContext, _: String| async move {
            Ok(ctx.dequeue_event_typed::<Order>("orders").await.total.to_string())
        };
        let all = orchestrations().register("Waits", waits).register("Takes", takes);
        world.start(&Node::new(all, activities())).await;
        for (n, bad) in BAD.into_iter().enumerate() {
            let (waits, takes) = (format!("waits-{n}"), format!("takes-{n}"));
            world.begin(&waits, "Waits", "").await;
            world.says(&waits, "waiting").await;
            world.client.raise_event(&waits, "order", bad).await.unwrap();
            world.begin(&takes, "Takes", "").await;
            world.client.enqueue_event(&takes, "orders", bad).await.unwrap();
            for (instance, name) in [(waits, "order"), (takes, "orders")] {
                let failure = world.failure(&instance).await;
                assert!(failure.contains("panicked") && failure.contains(name), "{kind:?}: {failure}");
            }
        }
        world.end().await;
    }
}

/// Their siblings give errors, and the next message is another chance.
#[tokio::test]
async fn typed_waits_that_try_give_errors() {
    for kind in ALL {
        let world = World::real(kind).await;
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
        world.start(&Node::new(all, activities())).await;
        world.begin("takes", "Takes", "").await;
        for bad in BAD {
            world.client.enqueue_event("takes", "orders", bad).await.unwrap();
        }
        world.client.enqueue_event_typed("takes", "orders", &Order { total: 7 }).await.unwrap();
        assert_eq!(world.output("takes").await, "7 after 5 bad ones", "{kind:?}");
        world.begin("waits", "Waits", "").await;
        world.says("waits", "waiting").await;
        world.client.raise_event("waits", "order", "{").await.unwrap();
        assert!(world.output("waits").await.contains("order"));
        world.end().await;
    }
}

#[tokio::test]
async fn typed_handlers_answer_bad_input_with_errors() {
    for kind in ALL {
        let world = World::real(kind).await;
        let typed = |ctx: OrchestrationContext, order: Order| async move {
            let bad_input = ctx.schedule_activity("Typed", "{").await.unwrap_err();
            let bad_output = ctx.schedule_activity_typed::<Order, Order>("Lies", &order).await.unwrap_err();
            Ok(bad_input.len().min(1) + bad_output.len().min(1))
        };
        let work = activities()
            .register_typed("Typed", |_: ActivityContext, order: Order| async move { Ok(order) })
            .register("Lies", |_: ActivityContext, _: String| async move { Ok("[1".to_string()) });
        let all = orchestrations().register_typed("Typed", typed);
        world.start(&Node::new(all, work)).await;
        for (n, bad) in BAD.into_iter().enumerate() {
            world.begin(&format!("bad-{n}"), "Typed", bad).await;
            assert!(!world.failure(&format!("bad-{n}")).await.is_empty(), "{kind:?}");
        }
        assert_eq!(world.run("good", "Typed", "{\"total\":1}").await, "2");
        let decoded = world.client.wait_for_orchestration_typed::<Order>("good", Duration::ZERO).await;
        assert!(matches!(decoded, Err(ClientError::InvalidInput { .. })), "{decoded:?}");
        let failed = world.client.wait_for_orchestration_typed::<Order>("bad-0", Duration::ZERO).await;
        assert!(matches!(failed, Ok(Err(_))), "{failed:?}");
        world.end().await;
    }
}

/// A value that cannot be written as JSON.
struct Unwritable;

impl Serialize for Unwritable {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("has no JSON"))
    }
}

#[tokio::test]
async fn values_that_cannot_be_written_are_bad_input_at_the_client() {
    let world = World::real(crate::support::Kind::Memory).await;
    let client = &world.client;
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
    world.end().await;
}

//! Two runtimes on one store that know different things.

use crate::support::{ALL, Node, World, activities, orchestrations};
use outlast::{ActivityContext, OrchestrationContext};
use std::time::Duration;

fn specialist(orchestration: &str, activity: &'static str, own: &'static str) -> Node {
    let program = move |ctx: OrchestrationContext, _: String| async move {
        let far = ctx.schedule_activity(activity, "").await?;
        let near = ctx.schedule_activity(own, "").await?;
        Ok(format!("{far} and {near}"))
    };
    Node::new(
        orchestrations().register(orchestration, program),
        activities()
            .register(own, move |_: ActivityContext, _: String| async move { Ok(format!("{own} done")) }),
    )
}

/// Each needs the other: what one cannot run is given back until the other has it.
#[tokio::test]
async fn what_one_node_does_not_know_reaches_the_other() {
    for kind in ALL {
        let world = World::real(kind).await;
        let impatient = |options: &mut outlast::RuntimeOptions| {
            options.unregistered_backoff.base_delay = Duration::from_millis(5);
            options.unregistered_backoff.max_delay = Duration::from_millis(20);
            options.max_attempts = 1_000;
        };
        world.start(&specialist("Left", "right", "left").with(impatient)).await;
        world.start(&specialist("Right", "left", "right").with(impatient)).await;
        for n in 0..5 {
            world.begin(&format!("left-{n}"), "Left", "").await;
            world.begin(&format!("right-{n}"), "Right", "").await;
        }
        for n in 0..5 {
            assert_eq!(world.output(&format!("left-{n}")).await, "right done and left done", "{kind:?}");
            assert_eq!(world.output(&format!("right-{n}")).await, "left done and right done", "{kind:?}");
        }
        world.end().await;
    }
}

/// With default options and many tries: a node that cannot run a message must not take it ten times in a row while
/// another waits for it, or healthy work is poisoned in every rolling update.
#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_run_a_message_lets_the_other_have_it() {
    for kind in ALL {
        let world = World::paused(kind).await;
        world.start(&specialist("Left", "right", "left")).await;
        world.start(&specialist("Right", "left", "right")).await;
        for n in 0..10 {
            world.begin(&format!("left-{n}"), "Left", "").await;
            world.begin(&format!("right-{n}"), "Right", "").await;
        }
        for n in 0..10 {
            assert_eq!(world.output(&format!("left-{n}")).await, "right done and left done", "{kind:?}");
            assert_eq!(world.output(&format!("right-{n}")).await, "left done and right done", "{kind:?}");
        }
        world.end().await;
    }
}

/// Gives up after the third delivery.
fn gives_up(options: &mut outlast::RuntimeOptions) {
    options.unregistered_backoff.base_delay = Duration::from_millis(5);
    options.unregistered_backoff.max_delay = Duration::from_millis(5);
    options.max_attempts = 2;
    options.worker_node_id = Some("n1".to_string());
}

async fn waits(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    Ok(ctx.schedule_wait("go").await)
}

/// A version that is removed while an instance is on it, a version and a name that were never there, a misspelt activity.
#[tokio::test]
async fn work_that_no_node_can_run_fails_with_its_cause() {
    for kind in ALL {
        let world = World::real(kind).await;
        let old = orchestrations().register_versioned("Order", "1.0.0", waits);
        let old = world.start(&Node::new(old, activities())).await;
        world.begin("removed", "Order", "").await;
        while world.store().read("removed").await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        world.stop(old).await;

        let new = orchestrations()
            .register_versioned("Order", "1.1.0", waits)
            .register("Charges", |ctx: OrchestrationContext, _: String| async move {
                ctx.schedule_activity("Chagre", "").await
            })
            .register("Asks", |ctx: OrchestrationContext, _: String| async move {
                ctx.schedule_sub_orchestration("Ordr", "").await
            });
        let charge =
            activities().register("Charge", |_: ActivityContext, _: String| async { Ok(String::new()) });
        world.start(&Node::new(new, charge).with(gives_up)).await;
        world.client.raise_event("removed", "go", "").await.unwrap();
        world.client.start_orchestration_versioned("absent", "Order", "3.0.0", "").await.unwrap();
        world.begin("misspelt", "Charges", "").await;
        world.begin("parent", "Asks", "").await;

        let of_order = "is not registered on node n1, which has version 1.1.0 of it";
        let rows = [
            (
                "removed",
                format!(
                    "poison: orchestration removed exceeded 3 attempts (max 2): orchestration 'Order' version 1.0.0 \
                     {of_order}"
                ),
            ),
            (
                "absent",
                format!(
                    "poison: orchestration absent exceeded 3 attempts (max 2): orchestration 'Order' version 3.0.0 \
                     {of_order}"
                ),
            ),
            (
                "misspelt",
                "poison: activity Chagre#2 exceeded 3 attempts (max 2): activity 'Chagre' is not registered on node n1, \
                 which has no activity of that name, but 'Charge'"
                    .to_string(),
            ),
            (
                "parent",
                "poison: orchestration parent::sub::2 exceeded 3 attempts (max 2): orchestration 'Ordr' is not \
                 registered on node n1, which has no orchestration of that name, but 'Order'"
                    .to_string(),
            ),
        ];
        for (instance, expected) in rows {
            assert_eq!(world.failure(instance).await, expected, "{kind:?}");
        }
        world.end().await;
    }
}

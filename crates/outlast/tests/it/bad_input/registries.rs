//! Two runtimes on one store with different registries.

use crate::support::{ALL, Cluster, Node, activities, orchestrations};
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

/// Each node has handlers that the other lacks: a node gives a turn or activity back until the other fetches it.
#[tokio::test]
async fn a_turn_without_a_handler_on_one_node_runs_on_the_other() {
    for kind in ALL {
        let cluster = Cluster::real(kind).await;
        let impatient = |options: &mut outlast::RuntimeOptions| {
            options.unregistered_backoff.base_delay = Duration::from_millis(5);
            options.unregistered_backoff.max_delay = Duration::from_millis(20);
            options.max_attempts = 1_000;
        };
        cluster.start(&specialist("Left", "right", "left").with(impatient)).await;
        cluster.start(&specialist("Right", "left", "right").with(impatient)).await;
        for n in 0..5 {
            cluster.begin(&format!("left-{n}"), "Left", "").await;
            cluster.begin(&format!("right-{n}"), "Right", "").await;
        }
        for n in 0..5 {
            assert_eq!(cluster.output(&format!("left-{n}")).await, "right done and left done", "{kind:?}");
            assert_eq!(cluster.output(&format!("right-{n}")).await, "left done and right done", "{kind:?}");
        }
        cluster.end().await;
    }
}

/// With default options, repeated many times: a node without the handler must not fetch the same message ten times in a row, or
/// instances would be poisoned in every rolling update.
#[tokio::test(start_paused = true)]
async fn a_node_without_the_handler_leaves_the_message_to_the_other_node() {
    for kind in ALL {
        let cluster = Cluster::paused(kind).await;
        cluster.start(&specialist("Left", "right", "left")).await;
        cluster.start(&specialist("Right", "left", "right")).await;
        for n in 0..10 {
            cluster.begin(&format!("left-{n}"), "Left", "").await;
            cluster.begin(&format!("right-{n}"), "Right", "").await;
        }
        for n in 0..10 {
            assert_eq!(cluster.output(&format!("left-{n}")).await, "right done and left done", "{kind:?}");
            assert_eq!(cluster.output(&format!("right-{n}")).await, "left done and right done", "{kind:?}");
        }
        cluster.end().await;
    }
}

/// Options with three deliveries at most.
fn gives_up(options: &mut outlast::RuntimeOptions) {
    options.unregistered_backoff.base_delay = Duration::from_millis(5);
    options.unregistered_backoff.max_delay = Duration::from_millis(5);
    options.max_attempts = 2;
    options.worker_node_id = Some("n1".to_string());
}

async fn waits(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    Ok(ctx.schedule_wait("go").await)
}

/// A version that is removed while an instance uses it, a version and a name that were never registered, a misspelt activity.
#[tokio::test]
async fn an_instance_that_no_node_can_run_fails_with_its_cause() {
    for kind in ALL {
        let cluster = Cluster::real(kind).await;
        let old = orchestrations().register_versioned("Order", "1.0.0", waits);
        let old = cluster.start(&Node::new(old, activities())).await;
        cluster.begin("removed", "Order", "").await;
        while cluster.store().read("removed").await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        cluster.stop(old).await;

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
        cluster.start(&Node::new(new, charge).with(gives_up)).await;
        cluster.client.raise_event("removed", "go", "").await.unwrap();
        cluster.client.start_orchestration_versioned("absent", "Order", "3.0.0", "").await.unwrap();
        cluster.begin("misspelt", "Charges", "").await;
        cluster.begin("parent", "Asks", "").await;

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
            assert_eq!(cluster.failure(instance).await, expected, "{kind:?}");
        }
        cluster.end().await;
    }
}

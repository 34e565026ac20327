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

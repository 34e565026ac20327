//! Cancellation of every kind.

use crate::support::{Node, World, activities, on_every_store, orchestrations};
use outlast::{
    ActivityContext, AppErrorKind, Either2, ErrorDetails, OrchestrationContext, OrchestrationStatus,
};
use std::sync::Arc;
use std::time::Duration;

on_every_store! {
    an_instance: 60,
    a_parent_takes_its_children_along: 40,
    a_child: 40,
    losers_of_a_select: 40,
    dropped_futures: 40,
    before_the_start_has_run: 40,
    after_the_end: 40,
}

const REASON: &str = "changed my mind";

async fn parked(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.set_custom_status("parked");
    std::future::pending().await
}

async fn hanging(ctx: ActivityContext, _: String) -> Result<String, String> {
    ctx.cancelled().await;
    Ok("nobody reads this".to_string())
}

async fn assert_cancelled(world: &World, instance: &str, expected: &str) {
    match world.ended(instance).await {
        OrchestrationStatus::Failed {
            details: ErrorDetails::Application { kind: AppErrorKind::Cancelled { reason }, .. },
            ..
        } => assert_eq!(reason, expected, "{instance}"),
        other => panic!("{instance}: {other:?}"),
    }
}

async fn an_instance(world: Arc<World>) {
    let waits = |ctx: OrchestrationContext, _: String| async move {
        ctx.set_custom_status("waiting");
        ctx.schedule_wait("never").await;
        Ok(String::new())
    };
    let works = |ctx: OrchestrationContext, _: String| async move {
        ctx.set_custom_status("working");
        ctx.schedule_activity("Hang", "").await
    };
    let all = orchestrations().register("Parked", parked).register("Waits", waits).register("Works", works);
    world.start(&Node::new(all, activities().register("Hang", hanging))).await;
    for (name, status) in [("Parked", "parked"), ("Waits", "waiting"), ("Works", "working")] {
        world.begin(name, name, "").await;
        world.says(name, status).await;
        world.client.cancel_instance(name, REASON).await.unwrap();
        world.client.cancel_instance(name, "the second reason does not count").await.unwrap();
        assert_cancelled(&world, name, REASON).await;
        assert_eq!(world.failure(name).await, format!("canceled: {REASON}"));
    }
}

async fn a_parent_takes_its_children_along(world: Arc<World>) {
    let parent = |ctx: OrchestrationContext, _: String| async move {
        ctx.set_custom_status("has a child");
        ctx.schedule_sub_orchestration("Middle", "").await
    };
    let middle = |ctx: OrchestrationContext, _: String| async move {
        ctx.schedule_sub_orchestration("Parked", "").await
    };
    let all =
        orchestrations().register("Parent", parent).register("Middle", middle).register("Parked", parked);
    world.start(&Node::new(all, activities())).await;
    world.begin("family", "Parent", "").await;
    world.says("family::sub::3::sub::2", "parked").await;
    world.client.cancel_instance("family", REASON).await.unwrap();
    assert_cancelled(&world, "family", REASON).await;
    assert_cancelled(&world, "family::sub::3", "parent canceled").await;
    assert_cancelled(&world, "family::sub::3::sub::2", "parent canceled").await;
}

/// The parent sees an ordinary error and can go on.
async fn a_child(world: Arc<World>) {
    let parent = |ctx: OrchestrationContext, _: String| async move {
        match ctx.schedule_sub_orchestration_with_id("Parked", "the-child", "").await {
            Ok(output) => Err(output),
            Err(error) => Ok(format!("went on after '{error}'")),
        }
    };
    let all = orchestrations().register("Parent", parent).register("Parked", parked);
    world.start(&Node::new(all, activities())).await;
    world.begin("parent-1", "Parent", "").await;
    world.says("the-child", "parked").await;
    world.client.cancel_instance("the-child", REASON).await.unwrap();
    assert_eq!(world.output("parent-1").await, format!("went on after 'canceled: {REASON}'"));
}

/// A timer wins against an activity, a child, an event and a queue: all four are cancelled, and the code goes on.
async fn losers_of_a_select(world: Arc<World>) {
    let races = |ctx: OrchestrationContext, _: String| async move {
        let mut lost = Vec::new();
        for loser in ["activity", "child", "event", "queue"] {
            let race = async {
                match loser {
                    "activity" => ctx.schedule_activity("Hang", "").await.unwrap_or_else(|error| error),
                    "child" => ctx
                        .schedule_sub_orchestration_with_id("Parked", "loser", "")
                        .await
                        .unwrap_or_else(|error| error),
                    "event" => ctx.schedule_wait("never").await,
                    _ => ctx.dequeue_event("never").await,
                }
            };
            match ctx.select2(race, ctx.schedule_timer(Duration::from_millis(30))).await {
                Either2::First(output) => return Err(format!("{loser}: {output}")),
                Either2::Second(()) => lost.push(loser),
            }
        }
        Ok(lost.join("+"))
    };
    let all = orchestrations().register("Races", races).register("Parked", parked);
    world.start(&Node::new(all, activities().register("Hang", hanging))).await;
    assert_eq!(world.run("races-1", "Races", "").await, "activity+child+event+queue");
    assert_cancelled(&world, "loser", "parent dropped sub-orchestration future").await;
    let history = world.history("races-1").await.join("\n");
    for breadcrumb in [
        "ActivityCancelRequested { reason: \"dropped_future\"",
        "SubOrchestrationCancelRequested { reason: \"dropped_future\"",
        "ExternalSubscribedCancelled { reason: \"dropped_future\"",
        "QueueSubscriptionCancelled { reason: \"dropped_future\"",
    ] {
        assert!(history.contains(breadcrumb), "{breadcrumb} is not in\n{history}");
    }
}

/// Scheduled and let go in the same turn: both are written down, nothing runs, and the instance goes on.
async fn dropped_futures(world: Arc<World>) {
    let careless = |ctx: OrchestrationContext, _: String| async move {
        drop(ctx.schedule_activity("Explode", ""));
        drop(ctx.schedule_sub_orchestration_with_id("Parked", "never-born", ""));
        let kept = ctx.schedule_activity("Work", "");
        ctx.schedule_timer(Duration::from_millis(10)).await;
        kept.await
    };
    let work = activities()
        .register("Explode", |_: ActivityContext, _: String| async move { panic!("a dropped activity ran") })
        .register("Work", |_: ActivityContext, _: String| async move { Ok("worked".to_string()) });
    let all = orchestrations().register("Careless", careless).register("Parked", parked);
    world.start(&Node::new(all, work)).await;
    assert_eq!(world.run("careless-1", "Careless", "").await, "worked");
    let depths = world.client.get_queue_depths().await.unwrap();
    assert_eq!(depths.worker_queue, 0, "{depths:?}");
}

async fn before_the_start_has_run(world: Arc<World>) {
    world.begin("early-1", "Parked", "").await;
    world.client.cancel_instance("early-1", REASON).await.unwrap();
    world.start(&Node::new(orchestrations().register("Parked", parked), activities())).await;
    assert_cancelled(&world, "early-1", REASON).await;
}

async fn after_the_end(world: Arc<World>) {
    let quick = |_: OrchestrationContext, _: String| async move { Ok("finished".to_string()) };
    let all = orchestrations().register("Quick", quick);
    world.start(&Node::new(all, activities())).await;
    assert_eq!(world.run("late-1", "Quick", "").await, "finished");
    world.client.cancel_instance("late-1", REASON).await.unwrap();
    world.client.cancel_instance("nobody", REASON).await.unwrap();
    // A second instance behind it: the cancel has been looked at by then.
    assert_eq!(world.run("late-2", "Quick", "").await, "finished");
    assert_eq!(world.output("late-1").await, "finished");
}

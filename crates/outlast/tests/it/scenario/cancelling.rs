//! Cancellation of instances, children, activities, timers and waits.

use crate::support::{Cluster, Node, activities, on_every_store, orchestrations};
use outlast::{
    ActivityContext, AppErrorKind, Either2, ErrorDetails, OrchestrationContext, OrchestrationStatus,
};
use std::sync::Arc;
use std::time::Duration;

on_every_store! {
    a_cancelled_instance_fails: 60,
    cancelling_a_parent_cancels_its_children: 40,
    cancelling_a_child_is_an_error_in_its_parent: 40,
    losers_of_a_select: 40,
    dropped_futures: 40,
    cancelling_before_the_first_turn: 40,
    cancelling_after_the_end_has_no_effect: 40,
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

async fn assert_cancelled(cluster: &Cluster, instance: &str, expected: &str) {
    match cluster.ended(instance).await {
        OrchestrationStatus::Failed {
            details: ErrorDetails::Application { kind: AppErrorKind::Cancelled { reason }, .. },
            ..
        } => assert_eq!(reason, expected, "{instance}"),
        other => panic!("{instance}: {other:?}"),
    }
}

async fn a_cancelled_instance_fails(cluster: Arc<Cluster>) {
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
    cluster.start(&Node::new(all, activities().register("Hang", hanging))).await;
    for (name, status) in [("Parked", "parked"), ("Waits", "waiting"), ("Works", "working")] {
        cluster.begin(name, name, "").await;
        cluster.says(name, status).await;
        cluster.client.cancel_instance(name, REASON).await.unwrap();
        cluster.client.cancel_instance(name, "the second reason does not count").await.unwrap();
        assert_cancelled(&cluster, name, REASON).await;
        assert_eq!(cluster.failure(name).await, format!("canceled: {REASON}"));
    }
}

async fn cancelling_a_parent_cancels_its_children(cluster: Arc<Cluster>) {
    let parent = |ctx: OrchestrationContext, _: String| async move {
        ctx.set_custom_status("has a child");
        ctx.schedule_sub_orchestration("Middle", "").await
    };
    let middle = |ctx: OrchestrationContext, _: String| async move {
        ctx.schedule_sub_orchestration("Parked", "").await
    };
    let all =
        orchestrations().register("Parent", parent).register("Middle", middle).register("Parked", parked);
    cluster.start(&Node::new(all, activities())).await;
    cluster.begin("family", "Parent", "").await;
    cluster.says("family::sub::3::sub::2", "parked").await;
    cluster.client.cancel_instance("family", REASON).await.unwrap();
    assert_cancelled(&cluster, "family", REASON).await;
    assert_cancelled(&cluster, "family::sub::3", "parent canceled").await;
    assert_cancelled(&cluster, "family::sub::3::sub::2", "parent canceled").await;
}

/// The parent gets an error from the cancelled child and continues.
async fn cancelling_a_child_is_an_error_in_its_parent(cluster: Arc<Cluster>) {
    let parent = |ctx: OrchestrationContext, _: String| async move {
        match ctx.schedule_sub_orchestration_with_id("Parked", "the-child", "").await {
            Ok(output) => Err(output),
            Err(error) => Ok(format!("went on after '{error}'")),
        }
    };
    let all = orchestrations().register("Parent", parent).register("Parked", parked);
    cluster.start(&Node::new(all, activities())).await;
    cluster.begin("parent-1", "Parent", "").await;
    cluster.says("the-child", "parked").await;
    cluster.client.cancel_instance("the-child", REASON).await.unwrap();
    assert_eq!(cluster.output("parent-1").await, format!("went on after 'canceled: {REASON}'"));
}

/// A timer wins a race against an activity, a child, an event and a queue: the four losers are cancelled, and the code continues.
async fn losers_of_a_select(cluster: Arc<Cluster>) {
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
    cluster.start(&Node::new(all, activities().register("Hang", hanging))).await;
    assert_eq!(cluster.run("races-1", "Races", "").await, "activity+child+event+queue");
    assert_cancelled(&cluster, "loser", "parent dropped sub-orchestration future").await;
    let history = cluster.history("races-1").await.join("\n");
    for breadcrumb in [
        "ActivityCancelRequested { reason: \"dropped_future\"",
        "SubOrchestrationCancelRequested { reason: \"dropped_future\"",
        "ExternalSubscribedCancelled { reason: \"dropped_future\"",
        "QueueSubscriptionCancelled { reason: \"dropped_future\"",
    ] {
        assert!(history.contains(breadcrumb), "{breadcrumb} is not in\n{history}");
    }
}

/// Futures that are scheduled and dropped in the same turn: history records both, no activity runs, and the instance continues.
async fn dropped_futures(cluster: Arc<Cluster>) {
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
    cluster.start(&Node::new(all, work)).await;
    assert_eq!(cluster.run("careless-1", "Careless", "").await, "worked");
    let depths = cluster.client.get_queue_depths().await.unwrap();
    assert_eq!(depths.worker_queue, 0, "{depths:?}");
}

async fn cancelling_before_the_first_turn(cluster: Arc<Cluster>) {
    cluster.begin("early-1", "Parked", "").await;
    cluster.client.cancel_instance("early-1", REASON).await.unwrap();
    cluster.start(&Node::new(orchestrations().register("Parked", parked), activities())).await;
    assert_cancelled(&cluster, "early-1", REASON).await;
}

async fn cancelling_after_the_end_has_no_effect(cluster: Arc<Cluster>) {
    let quick = |_: OrchestrationContext, _: String| async move { Ok("finished".to_string()) };
    let all = orchestrations().register("Quick", quick);
    cluster.start(&Node::new(all, activities())).await;
    assert_eq!(cluster.run("late-1", "Quick", "").await, "finished");
    cluster.client.cancel_instance("late-1", REASON).await.unwrap();
    cluster.client.cancel_instance("nobody", REASON).await.unwrap();
    // Another instance runs after it: the cancellation has been processed by then.
    assert_eq!(cluster.run("late-2", "Quick", "").await, "finished");
    assert_eq!(cluster.output("late-1").await, "finished");
}

//! Cancellation that orchestrations answer.

use crate::support::{ALL, Cluster, Crash, Kind, Node};
use outlast::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The effects, each once per idempotency key.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<(Vec<String>, BTreeSet<String>)>>);

impl Log {
    fn note(&self, ctx: &ActivityContext, text: &str) {
        let mut log = self.0.lock().unwrap();
        if log.1.insert(ctx.idempotency_key().to_string()) {
            log.0.push(text.to_string());
        }
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().0.clone()
    }
}

#[derive(Serialize, Deserialize, outlast::Message)]
struct Go;

#[outlast::activity]
async fn act(ctx: ActivityContext, State(log): State<Log>, text: String) -> Result<(), String> {
    log.note(&ctx, &text);
    Ok(())
}

#[outlast::activity]
async fn fails(ctx: ActivityContext, State(log): State<Log>, text: String) -> Result<(), String> {
    log.note(&ctx, &text);
    Err("stuck".to_string())
}

#[outlast::activity]
async fn waits(ctx: ActivityContext, State(log): State<Log>, text: String) -> Result<(), String> {
    ctx.cancelled().await;
    log.note(&ctx, &format!("{text} told"));
    Ok(())
}

#[outlast::orchestration(accepts(Go), on_cancel = undo)]
async fn saga(ctx: OrchestrationContext) -> Result<String, String> {
    let mut outer = Undo::new(&ctx);
    act::call(&ctx, "one".into()).await?;
    outer.push::<act>("undo one".into());
    let mut inner = Undo::new(&ctx);
    act::call(&ctx, "two".into()).await?;
    inner.push::<act>("undo two".into());
    let mut kept = Undo::new(&ctx);
    kept.push::<act>("never".into());
    kept.forget();
    ctx.set_custom_status("waits");
    let _: Go = ctx.next().await?;
    outer.forget();
    inner.forget();
    Ok("done".to_string())
}

fn node(log: &Log) -> Node {
    let module = outlast::module![
        act,
        fails,
        waits,
        saga,
        not_undone,
        observer,
        parent,
        child,
        endless,
        parent_of_endless,
        shielded
    ];
    Node::of(module.state(log.clone()))
}

#[tokio::test(start_paused = true)]
async fn a_request_to_cancel_runs_the_steps_of_undo_newest_first() {
    for kind in ALL {
        let (cluster, log) = (Cluster::paused(kind).await, Log::default());
        cluster.start(&node(&log)).await;
        let one = saga::start(&cluster.client).id("s").await.unwrap();
        cluster.says("s", "waits").await;
        one.cancel("too late").await.unwrap();
        assert_eq!(one.result().await, Err(CallError::Cancelled("too late".into())), "{kind:?}");
        assert_eq!(log.all(), ["one", "two", "undo two", "undo one"], "{kind:?}");
        // Without a request, the steps do not run.
        let other = saga::start(&cluster.client).id("t").await.unwrap();
        other.send(Go).await.unwrap();
        assert_eq!(other.result().await, Ok("done".into()), "{kind:?}");
        assert_eq!(log.all().len(), 6, "{kind:?}");
        cluster.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_anywhere_in_the_answer_changes_nothing() {
    for crash in Crash::points(12, 12) {
        let (cluster, log) = (Cluster::crashing(Kind::SqliteFile, crash).await, Log::default());
        cluster.start(&node(&log)).await;
        let one = saga::start(&cluster.client).id("s").await.unwrap();
        cluster.says("s", "waits").await;
        one.cancel("too late").await.unwrap();
        assert_eq!(one.result().await, Err(CallError::Cancelled("too late".into())), "{crash:?}");
        assert_eq!(log.all(), ["one", "two", "undo two", "undo one"], "{crash:?}");
        cluster.end().await;
    }
}

#[outlast::orchestration(on_cancel = undo)]
async fn not_undone(ctx: OrchestrationContext) -> Result<(), String> {
    let mut undo = Undo::new(&ctx);
    undo.push::<act>("first".into());
    undo.push::<fails>("second".into());
    ctx.set_custom_status("waits");
    ctx.schedule_timer(Duration::from_secs(1_000_000)).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_cannot_be_undone_fails_and_says_which_step() {
    let (cluster, log) = (Cluster::paused(Kind::SqliteMemory).await, Log::default());
    cluster.start(&node(&log)).await;
    let one = not_undone::start(&cluster.client).id("n").await.unwrap();
    cluster.says("n", "waits").await;
    one.cancel("enough").await.unwrap();
    let ended = one.result().await;
    let text = "cancelled (enough), and not undone; fails: stuck";
    assert_eq!(ended, Err(CallError::Other(text.into())));
    assert_eq!(log.all(), ["second", "first"]);
    cluster.end().await;
}

#[outlast::orchestration(accepts(Go), on_cancel = observe)]
async fn observer(ctx: OrchestrationContext, ends: String) -> Result<String, String> {
    ctx.set_custom_status("waits");
    let reason = ctx.cancelled().await;
    act::call(&ctx, reason.clone()).await?;
    match ends.as_str() {
        "finishes" => Ok(format!("finished although {reason}")),
        "fails" => Err("no".to_string()),
        "goes on" => observer::continue_as_new(&ctx, "again".into()).await,
        _ => ctx.end_cancelled().await,
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_observes_the_request_decides_how_it_ends() {
    let (cluster, log) = (Cluster::paused(Kind::SqliteMemory).await, Log::default());
    cluster.start(&node(&log)).await;
    let cases: [(&str, Result<String, CallError<String>>); 4] = [
        ("finishes", Ok("finished although asked".into())),
        ("fails", Err(CallError::Failed("no".into()))),
        ("ends", Err(CallError::Cancelled("asked".into()))),
        ("goes on", Err(CallError::Cancelled("asked".into()))),
    ];
    for (ends, expected) in cases {
        let one = observer::start(&cluster.client, ends.into()).id(ends).await.unwrap();
        cluster.says(ends, "waits").await;
        one.cancel("asked").await.unwrap();
        one.cancel("asked again").await.unwrap_or(());
        assert_eq!(one.result().await, expected, "{ends}");
    }
    assert_eq!(log.all(), ["asked"; 4]);
    cluster.end().await;
}

#[outlast::orchestration(on_cancel = undo)]
async fn child(ctx: OrchestrationContext) -> Result<(), String> {
    let mut undo = Undo::new(&ctx);
    undo.push::<act>("child undone".into());
    ctx.set_custom_status("waits");
    ctx.schedule_timer(Duration::from_secs(1_000_000)).await;
    Ok(())
}

#[outlast::orchestration(on_cancel = undo)]
async fn parent(ctx: OrchestrationContext) -> Result<(), String> {
    let mut undo = Undo::new(&ctx);
    undo.push::<act>("parent undone".into());
    let (activity, child) = (waits::call(&ctx, "activity".into()), child::child(&ctx).id("c"));
    ctx.set_custom_status("waits");
    let (_, ended) = ctx.join2(activity, child).await;
    Ok(ended?)
}

#[tokio::test(start_paused = true)]
async fn activities_and_children_are_told_before_a_step_has_run() {
    let (cluster, log) = (Cluster::paused(Kind::SqliteMemory).await, Log::default());
    cluster.start(&node(&log)).await;
    let one = parent::start(&cluster.client).id("p").await.unwrap();
    cluster.says("p", "waits").await;
    one.cancel("stop").await.unwrap();
    assert_eq!(one.result().await, Err(CallError::Cancelled("stop".into())));
    assert!(matches!(child::handle(&cluster.client, "c").result().await, Err(CallError::Cancelled(_))));
    let history = cluster.history("p").await;
    let place = |text: &str| {
        history
            .iter()
            .position(|event| event.contains(text))
            .unwrap_or_else(|| panic!("{text}: {history:#?}"))
    };
    let requested = place(" OrchestrationCancelRequested");
    for told in [" ActivityCancelRequested", " SubOrchestrationCancelRequested"] {
        assert!(requested < place(told) && place(told) < place(" ActivityCompleted"), "{told}: {history:#?}");
    }
    cluster.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_child_is_undone_before_its_parent_at_every_crash() {
    let crashes = Crash::points(10, 10).map(Some);
    for crash in std::iter::once(None).chain(crashes) {
        let cluster = match crash {
            None => Cluster::paused(Kind::SqliteMemory).await,
            Some(crash) => Cluster::crashing(Kind::SqliteFile, crash).await,
        };
        let log = Log::default();
        cluster.start(&node(&log)).await;
        let one = parent::start(&cluster.client).id("p").await.unwrap();
        cluster.says("p", "waits").await;
        // A child that is cancelled before its first turn runs no code, and has nothing to undo.
        cluster.says("c", "waits").await;
        let began = tokio::time::Instant::now();
        one.cancel("stop").await.unwrap();
        assert_eq!(one.result().await, Err(CallError::Cancelled("stop".into())), "{crash:?}");
        let undone: Vec<String> = log.all().into_iter().filter(|text| text.ends_with("undone")).collect();
        assert_eq!(undone, ["child undone", "parent undone"], "{crash:?}");
        assert!(crash.is_some() || began.elapsed() < Duration::from_secs(150), "{:?}", began.elapsed());
        cluster.end().await;
    }
}

#[outlast::orchestration(on_cancel = undo, grace = "10m")]
async fn parent_of_endless(ctx: OrchestrationContext) -> Result<(), String> {
    let mut undo = Undo::new(&ctx);
    undo.push::<act>("parent undone".into());
    let child = endless::child(&ctx).id("slow");
    ctx.set_custom_status("waits");
    Ok(child.await?)
}

#[tokio::test(start_paused = true)]
async fn a_child_that_does_not_answer_delays_its_parent_by_half_of_the_grace_period() {
    let (cluster, log) = (Cluster::paused(Kind::SqliteMemory).await, Log::default());
    cluster.start(&node(&log)).await;
    let one = parent_of_endless::start(&cluster.client).id("p").await.unwrap();
    cluster.says("slow", "waits").await;
    let began = tokio::time::Instant::now();
    one.cancel("stop").await.unwrap();
    assert_eq!(one.result().await, Err(CallError::Cancelled("stop".into())));
    let minutes = began.elapsed().as_secs() / 60;
    assert!((5..10).contains(&minutes), "{minutes} minutes");
    assert_eq!(log.all(), ["parent undone"]);
    endless::handle(&cluster.client, "slow").terminate("enough").await.unwrap();
    cluster.end().await;
}

#[outlast::orchestration(accepts(Go), on_cancel = observe, grace = "1h")]
async fn endless(ctx: OrchestrationContext) -> Result<(), String> {
    ctx.set_custom_status("waits");
    loop {
        let _: Go = ctx.next().await?;
    }
}

#[tokio::test(start_paused = true)]
async fn the_grace_period_ends_and_terminate_ends_at_once() {
    let (cluster, log) = (Cluster::paused(Kind::SqliteMemory).await, Log::default());
    cluster.start(&node(&log)).await;
    let one = endless::start(&cluster.client).id("e").await.unwrap();
    cluster.says("e", "waits").await;
    one.cancel("stop").await.unwrap();
    let ended = one.result().await;
    let text = "stop (not answered within the grace period of 3600s)";
    assert_eq!(ended, Err(CallError::Cancelled(text.into())));
    for (id, asked) in [("t1", false), ("t2", true)] {
        let two = endless::start(&cluster.client).id(id).await.unwrap();
        cluster.says(id, "waits").await;
        let before = tokio::time::Instant::now();
        if asked {
            two.cancel("please").await.unwrap();
        }
        two.terminate("now").await.unwrap();
        assert_eq!(two.result().await, Err(CallError::Cancelled("now".into())), "{id}");
        assert!(before.elapsed() < Duration::from_secs(3_600), "{id}");
    }
    cluster.end().await;
}

#[outlast::orchestration(accepts(Go), on_cancel = undo)]
async fn shielded(ctx: OrchestrationContext) -> Result<(), String> {
    let mut undo = Undo::new(&ctx);
    ctx.set_custom_status("waits");
    let part = async {
        let _: Go = ctx.next().await?;
        act::call(&ctx, "inside".into()).await?;
        Ok::<(), String>(())
    };
    ctx.shielded(part).await?;
    undo.push::<act>("undone".into());
    act::call(&ctx, "outside".into()).await?;
    undo.forget();
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_shielded_part_ends_before_the_body_is_interrupted() {
    let (cluster, log) = (Cluster::paused(Kind::SqliteMemory).await, Log::default());
    cluster.start(&node(&log)).await;
    let one = shielded::start(&cluster.client).id("h").await.unwrap();
    cluster.says("h", "waits").await;
    one.cancel("stop").await.unwrap();
    one.send(Go).await.unwrap();
    assert_eq!(one.result().await, Err(CallError::Cancelled("stop".into())));
    let all = log.all();
    assert_eq!(
        (all.first().unwrap().as_str(), all.last().unwrap().as_str()),
        ("inside", "undone"),
        "{all:?}"
    );
    cluster.end().await;
}

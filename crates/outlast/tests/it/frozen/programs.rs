//! The orchestrations of the frozen stores. Never change one: later versions replay what these have written.

use crate::support::{LONGEST_WAIT, orchestrations};
use outlast::prelude::*;
use outlast::providers::Provider;
use outlast::runtime::registry::ActivityRegistry;
use outlast::runtime::{OnMisfit, Runtime};
use outlast::{Client, Either2, OrchestrationRegistry, OrchestrationStatus, RuntimeOptions};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Answer = Result<String, String>;

/// The runs of activities by idempotency key: the input, and the number of runs.
#[derive(Clone, Default)]
pub(crate) struct Runs(Arc<Mutex<BTreeMap<String, (String, u32)>>>);

impl Runs {
    fn count(&self, ctx: &ActivityContext, input: &str) {
        let mut runs = self.0.lock().unwrap();
        runs.entry(ctx.idempotency_key().to_string()).or_insert_with(|| (input.to_string(), 0)).1 += 1;
    }

    /// The inputs in order, with the number of runs.
    pub(crate) fn all(&self) -> Vec<(String, u32)> {
        let mut all: Vec<_> = self.0.lock().unwrap().values().cloned().collect();
        all.sort();
        all
    }
}

#[outlast::activity(name = "Work")]
async fn work(ctx: ActivityContext, State(runs): State<Runs>, input: String) -> Result<String, String> {
    runs.count(&ctx, &input);
    Ok(format!("did {input}"))
}

#[outlast::activity(name = "Undo", tag = "later")]
async fn undo_work(ctx: ActivityContext, State(runs): State<Runs>, input: String) -> Result<(), String> {
    runs.count(&ctx, &input);
    Ok(())
}

/// Its input is the place of the activity: a tag, a session, or nothing.
async fn works(ctx: OrchestrationContext, place: String) -> Answer {
    match place.split_once(' ') {
        Some(("session", name)) => ctx.schedule_activity_on_session("Work", place.clone(), name).await,
        Some(("tag", name)) => ctx.schedule_activity("Work", place.clone()).with_tag(name).await,
        _ => ctx.schedule_activity("Work", place).await,
    }
}

async fn fails(_: OrchestrationContext, input: String) -> Answer {
    Err(format!("broken {input}"))
}

async fn waits(ctx: OrchestrationContext, input: String) -> Answer {
    ctx.set_custom_status("waits");
    Ok(format!("{input} {}", ctx.schedule_wait("go").await))
}

/// Works twice, then waits, so that a reset or a fork begins in the middle.
async fn steps(ctx: OrchestrationContext, input: String) -> Answer {
    let first = ctx.schedule_activity("Work", format!("{input} 1")).await?;
    let second = ctx.schedule_activity("Work", format!("{input} 2")).await?;
    ctx.set_custom_status("waits");
    Ok(format!("{first}, {second}, {}", ctx.schedule_wait("go").await))
}

async fn sleeps(ctx: OrchestrationContext, seconds: String) -> Answer {
    ctx.schedule_timer(Duration::from_secs(seconds.parse().map_err(|_| "no number")?)).await;
    Ok("slept".to_string())
}

async fn reads(ctx: OrchestrationContext, count: String) -> Answer {
    let mut read = Vec::new();
    while read.len().to_string() != count {
        ctx.set_custom_status(format!("read {}", read.len()));
        read.push(ctx.dequeue_event("q").await);
    }
    Ok(read.join(","))
}

async fn parent(ctx: OrchestrationContext, input: String) -> Answer {
    let child = ctx.schedule_sub_orchestration_with_id("Waits", "the-child", input).await?;
    Ok(format!("child: {child}"))
}

async fn detaches(ctx: OrchestrationContext, input: String) -> Answer {
    ctx.schedule_orchestration("Waits", "detached", input.clone());
    ctx.schedule_orchestration("Works", "detached-works", format!("tag later {input}"));
    waits(ctx, input).await
}

async fn continues(ctx: OrchestrationContext, round: String) -> Answer {
    let round: u64 = round.parse().map_err(|_| "no number")?;
    ctx.set_kv_value(format!("round-{round}"), round.to_string());
    if round < 3 {
        return ctx.continue_as_new((round + 1).to_string()).await;
    }
    ctx.clear_kv_value("round-1");
    ctx.set_custom_status("round 3");
    let event = ctx.dequeue_event("carried").await;
    Ok(format!("round {round}, {event}, {}", ctx.schedule_wait("go").await))
}

async fn keeps(ctx: OrchestrationContext, value: String) -> Answer {
    ctx.set_kv_value("kept", &value);
    ctx.set_kv_value("gone", "x");
    ctx.clear_kv_value("gone");
    ctx.set_custom_status("keeps");
    ctx.schedule_wait("go").await;
    Ok(format!("{:?} {:?}", ctx.get_kv_value("kept"), ctx.get_kv_value("gone")))
}

/// One race is decided, the other is open.
async fn races(ctx: OrchestrationContext, input: String) -> Answer {
    let years = || ctx.schedule_timer(Duration::from_secs(50 * 365 * 86_400));
    let first = match ctx.select2(ctx.schedule_activity("Work", input), years()).await {
        Either2::First(done) => done?,
        Either2::Second(()) => "late".to_string(),
    };
    ctx.set_custom_status("races");
    match ctx.select2(ctx.schedule_wait("go"), years()).await {
        Either2::First(event) => Ok(format!("{first}, {event}")),
        Either2::Second(()) => Ok("late".to_string()),
    }
}

/// Waits for an event of a kind that the version that wrote the stores does not have.
async fn topics(ctx: OrchestrationContext, topic: String) -> Answer {
    ctx.set_custom_status("waits");
    Ok(format!("{topic}: {}", ctx.schedule_wait2("news", topic.clone()).await))
}

async fn panics(ctx: OrchestrationContext, input: String) -> Answer {
    let answer = waits(ctx, input).await;
    panic!("a broken build: {answer:?}")
}

#[outlast::orchestration(name = "Undoes", on_cancel = undo, grace = "36500d")]
async fn undoes(ctx: OrchestrationContext) -> Result<String, String> {
    let mut undo = Undo::new(&ctx);
    undo.push::<undo_work>("undone".into());
    ctx.set_custom_status("waits");
    let event = ctx.schedule_wait("go").await;
    undo.forget();
    Ok(event)
}

/// A build of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    /// The build that wrote the stores.
    First,
    /// The orchestration `Parks` panics.
    Broken,
    /// The build of a later version.
    Next,
}

type Registries = (ActivityRegistry, OrchestrationRegistry);

pub(crate) fn program(build: Build, runs: &Runs) -> Registries {
    let module = outlast::module![work, undo_work, undoes].state(runs.clone());
    let (activities, typed) = module.build().unwrap();
    let handlers = orchestrations()
        .register("Works", works)
        .register("Fails", fails)
        .register("Waits", waits)
        .register("Pauses", waits)
        .register("Steps", steps)
        .register("Sleeps", sleeps)
        .register("Reads", reads)
        .register("Parent", parent)
        .register("Detaches", detaches)
        .register("Continues", continues)
        .register("Keeps", keeps)
        .register("Races", races)
        .merge(typed);
    let handlers = match build {
        Build::First => handlers.register("Parks", waits),
        Build::Broken => handlers.register("Parks", panics),
        Build::Next => handlers.register("Parks", waits).register("Topics", topics),
    };
    (activities, handlers.build_result().unwrap())
}

/// Starts a node of this build, which parks what does not fit.
pub(crate) async fn start(
    store: &Arc<dyn Provider>,
    build: Build,
    runs: &Runs,
    tune: impl FnOnce(&mut RuntimeOptions),
) -> Arc<Runtime> {
    let (activities, orchestrations) = program(build, runs);
    let mut options = RuntimeOptions {
        on_misfit: OnMisfit::Park,
        build_id: format!("{build:?}"),
        node_heartbeat: None,
        ..RuntimeOptions::default()
    };
    tune(&mut options);
    Runtime::start_with_options(Arc::clone(store), activities, orchestrations, options).await
}

/// Starts an instance.
pub(crate) async fn begin(client: &Client, instance: &str, orchestration: &str, input: &str) {
    client.start_orchestration(instance, orchestration, input).await.unwrap();
}

/// Waits until an instance has this custom status.
pub(crate) async fn says(client: &Client, instance: &str, text: &str) {
    let has_said = async {
        let mut seen = 0;
        loop {
            let status =
                client.wait_for_status_change(instance, seen, Duration::from_millis(20), LONGEST_WAIT).await;
            match status.unwrap() {
                OrchestrationStatus::Running { custom_status, custom_status_version } => {
                    if custom_status.as_deref() == Some(text) {
                        return;
                    }
                    seen = custom_status_version;
                }
                other => panic!("{instance} never said '{text}': {other:?}"),
            }
        }
    };
    let said = tokio::time::timeout(LONGEST_WAIT, has_said).await;
    said.unwrap_or_else(|_| panic!("{instance} never said '{text}'"));
}

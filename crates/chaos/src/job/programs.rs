//! The orchestrations. Nothing in them knows about crashes.

use super::{Deed, EFFECT, FAMILY, Kind, PATIENT};
use outlast::runtime::OrchestrationRegistryBuilder;
use outlast::{BackoffStrategy, Either2, OrchestrationContext, OrchestrationRegistry, RetryPolicy};
use std::time::Duration;

/// What an instance says when it waits for its client.
const READY: &str = "ready";
/// The event that it waits for.
pub(crate) const GO: &str = "go";
/// The queue of [`Kind::Queue`], and how many messages it takes from it.
pub(crate) const MAIL: &str = "mail";
pub(crate) const LETTERS: u64 = 3;
/// Deeds of [`Kind::FanOut`], executions of [`Kind::Generations`], refusals of [`Kind::Retry`].
pub(super) const WIDTH: usize = 5;
pub(super) const GENERATIONS: u64 = 3;
pub(super) const REFUSALS: u64 = 2;

const LEAF: &str = "leaf";
const TRAIL: &str = "trail";

/// A failure of a program is a failure of its instance, which nobody expects.
type Done = Result<String, String>;

pub(crate) fn orchestrations() -> OrchestrationRegistryBuilder {
    OrchestrationRegistry::builder()
        .register(Kind::Chain.name(), chain)
        .register(Kind::FanOut.name(), fan_out)
        .register(Kind::Timer.name(), timer)
        .register(Kind::Signal.name(), signal)
        .register(Kind::Queue.name(), queue)
        .register(Kind::Children.name(), children)
        .register(Kind::Detached.name(), detached)
        .register(Kind::Generations.name(), generations)
        .register(Kind::Retry.name(), retry)
        .register(Kind::Session.name(), session)
        .register(Kind::Cut.name(), cut)
        .register(Kind::Cancelled.name(), cancelled)
        .register(LEAF, leaf)
}

fn input(deed: &Deed) -> Result<String, String> {
    serde_json::to_string(deed).map_err(|error| error.to_string())
}

/// One deed of the job that this instance is.
async fn effect(ctx: &OrchestrationContext, label: &str) -> Done {
    ctx.schedule_activity(EFFECT, input(&Deed::new(&ctx.instance_id(), label))?).await
}

async fn chain(ctx: OrchestrationContext, _: String) -> Done {
    let mut done = Vec::new();
    for label in ["a", "b", "c"] {
        done.push(effect(&ctx, label).await?);
    }
    Ok(done.join(","))
}

async fn fan_out(ctx: OrchestrationContext, _: String) -> Done {
    let mut deeds = Vec::new();
    for n in 0..WIDTH {
        deeds.push(ctx.schedule_activity(EFFECT, input(&Deed::new(&ctx.instance_id(), &format!("f{n}")))?));
    }
    let done = ctx.join_all(deeds).await;
    Ok(done.into_iter().collect::<Result<Vec<_>, _>>()?.join(","))
}

async fn timer(ctx: OrchestrationContext, _: String) -> Done {
    let before = effect(&ctx, "before").await?;
    ctx.schedule_timer(Duration::from_millis(80)).await;
    let after = effect(&ctx, "after").await?;
    Ok(format!("{before},{after}"))
}

async fn signal(ctx: OrchestrationContext, _: String) -> Done {
    ctx.set_custom_status(READY);
    let said = ctx.schedule_wait(GO).await;
    let done = effect(&ctx, "told").await?;
    Ok(format!("{said},{done}"))
}

/// Takes letters until it has each once: a client that does not know whether one arrived sends it again.
async fn queue(ctx: OrchestrationContext, _: String) -> Done {
    let mut letters: Vec<String> = Vec::new();
    while (letters.len() as u64) < LETTERS {
        let letter = ctx.dequeue_event(MAIL).await;
        if !letters.contains(&letter) {
            letters.push(letter);
        }
    }
    effect(&ctx, "read").await?;
    Ok(letters.join(","))
}

async fn children(ctx: OrchestrationContext, _: String) -> Done {
    let own = ctx.instance_id();
    let child = |label: &str| {
        let deed = input(&Deed::new(&own, label))?;
        let id = format!("{own}{FAMILY}{label}");
        Ok::<_, String>(ctx.schedule_sub_orchestration_with_id(LEAF, id, deed))
    };
    let (left, right) = ctx.join2(child("left")?, child("right")?).await;
    Ok(format!("{},{}", left?, right?))
}

async fn leaf(ctx: OrchestrationContext, deed: String) -> Done {
    ctx.schedule_activity(EFFECT, deed).await
}

async fn detached(ctx: OrchestrationContext, _: String) -> Done {
    let own = ctx.instance_id();
    ctx.schedule_orchestration(LEAF, format!("{own}{FAMILY}alone"), input(&Deed::new(&own, "alone"))?);
    effect(&ctx, "sent").await
}

/// Each execution adds to a value that outlives it.
async fn generations(ctx: OrchestrationContext, generation: String) -> Done {
    let generation: u64 = generation.parse().unwrap_or(0);
    let done = effect(&ctx, &format!("g{generation}")).await?;
    let trail = ctx.get_kv_value(TRAIL).map_or(done.clone(), |trail| format!("{trail},{done}"));
    ctx.set_kv_value(TRAIL, trail.clone());
    if generation + 1 < GENERATIONS {
        return ctx.continue_as_new((generation + 1).to_string()).await;
    }
    Ok(trail)
}

async fn retry(ctx: OrchestrationContext, _: String) -> Done {
    let policy =
        RetryPolicy::new(5).with_backoff(BackoffStrategy::Fixed { delay: Duration::from_millis(20) });
    let deed = Deed { refusals: REFUSALS, ..Deed::new(&ctx.instance_id(), "stubborn") };
    ctx.schedule_activity_with_retry(EFFECT, input(&deed)?, policy).await
}

async fn session(ctx: OrchestrationContext, _: String) -> Done {
    let own = ctx.instance_id();
    let mut done = Vec::new();
    for label in ["s0", "s1", "s2"] {
        let deed = input(&Deed::new(&own, label))?;
        done.push(ctx.schedule_activity_on_session(EFFECT, deed, own.clone()).await?);
    }
    Ok(done.join(","))
}

/// Gives up an activity that would never end.
async fn cut(ctx: OrchestrationContext, _: String) -> Done {
    ctx.set_custom_status(READY);
    match ctx.select2(ctx.dequeue_event(GO), ctx.schedule_activity(PATIENT, "")).await {
        Either2::First(said) => Ok(format!("{said},{}", effect(&ctx, "cut").await?)),
        Either2::Second(ended) => Err(format!("the endless activity ended: {ended:?}")),
    }
}

/// Waits for something that never comes.
async fn cancelled(ctx: OrchestrationContext, _: String) -> Done {
    effect(&ctx, "begun").await?;
    ctx.set_custom_status(READY);
    Ok(ctx.dequeue_event("never").await)
}

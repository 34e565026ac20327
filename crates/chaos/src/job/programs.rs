//! The orchestrations of jobs. They contain no code for crashes.

use super::{CHILD_SEPARATOR, EFFECT, ENDLESS, EffectRequest, Kind};
use outlast::runtime::OrchestrationRegistryBuilder;
use outlast::{BackoffStrategy, Either2, OrchestrationContext, OrchestrationRegistry, RetryPolicy};
use std::time::Duration;

/// The custom status of an instance that waits for its client.
const READY: &str = "ready";
/// The event and the queue that such an instance waits for.
pub(crate) const GO: &str = "go";
/// The queue of [`Kind::Queue`], and how many messages it takes from it.
pub(crate) const MAIL: &str = "mail";
pub(crate) const LETTERS: u64 = 3;
/// Number of effects of [`Kind::FanOut`], of executions of [`Kind::Generations`], of failures of [`Kind::Retry`].
pub(super) const WIDTH: usize = 5;
pub(super) const GENERATIONS: u64 = 3;
pub(super) const REFUSALS: u64 = 2;

const LEAF: &str = "leaf";
const TRAIL: &str = "trail";

/// An orchestration that fails is reported by the verification.
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

fn input(request: &EffectRequest) -> Result<String, String> {
    serde_json::to_string(request).map_err(|error| error.to_string())
}

/// Runs one effect of the job.
async fn effect(ctx: &OrchestrationContext, label: &str) -> Done {
    ctx.schedule_activity(EFFECT, input(&EffectRequest::new(&ctx.instance_id(), label))?).await
}

async fn chain(ctx: OrchestrationContext, _: String) -> Done {
    let mut done = Vec::new();
    for label in ["a", "b", "c"] {
        done.push(effect(&ctx, label).await?);
    }
    Ok(done.join(","))
}

async fn fan_out(ctx: OrchestrationContext, _: String) -> Done {
    let mut requests = Vec::new();
    for n in 0..WIDTH {
        requests.push(
            ctx.schedule_activity(EFFECT, input(&EffectRequest::new(&ctx.instance_id(), &format!("f{n}")))?),
        );
    }
    let done = ctx.join_all(requests).await;
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
    let received = ctx.schedule_wait(GO).await;
    let done = effect(&ctx, "told").await?;
    Ok(format!("{received},{done}"))
}

/// Dequeues messages until it has each once: a client that received no answer sends a message again.
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
        let request = input(&EffectRequest::new(&own, label))?;
        let id = format!("{own}{CHILD_SEPARATOR}{label}");
        Ok::<_, String>(ctx.schedule_sub_orchestration_with_id(LEAF, id, request))
    };
    let (left, right) = ctx.join2(child("left")?, child("right")?).await;
    Ok(format!("{},{}", left?, right?))
}

async fn leaf(ctx: OrchestrationContext, request: String) -> Done {
    ctx.schedule_activity(EFFECT, request).await
}

async fn detached(ctx: OrchestrationContext, _: String) -> Done {
    let own = ctx.instance_id();
    ctx.schedule_orchestration(
        LEAF,
        format!("{own}{CHILD_SEPARATOR}alone"),
        input(&EffectRequest::new(&own, "alone"))?,
    );
    effect(&ctx, "sent").await
}

/// Each execution extends a key that survives continue-as-new.
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
    let request = EffectRequest { refusals: REFUSALS, ..EffectRequest::new(&ctx.instance_id(), "stubborn") };
    ctx.schedule_activity_with_retry(EFFECT, input(&request)?, policy).await
}

async fn session(ctx: OrchestrationContext, _: String) -> Done {
    let own = ctx.instance_id();
    let mut done = Vec::new();
    for label in ["s0", "s1", "s2"] {
        let request = input(&EffectRequest::new(&own, label))?;
        done.push(ctx.schedule_activity_on_session(EFFECT, request, own.clone()).await?);
    }
    Ok(done.join(","))
}

/// Drops an activity that would never end.
async fn cut(ctx: OrchestrationContext, _: String) -> Done {
    ctx.set_custom_status(READY);
    match ctx.select2(ctx.dequeue_event(GO), ctx.schedule_activity(ENDLESS, "")).await {
        Either2::First(received) => Ok(format!("{received},{}", effect(&ctx, "cut").await?)),
        Either2::Second(ended) => Err(format!("the endless activity ended: {ended:?}")),
    }
}

/// Waits for a message that never comes.
async fn cancelled(ctx: OrchestrationContext, _: String) -> Done {
    effect(&ctx, "begun").await?;
    ctx.set_custom_status(READY);
    Ok(ctx.dequeue_event("never").await)
}

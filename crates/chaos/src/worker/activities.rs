//! The activities: one that records an effect, and one that ends only when it is cancelled.

use crate::args::WorkerArgs;
use crate::effect_ledger::EffectLedger;
use crate::job::{EFFECT, ENDLESS, EffectRequest, Sabotage};
use outlast::ActivityContext;
use outlast::runtime::registry::{ActivityRegistry, ActivityRegistryBuilder};
use std::time::Duration;

pub(super) fn all(ledger: &EffectLedger, args: &WorkerArgs) -> ActivityRegistryBuilder {
    let (ledger, worker, sabotage) = (ledger.clone(), args.name.clone(), args.sabotage);
    ActivityRegistry::builder()
        .register(EFFECT, move |ctx: ActivityContext, input: String| {
            let (ledger, worker) = (ledger.clone(), worker.clone());
            async move { perform(ctx, &input, &ledger, &worker, sabotage).await }
        })
        .register(ENDLESS, |ctx: ActivityContext, _: String| async move {
            ctx.cancelled().await;
            Err("cancelled".to_string())
        })
}

async fn perform(
    ctx: ActivityContext,
    input: &str,
    ledger: &EffectLedger,
    worker: &str,
    sabotage: Option<Sabotage>,
) -> Result<String, String> {
    let request: EffectRequest = serde_json::from_str(input).map_err(|error| error.to_string())?;
    let half = Duration::from_millis(request.takes_ms / 2);
    tokio::time::sleep(half).await;
    let loses =
        sabotage.is_some_and(|sabotage| sabotage.affects(Sabotage::LoseEffect, ctx.idempotency_key()));
    let number = ledger.perform(ctx.idempotency_key(), worker, &request, !loses).await?;
    tokio::time::sleep(half).await;
    if number < request.refusals { Err(format!("refused {number}")) } else { Ok(request.label) }
}

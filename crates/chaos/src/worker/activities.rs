//! The activities: one that leaves a row in the ledger, and one that never ends.

use crate::args::WorkerArgs;
use crate::job::{Deed, EFFECT, PATIENT, Sabotage};
use crate::ledger::Ledger;
use outlast::ActivityContext;
use outlast::runtime::registry::{ActivityRegistry, ActivityRegistryBuilder};
use std::time::Duration;

pub(super) fn all(ledger: &Ledger, args: &WorkerArgs) -> ActivityRegistryBuilder {
    let (ledger, worker, sabotage) = (ledger.clone(), args.name.clone(), args.sabotage);
    ActivityRegistry::builder()
        .register(EFFECT, move |ctx: ActivityContext, input: String| {
            let (ledger, worker) = (ledger.clone(), worker.clone());
            async move { perform(ctx, &input, &ledger, &worker, sabotage).await }
        })
        .register(PATIENT, |ctx: ActivityContext, _: String| async move {
            ctx.cancelled().await;
            Err("cancelled".to_string())
        })
}

async fn perform(
    ctx: ActivityContext,
    input: &str,
    ledger: &Ledger,
    worker: &str,
    sabotage: Option<Sabotage>,
) -> Result<String, String> {
    let deed: Deed = serde_json::from_str(input).map_err(|error| error.to_string())?;
    let half = Duration::from_millis(deed.takes_ms / 2);
    tokio::time::sleep(half).await;
    let loses =
        sabotage.is_some_and(|sabotage| sabotage.strikes(Sabotage::LoseEffect, ctx.idempotency_key()));
    let number = ledger.perform(ctx.idempotency_key(), worker, &deed, !loses).await?;
    tokio::time::sleep(half).await;
    if number < deed.refusals { Err(format!("refused {number}")) } else { Ok(deed.label) }
}

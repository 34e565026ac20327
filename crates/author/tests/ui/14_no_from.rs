use outlast::prelude::*;

#[derive(Debug, thiserror::Error, serde::Serialize, serde::Deserialize, outlast::Failure)]
enum FulfilError {
    #[error("broken")]
    Broken,
}

#[outlast::activity]
async fn charge(_ctx: ActivityContext, cents: u64) -> Result<u64, String> {
    Ok(cents)
}

#[outlast::orchestration]
async fn fulfil(ctx: OrchestrationContext, cents: u64) -> Result<u64, FulfilError> {
    let paid = charge::call(&ctx, cents).await?;
    if paid == 0 { return Err(FulfilError::Broken) }
    Ok(paid)
}

fn main() {}

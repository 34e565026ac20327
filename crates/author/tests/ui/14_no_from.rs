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

#[outlast::orchestration]
async fn refund(ctx: OrchestrationContext, cents: u64) -> Result<u64, FulfilError> {
    match charge::call(&ctx, cents).await {
        Ok(paid) => Ok(paid),
        Err(other) => Err(other.into()),
    }
}

// An error type may have conversions of its own beside the derive.
#[derive(Debug, thiserror::Error, serde::Serialize, serde::Deserialize, outlast::Failure)]
#[error("own")]
struct Own;

impl From<CallError<String>> for Own {
    fn from(_error: CallError<String>) -> Self {
        Self
    }
}

#[outlast::orchestration]
async fn converts(ctx: OrchestrationContext, cents: u64) -> Result<u64, Own> {
    Ok(charge::call(&ctx, cents).await?)
}

fn main() {}

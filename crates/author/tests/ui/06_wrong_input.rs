use outlast::prelude::*;

#[outlast::activity]
async fn charge(_ctx: ActivityContext, cents: u64) -> Result<u64, String> {
    Ok(cents)
}

#[outlast::orchestration]
async fn fulfil(ctx: OrchestrationContext, cents: String) -> Result<u64, String> {
    Ok(charge::call(&ctx, cents).await?)
}

fn main() {}

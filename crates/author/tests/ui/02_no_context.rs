use outlast::prelude::*;

#[outlast::activity]
async fn charge(cents: u64) -> Result<u64, String> {
    Ok(cents)
}

#[outlast::activity]
async fn refund() -> Result<(), String> {
    Ok(())
}

#[outlast::orchestration]
async fn fulfil(ctx: &OrchestrationContext, cents: u64) -> Result<u64, String> {
    Ok(cents)
}

struct Shop;

impl Shop {
    #[outlast::activity]
    async fn restock(&self) -> Result<(), String> {
        Ok(())
    }
}

#[outlast::orchestration]
async fn uses(ctx: OrchestrationContext) -> Result<u64, String> {
    refund::call(&ctx).await?;
    Ok(charge::call(&ctx, 5).await? + fulfil::child(&ctx, 5).await?)
}

fn main() {
    let _ = outlast::module![charge, refund, fulfil, uses];
}

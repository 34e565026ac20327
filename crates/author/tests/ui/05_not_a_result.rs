use outlast::prelude::*;

#[outlast::activity]
async fn charge(_ctx: ActivityContext, cents: u64) -> u64 {
    cents
}

#[outlast::activity]
async fn refund(_ctx: ActivityContext) {}

struct Receipt;

#[outlast::activity]
async fn print(_ctx: ActivityContext) -> Receipt {
    Receipt
}

#[outlast::orchestration]
async fn uses(ctx: OrchestrationContext) -> Result<u64, String> {
    refund::call(&ctx).await?;
    Ok(charge::call(&ctx, 5).await?)
}

fn main() {
    let _ = outlast::module![charge, refund, uses];
}

use outlast::prelude::*;

#[outlast::activity]
fn charge(_ctx: ActivityContext, cents: u64) -> Result<u64, String> {
    Ok(cents)
}

#[outlast::activity]
struct Order;

#[outlast::orchestration]
async fn uses(ctx: OrchestrationContext) -> Result<u64, String> {
    let _ = Order;
    Ok(charge::call(&ctx, 5).await?)
}

fn main() {
    let _ = outlast::module![charge, uses];
}

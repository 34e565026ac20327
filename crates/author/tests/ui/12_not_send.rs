use outlast::prelude::*;
use std::rc::Rc;

#[outlast::activity]
async fn charge(_ctx: ActivityContext, cents: u64) -> Result<u64, String> {
    Ok(cents)
}

#[outlast::orchestration]
async fn fulfil(ctx: OrchestrationContext, cents: u64) -> Result<u64, String> {
    let shared = Rc::new(cents);
    let done = charge::call(&ctx, *shared).await?;
    Ok(done + *shared)
}

fn main() {}

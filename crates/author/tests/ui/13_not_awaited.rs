#![deny(unused_must_use)]
use outlast::prelude::*;

#[outlast::activity]
async fn charge(_ctx: ActivityContext, cents: u64) -> Result<u64, String> {
    Ok(cents)
}

#[outlast::orchestration]
async fn fulfil(ctx: OrchestrationContext, cents: u64) -> Result<u64, String> {
    charge::call(&ctx, cents);
    fulfil::detached(&ctx, cents);
    Ok(cents)
}

fn main() {}

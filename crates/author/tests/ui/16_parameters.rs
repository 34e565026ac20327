use outlast::prelude::*;

#[outlast::orchestration]
async fn fulfil(_ctx: OrchestrationContext, State(_pool): State<u32>) -> Result<(), String> {
    Ok(())
}

#[outlast::activity]
async fn charge(_ctx: ActivityContext, cents: u64, State(_pool): State<u32>) -> Result<u64, String> {
    Ok(cents)
}

#[outlast::activity]
async fn print(_ctx: ActivityContext, text: &str) -> Result<(), String> {
    Ok(())
}

#[outlast::activity]
async fn store<T>(_ctx: ActivityContext, value: T) -> Result<(), String> {
    Ok(())
}

#[outlast::activity]
async fn count(_ctx: ActivityContext, State(_cell): State<std::cell::Cell<u32>>) -> Result<(), String> {
    Ok(())
}

#[outlast::activity]
async fn show(_ctx: ActivityContext, text: impl Into<String>) -> Result<(), String> {
    Ok(())
}

#[outlast::orchestration]
async fn uses(ctx: OrchestrationContext) -> Result<u64, String> {
    fulfil::child(&ctx).await?;
    print::call(&ctx, "text".into()).await?;
    show::call(&ctx, "text").await?;
    store::call(&ctx, 5).await?;
    count::call(&ctx).await?;
    Ok(charge::call(&ctx, 5).await?)
}

fn main() {
    let _ = outlast::module![fulfil, charge, print, show, store, count, uses];
}

use outlast::prelude::*;

#[outlast::activity(retries = 3)]
async fn charge(_ctx: ActivityContext, cents: u64) -> Result<u64, String> {
    Ok(cents)
}

#[outlast::activity(timeout = "30 seconds")]
async fn refund(_ctx: ActivityContext, cents: u64) -> Result<u64, String> {
    Ok(cents)
}

#[outlast::activity(name)]
async fn reserve(_ctx: ActivityContext) -> Result<(), String> {
    Ok(())
}

#[outlast::activity(errors = json)]
async fn release(_ctx: ActivityContext) -> Result<(), String> {
    Ok(())
}

#[outlast::orchestration(version = "2.0")]
async fn fulfil(_ctx: OrchestrationContext) -> Result<(), String> {
    Ok(())
}

#[outlast::orchestration(allow(clocks))]
async fn ship(_ctx: OrchestrationContext) -> Result<(), String> {
    Ok(())
}

#[outlast::activity(retry = 0)]
async fn pack(_ctx: ActivityContext) -> Result<(), String> {
    Ok(())
}

#[outlast::orchestration(on_cancel = wait)]
async fn deliver(_ctx: OrchestrationContext) -> Result<(), String> {
    Ok(())
}

#[outlast::orchestration(grace = "5m")]
async fn hand_over(_ctx: OrchestrationContext) -> Result<(), String> {
    Ok(())
}

#[outlast::orchestration(allow(clocks, random), accepts(Approval))]
async fn wait(_ctx: OrchestrationContext) -> Result<(), String> {
    let _now = std::time::SystemTime::now();
    Ok(())
}

#[derive(serde::Serialize, serde::Deserialize, outlast::Message)]
struct Approval;

#[outlast::orchestration]
async fn uses(ctx: OrchestrationContext) -> Result<u64, String> {
    reserve::call(&ctx).await?;
    release::call(&ctx).await?;
    pack::call(&ctx).await?;
    fulfil::child(&ctx).await?;
    ship::child(&ctx).await?;
    deliver::child(&ctx).await?;
    hand_over::child(&ctx).await?;
    Ok(charge::call(&ctx, 5).await? + refund::call(&ctx, 5).await?)
}

async fn approve(client: &Client) {
    let _ = wait::handle(client, "o-1").send(Approval).await;
}

fn main() {
    let _ = outlast::module![charge, refund, reserve, release, fulfil, ship, pack, deliver, hand_over, wait, uses];
}

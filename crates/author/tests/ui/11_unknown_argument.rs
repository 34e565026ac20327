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

fn main() {}

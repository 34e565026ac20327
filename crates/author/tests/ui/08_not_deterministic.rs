use outlast::prelude::*;
use std::time::SystemTime;

#[outlast::orchestration]
async fn fulfil(_ctx: OrchestrationContext, cents: u64) -> Result<u64, String> {
    let _now = SystemTime::now();
    std::thread::spawn(|| ());
    tokio::select! {
        _ = async {} => {}
    }
    Ok(cents)
}

#[outlast::deterministic]
fn helper() -> Option<String> {
    std::env::var("HOME").ok()
}

#[outlast::orchestration(allow(clock))]
async fn allowed(_ctx: OrchestrationContext) -> Result<(), String> {
    let _now = SystemTime::now();
    Ok(())
}

#[outlast::orchestration]
async fn uses(ctx: OrchestrationContext) -> Result<u64, String> {
    allowed::child(&ctx).await?;
    Ok(fulfil::child(&ctx, 5).await?)
}

fn main() {
    let _ = outlast::module![fulfil, allowed, uses];
}

//! The rules of docs/guide/determinism.md, each broken once.
use outlast::prelude::*;

mod rand {
    pub fn random<T: Default>() -> T {
        T::default()
    }
}

// guide: clock
#[outlast::orchestration]
async fn clock(ctx: OrchestrationContext) -> Result<(), String> {
    let now = std::time::SystemTime::now();
    note::call(&ctx, format!("{now:?}")).await?;
    Ok(())
}
// guide: end

// guide: random
#[outlast::orchestration]
async fn random(ctx: OrchestrationContext) -> Result<(), String> {
    let ticket: u64 = rand::random();
    note::call(&ctx, format!("ticket {ticket}")).await?;
    Ok(())
}
// guide: end

// guide: sleep
#[outlast::orchestration]
async fn sleep(ctx: OrchestrationContext) -> Result<(), String> {
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    note::call(&ctx, "a minute later".into()).await?;
    Ok(())
}
// guide: end

// guide: timeout
#[outlast::orchestration]
async fn timeout(ctx: OrchestrationContext) -> Result<(), String> {
    let noted = note::call(&ctx, "in a minute".into());
    let _ = tokio::time::timeout(std::time::Duration::from_secs(60), noted).await;
    Ok(())
}
// guide: end

// guide: spawn
#[outlast::orchestration]
async fn spawn(ctx: OrchestrationContext) -> Result<(), String> {
    let noted = note::call(&ctx, "beside the orchestration".into());
    tokio::spawn(async move { drop(noted.await) });
    Ok(())
}
// guide: end

// guide: io
#[outlast::orchestration]
async fn io(ctx: OrchestrationContext) -> Result<(), String> {
    let text = std::fs::read_to_string("orders.txt").map_err(|error| error.to_string())?;
    note::call(&ctx, text).await?;
    Ok(())
}
// guide: end

// guide: env
#[outlast::orchestration]
async fn env(ctx: OrchestrationContext) -> Result<(), String> {
    let region = std::env::var("REGION").unwrap_or_default();
    note::call(&ctx, region).await?;
    Ok(())
}
// guide: end

// guide: select
#[outlast::orchestration]
async fn select(ctx: OrchestrationContext) -> Result<(), String> {
    tokio::select! {
        _ = note::call(&ctx, "one".into()) => Ok(()),
        _ = note::call(&ctx, "two".into()) => Ok(()),
    }
}
// guide: end

// guide: body
#[outlast::orchestration]
async fn body(ctx: OrchestrationContext) -> Result<(), String> {
    note(ctx, "not recorded".into()).await
}
// guide: end

// guide: state
#[outlast::orchestration]
async fn state(_ctx: OrchestrationContext, State(_pool): State<u32>) -> Result<(), String> {
    Ok(())
}
// guide: end

// guide: helper
#[outlast::deterministic]
fn deadline() -> std::time::SystemTime {
    std::time::SystemTime::now() + std::time::Duration::from_secs(60)
}
// guide: end

// guide: allow
#[outlast::orchestration(allow(clock))]
async fn allowed(ctx: OrchestrationContext) -> Result<(), String> {
    let begun = std::time::SystemTime::now();
    note::call(&ctx, "the clock decides nothing".into()).await?;
    println!("{:?} in this process", begun.elapsed());
    Ok(())
}
// guide: end

#[outlast::activity]
async fn note(_ctx: ActivityContext, _text: String) -> Result<(), String> {
    Ok(())
}

fn main() {}

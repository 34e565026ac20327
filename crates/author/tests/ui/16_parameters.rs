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

fn main() {}

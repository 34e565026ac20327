use outlast::prelude::*;

#[outlast::activity]
async fn charge(cents: u64) -> Result<u64, String> {
    Ok(cents)
}

#[outlast::activity]
async fn refund() -> Result<(), String> {
    Ok(())
}

#[outlast::orchestration]
async fn fulfil(ctx: &OrchestrationContext, cents: u64) -> Result<u64, String> {
    Ok(cents)
}

struct Shop;

impl Shop {
    #[outlast::activity]
    async fn restock(&self) -> Result<(), String> {
        Ok(())
    }
}

fn main() {}

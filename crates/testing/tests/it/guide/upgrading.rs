//! The programs of docs/guide/upgrading.md.

// guide: program
use outlast::prelude::*;
use outlast::providers::memory::MemoryProvider;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::sync::Arc;

#[derive(Serialize, Deserialize, outlast::Message)]
struct Paid;

#[outlast::activity]
async fn ship(_ctx: ActivityContext, order: String) -> Result<String, String> {
    Ok(format!("{order} is shipped"))
}

#[outlast::activity]
async fn wrap(_ctx: ActivityContext, order: String) -> Result<String, String> {
    Ok(format!("{order}, as a gift"))
}

/// The code of Monday. It keeps the name `fulfil` in histories.
#[outlast::orchestration(name = "fulfil", version = "1.0.0", accepts(Paid))]
async fn fulfil_v1(ctx: OrchestrationContext, order: String) -> Result<String, String> {
    let Paid = ctx.next().await?;
    Ok(ship::call(&ctx, order).await?)
}

/// The code of Tuesday: a step before the shipment.
#[outlast::orchestration(version = "1.1.0", accepts(Paid))]
async fn fulfil(ctx: OrchestrationContext, order: String) -> Result<String, String> {
    let Paid = ctx.next().await?;
    let order = wrap::call(&ctx, order).await?;
    Ok(ship::call(&ctx, order).await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(MemoryProvider::new());
    let client = Client::new(store.clone());

    // Monday's program starts an order.
    let monday = outlast::module![ship, fulfil_v1];
    let runtime = Runtime::builder().store(store.clone()).register(monday).start().await?;
    let early = fulfil_v1::start(&client, "lamp".into()).id("early").await?;
    runtime.shutdown(None).await;

    // Tuesday's program has both versions: the order of Monday goes on as it began.
    let tuesday = outlast::module![ship, wrap, fulfil_v1, fulfil];
    let runtime = Runtime::builder().store(store).register(tuesday).start().await?;
    let late = fulfil::start(&client, "rug".into()).id("late").await?;
    early.send(Paid).await?;
    late.send(Paid).await?;
    assert_eq!(early.result().await?, "lamp is shipped");
    assert_eq!(late.result().await?, "rug, as a gift is shipped");
    runtime.shutdown(None).await;
    Ok(())
}
// guide: end

#[test]
fn the_program_runs() {
    main().unwrap();
}

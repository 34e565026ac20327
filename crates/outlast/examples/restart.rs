//! A process ends during an instance, and the next process continues it from the file. Here both are in one program, and the first
//! stops as in a crash.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::prelude::*;
use outlast::providers::sqlite::SqliteProvider;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::sync::Arc;

#[derive(Clone, Copy)]
struct Year(u32);

#[derive(Serialize, Deserialize, outlast::Message)]
struct GoOn;

#[outlast::activity]
async fn build(_ctx: ActivityContext, State(year): State<Year>, part: String) -> Result<String, String> {
    println!("{}: building the {part}", year.0);
    Ok(format!("{part} of {}", year.0))
}

#[outlast::orchestration(accepts(GoOn), status = Vec<String>)]
async fn build_house(ctx: OrchestrationContext) -> Result<String, String> {
    let mut done = Vec::new();
    for part in ["cellar", "walls", "roof"] {
        done.push(build::call(&ctx, part.into()).await?);
        build_house::set_status(&ctx, &done);
        if part == "walls" {
            let _: GoOn = ctx.next().await?;
        }
    }
    Ok(done.join(", "))
}

async fn start(url: &str, year: u32) -> Result<(Arc<Runtime>, Client), Box<dyn Error>> {
    let store = Arc::new(SqliteProvider::new(url, None).await?);
    let module = outlast::module![build, build_house];
    let runtime = Runtime::builder().store(store.clone()).register(module).state(Year(year)).start().await?;
    Ok((runtime, Client::new(store)))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite:{}", folder.path().join("houses.db").display());

    let (runtime, client) = start(&url, 2025).await?;
    let house = build_house::start(&client).id("house-1").await?;
    while house.status().await.ok().flatten().is_none_or(|done| done.len() < 2) {
        tokio::task::yield_now().await;
    }
    // Without a grace period running code is aborted, as in a crash.
    runtime.shutdown(Some(0)).await;

    let (runtime, client) = start(&url, 2026).await?;
    let house = build_house::handle(&client, "house-1");
    house.send(GoOn).await?;
    let house = house.result().await?;
    println!("{house}");
    assert_eq!(house, "cellar of 2025, walls of 2025, roof of 2026");
    runtime.shutdown(None).await;
    Ok(())
}

//! A program that `outlast check` can ask, and a store with many running instances for it.
//!
//! ```text
//! cargo run --release -p outlast-cli --example orders -- fill orders.db 100000
//! cargo build --release -p outlast-cli
//! time target/release/outlast check --store orders.db --bin target/release/examples/orders
//! ```
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use clap::{Parser, Subcommand};
use outlast::RuntimeOptions;
use outlast::prelude::*;
use outlast::providers::sqlite::SqliteProvider;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Serialize, Deserialize, outlast::Message)]
struct Paid {
    cents: u64,
}

#[outlast::activity]
async fn reserve(_ctx: ActivityContext, order: u64) -> Result<String, String> {
    Ok(format!("goods of order {order}"))
}

#[outlast::orchestration(accepts(Paid))]
async fn order(ctx: OrchestrationContext, order: u64) -> Result<String, String> {
    let goods = reserve::call(&ctx, order).await?;
    let paid: Paid = ctx.next().await?;
    Ok(format!("{goods} for {} cents", paid.cents))
}

/// The number of tasks that start orders.
const STARTERS: u64 = 64;

#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Fills a store with orders that wait for their payment
    Fill { file: PathBuf, orders: u64 },
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options =
        RuntimeOptions { orchestration_concurrency: 64, worker_concurrency: 64, ..Default::default() };
    let builder =
        Runtime::builder().register(outlast::module![reserve, order]).options(options).answer_check();
    let Some(Command::Fill { file, orders }) = Args::parse().command else {
        println!("write: fill FILE ORDERS");
        return Ok(());
    };
    let store = Arc::new(SqliteProvider::new(&format!("sqlite:{}", file.display()), None).await?);
    let runtime = builder.store(store.clone()).start().await?;
    let client = Client::new(store);
    let mut starts = tokio::task::JoinSet::new();
    for first in 0..STARTERS {
        let client = client.clone();
        starts.spawn(async move {
            for number in (first..orders).step_by(STARTERS as usize) {
                order::start(&client, number).id(format!("order-{number}")).await?;
            }
            Ok::<(), InstanceError>(())
        });
    }
    while let Some(ended) = starts.join_next().await {
        ended??;
    }
    // Every order waits for its payment when the queues are empty.
    loop {
        let gauges = client.get_gauges().await?;
        if gauges.orchestrator_queue == 0 && gauges.worker_queue == 0 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    runtime.shutdown(None).await;
    println!("{orders} orders wait for their payment");
    Ok(())
}

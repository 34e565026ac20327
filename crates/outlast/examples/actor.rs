//! An actor: takes messages from a queue one by one, answers them, and keeps state that clients can read.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::prelude::*;
use outlast::providers::memory::MemoryProvider;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::sync::Arc;

#[derive(Serialize, Deserialize, outlast::Message)]
#[message(reply = i64)]
enum Order {
    Deposit(i64),
    Close,
}

const BALANCE: Key<i64> = Key::new("balance");

#[outlast::orchestration(accepts(Order))]
async fn account(ctx: OrchestrationContext, mut balance: i64) -> Result<i64, String> {
    // Messages wait in the queue until they are read, also across continue-as-new.
    for _ in 0..4 {
        let order = ctx.next_request::<Order>().await?;
        let is_last = match *order {
            Order::Deposit(amount) => {
                balance += amount;
                false
            }
            Order::Close => true,
        };
        ctx.set(BALANCE, &balance);
        order.answer(&balance)?;
        if is_last {
            return Ok(balance);
        }
    }
    account::continue_as_new(&ctx, balance).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(MemoryProvider::new());
    let runtime = Runtime::builder().store(store.clone()).register(outlast::module![account]).start().await?;
    let client = Client::new(store);

    let ada = account::start(&client, 0).id("ada").await?;
    for amount in 1..10 {
        ada.send(Order::Deposit(amount)).await?;
    }
    let balance = ada.ask(Order::Deposit(10)).await?;
    println!("the balance is {balance}");
    ada.send(Order::Close).await?;
    let closed = ada.result().await?;
    let stored = ada.get(BALANCE).await?;
    println!("closed with {closed}; the balance is still there: {stored:?}");
    assert_eq!((balance, closed, stored), (55, 55, Some(55)));
    runtime.shutdown(None).await;
    Ok(())
}

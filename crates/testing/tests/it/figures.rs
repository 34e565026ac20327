//! Figures of the test kit. `cargo xtask bench testing` runs these tests alone, and fails above the limits.
#![allow(clippy::print_stdout, reason = "the figures are for people")]
#![allow(clippy::disallowed_methods, reason = "the figures are of real time")]

use crate::crashes::Bank;
use outlast::prelude::*;
use outlast::testing::{Test, days};
use std::time::{Duration, Instant};

#[outlast::activity]
async fn greet(_ctx: ActivityContext, name: String) -> Result<String, String> {
    Ok(format!("hello {name}"))
}

#[outlast::orchestration]
async fn hello(ctx: OrchestrationContext, name: String) -> Result<String, String> {
    ctx.sleep(days(1)).await;
    Ok(greet::call(&ctx, name).await?)
}

/// The limits are for two idle cores. Beside other tests a figure may be ten times as high.
fn print(what: &str, took: Duration, limit: Duration) {
    let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
    // `cargo xtask bench testing` reads this line.
    println!("{what}: took {:.1} ms, the limit on two idle cores is {} ms", ms(took), limit.as_millis());
    assert!(took < 10 * limit, "{what} took {took:?}, the limit is {limit:?}");
}

/// On all cores, as the test harness runs them.
#[test]
fn a_thousand_small_tests() {
    let tests: Vec<usize> = (0..1_000).collect();
    let began = Instant::now();
    let outputs = outlast::testing::parallel::map(&tests, |number| {
        let test = Test::<hello>::new(outlast::module![greet, hello]);
        test.run(format!("{number}")).output().len()
    });
    assert_eq!(outputs.len(), 1_000);
    print("1,000 small tests", began.elapsed(), Duration::from_secs(10));
}

#[outlast::orchestration]
async fn a_year(ctx: OrchestrationContext) -> Result<(), String> {
    for _ in 0..12 {
        ctx.sleep(days(365) / 12).await;
    }
    Ok(())
}

#[test]
fn a_year_of_virtual_time() {
    let test = Test::<a_year>::new(outlast::module![a_year]);
    // The machine runs other tests: the best of three runs counts.
    let took = (0..3).map(|_| {
        let began = Instant::now();
        assert_eq!(test.run(()).elapsed(), days(365));
        began.elapsed()
    });
    print("a year in twelve timers", took.min().unwrap(), Duration::from_millis(50));
}

#[outlast::activity]
async fn step(ctx: ActivityContext, State(bank): State<Bank>, cents: i64) -> Result<(), String> {
    bank.book(ctx.idempotency_key(), cents);
    Ok(())
}

#[outlast::activity]
async fn undo_step(ctx: ActivityContext, State(bank): State<Bank>, cents: i64) -> Result<(), String> {
    bank.book(ctx.idempotency_key(), -cents);
    Ok(())
}

#[outlast::activity]
async fn last_step(_ctx: ActivityContext) -> Result<(), String> {
    Err("no".to_string())
}

#[outlast::orchestration]
async fn ten_steps(ctx: OrchestrationContext) -> Result<(), String> {
    let mut undo = Undo::new(&ctx);
    for cents in 1..10 {
        undo.push::<undo_step>(cents);
        step::call(&ctx, cents).await?;
    }
    if last_step::call(&ctx).await.is_err() {
        undo.run().await?;
    }
    Ok(())
}

#[test]
fn a_sweep_of_a_saga_with_ten_steps() {
    let test = Test::<ten_steps>::new(outlast::module![step, undo_step, last_step, ten_steps]);
    let test = test.world(Bank::default, Bank::balance);
    let began = Instant::now();
    let sweep = test.crash_everywhere(());
    let took = began.elapsed();
    sweep.holds();
    println!("{sweep}");
    print("a sweep of a saga with ten steps", took, Duration::from_secs(5));
}

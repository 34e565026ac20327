//! Orchestrations that are not deterministic, in places that the scan of the attribute does not see.

use outlast::prelude::*;
use outlast::testing::{Test, Trouble, seconds};
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::SystemTime;

#[outlast::activity]
async fn store(_ctx: ActivityContext, value: u64) -> Result<u64, String> {
    Ok(value)
}

/// The kit reports the first orchestration, and passes the second.
#[track_caller]
fn found<Wrong, Right>(wrong: Module, right: Module) -> String
where
    Wrong: outlast::author::Orchestration<Input = ()>,
    Right: outlast::author::Orchestration<Input = ()>,
{
    let trouble = Test::<Wrong>::new(wrong).try_run(()).expect_err("the mistake is not found");
    let Trouble::NotDeterministic(text) = trouble else { panic!("{trouble}") };
    Test::<Right>::new(right).run(()).output();
    text
}

#[allow(clippy::disallowed_methods, reason = "the mistake under test")]
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0))
}

#[outlast::orchestration]
async fn clock_in_a_helper(ctx: OrchestrationContext) -> Result<u64, String> {
    Ok(store::call(&ctx, now_ms()).await?)
}

#[outlast::orchestration]
async fn durable_clock(ctx: OrchestrationContext) -> Result<u64, String> {
    let now =
        ctx.utc_now().await?.duration_since(SystemTime::UNIX_EPOCH).map_err(|error| error.to_string())?;
    Ok(store::call(&ctx, now.as_secs()).await?)
}

#[test]
fn a_clock_in_the_code() {
    let text = found::<clock_in_a_helper, durable_clock>(
        outlast::module![store, clock_in_a_helper],
        outlast::module![store, durable_clock],
    );
    assert!(text.contains("activity store") || text.contains("activity 'store'"), "{text}");
}

fn dice() -> u64 {
    RandomState::new().hash_one(7)
}

#[outlast::orchestration]
async fn random_in_a_helper(ctx: OrchestrationContext) -> Result<u64, String> {
    Ok(store::call(&ctx, dice()).await?)
}

#[outlast::activity]
async fn draw(_ctx: ActivityContext) -> Result<u64, String> {
    Ok(dice())
}

#[outlast::orchestration]
async fn durable_dice(ctx: OrchestrationContext) -> Result<u64, String> {
    let drawn = draw::call(&ctx).await?;
    Ok(store::call(&ctx, drawn).await?)
}

#[test]
fn a_random_number_in_the_code() {
    let text = found::<random_in_a_helper, durable_dice>(
        outlast::module![store, random_in_a_helper],
        outlast::module![store, draw, durable_dice],
    );
    assert!(
        text.contains("the first run decided `activity store")
            && text.contains("the replay decided `activity store"),
        "{text}"
    );
}

#[outlast::orchestration]
async fn order_of_a_hash_map(ctx: OrchestrationContext) -> Result<u64, String> {
    let prices: HashMap<u64, u64> = (0..12).map(|item| (item, item * 2)).collect();
    let mut sum = 0;
    for price in prices.into_values() {
        sum += store::call(&ctx, price).await?;
    }
    Ok(sum)
}

#[outlast::orchestration]
async fn order_of_a_tree(ctx: OrchestrationContext) -> Result<u64, String> {
    let prices: BTreeMap<u64, u64> = (0..12).map(|item| (item, item * 2)).collect();
    let mut sum = 0;
    for price in prices.into_values() {
        sum += store::call(&ctx, price).await?;
    }
    Ok(sum)
}

#[test]
fn the_order_of_a_hash_map() {
    found::<order_of_a_hash_map, order_of_a_tree>(
        outlast::module![store, order_of_a_hash_map],
        outlast::module![store, order_of_a_tree],
    );
}

static LAST_NUMBER: AtomicU64 = AtomicU64::new(0);

#[outlast::orchestration]
async fn state_in_a_static(ctx: OrchestrationContext) -> Result<u64, String> {
    let number = LAST_NUMBER.fetch_add(1, Relaxed);
    ctx.sleep(seconds(1)).await;
    Ok(store::call(&ctx, number).await?)
}

#[outlast::activity]
async fn next_number(_ctx: ActivityContext) -> Result<u64, String> {
    Ok(LAST_NUMBER.fetch_add(1, Relaxed))
}

#[outlast::orchestration]
async fn state_behind_an_activity(ctx: OrchestrationContext) -> Result<u64, String> {
    let number = next_number::call(&ctx).await?;
    ctx.sleep(seconds(1)).await;
    Ok(store::call(&ctx, number).await?)
}

#[test]
fn state_kept_in_a_static() {
    found::<state_in_a_static, state_behind_an_activity>(
        outlast::module![store, state_in_a_static],
        outlast::module![store, next_number, state_behind_an_activity],
    );
}

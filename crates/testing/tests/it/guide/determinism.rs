//! The program of docs/guide/determinism.md, and the errors of the page that occur at run time.

// guide: program
use outlast::prelude::*;
#[cfg(test)]
use outlast::testing::Test;
use outlast::time::days;
use std::collections::BTreeMap;

#[outlast::activity]
async fn write_line(_ctx: ActivityContext, invoice: String, line: String) -> Result<(), String> {
    println!("{invoice}: {line}");
    Ok(())
}

#[outlast::orchestration]
async fn invoice(ctx: OrchestrationContext, prices: BTreeMap<String, u64>) -> Result<u64, String> {
    let number = ctx.new_guid().await?;
    let begun = ctx.utc_now().await?;
    // The order of a `BTreeMap` is the same in every run.
    let lines: Vec<_> = prices
        .iter()
        .map(|(item, cents)| write_line::call(&ctx, number.clone(), format!("{item} {cents}")))
        .collect();
    for written in ctx.join_all(lines).await {
        written?;
    }
    ctx.sleep(days(14)).await;
    let waited = ctx.utc_now().await?.duration_since(begun).map_err(|error| error.to_string())?;
    ctx.trace_info("this line is logged once, not again during replay");
    Ok(waited.as_secs() / 86_400)
}

#[test]
fn an_invoice_is_the_same_in_every_replay() {
    let prices = BTreeMap::from([("tea".to_string(), 400), ("milk".to_string(), 120)]);
    let run = Test::<invoice>::new(outlast::module![invoice, write_line]).run(prices);
    assert_eq!(run.output(), &14);
    run.calls::<write_line>().times(2);
}
// guide: end

use outlast::providers::memory::MemoryProvider;
use outlast::runtime::Module;
use outlast::testing::Trouble;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const PAGE: &str = include_str!("../../../../../docs/guide/determinism.md");

/// The page has this text, with `src/main.rs:9:5` in place of the lines of this file.
#[track_caller]
fn page_has(text: &str) {
    let mut parts = text.split(concat!(file!(), ":"));
    let mut shown = parts.next().unwrap_or_default().to_string();
    for part in parts {
        shown += "src/main.rs:9:5";
        shown += part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':');
    }
    assert!(PAGE.contains(&shown), "docs/guide/determinism.md lacks:\n{shown}");
}

#[outlast::activity]
async fn store(_ctx: ActivityContext, value: u64) -> Result<u64, String> {
    Ok(value)
}

// guide: map
#[outlast::orchestration]
async fn sum(ctx: OrchestrationContext, prices: HashMap<String, u64>) -> Result<u64, String> {
    let mut sum = 0;
    for price in prices.into_values() {
        sum += store::call(&ctx, price).await?;
    }
    Ok(sum)
}
// guide: end

#[test]
fn the_order_of_a_hash_map_fails_the_test() {
    let run = || {
        let prices = (0..12).map(|item| (format!("item {item}"), item)).collect();
        let trouble = Test::<sum>::new(outlast::module![sum, store]).try_run(prices).err();
        let Some(Trouble::NotDeterministic(_)) = &trouble else { panic!("{trouble:?}") };
        trouble
    };
    // One time in twelve the first items of both orders are the same. Then a later turn fails, with the text of a replay.
    let is_of_first_turn = |trouble: &Trouble| trouble.to_string().contains("event 2: the first run decided");
    let trouble = (0..50).filter_map(|_| run()).find(is_of_first_turn);
    let trouble = trouble.expect("fifty runs do not all begin with the same item");
    // The numbers differ from run to run.
    let without_numbers = |text: &str| text.replace(char::is_numeric, "");
    assert!(without_numbers(PAGE).contains(&without_numbers(&trouble.to_string())), "{trouble}");
}

// guide: global
static LAST: AtomicU64 = AtomicU64::new(0);

#[outlast::orchestration]
async fn number(ctx: OrchestrationContext) -> Result<u64, String> {
    let number = LAST.fetch_add(1, Relaxed);
    Ok(store::call(&ctx, number).await?)
}
// guide: end

#[test]
fn a_global_fails_the_test() {
    let trouble = Test::<number>::new(outlast::module![number, store]).try_run(()).err();
    let Some(trouble @ Trouble::NotDeterministic(_)) = trouble else { panic!("{trouble:?}") };
    page_has(&trouble.to_string());
}

// guide: channel
#[outlast::orchestration]
async fn wait(ctx: OrchestrationContext) -> Result<(), String> {
    store::call(&ctx, 1).await?;
    let (sender, receiver) = tokio::sync::oneshot::channel();
    tell_another_task(sender);
    receiver.await.map_err(|error| error.to_string())
}
// guide: end

fn tell_another_task(sender: tokio::sync::oneshot::Sender<()>) {
    // It never answers.
    std::mem::forget(sender);
}

async fn start(store: &Arc<MemoryProvider>, module: Module) -> Arc<Runtime> {
    Runtime::builder().store(store.clone()).register(module).start().await.unwrap()
}

#[tokio::test]
async fn a_wait_for_a_channel_fails_the_instance() {
    let store = Arc::new(MemoryProvider::new());
    let runtime = start(&store, outlast::module![wait, store]).await;
    let result = wait::start(&Client::new(store)).id("wait-1").await.unwrap().result().await;
    runtime.shutdown(None).await;
    let Err(CallError::Other(text)) = result else { panic!("{result:?}") };
    page_has(&text);
}

mod before {
    use super::*;

    // guide: before
    #[outlast::orchestration]
    pub(super) async fn order(ctx: OrchestrationContext) -> Result<(), String> {
        ship::call(&ctx).await?;
        ctx.sleep(days(14)).await;
        Ok(())
    }
    // guide: end
}

mod after {
    use super::*;

    // guide: after
    #[outlast::orchestration]
    pub(super) async fn order(ctx: OrchestrationContext) -> Result<(), String> {
        bill::call(&ctx).await?;
        ship::call(&ctx).await?;
        ctx.sleep(days(14)).await;
        Ok(())
    }
    // guide: end
}

#[outlast::activity]
async fn ship(_ctx: ActivityContext) -> Result<(), String> {
    Ok(())
}

#[outlast::activity]
async fn bill(_ctx: ActivityContext) -> Result<(), String> {
    Ok(())
}

#[tokio::test]
async fn changed_code_fails_the_instance() {
    let store = Arc::new(MemoryProvider::new());
    let client = Client::new(store.clone());
    let runtime = start(&store, outlast::module![before::order, ship]).await;
    before::order::start(&client).id("order-1").await.unwrap();
    // The history has the shipment when the timer is scheduled.
    while client.read_execution_history("order-1", 1).await.map_or(0, |history| history.len()) < 4 {
        tokio::task::yield_now().await;
    }
    runtime.shutdown(None).await;
    let runtime = start(&store, outlast::module![after::order, ship, bill]).await;
    let order = after::order::handle(&client, "order-1");
    order.cancel("to wake it up").await.unwrap();
    let result = order.result().await;
    runtime.shutdown(None).await;
    let Err(CallError::Other(text)) = result else { panic!("{result:?}") };
    page_has(&text);
}

//! The program of docs/testing.md. Every block of the page is a part of this file.

use outlast::prelude::*;
use outlast::providers::memory::MemoryProvider;
use outlast::testing::{ReplayCheck, Test, days, hours};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

const PAGE: &str = include_str!("../../../../docs/testing.md");
const SOURCE: &str = include_str!("page.rs");

#[test]
fn every_block_of_the_page_is_code_of_this_file() {
    let blocks: Vec<&str> =
        PAGE.split("```rust\n").skip(1).map(|block| block.split("```").next().unwrap()).collect();
    assert!(blocks.len() >= 8, "{} blocks", blocks.len());
    for block in blocks {
        assert!(SOURCE.contains(block), "this block of docs/testing.md is not in tests/it/page.rs:\n{block}");
    }
}

#[derive(Serialize, Deserialize, outlast::Message)]
struct Approval {
    yes: bool,
}

#[outlast::activity]
async fn charge(ctx: ActivityContext, State(bank): State<Bank>, cents: i64) -> Result<String, String> {
    bank.book(ctx.instance_id(), cents).await;
    Ok(format!("charged {cents}"))
}

/// Cancels the booking of the order, and closes its name. It succeeds also if nothing was charged.
#[outlast::activity]
async fn refund(ctx: ActivityContext, State(bank): State<Bank>, _cents: i64) -> Result<(), String> {
    bank.cancel(ctx.instance_id()).await;
    Ok(())
}

#[outlast::orchestration(accepts(Approval))]
async fn order(ctx: OrchestrationContext, cents: i64) -> Result<String, String> {
    let mut undo = Undo::new(&ctx);
    // Before the call: a charge that fails may have taken the money.
    undo.push::<refund>(cents);
    match pay(&ctx, cents).await {
        Ok(receipt) => Ok(receipt),
        Err(error) => undo.fail(error).await,
    }
}

#[outlast::deterministic]
async fn pay(ctx: &OrchestrationContext, cents: i64) -> Result<String, String> {
    let receipt = charge::call(ctx, cents).await?;
    match ctx.next::<Approval>().within(days(3)).await? {
        Some(Approval { yes: true }) => Ok(receipt),
        _ => Err("not approved".to_string()),
    }
}

#[test]
fn an_approved_order_is_charged() {
    let test = Test::<order>::new(outlast::module![order])
        .mock::<charge>(|cents| Ok(format!("charged {cents}")))
        .send_at(days(2), Approval { yes: true });
    let run = test.run(700);
    assert_eq!(run.output(), "charged 700");
    assert_eq!(run.elapsed(), days(2));
    run.calls::<charge>().once();
}

#[test]
fn a_refused_charge_fails_the_order() {
    let run = Test::<order>::new(outlast::module![order])
        .answers::<charge>([Err("busy".to_string())])
        .mock::<refund>(|_| Ok(()))
        .run(700);
    assert_eq!(run.failure(), "busy");
    run.calls::<refund>().once();
}

#[outlast::activity]
async fn ship(_ctx: ActivityContext, to: String, parcels: u32) -> Result<String, String> {
    Err(format!("the carrier of {parcels} parcels to {to} is a mock in the tests"))
}

#[outlast::orchestration]
async fn deliver(ctx: OrchestrationContext, to: String) -> Result<String, String> {
    Ok(ship::call(&ctx, to, 2).await?)
}

#[test]
fn two_parcels_are_shipped() {
    let run = Test::<deliver>::new(outlast::module![deliver])
        .mock::<ship>(|input| Ok(format!("{} parcels to {}", input.parcels, input.to)))
        .run("Ada".into());
    assert_eq!(run.output(), "2 parcels to Ada");
    assert_eq!(run.calls::<ship>().inputs(), [ship::input("Ada".into(), 2)]);
}

/// What all tests of the order have in common. The last mock of an activity counts, so a test replaces the one that it is about.
fn mocked() -> Test<order> {
    Test::<order>::new(outlast::module![order])
        .mock::<charge>(|cents| Ok(format!("charged {cents}")))
        .mock::<refund>(|_| Ok(()))
}

#[test]
fn an_expired_card_fails_the_order() {
    let run = mocked().mock::<charge>(|_| Err("expired".to_string())).run(700);
    assert_eq!(run.failure(), "expired");
}

#[test]
fn an_order_waits_for_its_approval() {
    let test = Test::<order>::new(outlast::module![order]).mock::<charge>(|_| Ok("charged".into()));
    let mut running = test.start(700);
    running.advance(hours(5));
    assert!(!running.has_ended());
    running.crash();
    running.send(Approval { yes: true });
    assert_eq!(running.finish().elapsed(), hours(5));
}

#[test]
fn the_history_of_a_refused_order() {
    let test = Test::<order>::new(outlast::module![order])
        .mock::<charge>(|_| Ok("charged".into()))
        .mock::<refund>(|_| Ok(()));
    test.run(700).matches("tests/snapshots/refused.history");
}

/// A name and its booking, or `None` if the name is closed.
type Entry = (String, Option<i64>);

/// A fake bank: its bookings by name, and `None` for a name that is closed. A second booking under a name changes nothing, and neither
/// does a booking under a closed name.
#[derive(Clone, Default)]
struct Bank(Arc<Mutex<Vec<Entry>>>);

impl Bank {
    async fn book(&self, name: &str, cents: i64) {
        // The way to the bank, as of a real request: a crash or a request to cancel can come here.
        tokio::task::yield_now().await;
        let mut entries = self.0.lock().unwrap();
        if entries.iter().all(|(booked, _)| booked != name) {
            entries.push((name.to_string(), Some(cents)));
        }
    }

    async fn cancel(&self, name: &str) {
        tokio::task::yield_now().await;
        let (mut entries, closed) = (self.0.lock().unwrap(), (name.to_string(), None));
        if !entries.contains(&closed) {
            entries.push(closed);
        }
    }

    /// What the activities did, in its order.
    fn effects(&self) -> Vec<Entry> {
        self.0.lock().unwrap().clone()
    }

    /// What is left: the newest entry of each name counts, so a booking after its cancellation is left.
    fn balance(&self) -> i64 {
        let newest: BTreeMap<String, Option<i64>> = self.effects().into_iter().collect();
        newest.into_values().flatten().sum()
    }
}

fn shop() -> Test<order> {
    Test::new(outlast::module![charge, refund, order])
}

#[test]
fn no_crash_charges_twice() {
    let test = shop().world(Bank::default, Bank::effects).send_at(days(2), Approval { yes: true });
    test.crash_everywhere(700).holds();
}

#[test]
fn no_crash_refunds_twice() {
    let test = shop().world(Bank::default, Bank::effects).send_at(days(2), Approval { yes: false });
    test.crash_everywhere(700).holds();
}

#[test]
fn a_failed_order_costs_nothing() {
    let test = shop().world(Bank::default, Bank::balance).send_at(days(2), Approval { yes: true });
    test.fail_everywhere(700).holds();
}

#[outlast::orchestration(on_cancel = undo)]
async fn cancellable(ctx: OrchestrationContext, cents: i64) -> Result<String, String> {
    let mut undo = Undo::new(&ctx);
    undo.push::<refund>(cents);
    let receipt = charge::call(&ctx, cents).await?;
    ctx.sleep(days(1)).await;
    undo.forget();
    Ok(receipt)
}

#[test]
fn a_cancelled_order_costs_nothing() {
    let test = Test::<cancellable>::new(outlast::module![charge, refund, cancellable]);
    test.world(Bank::default, Bank::balance).cancel_everywhere(700).holds();
}

#[test]
fn the_page_lists_every_method_of_test_and_no_other() {
    const SOURCES: [&str; 3] = [
        include_str!("../../src/test.rs"),
        include_str!("../../src/sweep.rs"),
        include_str!("../../src/cancel_sweep.rs"),
    ];
    let methods: BTreeSet<&str> = SOURCES.iter().flat_map(|source| methods_of_test(source)).collect();
    let (_, section) = PAGE.split_once("## All methods of `Test`").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let listed: BTreeSet<&str> = rows.map(|row| row.split(['(', ':', '`']).next().unwrap()).collect();
    assert_eq!(listed, methods);
    assert!(methods.len() > 20, "{methods:?}");
}

/// The public functions of the blocks `impl<O: Orchestration> Test<O>` of a file.
fn methods_of_test(source: &'static str) -> Vec<&'static str> {
    let blocks = source.split("\nimpl<O: Orchestration> Test<O> {").skip(1);
    let blocks = blocks.map(|block| block.split("\n}").next().unwrap());
    let lines = blocks.flat_map(str::lines).filter_map(|line| line.strip_prefix("    pub fn "));
    lines.map(|line| line.split(['(', '<']).next().unwrap()).collect()
}

#[test]
fn recorded_orders_still_replay() {
    let module = outlast::module![charge, refund, order];
    ReplayCheck::new(module).files("tests/histories/*.json").run().safe();
}

/// A store with an order.
async fn copy_of_the_store() -> Arc<MemoryProvider> {
    let store = Arc::new(MemoryProvider::new());
    let module = outlast::module![charge, refund, order];
    let builder = Runtime::builder().store(store.clone()).register(module).state(Bank::default());
    let runtime = builder.start().await.unwrap();
    let placed = order::start(&Client::new(store.clone()), 700).id("o-1").await.unwrap();
    placed.send(Approval { yes: true }).await.unwrap();
    placed.result().await.unwrap();
    runtime.shutdown(None).await;
    store
}

#[tokio::test]
async fn orders_of_the_copy_still_replay() {
    let store = copy_of_the_store().await;
    ReplayCheck::new(outlast::module![charge, refund, order]).run_on(store.as_ref()).await.safe();
}

/// Writes the history that `recorded_orders_still_replay` reads, on request.
#[test]
fn the_recorded_order_is_exported_on_request() {
    if std::env::var_os("OUTLAST_BLESS").is_some() {
        shop()
            .world(Bank::default, Bank::balance)
            .send_at(days(2), Approval { yes: false })
            .id("o-7")
            .run(700)
            .export("tests/histories/refused.json");
    }
}

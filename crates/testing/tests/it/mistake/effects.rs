//! Effects that happen twice, halfway, or stay.

use crate::crashes::Bank;
use outlast::prelude::*;
use outlast::testing::{Ledger, Test};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

macro_rules! with_bank {
    ($orchestration:ident, $($activity:ident),*) => {
        Test::<$orchestration>::new(outlast::module![$orchestration, $($activity),*])
            .world(Bank::default, |bank| (bank.balance(), bank.bookings()))
    };
}

// A charge without the idempotency key: the gateway makes its own.

#[outlast::activity]
async fn charge_without_key(
    ctx: ActivityContext,
    State(bank): State<Bank>,
    cents: i64,
) -> Result<(), String> {
    bank.book(&format!("request {} of {}", bank.bookings(), ctx.instance_id()), cents);
    Ok(())
}

#[outlast::activity]
async fn charge(ctx: ActivityContext, State(bank): State<Bank>, cents: i64) -> Result<(), String> {
    bank.book(ctx.idempotency_key(), cents);
    Ok(())
}

#[outlast::orchestration]
async fn pay_without_key(ctx: OrchestrationContext, cents: i64) -> Result<(), String> {
    Ok(charge_without_key::call(&ctx, cents).await?)
}

#[outlast::orchestration]
async fn pay(ctx: OrchestrationContext, cents: i64) -> Result<(), String> {
    Ok(charge::call(&ctx, cents).await?)
}

#[test]
fn a_charge_without_the_idempotency_key() {
    let wrong = with_bank!(pay_without_key, charge_without_key).crash_everywhere(7);
    assert_eq!(wrong.failures()[0].found, "Completed with (); world: (14, 2)", "{wrong}");
    with_bank!(pay, charge).crash_everywhere(7).holds();
}

// An activity with an effect that is not idempotent: a mail.

#[derive(Clone, Default)]
struct Mails(Ledger<(String, String)>);

#[outlast::activity]
async fn mail_always(ctx: ActivityContext, State(mails): State<Mails>, text: String) -> Result<(), String> {
    mails.0.add((ctx.idempotency_key().to_string(), text));
    Ok(())
}

#[outlast::activity]
async fn mail_once(ctx: ActivityContext, State(mails): State<Mails>, text: String) -> Result<(), String> {
    let key = ctx.idempotency_key().to_string();
    if mails.0.all().iter().all(|(sent, _)| *sent != key) {
        mails.0.add((key, text));
    }
    Ok(())
}

#[outlast::orchestration]
async fn greet_always(ctx: OrchestrationContext) -> Result<(), String> {
    Ok(mail_always::call(&ctx, "hello".into()).await?)
}

#[outlast::orchestration]
async fn greet_once(ctx: OrchestrationContext) -> Result<(), String> {
    Ok(mail_once::call(&ctx, "hello".into()).await?)
}

#[test]
fn an_activity_whose_effect_is_not_idempotent() {
    let sent = |mails: &Mails| mails.0.all().len();
    let wrong =
        Test::<greet_always>::new(outlast::module![mail_always, greet_always]).world(Mails::default, sent);
    let wrong = wrong.crash_everywhere(());
    assert!(wrong.failures()[0].repeated[0].contains("mail_always ran 2 times for 1 call"), "{wrong}");
    let right = Test::<greet_once>::new(outlast::module![mail_once, greet_once]).world(Mails::default, sent);
    right.crash_everywhere(()).holds();
}

// An undo that is not idempotent, and one that is missing.

#[outlast::activity]
async fn refund_blindly(_ctx: ActivityContext, State(bank): State<Bank>, cents: i64) -> Result<(), String> {
    bank.book(&format!("refund {}", bank.bookings()), -cents);
    Ok(())
}

/// The charge of an order has a name, by which the refund finds it.
#[outlast::activity]
async fn charge_order(ctx: ActivityContext, State(bank): State<Bank>, cents: i64) -> Result<(), String> {
    bank.book(ctx.instance_id(), cents);
    Ok(())
}

/// Succeeds also if nothing was charged.
#[outlast::activity]
async fn refund_order(ctx: ActivityContext, State(bank): State<Bank>) -> Result<(), String> {
    bank.cancel(ctx.instance_id());
    Ok(())
}

#[outlast::activity]
async fn ship(_ctx: ActivityContext) -> Result<(), String> {
    Err("sold out".to_string())
}

#[outlast::orchestration]
async fn order_with_blind_undo(ctx: OrchestrationContext, cents: i64) -> Result<(), String> {
    let mut undo = Undo::new(&ctx);
    undo.push::<refund_blindly>(cents);
    charge::call(&ctx, cents).await?;
    if let Err(error) = ship::call(&ctx).await {
        return undo.fail(error.into()).await;
    }
    Ok(())
}

#[outlast::orchestration]
async fn order(ctx: OrchestrationContext, cents: i64) -> Result<(), String> {
    let mut undo = Undo::new(&ctx);
    undo.push::<refund_order>(());
    let steps = async {
        charge_order::call(&ctx, cents).await?;
        ship::call(&ctx).await
    };
    if let Err(error) = steps.await {
        return undo.fail(error.into()).await;
    }
    Ok(())
}

#[test]
fn an_undo_that_is_not_idempotent() {
    let wrong = with_bank!(order_with_blind_undo, charge, refund_blindly, ship).crash_everywhere(7);
    assert_eq!(wrong.failures()[0].found, "Failed with sold out; world: (-7, 3)", "{wrong}");
    with_bank!(order, charge_order, refund_order, ship).crash_everywhere(7).holds();
}

#[outlast::orchestration]
async fn order_without_undo(ctx: OrchestrationContext, cents: i64) -> Result<(), String> {
    charge::call(&ctx, cents).await?;
    Ok(ship::call(&ctx).await?)
}

#[test]
fn a_missing_undo() {
    let balance = |bank: &Bank| bank.balance();
    let wrong = Test::<order_without_undo>::new(outlast::module![charge, order_without_undo]);
    let wrong = wrong.mock::<ship>(|()| Ok(())).world(Bank::default, balance).fail_everywhere(7);
    assert_eq!((wrong.moments(), wrong.runs()), (2, 4));
    let schedules: Vec<&str> = wrong.failures().iter().map(|failure| failure.schedule.as_str()).collect();
    let expected = [
        "activity 1 (charge) fails after its body has returned",
        "activity 2 (ship) fails instead of running",
        "activity 2 (ship) fails after its body has returned",
    ];
    assert_eq!(schedules, expected, "{wrong}");
    let right = Test::<order>::new(outlast::module![charge_order, refund_order, order]);
    right.mock::<ship>(|()| Ok(())).world(Bank::default, balance).fail_everywhere(7).holds();
}

// An undo that is pushed after its call: the charge is made, its answer is lost, and the undo is not there.

#[outlast::orchestration]
async fn order_with_late_undo(ctx: OrchestrationContext, cents: i64) -> Result<(), String> {
    let mut undo = Undo::new(&ctx);
    let steps = async {
        charge_order::call(&ctx, cents).await?;
        undo.push::<refund_order>(());
        ship::call(&ctx).await
    };
    if let Err(error) = steps.await {
        return undo.fail(error.into()).await;
    }
    Ok(())
}

#[test]
fn an_undo_that_is_pushed_after_its_call() {
    let module = outlast::module![charge_order, refund_order, order_with_late_undo];
    let wrong = Test::<order_with_late_undo>::new(module).mock::<ship>(|()| Ok(()));
    let wrong = wrong.world(Bank::default, Bank::balance).fail_everywhere(7);
    assert_eq!(wrong.failures().len(), 1, "{wrong}");
    let text = wrong.to_string();
    for part in [
        "2 moments, 4 runs with a fault, 1 of them ends otherwise",
        "activity 1 (charge_order) fails after its body has returned",
        "expected: a failed instance leaves the world as it was: 0",
        "found:    Failed with the test fails this activity; world: 7",
        "the body of charge_order returns null",
        "activity charge_order fails after its body, because the test says so",
    ] {
        assert!(text.contains(part), "'{part}' is missing in\n{text}");
    }
}

// Two effects in one activity, and a check of the first one only.

#[outlast::activity]
async fn transfer_halfway(ctx: ActivityContext, State(bank): State<Bank>, cents: i64) -> Result<(), String> {
    let key = ctx.idempotency_key();
    if bank.knows(key) {
        return Ok(());
    }
    bank.book(key, -cents);
    tokio::task::yield_now().await;
    bank.book(&format!("{key} credit"), cents);
    Ok(())
}

#[outlast::activity]
async fn transfer(ctx: ActivityContext, State(bank): State<Bank>, cents: i64) -> Result<(), String> {
    let key = ctx.idempotency_key();
    bank.book(key, -cents);
    tokio::task::yield_now().await;
    bank.book(&format!("{key} credit"), cents);
    Ok(())
}

#[outlast::orchestration]
async fn move_halfway(ctx: OrchestrationContext, cents: i64) -> Result<(), String> {
    Ok(transfer_halfway::call(&ctx, cents).await?)
}

#[outlast::orchestration]
async fn move_money(ctx: OrchestrationContext, cents: i64) -> Result<(), String> {
    Ok(transfer::call(&ctx, cents).await?)
}

#[test]
fn two_effects_of_which_one_is_checked() {
    let wrong = with_bank!(move_halfway, transfer_halfway).crash_everywhere(7);
    assert_eq!(wrong.failures()[0].found, "Completed with (); world: (-7, 1)", "{wrong}");
    assert!(wrong.failures()[0].schedule.contains("between two awaits"), "{wrong}");
    with_bank!(move_money, transfer).crash_everywhere(7).holds();
}

// A value in the memory of the process.

type Cache = Arc<Mutex<BTreeMap<String, u64>>>;

#[outlast::activity]
async fn price(ctx: ActivityContext, State(cache): State<Cache>) -> Result<u64, String> {
    cache.lock().unwrap().insert(ctx.instance_id().to_string(), 7);
    Ok(7)
}

#[outlast::activity]
async fn bill_from_memory(ctx: ActivityContext, State(cache): State<Cache>) -> Result<u64, String> {
    Ok(cache.lock().unwrap().get(ctx.instance_id()).copied().unwrap_or_default())
}

#[outlast::activity]
async fn bill(_ctx: ActivityContext, price: u64) -> Result<u64, String> {
    Ok(price)
}

#[outlast::orchestration]
async fn sell_from_memory(ctx: OrchestrationContext) -> Result<u64, String> {
    price::call(&ctx).await?;
    Ok(bill_from_memory::call(&ctx).await?)
}

#[outlast::orchestration]
async fn sell(ctx: OrchestrationContext) -> Result<u64, String> {
    let price = price::call(&ctx).await?;
    Ok(bill::call(&ctx, price).await?)
}

#[test]
fn a_value_kept_in_the_memory_of_the_process() {
    let wrong = Test::<sell_from_memory>::new(outlast::module![price, bill_from_memory, sell_from_memory]);
    let wrong = wrong.state(Cache::default).crash_everywhere(());
    assert_eq!(wrong.failures()[0].found, "Completed with 0", "{wrong}");
    Test::<sell>::new(outlast::module![price, bill, sell]).state(Cache::default).crash_everywhere(()).holds();
}

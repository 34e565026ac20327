//! Requests to cancel that leave an effect behind, or have none.

use crate::crashes::Bank;
use outlast::prelude::*;
use outlast::testing::{SweepFailure, Test, days, seconds};

/// The charge of an order has a name, by which the refund finds it.
#[outlast::activity]
async fn charge(ctx: ActivityContext, State(bank): State<Bank>, cents: i64) -> Result<(), String> {
    bank.book(ctx.instance_id(), cents);
    Ok(())
}

/// Succeeds also if nothing was charged.
#[outlast::activity]
async fn refund(ctx: ActivityContext, State(bank): State<Bank>) -> Result<(), String> {
    bank.cancel(ctx.instance_id());
    Ok(())
}

#[outlast::activity]
async fn ship(_ctx: ActivityContext) -> Result<(), String> {
    Ok(())
}

macro_rules! shop {
    ($orchestration:ident, $($activity:ident),*) => {
        Test::<$orchestration>::new(outlast::module![$orchestration, $($activity),*])
            .world(Bank::default, Bank::balance)
    };
}

/// The order as it should be.
#[outlast::orchestration(on_cancel = undo)]
async fn order(ctx: OrchestrationContext, cents: i64) -> Result<(), String> {
    let mut undo = Undo::new(&ctx);
    undo.push::<refund>(());
    charge::call(&ctx, cents).await?;
    ctx.sleep(days(1)).await;
    ship::call(&ctx).await?;
    undo.forget();
    Ok(())
}

#[test]
fn an_order_that_undoes_its_steps_holds_at_every_moment() {
    let sweep = shop!(order, charge, refund, ship).cancel_everywhere(7);
    sweep.holds();
    let first_line = sweep.to_string();
    assert!(first_line.contains("runs with a request to cancel, 0 of them end otherwise"), "{first_line}");
    assert!(sweep.moments() >= 6 && sweep.runs() > 3 * sweep.moments(), "{first_line}");
}

fn found_of(failures: &[SweepFailure]) -> Vec<&str> {
    failures.iter().map(|failure| failure.found.as_str()).collect()
}

// An orchestration without `on_cancel`: its code does not run any more.

#[outlast::orchestration]
async fn order_without_on_cancel(ctx: OrchestrationContext, cents: i64) -> Result<(), String> {
    let mut undo = Undo::new(&ctx);
    undo.push::<refund>(());
    charge::call(&ctx, cents).await?;
    ctx.sleep(days(1)).await;
    match ship::call(&ctx).await {
        Ok(()) => Ok(()),
        Err(error) => undo.fail(error.into()).await,
    }
}

#[test]
fn an_order_without_on_cancel() {
    let wrong = shop!(order_without_on_cancel, charge, refund, ship).cancel_everywhere(7);
    let found = found_of(wrong.failures());
    assert!(!found.is_empty() && found.iter().all(|end| end.ends_with("world: 7")), "{wrong}");
    let text = crate::panic_of(|| wrong.holds());
    for part in [
        "the instance is cancelled",
        "expected: the end without a request, or a cancelled instance that leaves the world as it was: 0",
        "canceled: the test cancels the instance; world: 7",
        "CANCEL: a client cancels the instance",
    ] {
        assert!(text.contains(part), "'{part}' is missing in\n{text}");
    }
}

// A step whose undo is missing.

#[outlast::orchestration(on_cancel = undo)]
async fn order_without_undo(ctx: OrchestrationContext, cents: i64) -> Result<(), String> {
    charge::call(&ctx, cents).await?;
    ctx.sleep(days(1)).await;
    Ok(ship::call(&ctx).await?)
}

#[test]
fn a_step_without_an_undo() {
    let wrong = shop!(order_without_undo, charge, ship).cancel_everywhere(7);
    let found = found_of(wrong.failures());
    assert!(!found.is_empty() && found.iter().all(|end| end.ends_with("world: 7")), "{wrong}");
}

// An undo that is pushed after its call: the request comes while the outcome of the charge is stored.

#[outlast::orchestration(on_cancel = undo)]
async fn order_with_late_undo(ctx: OrchestrationContext, cents: i64) -> Result<(), String> {
    let mut undo = Undo::new(&ctx);
    charge::call(&ctx, cents).await?;
    undo.push::<refund>(());
    ctx.sleep(days(1)).await;
    ship::call(&ctx).await?;
    undo.forget();
    Ok(())
}

#[test]
fn an_undo_that_is_pushed_after_its_call() {
    let wrong = shop!(order_with_late_undo, charge, refund, ship).cancel_everywhere(7);
    let smallest = wrong.failures().first().unwrap();
    assert!(smallest.schedule.contains("the instance is cancelled after the call"), "{wrong}");
    assert!(smallest.found.ends_with("world: 7"), "{wrong}");
}

// Steps that are forgotten before the last one has succeeded.

#[outlast::orchestration(on_cancel = undo)]
async fn order_that_forgets_early(ctx: OrchestrationContext, cents: i64) -> Result<(), String> {
    let mut undo = Undo::new(&ctx);
    undo.push::<refund>(());
    charge::call(&ctx, cents).await?;
    undo.forget();
    ctx.sleep(days(1)).await;
    Ok(ship::call(&ctx).await?)
}

#[test]
fn steps_that_are_forgotten_too_early() {
    let wrong = shop!(order_that_forgets_early, charge, refund, ship).cancel_everywhere(7);
    assert!(wrong.failures().iter().all(|failure| failure.found.ends_with("world: 7")), "{wrong}");
    assert!(!wrong.failures().is_empty(), "{wrong}");
}

// A body that observes requests, ignores them, and goes on charging.

#[outlast::activity]
async fn charge_month(ctx: ActivityContext, State(bank): State<Bank>, month: u32) -> Result<(), String> {
    bank.book(&format!("{} {month}", ctx.instance_id()), 7);
    Ok(())
}

#[outlast::orchestration(on_cancel = observe, grace = "365d")]
async fn subscription_without_end(ctx: OrchestrationContext) -> Result<u32, String> {
    for month in 1..=3 {
        charge_month::call(&ctx, month).await?;
        ctx.sleep(days(30)).await;
    }
    Ok(3)
}

#[outlast::orchestration(on_cancel = observe, grace = "365d")]
async fn subscription(ctx: OrchestrationContext) -> Result<u32, String> {
    let mut cancelled = std::pin::pin!(ctx.cancelled());
    for month in 1..=3 {
        charge_month::call(&ctx, month).await?;
        if let Either2::First(_) = ctx.select2(cancelled.as_mut(), ctx.sleep(days(30))).await {
            return Ok(month);
        }
    }
    Ok(3)
}

#[test]
fn a_body_that_ignores_a_request_and_goes_on_charging() {
    let wrong = shop!(subscription_without_end, charge_month).cancel_everywhere(());
    let [only] = wrong.failures() else { panic!("{wrong}") };
    assert_eq!(only.found, "the same end in every run: Completed with 3; world: 21", "{wrong}");
    assert!(only.expected.contains("does the code await ctx.cancelled()"), "{wrong}");
    // Each month that began is charged once.
    let is_paid = |run: &outlast::testing::Run<subscription>| {
        run.result().as_ref().is_ok_and(|months| run.observed() == [(months * 7).to_string()])
    };
    let right = shop!(subscription, charge_month);
    right.cancel_everywhere_with((), is_paid).holds();
    let strict = right.cancel_everywhere_with((), |run| run.observed() == ["0"]);
    assert!(strict.to_string().contains("expected: an end that the closure of the test accepts"), "{strict}");
}

// An activity that has its effect after its undo.

#[outlast::activity]
async fn charge_slowly(ctx: ActivityContext, State(bank): State<Bank>, cents: i64) -> Result<(), String> {
    // Less than the grace period of cancelled activities, after which the runtime drops the body.
    tokio::time::sleep(seconds(5)).await;
    bank.book(ctx.instance_id(), cents);
    Ok(())
}

#[outlast::orchestration(on_cancel = undo)]
async fn order_that_does_not_wait(ctx: OrchestrationContext, cents: i64) -> Result<(), String> {
    let mut undo = Undo::new(&ctx);
    undo.push::<refund>(());
    charge_slowly::call(&ctx, cents).await?;
    undo.forget();
    Ok(())
}

#[outlast::orchestration(on_cancel = undo)]
async fn order_that_waits(ctx: OrchestrationContext, cents: i64) -> Result<(), String> {
    let mut undo = Undo::new(&ctx);
    undo.push::<refund>(());
    ctx.shielded(charge_slowly::call(&ctx, cents)).await?;
    ctx.sleep(days(1)).await;
    undo.forget();
    Ok(())
}

#[test]
fn an_activity_whose_effect_comes_after_its_undo() {
    let wrong = shop!(order_that_does_not_wait, charge_slowly, refund).cancel_everywhere(7);
    assert!(found_of(wrong.failures()).iter().all(|end| end.ends_with("world: 7")), "{wrong}");
    let text = wrong.to_string();
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("'{part}' is missing in\n{text}"));
    assert!(at("the body of refund returns") < at("the body of charge_slowly returns"), "{text}");
    shop!(order_that_waits, charge_slowly, refund).cancel_everywhere(7).holds();
}

// An undo that leaves the name open, under which the charge then is made. Only a fake that awaits before its effect shows it.

#[outlast::activity]
async fn charge_by_request(ctx: ActivityContext, State(bank): State<Bank>, cents: i64) -> Result<(), String> {
    tokio::task::yield_now().await;
    if !bank.knows(ctx.instance_id()) {
        bank.book(ctx.instance_id(), cents);
    }
    Ok(())
}

/// A closed name is a booking of nothing.
#[outlast::activity]
async fn refund_and_close(ctx: ActivityContext, State(bank): State<Bank>) -> Result<(), String> {
    bank.book(ctx.instance_id(), 0);
    Ok(())
}

#[outlast::orchestration(on_cancel = undo)]
async fn order_that_leaves_the_name_open(ctx: OrchestrationContext, cents: i64) -> Result<(), String> {
    let mut undo = Undo::new(&ctx);
    undo.push::<refund>(());
    charge_by_request::call(&ctx, cents).await?;
    ctx.sleep(days(1)).await;
    undo.forget();
    Ok(())
}

#[outlast::orchestration(on_cancel = undo)]
async fn order_that_closes_the_name(ctx: OrchestrationContext, cents: i64) -> Result<(), String> {
    let mut undo = Undo::new(&ctx);
    undo.push::<refund_and_close>(());
    charge_by_request::call(&ctx, cents).await?;
    ctx.sleep(days(1)).await;
    undo.forget();
    Ok(())
}

#[test]
fn an_undo_that_leaves_the_name_open() {
    let wrong = shop!(order_that_leaves_the_name_open, charge_by_request, refund).cancel_everywhere(7);
    let found = found_of(wrong.failures());
    assert!(!found.is_empty() && found.iter().all(|end| end.ends_with("world: 7")), "{wrong}");
    shop!(order_that_closes_the_name, charge_by_request, refund_and_close).cancel_everywhere(7).holds();
}

//! Crashes at every moment.

use outlast::prelude::*;
use outlast::testing::{Ledger, Test, days};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// A bank that ignores a second request with the same key.
#[derive(Clone, Default)]
pub(crate) struct Bank(Arc<Mutex<BTreeMap<String, i64>>>);

impl Bank {
    pub(crate) fn book(&self, key: &str, cents: i64) {
        self.0.lock().unwrap().insert(key.to_string(), cents);
    }

    pub(crate) fn cancel(&self, name: &str) {
        self.0.lock().unwrap().remove(name);
    }

    pub(crate) fn knows(&self, key: &str) -> bool {
        self.0.lock().unwrap().contains_key(key)
    }

    pub(crate) fn balance(&self) -> i64 {
        self.0.lock().unwrap().values().sum()
    }

    pub(crate) fn bookings(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

#[derive(Serialize, Deserialize, outlast::Message)]
struct Approval {
    yes: bool,
}

#[outlast::activity]
async fn charge(ctx: ActivityContext, State(bank): State<Bank>, cents: i64) -> Result<String, String> {
    bank.book(ctx.idempotency_key(), cents);
    Ok(format!("charged {cents}"))
}

#[outlast::activity]
async fn refund(ctx: ActivityContext, State(bank): State<Bank>, cents: i64) -> Result<(), String> {
    bank.book(ctx.idempotency_key(), -cents);
    Ok(())
}

#[outlast::orchestration(accepts(Approval))]
async fn fulfil(ctx: OrchestrationContext, cents: i64) -> outlast::Result<String> {
    let mut undo = Undo::new(&ctx);
    undo.push::<refund>(cents);
    let receipt = charge::call(&ctx, cents).await?;
    match ctx.next::<Approval>().within(days(3)).await? {
        Some(Approval { yes: true }) => Ok(receipt),
        _ => {
            undo.run().await?;
            Ok("refunded".to_string())
        }
    }
}

fn test() -> Test<fulfil> {
    Test::new(outlast::module![charge, refund, fulfil])
        .world(Bank::default, |bank| (bank.balance(), bank.bookings()))
}

#[test]
fn a_saga_with_keys_holds_at_every_moment() {
    let approved = test().send_at(days(2), Approval { yes: true }).crash_everywhere(7);
    approved.holds();
    assert!(approved.moments() >= 6 && approved.runs() > 40, "{approved}");
    let refused = test().send_at(days(2), Approval { yes: false }).crash_everywhere(7);
    refused.holds();
    test().crash_everywhere(7).holds();
}

#[outlast::activity]
async fn mail(_ctx: ActivityContext, State(sent): State<Ledger<String>>, text: String) -> Result<(), String> {
    sent.add(text);
    Ok(())
}

#[outlast::orchestration]
async fn greet(ctx: OrchestrationContext, name: String) -> Result<(), String> {
    Ok(mail::call(&ctx, format!("hello {name}")).await?)
}

#[test]
fn the_smallest_failure_has_a_timeline() {
    let test =
        Test::<greet>::new(outlast::module![mail, greet]).world(Ledger::<String>::default, Ledger::all);
    let sweep = test.crash_everywhere("Ada".into());
    let text = crate::panic_of(|| sweep.holds());
    for part in [
        "store call 4 (store the outcome of activity 2: null, and the next turn: ",
        "): the process crashes before the call",
        "expected: Completed with ()",
        "world: [\"hello Ada\"]",
        "world: [\"hello Ada\", \"hello Ada\"]",
        "the body of mail ran 2 times for 1 call",
        "instance 'greet-1' of greet is started",
        "the body of mail begins (delivery 1, key greet-1:1:2)",
        "CRASH before the call: store the outcome of activity 2",
        "the process starts again",
        "the body of mail begins (delivery 2, key greet-1:1:2)",
    ] {
        assert!(text.contains(part), "'{part}' is missing in\n{text}");
    }
    let first = &sweep.failures()[0];
    assert!(first.timeline.len() < 20 && sweep.failures()[1].timeline.is_empty(), "{text}");
}

#[outlast::orchestration(accepts(Approval))]
async fn greet_later(ctx: OrchestrationContext) -> Result<(), String> {
    ctx.next::<Approval>().await?;
    Ok(mail::call(&ctx, "hello".into()).await?)
}

#[test]
fn a_timeline_names_the_actions_of_the_test() {
    let test = Test::<greet_later>::new(outlast::module![mail, greet_later])
        .world(Ledger::<String>::default, Ledger::all)
        .send_at(days(2), &Approval { yes: true })
        .at(days(1), |_| async { Ok::<(), String>(()) });
    let text = test.crash_everywhere(()).to_string();
    for part in [
        "the test acts (`.at`) (1d after the start)",
        "the test sends a message of queue 'approval' (2d after the start)",
    ] {
        assert!(text.contains(part), "'{part}' is missing in\n{text}");
    }
    let cancelled = test.cancel_at(days(1), "no").run(());
    assert_eq!(cancelled.result(), &Err(CallError::Cancelled("no".into())));
}

#[test]
fn two_sweeps_are_equal() {
    let test =
        Test::<greet>::new(outlast::module![mail, greet]).world(Ledger::<String>::default, Ledger::all);
    assert_eq!(test.crash_everywhere("Ada".into()), test.crash_everywhere("Ada".into()));
}

#[outlast::activity(retry = 3, backoff = "1ms")]
async fn insist(ctx: ActivityContext, State(sent): State<Ledger<String>>) -> Result<(), String> {
    sent.add(format!("attempt {}", ctx.failures() + 1));
    if ctx.failures() == 0 { Err("busy".to_string()) } else { Ok(()) }
}

#[outlast::orchestration]
async fn insistent(ctx: OrchestrationContext) -> Result<(), String> {
    Ok(insist::call(&ctx).await?)
}

#[test]
fn a_sweep_crashes_where_a_failed_attempt_is_reported() {
    let test = Test::<insistent>::new(outlast::module![insist, insistent])
        .world(Ledger::<String>::default, Ledger::all);
    let text = crate::panic_of(|| test.crash_everywhere(()).holds());
    for part in
        ["CRASH before the call: report a failed attempt of an activity", "[\"attempt 1\", \"attempt 1\""]
    {
        assert!(text.contains(part), "'{part}' is missing in\n{text}");
    }
}

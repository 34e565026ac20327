//! A test of an orchestration: mocks, three virtual days, and a crash at every moment.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::prelude::*;
use outlast::testing::{Ledger, Test, days};

#[outlast::activity]
async fn mail(ctx: ActivityContext, State(sent): State<Ledger<String>>, text: String) -> Result<(), String> {
    // A second delivery of the same activity has the same key, and sends no second mail.
    let mail = format!("{} {text}", ctx.idempotency_key());
    // The way to the server, as of a real request: a crash can come here.
    tokio::task::yield_now().await;
    if !sent.all().contains(&mail) {
        sent.add(mail);
    }
    Ok(())
}

#[outlast::orchestration]
async fn remind(ctx: OrchestrationContext, name: String) -> Result<String, String> {
    for day in 1..=3 {
        ctx.sleep(days(1)).await;
        mail::call(&ctx, format!("day {day}, {name}")).await?;
    }
    Ok(format!("{name} was reminded"))
}

/// In a program, these are `#[test]` functions.
fn main() {
    // A mock in place of the mail server.
    let run = Test::<remind>::new(outlast::module![remind]).mock::<mail>(|_| Ok(())).run("Ada".into());
    assert_eq!((run.output().as_str(), run.elapsed()), ("Ada was reminded", days(3)));
    run.calls::<mail>().times(3);
    println!("{}", run.text());

    // The process crashes at every moment, and still sends three mails.
    let test =
        Test::<remind>::new(outlast::module![mail, remind]).world(Ledger::<String>::default, Ledger::all);
    let sweep = test.crash_everywhere("Ada".into());
    sweep.holds();
    println!("{sweep}");
}

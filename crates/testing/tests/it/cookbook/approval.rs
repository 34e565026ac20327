//! A decision of one person, with a deadline.

// guide: program
use outlast::prelude::*;
#[cfg(test)]
use outlast::testing::{Test, hours};
use outlast::time::days;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, outlast::Message)]
enum Decision {
    Approved { by: String },
    Refused { by: String, reason: String },
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Expense {
    Paid { approved_by: Option<String> },
    Refused(String),
}

#[outlast::activity(retry = 5)]
async fn ask_manager(_ctx: ActivityContext, id: String, cents: u64) -> Result<(), String> {
    Err(format!("the mail about {id} and {cents} is a mock in the tests"))
}

#[outlast::activity(retry = 5)]
async fn pay(_ctx: ActivityContext, cents: u64) -> Result<(), String> {
    Err(format!("the payment of {cents} is a mock in the tests"))
}

#[outlast::orchestration(accepts(Decision))]
async fn expense(ctx: OrchestrationContext, cents: u64) -> Result<Expense, String> {
    let mut approved_by = None;
    if cents > 10_000 {
        // The mail has the id of the instance: the link in it sends a `Decision` to this instance.
        ask_manager::call(&ctx, ctx.instance_id(), cents).await?;
        match ctx.next::<Decision>().within(days(7)).await? {
            Some(Decision::Approved { by }) => approved_by = Some(by),
            Some(Decision::Refused { by, reason }) => return Ok(Expense::Refused(format!("{by}: {reason}"))),
            None => return Ok(Expense::Refused("no decision in seven days".into())),
        }
    }
    pay::call(&ctx, cents).await?;
    Ok(Expense::Paid { approved_by })
}

#[cfg(test)]
fn office() -> Test<expense> {
    Test::<expense>::new(outlast::module![expense]).mock::<ask_manager>(|_| Ok(())).mock::<pay>(|_| Ok(()))
}

#[test]
fn a_small_expense_is_paid_at_once() {
    let run = office().run(900);
    assert_eq!(run.output(), &Expense::Paid { approved_by: None });
    run.calls::<ask_manager>().never();
}

#[test]
fn a_large_expense_waits_for_its_approval() {
    let run = office().send_at(hours(30), Decision::Approved { by: "Ada".into() }).run(90_000);
    assert_eq!(run.output(), &Expense::Paid { approved_by: Some("Ada".into()) });
    assert_eq!(run.elapsed(), hours(30));
}

#[test]
fn a_refused_or_forgotten_expense_is_not_paid() {
    let no = Decision::Refused { by: "Ada".into(), reason: "too much".into() };
    let run = office().send_at(hours(1), &no).run(90_000);
    assert_eq!(run.output(), &Expense::Refused("Ada: too much".into()));
    let run = office().run(90_000);
    assert_eq!(run.output(), &Expense::Refused("no decision in seven days".into()));
    run.calls::<pay>().never();
}
// guide: end

//! The programs of docs/guide/waiting.md.

// guide: program
use outlast::prelude::*;
#[cfg(test)]
use outlast::testing::{Test, hours};
use outlast::time::days;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Quote {
    supplier: String,
    cents: u64,
}

#[outlast::activity]
async fn ask(_ctx: ActivityContext, supplier: String) -> Result<Quote, String> {
    Err(format!("{supplier} is a mock in the tests"))
}

/// Asks all suppliers at once. The first answer wins; after two days there is none.
#[outlast::orchestration]
async fn first_quote(ctx: OrchestrationContext, suppliers: Vec<String>) -> Result<Option<Quote>, String> {
    let quotes: Vec<_> = suppliers.into_iter().map(|supplier| ask::call(&ctx, supplier)).collect();
    match ctx.select2(ctx.select_all(quotes), ctx.sleep(days(2))).await {
        Either2::First((_index, quote)) => Ok(Some(quote?)),
        Either2::Second(()) => Ok(None),
    }
}

fn suppliers() -> Vec<String> {
    vec!["Ada".into(), "Bob".into()]
}

#[test]
fn the_first_quote_wins() {
    let run = Test::<first_quote>::new(outlast::module![first_quote])
        .mock_with::<ask, _>(|_call, supplier| async move {
            tokio::time::sleep(hours(if supplier == "Ada" { 30 } else { 20 })).await;
            Ok(Quote { supplier, cents: 700 })
        })
        .run(suppliers());
    assert_eq!(run.output(), &Some(Quote { supplier: "Bob".into(), cents: 700 }));
    assert_eq!(run.elapsed(), hours(20));
}

#[test]
fn without_an_answer_there_is_no_quote_after_two_days() {
    let run = Test::<first_quote>::new(outlast::module![first_quote])
        .mock_with::<ask, _>(|call, _supplier| async move {
            call.context().cancelled().await;
            Err("too late".to_string())
        })
        .run(suppliers());
    assert_eq!((run.output(), run.elapsed()), (&None, days(2)));
}
// guide: end

// guide: all
/// Waits for all suppliers, and returns the cheapest quote.
#[outlast::orchestration]
async fn best_quote(ctx: OrchestrationContext, suppliers: Vec<String>) -> Result<Option<Quote>, String> {
    let quotes: Vec<_> = suppliers.into_iter().map(|supplier| ask::call(&ctx, supplier)).collect();
    let answers = ctx.join_all(quotes).await;
    Ok(answers.into_iter().flatten().min_by_key(|quote| quote.cents))
}
// guide: end

#[test]
fn the_cheapest_quote_of_all() {
    let run = Test::<best_quote>::new(outlast::module![best_quote])
        .mock::<ask>(|supplier| Ok(Quote { cents: supplier.len() as u64, supplier }))
        .run(vec!["Charles".into(), "Ada".into()]);
    assert_eq!(run.output().as_ref().map(|quote| quote.cents), Some(3));
}

#[outlast::activity]
async fn remind(_ctx: ActivityContext, guest: String) -> Result<(), String> {
    Err(format!("{guest} is a mock in the tests"))
}

// guide: reminders
#[derive(Serialize, Deserialize, outlast::Message)]
struct Reply {
    comes: bool,
}

/// Reminds the guest every day, at most three times.
#[outlast::orchestration(accepts(Reply))]
async fn invite(ctx: OrchestrationContext, guest: String) -> Result<Option<bool>, String> {
    for _day in 0..3 {
        if let Some(reply) = ctx.next::<Reply>().within(days(1)).await? {
            return Ok(Some(reply.comes));
        }
        remind::call(&ctx, guest.clone()).await?;
    }
    Ok(None)
}
// guide: end

#[test]
fn a_guest_is_reminded_until_the_reply_comes() {
    let test = Test::<invite>::new(outlast::module![invite]).mock::<remind>(|_| Ok(()));
    let run = test.clone().send_at(hours(30), Reply { comes: true }).run("Ada".into());
    assert_eq!((run.output(), run.calls::<remind>().count()), (&Some(true), 1));
    let run = test.run("Bob".into());
    assert_eq!((run.output(), run.calls::<remind>().count()), (&None, 3));
}

// guide: blocks
/// Two branches at the same time, each with several steps.
#[outlast::orchestration]
async fn party(ctx: OrchestrationContext, guest: String) -> Result<u64, String> {
    let invitation = async {
        ctx.sleep(days(1)).await;
        remind::call(&ctx, guest.clone()).await
    };
    let food = async {
        let quote = ask::call(&ctx, "caterer".into()).await?;
        ctx.sleep(days(3)).await;
        Ok::<u64, CallError<String>>(quote.cents)
    };
    let (reminded, cents) = ctx.join2(invitation, food).await;
    reminded?;
    Ok(cents?)
}
// guide: end

#[test]
fn branches_run_at_the_same_time() {
    let run = Test::<party>::new(outlast::module![party])
        .mock::<remind>(|_| Ok(()))
        .mock::<ask>(|supplier| Ok(Quote { supplier, cents: 90 }))
        .run("Ada".into());
    assert_eq!((run.output(), run.elapsed()), (&90, days(3)));
}

//! The programs of docs/guide/errors.md.

// guide: program
use outlast::prelude::*;
#[cfg(test)]
use outlast::testing::{Test, seconds};
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize, Deserialize, outlast::Failure)]
enum PaymentError {
    #[error("declined: {code}")]
    #[failure(permanent)]
    Declined { code: String },
    #[error("the gateway is busy")]
    #[failure(retry_after = wait)]
    Busy { wait: Duration },
    #[error("{0}")]
    #[failure(unknown)]
    Other(String),
}

#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize, Deserialize, outlast::Failure)]
enum OrderError {
    #[error("not paid: {code}")]
    NotPaid { code: String },
    #[error("{0}")]
    #[failure(call)]
    Broken(String),
}

#[outlast::activity(retry = 5, backoff = "1s")]
async fn charge(_ctx: ActivityContext, cents: u64) -> Result<String, PaymentError> {
    Err(PaymentError::Other(format!("the gateway for {cents} cents is a mock in the tests")))
}

#[outlast::orchestration]
async fn order(ctx: OrchestrationContext, cents: u64) -> Result<String, OrderError> {
    match charge::call(&ctx, cents).await {
        Ok(receipt) => Ok(receipt),
        Err(CallError::Failed(PaymentError::Declined { code })) => Err(OrderError::NotPaid { code }),
        Err(other) => Err(other.into()),
    }
}

#[test]
fn a_busy_gateway_is_asked_again_when_it_says() {
    let busy = Err(PaymentError::Busy { wait: seconds(20) });
    let test = Test::<order>::new(outlast::module![order]).answers::<charge>([
        busy.clone(),
        busy,
        Ok("receipt 1".into()),
    ]);
    let run = test.run(700);
    assert_eq!(run.output(), "receipt 1");
    assert_eq!(run.elapsed(), seconds(40));
    run.calls::<charge>().times(3);
}

#[test]
fn a_declined_card_is_not_charged_again() {
    let declined = PaymentError::Declined { code: "05".into() };
    let run = Test::<order>::new(outlast::module![order]).answers::<charge>([Err(declined)]).run(700);
    assert_eq!(run.failure(), &OrderError::NotPaid { code: "05".into() });
    run.calls::<charge>().once();
}
// guide: end

#[test]
fn the_caller_gets_the_error_of_the_last_attempt() {
    let run = Test::<order>::new(outlast::module![charge, order]).run(700);
    let text = "the gateway for 700 cents is a mock in the tests";
    assert_eq!(run.failure(), &OrderError::Broken(text.into()));
    run.calls::<charge>().times(5);
    // Pauses of 1, 2, 4 and 8 seconds.
    assert_eq!(run.elapsed(), seconds(15));
}

// guide: any
#[outlast::activity]
async fn parse(_ctx: ActivityContext, text: String) -> outlast::Result<u64> {
    if text.is_empty() {
        return Err(outlast::Error::new("no amount").permanent());
    }
    text.trim().parse::<u64>().with_context(|| format!("the amount '{text}'"))
}

#[outlast::orchestration]
async fn read(ctx: OrchestrationContext, text: String) -> outlast::Result<u64> {
    let cents = parse::call(&ctx, text).await?;
    Ok(cents * 100)
}
// guide: end

#[test]
fn any_error_becomes_an_error_of_outlast() {
    let test = Test::<read>::new(outlast::module![parse, read]);
    assert_eq!(test.run(" 7 ".into()).output(), &700);
    let run = test.run("seven".into());
    assert_eq!(format!("{:#}", run.failure()), "the amount 'seven': invalid digit found in string");
    assert_eq!(test.run(String::new()).failure().to_string(), "no amount");
}

#[outlast::orchestration]
async fn retail(ctx: OrchestrationContext, cents: u64) -> Result<String, OrderError> {
    Ok(order::child(&ctx, cents).await?)
}

#[test]
fn an_error_of_the_same_type_passes_the_question_mark() {
    let declined = PaymentError::Declined { code: "05".into() };
    let test = Test::<retail>::new(outlast::module![retail, order]).answers::<charge>([Err(declined)]);
    assert_eq!(test.run(700).failure(), &OrderError::NotPaid { code: "05".into() });
}

// guide: recorded
#[outlast::orchestration]
async fn patient(ctx: OrchestrationContext, cents: u64) -> Result<String, OrderError> {
    let attempts = RetryPolicy::new(3).with_timeout(seconds(30));
    Ok(charge::call(&ctx, cents).retry(attempts).await?)
}
// guide: end

#[test]
fn retries_of_a_call_multiply_the_retries_of_the_attribute() {
    let run = Test::<patient>::new(outlast::module![charge, patient]).run(700);
    run.calls::<charge>().times(15);
}

//! Mocks by type.

use outlast::prelude::*;
use outlast::testing::{Test, minutes};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize, Deserialize, outlast::Failure)]
enum PaymentError {
    #[error("declined: {code}")]
    #[failure(permanent)]
    Declined { code: String },
    #[error("busy")]
    Busy,
}

struct Unreachable;

#[outlast::activity]
async fn charge(
    _ctx: ActivityContext,
    _bank: State<std::sync::Arc<Unreachable>>,
    cents: u64,
) -> Result<String, PaymentError> {
    Err(PaymentError::Declined { code: format!("the real bank was asked for {cents}") })
}

#[outlast::orchestration]
async fn pay(ctx: OrchestrationContext, cents: u64) -> Result<String, PaymentError> {
    match charge::call(&ctx, cents).retry(3).await {
        Ok(receipt) => Ok(receipt),
        Err(CallError::Failed(error)) => Err(error),
        Err(other) => Err(PaymentError::Declined { code: other.to_string() }),
    }
}

fn test() -> Test<pay> {
    Test::new(outlast::module![charge, pay])
}

#[test]
fn a_mock_replaces_an_activity_and_its_needs() {
    let run = test().mock::<charge>(|cents| Ok(format!("paid {cents}"))).run(7);
    assert_eq!(run.output(), "paid 7");
    run.calls::<charge>().once();
    assert_eq!(run.calls::<charge>().keys(), ["pay-1:1:2"]);
}

#[test]
fn a_typed_error_of_a_mock_is_the_error_of_the_call() {
    let run = test().mock::<charge>(|_| Err(PaymentError::Declined { code: "05".into() })).run(7);
    assert_eq!(run.failure(), &PaymentError::Declined { code: "05".into() });
    run.calls::<charge>().once();
    let text = crate::panic_of(|| drop(run.output().clone()));
    assert!(text.contains("declined: 05") && text.contains("2 activity charge 7"), "{text}");
}

#[test]
fn answers_come_in_order_and_anew_in_each_run() {
    let busy = || Err(PaymentError::Busy);
    let test = test().answers::<charge>([busy(), busy(), Ok("third time".to_string())]);
    for _ in 0..2 {
        let run = test.run(7);
        assert_eq!(run.output(), "third time");
        run.calls::<charge>().times(3);
    }
    let text = crate::panic_of(|| test.run(7).calls::<charge>().once());
    assert!(text.starts_with("activity 'charge' ran 3 times, not once: 7 (pay-1:1:2), "), "{text}");
}

#[test]
fn an_async_mock_knows_its_call() {
    let test = test().mock_with::<charge, _>(|call, cents| async move {
        tokio::time::sleep(minutes(call.number() as u64)).await;
        match call.number() {
            1 => Err(PaymentError::Busy),
            _ => Ok(format!("{cents} with {}", call.context().idempotency_key())),
        }
    });
    let run = test.id("order-7").run(7);
    assert_eq!(run.output(), "7 with order-7:1:6");
    assert!(run.elapsed() > minutes(3) && run.elapsed() < minutes(4), "{:?}", run.elapsed());
}

#[test]
fn the_last_mock_of_an_activity_counts() {
    let first = || test().mock::<charge>(|_| Ok("first".to_string()));
    assert_eq!(first().mock::<charge>(|_| Ok("second".to_string())).run(7).output(), "second");
    assert_eq!(first().answers::<charge>([Ok("answer".to_string())]).run(7).output(), "answer");
    let last = first().mock_with::<charge, _>(|_, _| async { Ok("last".to_string()) });
    for _ in 0..2 {
        let run = last.run(7);
        assert_eq!(run.output(), "last");
        run.calls::<charge>().once();
    }
    let parent = Test::<ask>::new(outlast::module![ask]).mock_child::<pay>(|_| Ok("first".to_string()));
    assert_eq!(parent.mock_child::<pay>(|_| Ok("second".to_string())).run(()).output(), "second");
}

#[outlast::orchestration]
async fn ask(ctx: OrchestrationContext) -> outlast::Result<String> {
    Ok(pay::child(&ctx, 7).await?)
}

/// A type that has nothing but the traits of a payload.
#[derive(Serialize, Deserialize)]
struct Parcel {
    grams: u32,
}

/// The activity and its inputs as another module sees them.
mod carrier {
    use super::Parcel;
    use outlast::prelude::*;

    #[outlast::activity]
    pub(super) async fn weigh(_ctx: ActivityContext, parcel: Parcel, r#type: String) -> Result<u32, String> {
        Err(format!("{} of {}", r#type, parcel.grams))
    }

    #[outlast::activity]
    pub(super) async fn ship(_ctx: ActivityContext, to: String, grams: u32) -> Result<(), String> {
        Err(format!("{grams} to {to}"))
    }
}

#[outlast::orchestration]
async fn post(ctx: OrchestrationContext, grams: u32) -> Result<(), String> {
    let grams = carrier::weigh::call(&ctx, Parcel { grams }, "air".into()).await?;
    Ok(carrier::ship::call(&ctx, "Ada".into(), grams).await?)
}

#[test]
fn several_inputs_are_fields_that_other_modules_read_compare_and_print() {
    let run = Test::<post>::new(outlast::module![post])
        .mock::<carrier::weigh>(|input| Ok(input.parcel.grams + input.r#type.len() as u32))
        .mock::<carrier::ship>(|_| Ok(()))
        .run(40);
    assert_eq!(run.output(), &());
    let inputs = run.calls::<carrier::ship>().inputs();
    assert_eq!(inputs, [carrier::ship::input("Ada".into(), 43)]);
    assert_ne!(inputs, [carrier::ship::input("Bob".into(), 43)]);
    assert_ne!(inputs, [carrier::ship::input("Ada".into(), 44)]);
    assert_eq!(format!("{inputs:?}"), r#"[ship { to: "Ada", grams: 43 }]"#);
}

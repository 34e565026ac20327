//! The error of a saga whose steps are undone, or cannot be undone.

use outlast::prelude::*;
use outlast::testing::Test;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize, Deserialize, outlast::Failure)]
enum OrderError {
    #[error("declined with code {0}")]
    Declined(u8),
    #[error("{0}")]
    #[failure(call)]
    Broken(String),
}

#[outlast::activity]
async fn release(_ctx: ActivityContext, _goods: String) -> Result<(), String> {
    Ok(())
}

#[outlast::orchestration]
async fn typed(ctx: OrchestrationContext) -> Result<(), OrderError> {
    let mut undo = Undo::new(&ctx);
    undo.push::<release>("tea".into());
    undo.push::<release>("cups".into());
    undo.fail(OrderError::Declined(5)).await
}

#[outlast::orchestration]
async fn of_text(ctx: OrchestrationContext) -> Result<(), String> {
    let mut undo = Undo::new(&ctx);
    undo.push::<release>("tea".into());
    undo.fail("declined".to_string()).await
}

#[outlast::orchestration]
async fn of_any_error(ctx: OrchestrationContext) -> outlast::Result<()> {
    let mut undo = Undo::new(&ctx);
    undo.push::<release>("tea".into());
    undo.fail(outlast::Error::new("the bank answered 500").context("not paid")).await
}

fn test<O: outlast::author::Orchestration>(module: Module, closed: &'static str) -> Test<O> {
    Test::<O>::new(module).mock::<release>(move |goods| match goods == closed {
        true => Err("the warehouse is closed".into()),
        false => Ok(()),
    })
}

#[test]
fn an_undo_that_succeeds_returns_the_typed_cause() {
    let run = test::<typed>(outlast::module![typed], "").run(());
    assert_eq!(run.failure(), &OrderError::Declined(5));
    assert_eq!(run.calls::<release>().inputs(), ["cups", "tea"]);
    let run = test::<of_any_error>(outlast::module![of_any_error], "").run(());
    assert_eq!(format!("{:#}", run.failure()), "not paid: the bank answered 500");
}

#[test]
fn an_undo_that_fails_keeps_the_cause_beside_the_failed_steps() {
    let text = "declined with code 5, and not undone; release: the warehouse is closed";
    let run = test::<typed>(outlast::module![typed], "cups").run(());
    assert_eq!(run.failure(), &OrderError::Broken(text.into()));
    assert_eq!(run.calls::<release>().inputs(), ["cups", "tea"]);
    let run = test::<of_text>(outlast::module![of_text], "tea").run(());
    assert_eq!(run.failure(), "declined, and not undone; release: the warehouse is closed");
    let run = test::<of_any_error>(outlast::module![of_any_error], "tea").run(());
    let text = "not paid: the bank answered 500, and not undone; release: the warehouse is closed";
    assert_eq!(run.failure().to_string(), text);
}

//! Errors: of the user's types, and of Outlast.

use crate::support::{Cluster, Kind, Node};
use outlast::prelude::*;
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Debug, PartialEq, thiserror::Error, Serialize, Deserialize, outlast::Failure)]
enum Trouble {
    #[error("small: {0}")]
    Small(String),
    #[error("unknown: {0}")]
    #[failure(unknown)]
    Unknown(String),
}

#[outlast::activity]
async fn typed(_ctx: ActivityContext, what: String) -> Result<(), Trouble> {
    Err(Trouble::Small(what))
}

#[outlast::activity(errors = text)]
async fn in_text(_ctx: ActivityContext, what: String) -> Result<(), Trouble> {
    Err(Trouble::Small(what))
}

#[outlast::activity]
async fn of_string(_ctx: ActivityContext, what: String) -> Result<(), String> {
    Err(what)
}

#[outlast::activity]
async fn panics(_ctx: ActivityContext) -> Result<(), String> {
    panic!("on purpose")
}

#[outlast::activity(timeout = "10ms")]
async fn hangs(_ctx: ActivityContext) -> Result<(), String> {
    std::future::pending().await
}

#[outlast::activity]
async fn large(_ctx: ActivityContext) -> Result<String, String> {
    Ok("x".repeat(2_000))
}

#[outlast::activity]
async fn number(_ctx: ActivityContext, number: u8) -> Result<u8, String> {
    Ok(number)
}

#[outlast::activity]
async fn parse(_ctx: ActivityContext, text: String) -> outlast::Result<u8> {
    text.parse::<u8>().context("reading a number")
}

#[outlast::orchestration]
async fn fails(_ctx: OrchestrationContext, text: String) -> Result<(), String> {
    Err(text)
}

#[outlast::orchestration]
async fn crowded(ctx: OrchestrationContext) -> Result<(), String> {
    ctx.set_custom_status("x".repeat(1_000_000));
    Ok(())
}

#[outlast::orchestration]
async fn all(ctx: OrchestrationContext) -> outlast::Result<()> {
    assert_eq!(typed::call(&ctx, "a".into()).await, Err(CallError::Failed(Trouble::Small("a".into()))));
    let in_text = in_text::call(&ctx, "a".into()).await;
    assert_eq!(in_text, Err(CallError::Failed(Trouble::Unknown("small: a".into()))));
    for text in
        ["plain", "{\"error\":\"x\",\"fault\":\"timed_out\"}", "timeout: activity timed out", "canceled: x"]
    {
        assert_eq!(of_string::call(&ctx, text.into()).await, Err(CallError::Failed(text.into())));
        assert_eq!(fails::child(&ctx, text.into()).await, Err(CallError::Failed(text.into())));
    }
    assert_eq!(panics::call(&ctx).await, Err(CallError::Panicked("activity 'panics': on purpose".into())));
    assert!(matches!(hangs::call(&ctx).await, Err(CallError::TimedOut(text)) if text.contains("10ms")));
    assert!(matches!(large::call(&ctx).await, Err(CallError::Other(text)) if text.contains("payload_bytes")));
    assert!(matches!(crowded::child(&ctx).await, Err(CallError::Other(text)) if text.contains("status")));
    let too_long = fails::child(&ctx, "x".into()).id("sub::mine").await;
    assert!(matches!(too_long, Err(CallError::Other(text)) if text.contains("sub::")));
    let slow = hangs::call(&ctx).timeout(Duration::from_millis(1)).await;
    assert!(matches!(slow, Err(CallError::TimedOut(_))));
    let error = parse::call(&ctx, "x".into()).await.unwrap_err();
    assert_eq!(error.to_string(), "reading a number");
    // `?` takes every error, and the error of a call keeps its causes.
    Ok(parse::call(&ctx, "seven".into()).await.map(drop)?)
}

#[tokio::test]
async fn errors_of_outlast_are_never_errors_of_the_users_type() {
    let cluster = Cluster::real(Kind::SqliteMemory).await;
    let module =
        outlast::module![typed, in_text, of_string, panics, hangs, large, number, parse, fails, crowded, all];
    cluster.start(&Node::of(module).with(|options| options.limits.payload_bytes = 1_500)).await;
    let ended = all::start(&cluster.client).id("all").await.unwrap().result().await;
    let Err(CallError::Failed(error)) = ended else { panic!("{ended:?}") };
    assert_eq!(format!("{error:#}"), "reading a number: invalid digit found in string");
    // Input that does not decode.
    cluster.begin("wrong", "all", "[1]").await;
    let wrong = all::handle(&cluster.client, "wrong").result().await;
    assert!(matches!(&wrong, Err(CallError::Other(text)) if text.contains("does not decode")), "{wrong:?}");
    // A cancelled instance.
    let cancelled =
        all::start(&cluster.client).id("cancelled").delay(Duration::from_secs(3_600)).await.unwrap();
    cancelled.cancel("enough").await.unwrap();
    cluster.end().await;
}

#[outlast::orchestration]
async fn waits(ctx: OrchestrationContext) -> Result<(), String> {
    ctx.schedule_timer(Duration::from_secs(3_600)).await;
    Ok(())
}

#[tokio::test]
async fn the_result_of_a_cancelled_instance_is_its_reason() {
    let cluster = Cluster::real(Kind::Memory).await;
    cluster.start(&Node::of(outlast::module![waits])).await;
    let waits = waits::start(&cluster.client).id("w").await.unwrap();
    waits.cancel("enough").await.unwrap();
    assert_eq!(waits.result().await, Err(CallError::Cancelled("enough".into())));
    cluster.end().await;
}

#[tokio::test]
async fn a_runtime_without_a_needed_state_does_not_start() {
    #[outlast::activity]
    async fn needs(_ctx: ActivityContext, State(_gateway): State<u32>) -> Result<(), String> {
        Ok(())
    }
    let problems = outlast::module![needs].build().unwrap_err().problems;
    assert_eq!(problems, ["activity 'needs' needs State<u32>: call .state(..) with a value"]);
    #[outlast::activity]
    async fn needs_both(
        _ctx: ActivityContext,
        State(_text): State<String>,
        State(_gateway): State<u32>,
    ) -> Result<(), String> {
        Ok(())
    }
    #[outlast::activity]
    async fn needs_it_too(_ctx: ActivityContext, State(_gateway): State<u32>) -> Result<(), String> {
        Ok(())
    }
    let problems = outlast::module![needs, needs_both, needs_it_too].build().unwrap_err().problems;
    assert_eq!(
        problems,
        [
            "activities 'needs', 'needs_both' and 'needs_it_too' need State<u32>: call .state(..) with a value",
            "activity 'needs_both' needs State<alloc::string::String>: call .state(..) with a value",
        ],
        "one sentence for each state"
    );
    let twice = outlast::module![needs].state(1_u32).state(2_u32).build().unwrap_err().problems;
    assert_eq!(twice, ["State<u32> has two values: call .state(..) once per type"]);
    let name_twice = outlast::module![needs, needs].state(1_u32).build().unwrap_err().to_string();
    assert!(name_twice.contains("needs"), "{name_twice}");
    // The function is still a function.
    assert_eq!(needs(ActivityContext::for_test(), State(1)).await, Ok(()));
}

//! Runs that cannot be judged say why.

use outlast::prelude::*;
use outlast::testing::{Test, Trouble, days};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, outlast::Message)]
struct Go;

#[outlast::activity]
async fn step(_ctx: ActivityContext) -> Result<(), String> {
    Ok(())
}

#[outlast::orchestration(accepts(Go))]
async fn waits(ctx: OrchestrationContext) -> Result<(), String> {
    step::call(&ctx).await?;
    ctx.next::<Go>().await?;
    Ok(())
}

#[test]
fn a_missing_activity_is_named_at_once() {
    let trouble = Test::<waits>::new(outlast::module![waits]).try_run(()).unwrap_err();
    assert!(matches!(trouble, Trouble::Unregistered(_)), "{trouble:?}");
    assert!(
        trouble.to_string().contains("calls activity 'step'")
            && trouble.to_string().contains(".mock::<step>"),
        "{trouble}"
    );
}

#[test]
fn a_missing_orchestration_is_named_at_once() {
    let trouble = Test::<waits>::new(outlast::module![step]).try_run(()).unwrap_err();
    assert!(trouble.to_string().contains("runs orchestration 'waits'"), "{trouble}");
}

#[test]
fn an_instance_that_waits_forever_is_reported_with_its_wait() {
    let test = Test::<waits>::new(outlast::module![step, waits]).limit(days(30));
    let text = crate::panic_of(|| drop(test.run(())));
    assert!(
        text.contains("has not ended after 30d")
            && text.contains("a message of queue 'go' since 0ms after the start"),
        "{text}"
    );
}

#[outlast::orchestration]
async fn spins(ctx: OrchestrationContext) -> Result<(), String> {
    loop {
        step::call(&ctx).await?;
        ctx.continue_as_new("").await?;
    }
}

#[test]
fn a_loop_without_end_is_a_runaway() {
    let trouble =
        Test::<spins>::new(outlast::module![step, spins]).call_limit(1_000).try_run(()).unwrap_err();
    assert!(matches!(trouble, Trouble::Runaway(_)), "{trouble:?}");
}

#[test]
fn a_message_for_an_ended_instance_fails_the_test() {
    #[outlast::orchestration(accepts(Go))]
    async fn short(_ctx: OrchestrationContext) -> Result<(), String> {
        Ok(())
    }
    let test = Test::<short>::new(outlast::module![short]).settle(days(2)).send_at(days(1), Go);
    let trouble = test.try_run(()).unwrap_err();
    assert!(
        matches!(&trouble, Trouble::Action(text) if text.contains("at 1d") && text.contains("ended")),
        "{trouble:?}"
    );
}

#[test]
fn a_test_inside_of_tokio_is_refused_with_the_attribute_to_write() {
    let tokio = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _inside = tokio.enter();
    let trouble = Test::<waits>::new(outlast::module![step, waits]).try_run(()).unwrap_err();
    assert!(trouble.to_string().contains("write a plain `#[test] fn`"), "{trouble}");
}

#[outlast::activity]
async fn book(_ctx: ActivityContext, State(_bank): State<String>, cents: u32) -> Result<(), String> {
    if cents == 0 { Err("nothing to book".to_string()) } else { Ok(()) }
}

#[outlast::orchestration]
async fn books(ctx: OrchestrationContext, cents: u32) -> Result<(), String> {
    Ok(book::call(&ctx, cents).await?)
}

#[test]
fn a_missing_state_is_answered_with_world_state_and_mock() {
    let trouble = Test::<books>::new(outlast::module![book, books]).try_run(7).unwrap_err();
    let expected = "the test could not begin: activity 'book' needs State<alloc::string::String>: give the test a fake of it with \
                    .world(make, observe), a value that a crash loses with .state(make), or a mock of the activity with .mock::<..>(..)";
    assert_eq!(trouble.to_string(), expected);
}

#[test]
fn fail_everywhere_of_an_instance_that_fails_anyway_is_refused() {
    let test = Test::<books>::new(outlast::module![book, books]).world(String::new, String::clone);
    test.fail_everywhere(7).holds();
    let trouble = test.try_fail_everywhere(0).unwrap_err();
    assert!(matches!(trouble, Trouble::FailsAnyway(_)), "{trouble:?}");
    let expected = "'books' fails without a fault, so fail_everywhere shows nothing: give it an input, messages and mocks with which \
                    it succeeds. It ends as: Failed with nothing to book; world: \"\"";
    assert_eq!(trouble.to_string(), expected);
}

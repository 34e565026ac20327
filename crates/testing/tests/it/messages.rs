//! Messages of the test.

use outlast::prelude::*;
use outlast::testing::{Test, days, hours};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, outlast::Message)]
struct Approval {
    yes: bool,
}

#[outlast::orchestration(accepts(Approval), status = String)]
async fn approve(ctx: OrchestrationContext) -> Result<bool, String> {
    approve::set_status(&ctx, &"waiting".to_string());
    let answer = ctx.next::<Approval>().within(days(3)).await?;
    approve::set_status(&ctx, &"done".to_string());
    Ok(answer.is_some_and(|answer| answer.yes))
}

fn test() -> Test<approve> {
    Test::new(outlast::module![approve])
}

#[test]
fn a_message_comes_at_its_time() {
    let run = test().send_at(days(2), &Approval { yes: true }).run(());
    assert_eq!((run.output(), run.elapsed()), (&true, days(2)));
    assert_eq!(run.status().map(String::as_str), Some("done"));
    let late = test().send_at(days(4), &Approval { yes: true }).run(());
    assert_eq!((late.output(), late.elapsed()), (&false, days(3)));
}

#[test]
fn a_test_sends_between_two_steps() {
    let mut running = test().start(());
    assert_eq!(running.status().as_deref(), Some("waiting"));
    running.advance(hours(5));
    running.send(&Approval { yes: true });
    assert!(running.has_ended());
    assert_eq!(running.finish().elapsed(), hours(5));
}

#[test]
fn an_action_sends_messages_and_cancels_through_the_handle() {
    let run = test().at(hours(1), |order| async move { order.send(Approval { yes: false }).await }).run(());
    assert_eq!((run.output(), run.elapsed()), (&false, hours(1)));
    let run = test().cancel_at(hours(2), "no longer needed").run(());
    assert_eq!(run.result(), &Err(CallError::Cancelled("no longer needed".into())));
    assert_eq!(run.elapsed(), hours(2));
}

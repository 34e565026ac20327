//! Positional waits that lose a race.

use super::program::{ending, history, only, perform};
use super::turns::{ONE, Turns};
use super::{IMMEDIATE, LEGACY};
use crate::ProviderFactory;
use crate::support::*;
use outlast_engine::{Either2, OrchestrationContext};

/// Races a wait against an activity, and waits again if the activity wins.
async fn program(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let first = ctx.schedule_wait("go");
    let stop = ctx.schedule_activity("Stop", "");
    match ctx.select2(first, stop).await {
        Either2::First(data) => Ok(format!("first {data}")),
        Either2::Second(_) => Ok(format!("second {}", ctx.schedule_wait("go").await)),
    }
}

/// The live turn decides which wait an event ends, by the rules of the execution's stamp. A replay on another node decides the same.
pub async fn test_positional_wait_race_replay<F: ProviderFactory>(factory: &F) {
    for restarts in [false, true] {
        for stamp in [IMMEDIATE, LEGACY] {
            win(factory, stamp, restarts).await;
        }
        // An event after the one that ended the wait ends no wait; by the older rules it ended the next wait.
        lose(factory, IMMEDIATE, restarts, "second b").await;
        lose(factory, LEGACY, restarts, "second a").await;
    }
}

/// The event comes before the activity's result, in the same batch.
async fn win(factory: &dyn ProviderFactory, stamp: &str, restarts: bool) {
    let provider = &*factory.create_provider().await;
    let orchestrations = only("TestOrch", program);
    let turns = Turns::new(factory, provider, &orchestrations, stamp, restarts);
    turns.commit(&[start_item(ONE)]).await;
    enqueue(provider, raised(ONE, "go", "a")).await;
    perform(provider, "Stop").await;
    let last = turns.commit(&[]).await;
    assert_eq!(ending(&last), ("Completed", "first a"), "stamp {stamp}, restarts {restarts}");
    operator(provider).sees_current(ONE, 1, "Completed", Some("first a")).await;
}

/// The event comes behind the activity's result, in the same batch.
async fn lose(factory: &dyn ProviderFactory, stamp: &str, restarts: bool, expected: &str) {
    let provider = &*factory.create_provider().await;
    let orchestrations = only("TestOrch", program);
    let turns = Turns::new(factory, provider, &orchestrations, stamp, restarts);
    turns.commit(&[start_item(ONE)]).await;
    perform(provider, "Stop").await;
    let what = format!("stamp {stamp}, restarts {restarts}");
    let undecided = turns.commit(&[raised(ONE, "go", "a")]).await;
    assert_eq!(undecided.metadata.status, None, "{what}: the second wait has no answer yet");
    // By the older rules the second event ends no wait and the code does not run; a queue message makes it run.
    let last = turns.commit(&[raised(ONE, "go", "b"), queue_message(ONE, "q", "")]).await;
    assert_eq!(ending(&last), ("Completed", expected), "{what}");
    assert_eq!(history(provider, ONE).await[0].duroxide_version, stamp, "{what}");
    operator(provider).sees_current(ONE, 1, "Completed", Some(expected)).await;
    operator(provider).sees_waiting(0, 0, &what).await;
}

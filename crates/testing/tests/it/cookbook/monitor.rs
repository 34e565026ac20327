//! A loop without an end that watches something.

// guide: program
use outlast::prelude::*;
#[cfg(test)]
use outlast::testing::{Test, hours};
use outlast::time::minutes;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, outlast::Message)]
struct Stop;

#[derive(Clone, Default, Serialize, Deserialize)]
struct Watch {
    url: String,
    failures: u32,
    alarms: u32,
}

#[outlast::activity(timeout = "10s")]
async fn is_up(_ctx: ActivityContext, url: String) -> Result<bool, String> {
    Err(format!("{url} is a mock in the tests"))
}

#[outlast::activity(retry = 10)]
async fn alert(_ctx: ActivityContext, text: String) -> Result<(), String> {
    Err(format!("'{text}' is a mock in the tests"))
}

/// Looks every minute. Three failures in a row raise one alarm, and the next success ends it.
#[outlast::orchestration(accepts(Stop))]
async fn watch(ctx: OrchestrationContext, mut state: Watch) -> Result<u32, String> {
    for _round in 0..60 {
        // An error of the check itself, such as a timeout, is a failure too.
        let up = is_up::call(&ctx, state.url.clone()).await.unwrap_or(false);
        if up && state.failures >= 3 {
            alert::call(&ctx, format!("{} is back", state.url)).await?;
        }
        state.failures = if up { 0 } else { state.failures + 1 };
        if state.failures == 3 {
            state.alarms += 1;
            alert::call(&ctx, format!("{} is down", state.url)).await?;
        }
        if ctx.next::<Stop>().within(minutes(1)).await?.is_some() {
            return Ok(state.alarms);
        }
    }
    // After an hour the next execution goes on with the state, and with an empty history.
    watch::continue_as_new(&ctx, state).await
}

#[test]
fn an_outage_of_two_hours_is_one_alarm() {
    let run = Test::<watch>::new(outlast::module![watch])
        .mock_with::<is_up, _>(|call, _url| async move { Ok(!(100..220).contains(&call.number())) })
        .mock::<alert>(|_| Ok(()))
        .send_at(hours(6), Stop)
        .run(Watch { url: "shop.example".into(), ..Watch::default() });
    assert_eq!(run.output(), &1);
    assert_eq!(run.calls::<alert>().inputs(), ["shop.example is down", "shop.example is back"]);
    assert!(run.history_of(run.id()).len() >= 6);
}
// guide: end

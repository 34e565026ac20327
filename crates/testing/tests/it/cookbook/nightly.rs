//! A report every night at two o'clock UTC.

// guide: program
use outlast::prelude::*;
#[cfg(test)]
use outlast::testing::{Test, days, hours};
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};

const DAY: u64 = 86_400;

#[derive(Serialize, Deserialize, outlast::Message)]
struct Stop;

#[outlast::activity(retry = 10, max_backoff = "10m", timeout = "1h")]
async fn make_report(_ctx: ActivityContext, day: u64) -> Result<String, String> {
    Err(format!("day {day} is a mock in the tests"))
}

#[outlast::activity(retry = 10, max_backoff = "10m")]
async fn mail(_ctx: ActivityContext, text: String) -> Result<(), String> {
    Err(format!("'{text}' is a mock in the tests"))
}

#[outlast::orchestration]
async fn report(ctx: OrchestrationContext, day: u64) -> Result<(), String> {
    let text = make_report::call(&ctx, day).await?;
    Ok(mail::call(&ctx, text).await?)
}

/// Waits for two o'clock, starts the report of the day, and begins again. A report that takes long delays no other.
#[outlast::orchestration(accepts(Stop))]
async fn nightly(ctx: OrchestrationContext) -> Result<(), String> {
    let now =
        ctx.utc_now().await?.duration_since(SystemTime::UNIX_EPOCH).map_err(|error| error.to_string())?;
    let wait = until_two(now);
    if ctx.next::<Stop>().within(wait).await?.is_some() {
        return Ok(());
    }
    let day = (now + wait).as_secs() / DAY;
    // A start under an id that exists is ignored: each day has one report.
    report::detached(&ctx, day).id(format!("report-{day}"))?;
    nightly::continue_as_new(&ctx).await
}

/// The time from `now`, since 1970, to the next two o'clock.
fn until_two(now: Duration) -> Duration {
    let two = Duration::from_secs(now.as_secs() / DAY * DAY + 2 * 3_600);
    let next = if two > now { two } else { two + Duration::from_secs(DAY) };
    next - now
}

#[test]
fn three_nights_are_three_reports() {
    // A test begins at 22:13:20 UTC.
    let run = Test::<nightly>::new(outlast::module![nightly, report])
        .mock::<make_report>(|day| Ok(format!("day {day}")))
        .mock::<mail>(|_| Ok(()))
        .send_at(days(3), Stop)
        .run(());
    assert_eq!(run.elapsed(), days(3));
    assert_eq!(run.calls::<mail>().inputs(), ["day 19676", "day 19677", "day 19678"]);
    let nights: Vec<u64> = run.calls::<mail>().times_of().iter().map(|at| at.as_secs() / 3_600).collect();
    assert_eq!(nights, [3, 27, 51]);
}

#[test]
fn two_o_clock_itself_is_the_next_day() {
    assert_eq!(until_two(hours(2)), days(1));
    assert_eq!(until_two(hours(26) - Duration::from_secs(1)), Duration::from_secs(1));
}
// guide: end

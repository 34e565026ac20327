//! Virtual time on the shipped runtime.

use outlast::prelude::*;
use outlast::testing::{Test, days, hours, minutes};
use std::time::Duration;

#[outlast::activity]
async fn ring(_ctx: ActivityContext, day: u32) -> Result<u32, String> {
    Ok(day)
}

#[outlast::orchestration]
async fn every_day(ctx: OrchestrationContext, count: u32) -> Result<u32, String> {
    let mut rung = 0;
    for day in 0..count {
        ctx.sleep(days(1)).await;
        rung += u32::from(ring::call(&ctx, day).await? == day);
    }
    Ok(rung)
}

#[test]
fn a_month_of_timers_passes_without_waiting() {
    let run = Test::<every_day>::new(outlast::module![ring, every_day]).run(30);
    assert_eq!((run.output(), run.elapsed()), (&30, days(30)));
    run.calls::<ring>().times(30);
    assert_eq!(run.calls::<ring>().times_of()[..2], [days(1), days(2)]);
    assert_eq!(run.calls::<ring>().inputs()[..2], [0, 1]);
}

#[outlast::orchestration]
async fn what_time(ctx: OrchestrationContext) -> Result<(u64, u64), String> {
    let now = |time: std::time::SystemTime| {
        time.duration_since(std::time::UNIX_EPOCH).map_or(0, |time| time.as_millis())
    };
    let first = now(ctx.utc_now().await?);
    ctx.sleep(hours(1)).await;
    let second = now(ctx.utc_now().await?);
    Ok((u64::try_from(first).unwrap_or(0), u64::try_from(second - first).unwrap_or(0)))
}

#[test]
fn the_clock_of_orchestrations_is_virtual_and_begins_at_the_same_time() {
    let test = Test::<what_time>::new(outlast::module![what_time]);
    let expected = (outlast::testing::EPOCH_MS, 3_600_000);
    assert_eq!(test.run(()).output(), &expected);
    assert_eq!(test.run(()).output(), &expected);
}

#[outlast::activity(timeout = "5m")]
async fn slow(_ctx: ActivityContext, wait: Duration) -> Result<(), String> {
    tokio::time::sleep(wait).await;
    Ok(())
}

#[outlast::orchestration]
async fn patient(ctx: OrchestrationContext, wait: Duration) -> Result<(), String> {
    Ok(slow::call(&ctx, wait).await?)
}

#[test]
fn bodies_sleep_in_virtual_time_and_time_out_in_it() {
    let test = Test::<patient>::new(outlast::module![slow, patient]);
    assert_eq!(test.run(minutes(4)).elapsed(), minutes(4));
    let late = test.run(minutes(6));
    assert_eq!(late.elapsed(), minutes(5));
    assert!(late.failure().contains("did not return within 300s"), "{late:?}");
}

#[test]
fn a_test_steps_through_time() {
    let test = Test::<every_day>::new(outlast::module![ring, every_day]);
    let mut running = test.start(2);
    running.advance(hours(23));
    assert!(!running.has_ended());
    assert_eq!(running.elapsed(), hours(23));
    running.crash();
    running.advance(days(2));
    assert!(running.has_ended());
    assert_eq!(running.finish().output(), &2);
}

#[test]
fn real_work_holds_virtual_time_on_request() {
    #[outlast::activity]
    async fn compute(_ctx: ActivityContext) -> Result<u64, String> {
        tokio::task::spawn_blocking(|| (1..=1_000_u64).sum::<u64>()).await.map_err(|error| error.to_string())
    }
    #[outlast::orchestration]
    async fn computed(ctx: OrchestrationContext) -> Result<u64, String> {
        Ok(compute::call(&ctx).timeout(minutes(1)).await?)
    }
    let run = Test::<computed>::new(outlast::module![compute, computed]).hold_time().run(());
    assert_eq!((run.output(), run.elapsed()), (&500_500, Duration::ZERO));
}

//! A job of another system, which has to be asked for its state.

// guide: program
use outlast::prelude::*;
#[cfg(test)]
use outlast::testing::Test;
use outlast::time::{hours, seconds};
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Clone, Serialize, Deserialize)]
enum Job {
    Running,
    Done { url: String },
    Failed { reason: String },
}

/// The key makes the submission idempotent: a second delivery finds the job of the first one.
#[outlast::activity(retry = 5)]
async fn submit(ctx: ActivityContext, video: String) -> Result<String, String> {
    Err(format!("{video} under the key {} is a mock in the tests", ctx.idempotency_key()))
}

#[outlast::activity(retry = 5, timeout = "10s")]
async fn look(_ctx: ActivityContext, job: String) -> Result<Job, String> {
    Err(format!("{job} is a mock in the tests"))
}

#[outlast::activity(retry = 5)]
async fn abort(_ctx: ActivityContext, job: String) -> Result<(), String> {
    Err(format!("{job} is a mock in the tests"))
}

/// Asks after 5, 10, 20 seconds and so on, at most every 5 minutes. After a day the job is aborted.
#[outlast::orchestration]
async fn render(ctx: OrchestrationContext, video: String) -> Result<String, String> {
    let job = submit::call(&ctx, video).await?;
    let finished = async {
        let mut pause = seconds(5);
        loop {
            ctx.sleep(pause).await;
            match look::call(&ctx, job.clone()).await? {
                Job::Running => pause = (pause * 2).min(Duration::from_secs(300)),
                Job::Done { url } => return Ok(url),
                Job::Failed { reason } => return Err(reason),
            }
        }
    };
    match ctx.select2(finished, ctx.sleep(hours(24))).await {
        Either2::First(result) => result,
        Either2::Second(()) => {
            abort::call(&ctx, job).await?;
            Err("aborted after a day".to_string())
        }
    }
}

#[cfg(test)]
fn farm(rounds: usize) -> Test<render> {
    Test::<render>::new(outlast::module![render])
        .mock::<submit>(|video| Ok(format!("job of {video}")))
        .mock::<abort>(|_| Ok(()))
        .mock_with::<look, _>(move |call, job| async move {
            Ok(if call.number() < rounds { Job::Running } else { Job::Done { url: format!("{job}.mp4") } })
        })
}

#[test]
fn the_pauses_between_two_looks_double() {
    let run = farm(4).run("holiday".into());
    assert_eq!(run.output(), "job of holiday.mp4");
    assert_eq!(run.elapsed(), seconds(5 + 10 + 20 + 40));
}

#[test]
fn a_job_that_hangs_is_aborted() {
    let run = farm(usize::MAX).run("holiday".into());
    assert_eq!(run.failure(), "aborted after a day");
    assert_eq!(run.elapsed(), hours(24));
    run.calls::<abort>().once();
    assert!(run.calls::<look>().count() < 300);
}
// guide: end

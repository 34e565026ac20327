//! Waits for messages that a crash loses.

use outlast::prelude::*;
use outlast::testing::{Test, days, hours};
use serde::{Deserialize, Serialize};

// A lost signal: a positional event is dropped if the orchestration does not wait for it yet.

#[derive(Serialize, Deserialize, outlast::Message)]
#[message(route = event)]
struct Signal;

#[derive(Serialize, Deserialize, outlast::Message)]
struct Letter;

#[outlast::orchestration(accepts(Signal))]
async fn waits_for_a_signal(ctx: OrchestrationContext) -> Result<(), String> {
    ctx.sleep(hours(1)).await;
    Ok(ctx.next::<Signal>().await.map(drop)?)
}

#[outlast::orchestration(accepts(Letter))]
async fn waits_for_a_letter(ctx: OrchestrationContext) -> Result<(), String> {
    ctx.sleep(hours(1)).await;
    Ok(ctx.next::<Letter>().await.map(drop)?)
}

#[test]
fn a_lost_signal() {
    let wrong = Test::<waits_for_a_signal>::new(outlast::module![waits_for_a_signal]);
    let wrong = wrong.send_at(hours(2), Signal).limit(days(1)).crash_everywhere(());
    let first = &wrong.failures()[0];
    assert!(first.found.contains("It waits for event 'signal'"), "{wrong}");
    assert!(first.schedule.contains("it starts again after the next message"), "{wrong}");
    let right = Test::<waits_for_a_letter>::new(outlast::module![waits_for_a_letter]);
    right.send_at(hours(2), Letter).limit(days(1)).crash_everywhere(()).holds();
}

// A wait without a timeout for a job that lives in the memory of the process.

#[derive(Serialize, Deserialize, outlast::Message)]
struct Finished;

#[outlast::activity]
async fn start_job(ctx: ActivityContext) -> Result<(), String> {
    let (client, instance) = (ctx.get_client(), ctx.instance_id().to_string());
    tokio::spawn(async move {
        tokio::time::sleep(hours(1)).await;
        let job = Handle::<starts_a_job>::new(&client, instance);
        let _ = job.send(Finished).await;
    });
    Ok(())
}

#[outlast::orchestration(accepts(Finished))]
async fn starts_a_job(ctx: OrchestrationContext) -> Result<(), String> {
    start_job::call(&ctx).await?;
    Ok(ctx.next::<Finished>().await.map(drop)?)
}

#[outlast::activity]
async fn job(_ctx: ActivityContext) -> Result<(), String> {
    tokio::time::sleep(hours(1)).await;
    Ok(())
}

#[outlast::orchestration]
async fn runs_a_job(ctx: OrchestrationContext) -> Result<(), String> {
    Ok(job::call(&ctx).await?)
}

#[test]
fn a_wait_without_timeout_for_a_job_that_dies_with_its_process() {
    let wrong = Test::<starts_a_job>::new(outlast::module![start_job, starts_a_job]).limit(days(1));
    let wrong = wrong.crash_everywhere(());
    assert!(wrong.failures()[0].found.contains("a message of queue 'finished'"), "{wrong}");
    Test::<runs_a_job>::new(outlast::module![job, runs_a_job]).limit(days(1)).crash_everywhere(()).holds();
}

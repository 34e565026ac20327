//! Several inline stores on one file, as simulated processes: under paused time, on one thread.

use crate::support::*;
use outlast_conformance::TokioClock;
use outlast_provider::{Provider, TagFilter};
use outlast_sqlite::{SqliteOptions, SqliteProvider};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const CHECKS_EVERY: Duration = Duration::from_millis(200);

async fn process(path: &Path, clock: &Arc<TokioClock>) -> SqliteProvider {
    let options = SqliteOptions {
        inline: true,
        clock: Arc::<TokioClock>::clone(clock),
        foreign_poll_interval: CHECKS_EVERY,
        closes_like_a_crash: true,
        ..SqliteOptions::default()
    };
    open_with(path, options).await
}

#[tokio::test(start_paused = true)]
async fn parked_fetch_of_an_inline_store_sees_the_commit_of_another_process() {
    let (_folder, path) = fresh();
    let clock = Arc::new(TokioClock::start());
    let (waiting, sending) = (process(&path, &clock).await, process(&path, &clock).await);
    let begun = Instant::now();
    let send = async {
        tokio::time::sleep_until(begun + Duration::from_millis(1_050)).await;
        sending.enqueue_for_worker(activity("i", 1)).await.unwrap();
    };
    let ((fetched, ..), ()) = tokio::join!(work(&waiting), send);
    assert_eq!(fetched, activity("i", 1));
    let waited = begun.elapsed();
    assert!(waited <= Duration::from_millis(1_050) + CHECKS_EVERY, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn lease_of_a_crashed_process_ends_by_time_in_another_process() {
    let (_folder, path) = fresh();
    let clock = Arc::new(TokioClock::start());
    let waiting = process(&path, &clock).await;
    let lease = Duration::from_secs(5);
    let crashing = process(&path, &clock).await;
    crashing.enqueue_for_worker(activity("i", 1)).await.unwrap();
    let leased = crashing.fetch_work_item(lease, NO_WAIT, None, &TagFilter::DefaultOnly).await.unwrap();
    assert!(leased.is_some());
    drop(crashing);
    let begun = Instant::now();
    let (_, _, attempts) = work(&waiting).await;
    assert_eq!(attempts, 2);
    assert!(begun.elapsed() <= lease + CHECKS_EVERY, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn file_is_recovered_from_the_log_that_the_last_process_left() {
    let (_folder, path) = fresh();
    let clock = Arc::new(TokioClock::start());
    let crashing = process(&path, &clock).await;
    crashing.enqueue_for_orchestrator(start("i"), None).await.unwrap();
    drop(crashing);
    assert!(size(&beside(&path, "-wal")) > 0, "the process leaves the log");
    let next = process(&path, &clock).await;
    assert_eq!(turn(&next).await.0.instance, "i");
    next.disconnect();
    assert!(next.fetch_work_item(LONG, NO_WAIT, None, &TagFilter::DefaultOnly).await.unwrap().is_none());
    assert_eq!(next.stats().reopened, 1);
}

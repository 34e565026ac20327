use super::*;
use crate::dispatch::fixture::core;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

fn leased(core: &Core, kind: Kind) -> Lease {
    core.leases.hold(core, kind, "t".to_string(), "i".into())
}

/// `start` of an item that slot 0 has just fetched.
async fn start_now<'a>(core: &'a Core, kind: Kind, lease: &Lease, attempt_count: u32) -> Start<'a> {
    start(core, kind, 0, lease, attempt_count, Stopwatch::start()).await
}

fn started(start: Start<'_>) -> Started<'_> {
    match start {
        Start::Now(started) => started,
        Start::GiveBack(_) => panic!("the item was not started"),
    }
}

/// The result of the future if it has one now.
async fn now<T>(mut future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// A core that runs one turn and one activity at a time.
fn narrow() -> Core {
    let mut core = core();
    core.set_concurrency(1);
    core
}

#[tokio::test(start_paused = true)]
async fn an_item_starts_when_a_permit_is_free() {
    let core = narrow();
    let (one, two) = (leased(&core, Kind::Turn), leased(&core, Kind::Turn));
    let running = started(start_now(&core, Kind::Turn, &one, 1).await);
    let mut waiting = pin!(start_now(&core, Kind::Turn, &two, 1));
    assert!(now(waiting.as_mut()).await.is_none());
    assert!(running.code_ended(&core).is_none());
    assert_eq!(started(now(waiting).await.expect("a permit is free")).worker(), 0);
    assert_eq!(core.gate.0.borrow().items, 0);
}

#[tokio::test(start_paused = true)]
async fn an_item_that_cannot_start_in_time_is_given_back_and_no_more_is_leased_ahead() {
    let core = narrow();
    let (one, two) = (leased(&core, Kind::Activity), leased(&core, Kind::Activity));
    core.further_slots(Kind::Activity).record(Duration::ZERO);
    let _running = started(start_now(&core, Kind::Activity, &one, 1).await);
    let begun = tokio::time::Instant::now();
    let Start::GiveBack(Some(unstarted)) = start_now(&core, Kind::Activity, &two, 1).await else {
        panic!("the item waits for ever")
    };
    assert_eq!(begun.elapsed(), LONGEST_WAIT);
    assert_eq!(core.gate.0.borrow().items, 1, "the item is not given back yet");
    drop(unstarted);
    assert_eq!(core.further_slots(Kind::Activity).grow(), 0..0);
}

#[tokio::test(start_paused = true)]
async fn an_item_that_was_delivered_before_starts_after_unstarted_items_of_both_queues_were_given_back() {
    for redelivered in [Kind::Turn, Kind::Activity] {
        let core = narrow();
        let other = if redelivered == Kind::Turn { Kind::Activity } else { Kind::Turn };
        let (one, two, three) = (leased(&core, other), leased(&core, other), leased(&core, redelivered));
        let _running = started(start_now(&core, other, &one, 1).await);
        let mut waiting = pin!(start_now(&core, other, &two, 1));
        assert!(now(waiting.as_mut()).await.is_none());
        let mut delivered_before = pin!(start_now(&core, redelivered, &three, 2));
        assert!(now(delivered_before.as_mut()).await.is_none(), "an unstarted item is leased");
        let Some(Start::GiveBack(unstarted)) = now(waiting).await else { panic!("the item still waits") };
        assert!(now(delivered_before.as_mut()).await.is_none(), "the unstarted item is not given back yet");
        drop(unstarted);
        let running = started(now(delivered_before).await.expect("no unstarted item is leased"));
        assert!(core.gate.is_closed());
        drop(running.code_ended(&core));
        assert!(!core.gate.is_closed());
    }
}

#[tokio::test(start_paused = true)]
async fn turns_that_were_delivered_before_run_one_after_the_other() {
    let core = core();
    let (one, two) = (leased(&core, Kind::Turn), leased(&core, Kind::Turn));
    let first = started(start_now(&core, Kind::Turn, &one, 2).await);
    let given_back = start_now(&core, Kind::Turn, &two, 2).await;
    assert!(matches!(given_back, Start::GiveBack(Some(_))), "the first turn runs");
    drop(given_back);
    let uncommitted = first.code_ended(&core);
    let mut second = pin!(start_now(&core, Kind::Turn, &two, 2));
    assert!(now(second.as_mut()).await.is_none(), "the first turn is not committed yet");
    drop(uncommitted);
    started(now(second).await.expect("the first turn is committed"));
}

#[tokio::test(start_paused = true)]
async fn activities_that_were_delivered_before_run_at_the_same_time() {
    let core = core();
    let (one, two, three) =
        (leased(&core, Kind::Activity), leased(&core, Kind::Activity), leased(&core, Kind::Activity));
    let _first = started(start_now(&core, Kind::Activity, &one, 2).await);
    let _second = started(start_now(&core, Kind::Activity, &two, 3).await);
    let third = start_now(&core, Kind::Activity, &three, 1).await;
    assert!(matches!(third, Start::GiveBack(Some(_))), "nothing is leased ahead meanwhile");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_and_a_lost_lease_end_the_wait() {
    let core = narrow();
    let (one, two) = (leased(&core, Kind::Turn), leased(&core, Kind::Turn));
    let _running = started(start_now(&core, Kind::Turn, &one, 1).await);
    let mut waiting = pin!(start_now(&core, Kind::Turn, &two, 1));
    assert!(now(waiting.as_mut()).await.is_none());
    two.lost().cancel();
    assert!(matches!(now(waiting).await, Some(Start::GiveBack(Some(_)))));
    let three = leased(&core, Kind::Turn);
    core.stopping.cancel();
    let begun = tokio::time::Instant::now();
    assert!(matches!(start_now(&core, Kind::Turn, &three, 1).await, Start::GiveBack(Some(_))));
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

//! The table of renewals, and what becomes of leases that nobody settles.

use super::*;
use crate::captured::Captured;
use crate::dispatch::fixture::{busy, core};

const SECOND: Duration = Duration::from_secs(1);

fn hold(core: &Core, kind: Kind, token: &str) -> Lease {
    core.leases.hold(core, kind, token.to_string(), "i".into())
}

/// What is due, in seconds from now.
fn due(core: &Core) -> Vec<(f64, u64)> {
    let now = Instant::now();
    core.leases.lock().due.iter().map(|(at, id)| ((*at - now).as_secs_f64(), *id)).collect()
}

fn passing() -> Result<(), ProviderError> {
    Err(ProviderError::retryable("renew", "busy"))
}

#[tokio::test(start_paused = true)]
async fn a_held_lease_is_due_after_its_interval() {
    let core = core();
    let (work, turn) = (hold(&core, Kind::Activity, "w"), hold(&core, Kind::Turn, "t"));
    assert_eq!((work.token(), turn.token()), ("w", "t"));
    assert_eq!(due(&core), [(4.0, turn.id), (16.0, work.id)]);
    assert_eq!((work.deadline_ms().load(Relaxed), turn.deadline_ms().load(Relaxed)), (1_032_000, 1_008_000));
    assert!(!work.lost().is_cancelled());
    turn.settle();
    assert_eq!(due(&core), [(16.0, work.id)]);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_lasts_from_when_it_was_asked_for() {
    let core = core();
    let lease = hold(&core, Kind::Activity, "w");
    tokio::time::advance(16 * SECOND).await;
    let asked_at = Instant::now();
    assert_eq!(core.leases.postpone(lease.id, &core), Some((Kind::Activity, "w".into())));
    assert_eq!(due(&core), [(16.0, lease.id)], "the next one does not wait for the answer");
    tokio::time::advance(5 * SECOND).await;
    lease.deadline_ms.store(0, Relaxed);
    core.leases.renewed(&core, lease.id, asked_at, Ok(()));
    assert_eq!(due(&core), [(11.0, lease.id)]);
    assert_eq!(core.leases.lock().held[&lease.id].ends, asked_at + 32 * SECOND);
    assert_eq!(lease.deadline_ms.load(Relaxed), 1_032_000);
    // An answer after more than an interval: the next renewal is due at once, not in the past.
    core.leases.renewed(&core, lease.id, asked_at - 20 * SECOND, Ok(()));
    assert_eq!(due(&core), [(0.0, lease.id)]);
}

#[tokio::test(start_paused = true)]
async fn a_passing_error_is_asked_again_until_the_lease_has_ended() {
    let core = core();
    let lease = hold(&core, Kind::Activity, "w");
    let fail = || core.leases.renewed(&core, lease.id, Instant::now(), passing());
    // An eighth of the interval at first, then twice as long each time, and never beyond the end.
    fail();
    assert_eq!(due(&core), [(2.0, lease.id)]);
    fail();
    assert_eq!(due(&core), [(4.0, lease.id)]);
    core.leases.renewed(&core, lease.id, Instant::now(), Ok(()));
    fail();
    assert_eq!(due(&core), [(2.0, lease.id)], "an answer ends the row of failures");
    tokio::time::advance(31 * SECOND).await;
    fail();
    assert_eq!(due(&core), [(1.0, lease.id)]);
    assert!(!lease.lost().is_cancelled());
    tokio::time::advance(SECOND).await;
    fail();
    assert!(lease.lost().is_cancelled(), "it has ended this very moment");
    assert_eq!(due(&core), []);
}

#[tokio::test(start_paused = true)]
async fn a_lasting_error_loses_the_lease_for_good() {
    let core = core();
    let (lease, other) = (hold(&core, Kind::Turn, "t"), hold(&core, Kind::Turn, "u"));
    core.leases.renewed(&core, lease.id, Instant::now(), Err(ProviderError::permanent("renew", "taken")));
    assert!(lease.lost().is_cancelled() && !other.lost().is_cancelled());
    assert_eq!(due(&core), [(4.0, other.id)]);
    core.leases.renewed(&core, lease.id, Instant::now(), Ok(()));
    assert_eq!(due(&core), [(4.0, other.id)], "a late answer does not bring it back");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_ran_out_is_not_renewed() {
    let core = core();
    let lease = hold(&core, Kind::Activity, "w");
    tokio::time::advance(32 * SECOND - Duration::from_millis(1)).await;
    assert!(core.leases.postpone(lease.id, &core).is_some());
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(core.leases.postpone(lease.id, &core), None);
    assert!(lease.lost().is_cancelled());
    assert_eq!(due(&core), []);
    assert_eq!(core.leases.postpone(lease.id + 1, &core), None, "nobody holds that one");
}

#[tokio::test(start_paused = true)]
async fn only_a_lease_that_is_neither_settled_nor_lost_is_given_back() {
    let core = core();
    hold(&core, Kind::Turn, "settled").settle();
    let lost = hold(&core, Kind::Turn, "lost");
    lost.lost().cancel();
    drop(lost);
    drop(hold(&core, Kind::Turn, "turn"));
    drop(hold(&core, Kind::Activity, "work"));
    let (turn, work) = ((Kind::Turn, "turn".into()), (Kind::Activity, "work".into()));
    assert_eq!(core.leases.dropped(), [turn.clone(), work.clone()]);
    core.leases.forget_dropped("turn");
    assert_eq!(core.leases.dropped(), std::slice::from_ref(&work));
    assert_eq!(core.leases.take_dropped(), [work]);
    assert_eq!(core.leases.dropped(), []);
    assert_eq!(due(&core), []);
    assert!(core.leases.lock().held.is_empty());
}

#[test]
fn a_time_that_cannot_be_named_is_far_away() {
    let now = Instant::now();
    assert_eq!(later(now, SECOND), now + SECOND);
    assert!(later(now, Duration::MAX) >= now + Duration::from_secs(60 * 60 * 24 * 365));
}

/// One task renews what is due, at its time and not before.
#[tokio::test(start_paused = true)]
async fn the_task_renews_when_it_is_time() {
    let core = Arc::new(core());
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(renew_leases(Arc::clone(&core)));
    // The store does not know these tokens, which is a lasting error: each is lost when it is first renewed.
    let (work, turn) = (hold(&core, Kind::Activity, "w"), hold(&core, Kind::Turn, "t"));
    let begin = Instant::now();
    turn.lost().cancelled().await;
    assert_eq!(begin.elapsed().as_secs(), 4);
    assert!(!work.lost().is_cancelled());
    work.lost().cancelled().await;
    assert_eq!(begin.elapsed().as_secs(), 16);
    tasks.shutdown().await;
}

/// Nobody tells the task of a new lease: it looks often enough to find it in time.
#[tokio::test(start_paused = true)]
async fn the_task_finds_a_lease_that_came_while_it_slept() {
    let core = Arc::new(core());
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(renew_leases(Arc::clone(&core)));
    tokio::time::advance(SECOND / 2).await;
    let turn = hold(&core, Kind::Turn, "t");
    let begin = Instant::now();
    turn.lost().cancelled().await;
    assert_eq!(begin.elapsed().as_secs(), 4);
    tasks.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_given_back_is_not_given_back_again() {
    let core = core();
    hold(&core, Kind::Turn, "t").give_back(&core, None, true).await;
    assert_eq!(core.leases.dropped(), []);
}

/// A turn that is so long that its lease must be renewed blocks a thread; for an activity it is the usual thing.
#[tokio::test(start_paused = true)]
async fn a_long_turn_is_told_with_what_it_does() {
    let core = core();
    let (work, turn) = (hold(&core, Kind::Activity, "w"), hold(&core, Kind::Turn, "t"));
    turn.runs(busy().probe());
    let captured = Captured::default();
    captured.during(|| {
        core.leases.postpone(work.id, &core);
        core.leases.postpone(turn.id, &core);
    });
    let lines = captured.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("WARN duroxide::runtime::dispatchers::orchestration: a turn takes so long"));
    assert!(lines[0].contains("last_durable_call=schedule_activity at "), "{lines:?}");
}

/// An instance that is given back or committed runs no code, however long the store takes.
#[tokio::test(start_paused = true)]
async fn a_turn_that_waits_for_the_store_is_not_told_as_long_code() {
    let core = core();
    let (given_back, committed) = (hold(&core, Kind::Turn, "a"), hold(&core, Kind::Turn, "b"));
    committed.runs(busy().probe());
    committed.rests();
    let captured = Captured::default();
    captured.during(|| {
        core.leases.postpone(given_back.id, &core);
        core.leases.postpone(committed.id, &core);
    });
    let expected = "WARN duroxide::runtime::dispatchers::orchestration: a turn waits so long for the store that its \
                    lease must be renewed: no orchestration code runs instance_id=i";
    assert_eq!(captured.lines(), [expected; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_loss_is_told_with_its_kind() {
    let core = core();
    let (work, turn) = (hold(&core, Kind::Activity, "w"), hold(&core, Kind::Turn, "t"));
    let captured = Captured::default();
    captured.during(|| {
        for lease in [&work, &turn] {
            core.leases.lock().lose(&core, lease.id, "taken");
        }
    });
    let told = |kind| format!("INFO duroxide::runtime::worker: lease lost kind={kind} subject=i why=taken");
    assert_eq!(captured.lines(), [told("activity"), told("turn")]);
}

//! The table of renewals, dropped leases, and warnings about long turns.

use super::*;
use crate::captured::Captured;
use crate::dispatch::fixture::{busy, core};

const SECOND: Duration = Duration::from_secs(1);

fn hold(core: &Core, kind: Kind, token: &str) -> Lease {
    core.leases.hold(core, kind, token.to_string(), "i".into())
}

/// The renewals that are due: seconds from now, and lease id.
fn due(core: &Core) -> Vec<(f64, u64)> {
    let now = Instant::now();
    core.leases.lock().due.iter().map(|(at, id)| ((*at - now).as_secs_f64(), *id)).collect()
}

fn retryable() -> Result<(), ProviderError> {
    Err(ProviderError::retryable("renew", "busy"))
}

#[tokio::test(start_paused = true)]
async fn a_held_lease_is_due_after_its_interval() {
    let core = core();
    let (activity, turn) = (hold(&core, Kind::Activity, "a"), hold(&core, Kind::Turn, "t"));
    assert_eq!((activity.token(), turn.token()), ("a", "t"));
    assert_eq!(due(&core), [(4.0, turn.id), (16.0, activity.id)]);
    let deadlines = (activity.deadline_ms().load(Relaxed), turn.deadline_ms().load(Relaxed));
    assert_eq!(deadlines, (1_032_000, 1_008_000));
    assert!(!activity.lost().is_cancelled());
    turn.settle();
    assert_eq!(due(&core), [(16.0, activity.id)]);
}

#[tokio::test(start_paused = true)]
async fn a_renewed_lease_lasts_from_the_time_of_the_request() {
    let core = core();
    let lease = hold(&core, Kind::Activity, "w");
    tokio::time::advance(16 * SECOND).await;
    let asked_at = Instant::now();
    assert_eq!(core.leases.begin_renewal(lease.id, &core), Some((Kind::Activity, "w".into())));
    assert_eq!(due(&core), [(16.0, lease.id)], "the next renewal is scheduled before the answer");
    tokio::time::advance(5 * SECOND).await;
    lease.deadline_ms.store(0, Relaxed);
    core.leases.on_renewal_answer(&core, lease.id, asked_at, Ok(()));
    assert_eq!(due(&core), [(11.0, lease.id)]);
    assert_eq!(core.leases.lock().held[&lease.id].expires_at, asked_at + 32 * SECOND);
    assert_eq!(lease.deadline_ms.load(Relaxed), 1_032_000);
    // The answer took more than an interval: the next renewal is due at once, not in the past.
    core.leases.on_renewal_answer(&core, lease.id, asked_at - 20 * SECOND, Ok(()));
    assert_eq!(due(&core), [(0.0, lease.id)]);
}

#[tokio::test(start_paused = true)]
async fn a_retryable_error_is_retried_until_the_lease_has_expired() {
    let core = core();
    let lease = hold(&core, Kind::Activity, "w");
    let fail = || core.leases.on_renewal_answer(&core, lease.id, Instant::now(), retryable());
    // The first retry comes after an eighth of the interval; each further delay doubles, up to the end of the lease.
    fail();
    assert_eq!(due(&core), [(2.0, lease.id)]);
    fail();
    assert_eq!(due(&core), [(4.0, lease.id)]);
    core.leases.on_renewal_answer(&core, lease.id, Instant::now(), Ok(()));
    fail();
    assert_eq!(due(&core), [(2.0, lease.id)], "a renewal resets the backoff");
    tokio::time::advance(31 * SECOND).await;
    fail();
    assert_eq!(due(&core), [(1.0, lease.id)]);
    assert!(!lease.lost().is_cancelled());
    tokio::time::advance(SECOND).await;
    fail();
    assert!(lease.lost().is_cancelled(), "the lease has just expired");
    assert_eq!(due(&core), []);
}

#[tokio::test(start_paused = true)]
async fn after_a_permanent_error_the_lease_stays_lost() {
    let core = core();
    let (lease, other) = (hold(&core, Kind::Turn, "t"), hold(&core, Kind::Turn, "u"));
    let permanent = Err(ProviderError::permanent("renew", "taken"));
    core.leases.on_renewal_answer(&core, lease.id, Instant::now(), permanent);
    assert!(lease.lost().is_cancelled() && !other.lost().is_cancelled());
    assert_eq!(due(&core), [(4.0, other.id)]);
    core.leases.on_renewal_answer(&core, lease.id, Instant::now(), Ok(()));
    assert_eq!(due(&core), [(4.0, other.id)], "a late answer does not schedule a renewal");
}

#[tokio::test(start_paused = true)]
async fn an_expired_lease_is_not_renewed() {
    let core = core();
    let lease = hold(&core, Kind::Activity, "w");
    tokio::time::advance(32 * SECOND - Duration::from_millis(1)).await;
    assert!(core.leases.begin_renewal(lease.id, &core).is_some());
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(core.leases.begin_renewal(lease.id, &core), None);
    assert!(lease.lost().is_cancelled());
    assert_eq!(due(&core), []);
    assert_eq!(core.leases.begin_renewal(lease.id + 1, &core), None, "no lease has this id");
}

#[tokio::test(start_paused = true)]
async fn only_a_lease_that_is_neither_settled_nor_lost_is_listed_as_dropped() {
    let core = core();
    hold(&core, Kind::Turn, "settled").settle();
    let lost = hold(&core, Kind::Turn, "lost");
    lost.lost().cancel();
    drop(lost);
    drop(hold(&core, Kind::Turn, "turn"));
    drop(hold(&core, Kind::Activity, "activity"));
    let (turn, activity) = ((Kind::Turn, "turn".into()), (Kind::Activity, "activity".into()));
    assert_eq!(core.leases.dropped(), [turn.clone(), activity.clone()]);
    core.leases.remove_dropped("turn");
    assert_eq!(core.leases.dropped(), std::slice::from_ref(&activity));
    assert_eq!(core.leases.take_dropped(), [activity]);
    assert_eq!(core.leases.dropped(), []);
    assert_eq!(due(&core), []);
    assert!(core.leases.lock().held.is_empty());
}

#[test]
fn a_time_that_overflows_is_a_year_away() {
    let now = Instant::now();
    assert_eq!(saturating_later(now, SECOND), now + SECOND);
    assert!(saturating_later(now, Duration::MAX) >= now + Duration::from_secs(60 * 60 * 24 * 365));
}

#[tokio::test(start_paused = true)]
async fn each_lease_is_renewed_when_it_is_due() {
    let core = Arc::new(core());
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(renew_leases(Arc::clone(&core)));
    // The store does not have these tokens, which is a permanent error: each lease is lost at its first renewal.
    let (activity, turn) = (hold(&core, Kind::Activity, "a"), hold(&core, Kind::Turn, "t"));
    let begin = Instant::now();
    turn.lost().cancelled().await;
    assert_eq!(begin.elapsed().as_secs(), 4);
    assert!(!activity.lost().is_cancelled());
    activity.lost().cancelled().await;
    assert_eq!(begin.elapsed().as_secs(), 16);
    tasks.shutdown().await;
}

/// A new lease does not notify the renewal task; the task checks every half interval.
#[tokio::test(start_paused = true)]
async fn a_lease_that_is_added_while_the_renewal_task_sleeps_is_renewed_in_time() {
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
async fn a_lease_that_was_given_back_is_not_listed_as_dropped() {
    let core = core();
    hold(&core, Kind::Turn, "t").give_back(&core, None, true).await;
    assert_eq!(core.leases.dropped(), []);
}

/// A turn whose lease must be renewed blocks a thread. Renewals of activities are normal and not logged.
#[tokio::test(start_paused = true)]
async fn the_warning_about_a_long_turn_names_its_last_durable_call() {
    let core = core();
    let (activity, turn) = (hold(&core, Kind::Activity, "a"), hold(&core, Kind::Turn, "t"));
    turn.set_probe(busy().probe());
    let captured = Captured::default();
    captured.during(|| {
        core.leases.begin_renewal(activity.id, &core);
        core.leases.begin_renewal(turn.id, &core);
    });
    let lines = captured.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("WARN duroxide::runtime::dispatchers::orchestration: a turn takes so long"));
    assert!(lines[0].contains("last_durable_call=schedule_activity at "), "{lines:?}");
}

/// A turn that is being committed or given back runs no code, even if the store takes long.
#[tokio::test(start_paused = true)]
async fn the_warning_about_a_turn_that_waits_for_the_store_says_that_no_code_runs() {
    let core = core();
    let (given_back, committed) = (hold(&core, Kind::Turn, "a"), hold(&core, Kind::Turn, "b"));
    committed.set_probe(busy().probe());
    committed.clear_probe();
    let captured = Captured::default();
    captured.during(|| {
        core.leases.begin_renewal(given_back.id, &core);
        core.leases.begin_renewal(committed.id, &core);
    });
    let expected = "WARN duroxide::runtime::dispatchers::orchestration: a turn waits so long for the store that its \
                    lease must be renewed: no orchestration code runs instance_id=i";
    assert_eq!(captured.lines(), [expected; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_is_logged_with_its_kind() {
    let core = core();
    let (activity, turn) = (hold(&core, Kind::Activity, "a"), hold(&core, Kind::Turn, "t"));
    let captured = Captured::default();
    captured.during(|| {
        for lease in [&activity, &turn] {
            core.leases.lock().mark_lost(&core, lease.id, "taken");
        }
    });
    let line = |kind| format!("INFO duroxide::runtime::worker: lease lost kind={kind} subject=i why=taken");
    assert_eq!(captured.lines(), [line("activity"), line("turn")]);
}

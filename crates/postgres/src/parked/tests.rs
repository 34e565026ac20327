use super::*;
use crate::ask::TurnAsk;
use outlast_provider::MessageBound;

/// A caller that waits for its fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Present;

impl Caller for Present {
    fn is_gone(&self) -> bool {
        false
    }
}

type Turns = ParkedFetches<TurnAsk, Present>;

const PERIODIC: Duration = Duration::from_secs(60);

/// Fetches with the same lease duration ask for the same.
fn fetch(lock_ms: u64, is_new: bool) -> Fetch<TurnAsk, Present> {
    let ask = TurnAsk { lock_ms, filter: None, bound: MessageBound::default() };
    Fetch { ask, parks: true, is_new, caller: Present }
}

fn parked(fetches: &[(u64, bool)]) -> Turns {
    let mut parked = ParkedFetches::default();
    parked.fetches.extend(fetches.iter().map(|(lock_ms, is_new)| fetch(*lock_ms, *is_new)));
    parked
}

fn done(unserved: Vec<Fetch<TurnAsk, Present>>, is_served: bool) -> GroupDone<TurnAsk, Present> {
    GroupDone { unserved, is_served, lock_ms: 1, due_ms: None, no_sessions: None }
}

const NEW: bool = true;
const TRIED: bool = false;

/// One row for each event of the table on top of the module: the queue before, the event, and the queue after.
#[test]
fn each_event_leads_to_the_state_in_the_table() {
    let now = Instant::now();
    let later = now + Duration::from_secs(1);
    type Event = Box<dyn Fn(&mut Turns)>;
    /// Whether a poll is due, the time of the next poll, the count of changes, and the tried fetches.
    type After = (bool, Option<Instant>, u64, usize);
    let event = |of: fn(&mut Turns)| -> Event { Box::new(of) };
    let schedule = |reason, when| -> Event { Box::new(move |parked| parked.schedule_poll(reason, when)) };
    let rows: Vec<(&str, Turns, Event, After)> = vec![
        ("fetch, none parked", parked(&[]), event(|p| p.on_fetch(fetch(1, NEW))), (false, None, 0, 0)),
        (
            "fetch like a new one",
            parked(&[(1, NEW)]),
            event(|p| p.on_fetch(fetch(1, NEW))),
            (false, None, 0, 0),
        ),
        (
            "fetch like a tried one",
            parked(&[(1, TRIED)]),
            event(|p| p.on_fetch(fetch(1, NEW))),
            (false, None, 0, 2),
        ),
        (
            "fetch of other items",
            parked(&[(1, TRIED)]),
            event(|p| p.on_fetch(fetch(2, NEW))),
            (false, None, 0, 1),
        ),
        (
            "fetch while a poll is due",
            ParkedFetches { poll_due: true, ..parked(&[(1, TRIED)]) },
            event(|p| p.on_fetch(fetch(1, NEW))),
            (true, None, 0, 1),
        ),
        (
            "notification",
            parked(&[(1, TRIED)]),
            event(|p| assert_eq!(p.on_notification(0), None)),
            (true, None, 1, 1),
        ),
        ("change", parked(&[(1, NEW)]), schedule(Reason::RemoteChange, When::Now), (true, None, 1, 0)),
        ("change, none parked", parked(&[]), schedule(Reason::RemoteChange, When::Now), (false, None, 1, 0)),
        (
            "commit, tried fetch",
            parked(&[(1, TRIED)]),
            schedule(Reason::LocalCommit, When::Now),
            (true, None, 1, 1),
        ),
        (
            "commit, new fetch",
            parked(&[(1, NEW)]),
            schedule(Reason::LocalCommit, When::Now),
            (false, None, 1, 0),
        ),
        ("more left", parked(&[(1, TRIED)]), schedule(Reason::MoreLeft, When::Now), (true, None, 0, 1)),
        ("more left, none parked", parked(&[]), schedule(Reason::MoreLeft, When::Now), (false, None, 0, 0)),
        (
            "lost poll",
            parked(&[]),
            event(|p| p.on_poll_lost([fetch(1, TRIED)].into_iter())),
            (true, None, 0, 1),
        ),
        ("due", parked(&[(1, TRIED)]), schedule(Reason::Due, When::At(later)), (false, Some(later), 0, 1)),
        (
            "due later than known",
            ParkedFetches { poll_at: Some(now), ..parked(&[(1, TRIED)]) },
            schedule(Reason::Periodic, When::At(later)),
            (false, Some(now), 0, 1),
        ),
        (
            "time not come",
            ParkedFetches { poll_at: Some(later), ..parked(&[(1, TRIED)]) },
            Box::new(move |p| p.on_time(now)),
            (false, Some(later), 0, 1),
        ),
        (
            "time come",
            ParkedFetches { poll_at: Some(later), ..parked(&[(1, TRIED)]) },
            Box::new(move |p| p.on_time(later)),
            (true, None, 0, 1),
        ),
        (
            "poll served all",
            parked(&[(1, TRIED)]),
            Box::new(move |p| drop(p.on_poll_done(done(vec![], true), 0, PERIODIC, now))),
            (true, None, 0, 1),
        ),
        (
            "poll found nothing",
            parked(&[(1, NEW), (2, NEW)]),
            Box::new(move |p| drop(p.on_poll_done(done(vec![fetch(1, NEW)], false), 0, PERIODIC, now))),
            (false, Some(now + PERIODIC), 0, 2),
        ),
        (
            "poll missed a change",
            ParkedFetches { changes: 1, ..parked(&[]) },
            Box::new(move |p| drop(p.on_poll_done(done(vec![fetch(1, NEW)], false), 0, PERIODIC, now))),
            (true, Some(now + PERIODIC), 1, 1),
        ),
        (
            "hand-off refused",
            parked(&[]),
            event(|p| p.on_hand_off_refused(fetch(1, TRIED))),
            (true, None, 1, 1),
        ),
        (
            "server away",
            parked(&[(1, NEW), (1, TRIED)]),
            event(|p| assert_eq!(p.on_server_away().len(), 1)),
            (true, None, 0, 1),
        ),
    ];
    for (name, mut parked, event, expected) in rows {
        event(&mut parked);
        let tried = parked.fetches.iter().filter(|fetch| !fetch.is_new).count();
        assert_eq!((parked.poll_due, parked.poll_at, parked.changes, tried), expected, "{name}");
    }
}

#[test]
fn fetches_beyond_a_poll_are_polled_again_after_more_is_left_or_with_other_terms() {
    let mut alike = parked(&[(1, TRIED), (1, TRIED), (1, TRIED)]);
    assert!(alike.start_poll(false, 2).is_empty(), "no reason to poll");
    assert_eq!(lengths(&alike.start_poll(true, 2)), [2]);
    assert!(!alike.poll_due, "the poll speaks for the fetch that stays");
    alike.schedule_poll(Reason::MoreLeft, When::Now);
    assert_eq!(lengths(&alike.start_poll(false, 2)), [1]);

    let mut different = parked(&[(1, TRIED), (1, TRIED), (2, TRIED)]);
    assert_eq!(lengths(&different.start_poll(true, 2)), [2]);
    assert!(different.poll_due);
}

#[test]
fn new_fetch_waits_for_a_running_poll_and_learns_from_it() {
    let mut parked = parked(&[(1, NEW)]);
    let poll = parked.start_poll(false, 2);
    assert_eq!((lengths(&poll), parked.running), (vec![1], 1));
    parked.on_fetch(fetch(1, NEW));
    assert!(parked.start_poll(false, 2).is_empty(), "a poll runs");
    parked.on_poll_ended();
    let unserved = poll.into_fetches().collect();
    parked.on_poll_done(done(unserved, false), 0, PERIODIC, Instant::now());
    assert_eq!((parked.new_fetches(), parked.asks().count()), (0, 2));
    assert!(parked.start_poll(false, 2).is_empty(), "both are tried");
}

#[test]
fn starting_a_poll_keeps_only_times_that_are_scheduled_later() {
    let now = Instant::now();
    let [soon, later] = [20, 1_000].map(|ms| now + Duration::from_millis(ms));
    let mut parked = parked(&[(1, NEW)]);
    parked.schedule_poll(Reason::Due, When::At(later));
    assert!(!parked.start_poll(false, 2).is_empty());
    assert_eq!(parked.poll_at, None, "the poll sees what is due");
    parked.schedule_poll(Reason::Due, When::At(soon));
    parked.schedule_poll(Reason::Periodic, When::At(later));
    assert_eq!(parked.poll_at, Some(soon));
}

#[test]
fn fetch_that_does_not_park_is_returned_empty() {
    let mut parked: Turns = ParkedFetches::default();
    let unserved = vec![Fetch { parks: false, ..fetch(1, NEW) }, fetch(1, NEW)];
    let effects = parked.on_poll_done(done(unserved, false), 0, PERIODIC, Instant::now());
    assert_eq!((effects.empty.len(), parked.asks().count()), (1, 1));
}

#[test]
fn due_time_of_the_server_is_bounded_by_the_periodic_poll() {
    let now = Instant::now();
    let next_poll = |due_ms| {
        let mut parked: Turns = ParkedFetches::default();
        let done = GroupDone { due_ms, ..done(vec![fetch(1, NEW)], false) };
        parked.on_poll_done(done, 0, PERIODIC, now);
        parked.poll_at.map(|at| at - now)
    };
    assert_eq!(next_poll(None), Some(PERIODIC));
    assert_eq!(next_poll(Some(7)), Some(Duration::from_millis(8)), "times are whole milliseconds");
    assert_eq!(next_poll(Some(u64::MAX)), Some(PERIODIC));
}

#[test]
fn notification_is_forwarded_with_hops_by_result() {
    let now = Instant::now();
    let mut idle: Turns = ParkedFetches::default();
    assert_eq!(idle.on_notification(3), Some(4), "no fetch is parked");
    let after_poll = |unserved: Vec<_>, is_served, changes_meanwhile| {
        let mut parked = parked(&[(1, TRIED)]);
        assert_eq!(parked.on_notification(3), None);
        let poll = parked.start_poll(false, 9);
        parked.on_poll_ended();
        if changes_meanwhile {
            parked.schedule_poll(Reason::RemoteChange, When::Now);
        }
        parked.on_poll_done(done(unserved, is_served), poll.changes, PERIODIC, now).forward
    };
    assert_eq!(after_poll(vec![], true, false), Some(0), "served: there may be more");
    assert_eq!(after_poll(vec![fetch(1, TRIED)], true, false), Some(0), "served in part");
    assert_eq!(after_poll(vec![fetch(1, TRIED)], false, false), Some(4), "found nothing");
    assert_eq!(after_poll(vec![fetch(1, TRIED)], false, true), None, "another poll follows");
    assert_eq!(after_poll(vec![], true, true), Some(0), "all are served");
}

fn lengths(poll: &Poll<TurnAsk, Present>) -> Vec<usize> {
    poll.groups.iter().map(Vec::len).collect()
}

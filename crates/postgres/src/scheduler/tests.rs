//! Single transitions of the scheduler: what a transaction takes, and which tasks are woken.

use super::large::LARGE_BYTES;
use super::*;
use crate::ask::TurnAsk;
use crate::notify::PATIENCE as PATIENCE_OF_ITEMS;
use crate::parked::Fetch;
use crate::reply::Reply;
use crate::request::{Abandon, Attempts, Lease, Message, ReadTexts, Renew};
use outlast_provider::OsEntropy;
use outlast_provider_kit::MessageRow;
use outlast_provider_kit::TurnAtFetch;
use tokio::sync::oneshot;

pub(super) const LIMITS: Limits = Limits {
    lanes: 2,
    has_client_lane: true,
    poll_interval: Duration::from_secs(600),
    idle_poll_interval: Duration::from_secs(600),
};

pub(super) fn renewal() -> Request {
    let reply = Reply::new("renew", oneshot::channel().0);
    let (lease, attempts) = (Lease::Activity { secret: [0; 16], id: 1 }, Attempts::default());
    Request::Renew(Renew { lease, extend_ms: 1, reply, attempts })
}

/// A read of this many bytes.
pub(super) fn read_of(bytes: usize) -> Request {
    let at_fetch =
        TurnAtFetch { current_execution: 1, messages: 1, is_partial: true, instance: "i".to_string() };
    let (lease, attempts) = (Lease::Turn { secret: [0; 16], at_fetch }, Attempts::default());
    let reply = Reply::new("read", oneshot::channel().0);
    Request::ReadTexts(ReadTexts { lease, ids: vec![1], bytes, reply, attempts })
}

pub(super) fn message_of(instance: String, begins: bool) -> Request {
    let row = MessageRow { instance_id: instance, work_item: "{}".to_string(), not_before: 0, begins };
    let reply = Reply::new("enqueue", oneshot::channel().0);
    Request::Message(Message { row, begins, delay_ms: 0, most: None, reply })
}

fn message() -> Request {
    message_of("i".to_string(), false)
}

fn scheduler_with(holders: usize, client_requests: usize) -> Scheduler {
    let mut scheduler = Scheduler::new(LIMITS);
    scheduler.waiting.holders.extend((0..holders).map(|_| renewal()));
    scheduler.waiting.client_requests.extend((0..client_requests).map(|_| message()));
    scheduler
}

#[test]
fn transaction_waits_for_more_requests_while_heavy_ones_are_in_the_lanes() {
    let now = Instant::now();
    let sends = |count, load, waiting, since| {
        LanesInUse { count, load, last_sent_at: Some(now - since) }.allow_another(waiting, now)
    };
    let just = Duration::from_millis(1);
    assert!(sends(0, 0, 1, just), "no lane is in use");
    assert!(sends(1, LIGHT, 1, just), "a light transaction brings few requests back");
    assert!(!sends(1, LIGHT + 1, 1, just));
    assert!(!sends(1, FULL, FULL - 1, just));
    assert!(sends(1, FULL, FULL, just), "the next transaction is full");
    assert!(!sends(1, FULL, 1, PATIENCE - just));
    assert!(sends(1, FULL, 1, PATIENCE), "the other transaction takes long");
    assert!(sends(2, 2 * LIGHT, 1, just));
    assert!(!sends(2, 2 * LIGHT + 1, 1, just));
}

#[test]
fn client_requests_are_sent_ahead_of_requests_of_lease_holders() {
    let mut scheduler = scheduler_with(1, 1);
    let ahead = scheduler.next_client_requests(Instant::now(), &OsEntropy).unwrap();
    assert_eq!((ahead.batch.messages.len(), ahead.batch.len(), ahead.load), (1, 1, 0));
    let notifies = Wants { queues: PerQueue::TURNS, watches: true };
    assert_eq!(ahead.notifies, notifies, "other processes are notified");
    assert!(scheduler.next_client_requests(Instant::now(), &OsEntropy).is_none(), "no more client requests");
    let rest = scheduler.next_transaction(Instant::now(), &OsEntropy).unwrap();
    assert_eq!((rest.batch.renewals.len(), rest.batch.len(), rest.load), (1, 1, 1));
    let all = scheduler_with(1, 1).next_transaction(Instant::now(), &OsEntropy).unwrap();
    assert_eq!((all.batch.renewals.len(), all.batch.messages.len(), all.load), (1, 1, 2));
}

#[test]
fn transaction_takes_at_most_the_bound_of_requests_and_holders_first() {
    let rows = [
        // Holders and client requests that wait, the lane, and the holders and client requests in its transaction.
        (MOST_REQUESTS - 1, 2, Lane::All, (MOST_REQUESTS - 1, 1)),
        (MOST_REQUESTS + 1, 1, Lane::All, (MOST_REQUESTS, 0)),
        (1, 1, Lane::All, (1, 1)),
        (1, MOST_REQUESTS + 1, Lane::Clients, (0, MOST_REQUESTS)),
        (0, 0, Lane::All, (0, 0)),
    ];
    for (holders, client_requests, lane, expected) in rows {
        let mut waiting = scheduler_with(holders, client_requests).waiting;
        let batch = waiting.choose(lane);
        let chosen = (batch.renewals.len(), batch.messages.len());
        assert_eq!(chosen, expected, "{holders} holders, {client_requests} client requests, {lane:?}");
        assert_eq!(waiting.len() + batch.len(), holders + client_requests, "no request is lost");
    }
}

#[test]
fn notification_is_put_off_only_while_this_process_takes_items_itself() {
    let now = Instant::now();
    let others = Wants { queues: PerQueue::BOTH, watches: false };
    let notified = |others: Option<Wants>, fetches: bool, request: Request| {
        let mut scheduler = Scheduler::new(LIMITS);
        scheduler.on_listeners(others);
        let (sender, caller) = oneshot::channel();
        let ask = TurnAsk { lock_ms: 1, filter: None, bound: Default::default() };
        if fetches {
            scheduler.fetch_turn(Fetch { ask, parks: true, is_new: false, caller: sender });
        }
        scheduler.waiting.push(request);
        let transaction = scheduler.next_transaction(now, &OsEntropy).unwrap();
        drop(caller);
        (transaction.notifies.queues.turns, transaction.puts_off.turns)
    };
    assert_eq!(notified(Some(others), false, message()), (true, false), "this process has no fetches");
    assert_eq!(notified(Some(others), true, message()), (false, true), "its own fetch takes the turn");
    assert_eq!(
        notified(None, true, message()),
        (true, false),
        "the registrations of other processes are not known"
    );
    assert_eq!(
        notified(Some(Wants::default()), true, message()),
        (false, false),
        "no other process wants notifications"
    );
    let at_fetch =
        TurnAtFetch { current_execution: 1, messages: 1, is_partial: false, instance: "i".to_string() };
    let given_back = Request::Abandon(Abandon {
        lease: Lease::Turn { secret: [0; 16], at_fetch },
        delay_ms: None,
        ignore_attempt: true,
        note: None,
        reply: Reply::new("abandon", oneshot::channel().0),
        attempts: Attempts::default(),
    });
    assert_eq!(notified(Some(others), true, given_back), (true, false), "a turn that is given back");
}

#[test]
fn notification_that_was_put_off_is_due_later_and_when_the_store_is_closed() {
    let (now, after) = (Instant::now(), PATIENCE_OF_ITEMS + Duration::from_millis(1));
    let mut scheduler = Scheduler::new(LIMITS);
    scheduler.put_off(PerQueue::TURNS, now);
    assert!(scheduler.take_wake().listener);
    assert_eq!(scheduler.overdue_at(), Some(now + after));
    assert_eq!(scheduler.take_overdue(now), PerQueue::default());
    assert_eq!(scheduler.take_overdue(now + after), PerQueue::TURNS);
    assert_eq!(scheduler.overdue_at(), None);
    scheduler.put_off(PerQueue::TURNS, now);
    scheduler.close();
    assert_eq!(
        scheduler.take_overdue(now),
        PerQueue::TURNS,
        "after the close this process sends no notification"
    );
}

#[test]
fn submitted_request_wakes_the_lane_that_takes_it() {
    let now = Instant::now();
    let wakes = |busy: usize, request: Request| {
        let mut scheduler = Scheduler::new(LIMITS);
        scheduler.lanes.count = busy;
        scheduler.submit(request, now);
        scheduler.take_wake()
    };
    let lane = Wake { lane: true, ..Wake::default() };
    let client_lane = Wake { client_lane: true, ..Wake::default() };
    assert_eq!(wakes(0, message()), lane);
    assert_eq!(wakes(LIMITS.lanes, message()), client_lane, "all lanes are in use");
    assert_eq!(wakes(LIMITS.lanes, renewal()), lane, "holders wait for a lane");
}

#[test]
fn large_requests_travel_alone_and_leave_the_other_lane_to_small_ones() {
    let now = Instant::now();
    let mut scheduler = Scheduler::new(LIMITS);
    for request in [read_of(LARGE_BYTES), renewal(), read_of(4 * LARGE_BYTES), read_of(LARGE_BYTES - 1)] {
        scheduler.submit(request, now);
    }
    let mut sent = Vec::new();
    for _ in 0..LIMITS.lanes {
        let Next::Send(transaction) = scheduler.next(now, &OsEntropy) else { panic!("two lanes send") };
        let Transaction { batch, large, .. } = *transaction;
        sent.push((large, batch.renewals.len(), batch.reads.len()));
    }
    let first = sent[0].0;
    assert!(first.is_some());
    assert_eq!(sent, [(first, 0, 1), (None, 1, 1)]);

    scheduler.on_lane_free(2, None, now);
    let Next::WaitUntil(None) = scheduler.next(now, &OsEntropy) else { panic!("a large one is on its way") };
    scheduler.submit(renewal(), now);
    let ended = now + Duration::from_millis(100);
    scheduler.on_lane_free(1, first, ended);
    let Next::Send(small) = scheduler.next(ended, &OsEntropy) else { panic!("the small one is sent") };
    assert!(small.large.is_none());
    let paused_until = ended + Duration::from_millis(100);
    assert!(matches!(scheduler.next(ended, &OsEntropy), Next::WaitUntil(Some(at)) if at == paused_until));
    let Next::Send(large) = scheduler.next(paused_until, &OsEntropy) else { panic!("the pause is over") };
    assert!(large.large.is_some());
}

#[test]
fn client_lane_sends_a_second_large_request_only_while_no_small_ones_come() {
    let now = Instant::now();
    let later = now + Duration::from_secs(1);
    let mut scheduler = Scheduler::new(LIMITS);
    let large = |next: Next| match next {
        Next::Send(transaction) => Ok(transaction.large.expect("no small request waits")),
        Next::WaitUntil(at) => Err(at),
        Next::End => panic!("the store is not closed"),
    };
    (0..5).for_each(|_| scheduler.submit(read_of(LARGE_BYTES), now));
    let both = Wake { lane: true, client_lane: true, listener: false };
    assert_eq!(scheduler.take_wake(), both, "both are for large requests");
    assert_eq!(large(scheduler.next_of_client_lane(now, &OsEntropy)), Err(None), "none is on its way");
    let first = large(scheduler.next(now, &OsEntropy)).unwrap();
    assert_eq!(scheduler.take_wake(), both, "others wait");
    let second = large(scheduler.next_of_client_lane(now, &OsEntropy)).unwrap();
    assert_eq!(large(scheduler.next(now, &OsEntropy)), Err(None), "this lane is left to small requests");

    scheduler.lanes.count = LIMITS.lanes;
    scheduler.submit(message(), now);
    let lane = Wake { lane: true, ..Wake::default() };
    assert_eq!(scheduler.take_wake(), lane, "the client lane is in use");
    scheduler.lanes.count = 1;
    let Next::Send(small) = scheduler.next(now, &OsEntropy) else { panic!("the small one is sent") };
    scheduler.take_wake();
    scheduler.on_client_lane_free(second, now);
    assert_eq!(scheduler.take_wake(), lane, "large requests wait");
    let quiet = now + Duration::from_millis(100);
    assert_eq!(large(scheduler.next_of_client_lane(now, &OsEntropy)), Err(Some(quiet)), "a small one came");
    let third = large(scheduler.next_of_client_lane(quiet, &OsEntropy)).unwrap();
    scheduler.on_lane_free(small.load, None, later);
    scheduler.on_lane_free(1, Some(first), later);
    scheduler.on_client_lane_free(third, later);
    assert_eq!(large(scheduler.next_of_client_lane(later, &OsEntropy)), Err(None), "none is on its way");
    assert!(large(scheduler.next(later, &OsEntropy)).is_ok());
}

#[test]
fn neither_large_nor_small_requests_starve_on_one_lane_while_both_always_wait() {
    let begun = Instant::now();
    let mut now = begun;
    let mut scheduler = Scheduler::new(Limits { lanes: 1, ..LIMITS });
    let (mut large, mut small) = (0, 0);
    // One lane, whose transactions take 20 ms each, and never without waiting requests.
    while now < begun + Duration::from_secs(10) {
        scheduler.submit(renewal(), now);
        scheduler.large.push(read_of(LARGE_BYTES), now);
        let Next::Send(transaction) = scheduler.next(now, &OsEntropy) else { panic!("requests wait") };
        now += Duration::from_millis(20);
        match transaction.large {
            Some(_) => large += 1,
            None => small += 1,
        }
        scheduler.on_lane_free(transaction.load, transaction.large, now);
    }
    assert!(large >= 70 && small >= 250, "{large} large and {small} small transactions");
}

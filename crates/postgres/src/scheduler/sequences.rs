//! Generated sequences of events drive a scheduler and a model of its server (`simulated_server.rs`). [`broken`] says which property a sequence
//! breaks.

mod requests;
mod simulated_server;

use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};
use simulated_server::SimulatedServer;
use std::cell::Cell;
use std::fmt::Debug;
use std::str::FromStr;

/// The properties that every sequence must have when the lanes have come to rest.
const REST: &str = "the lanes come to rest";
const COMMITTED: &str = "every request is committed once";
const TURNS: &str = "no turn is fetchable while a fetch of turns is parked";
const ACTIVITIES: &str = "no activity is fetchable while a fetch of activities is parked";

/// An event of a generated sequence. Numbers choose among the existing requests and fetches.
#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    FetchTurn {
        parks: bool,
    },
    FetchActivities {
        parks: bool,
        most: usize,
    },
    /// The caller of a fetch stops waiting.
    Leave(usize),
    Renew,
    Large,
    Message {
        begins: bool,
    },
    /// A client enqueues an activity.
    Activity,
    /// A turn schedules activities.
    Schedule {
        activities: usize,
    },
    /// An activity that was fetched is completed.
    Complete,
    /// An activity that was fetched is given back, at once or with a delay.
    GiveBack {
        delay_ms: Option<u64>,
    },
    /// Another process commits an item of one queue, and notifies this one.
    Notified {
        turns: bool,
    },
    /// The listener is connected again. Meanwhile another process has committed an item of each queue.
    Reconnected,
    Lane,
    ClientLane,
    /// The server commits a transaction; hand-offs are accepted or refused.
    Execute {
        nth: usize,
        accepts: bool,
    },
    Finish(usize),
    Fail(usize),
    ServerAway,
    Pass {
        ms: u64,
    },
}

pub(super) fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        3 => any::<bool>().prop_map(|parks| Event::FetchTurn { parks }),
        3 => (any::<bool>(), 1_usize..4).prop_map(|(parks, most)| Event::FetchActivities { parks, most }),
        1 => any::<usize>().prop_map(Event::Leave),
        1 => Just(Event::Renew),
        1 => Just(Event::Large),
        3 => any::<bool>().prop_map(|begins| Event::Message { begins }),
        1 => Just(Event::Activity),
        2 => (1_usize..4).prop_map(|activities| Event::Schedule { activities }),
        1 => Just(Event::Complete),
        1 => prop::option::of(1_u64..30).prop_map(|delay_ms| Event::GiveBack { delay_ms }),
        2 => any::<bool>().prop_map(|turns| Event::Notified { turns }),
        1 => Just(Event::Reconnected),
        8 => Just(Event::Lane),
        2 => Just(Event::ClientLane),
        8 => (any::<usize>(), any::<bool>()).prop_map(|(nth, accepts)| Event::Execute { nth, accepts }),
        8 => any::<usize>().prop_map(Event::Finish),
        1 => any::<usize>().prop_map(Event::Fail),
        1 => Just(Event::ServerAway),
        2 => (1_u64..30).prop_map(|ms| Event::Pass { ms }),
    ];
    prop::collection::vec(event, 1..100)
}

/// The property that these events break.
pub(super) fn broken(events: Vec<Event>) -> Option<&'static str> {
    let mut server = SimulatedServer::new();
    events.into_iter().for_each(|event| server.on(event));
    if !server.settle() {
        return Some(REST);
    }
    let starves = server.starves();
    match (server.waiting_requests, starves.turns, starves.activities) {
        (1.., ..) => Some(COMMITTED),
        (_, true, _) => Some(TURNS),
        (_, _, true) => Some(ACTIVITIES),
        _ => None,
    }
}

/// A number from the environment.
fn setting<T: FromStr>(name: &str, default: T) -> T
where
    T::Err: Debug,
{
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

/// `OUTLAST_SCHEDULER_CASES` sets the number of sequences and `OUTLAST_SCHEDULER_SEED` their seed. `OUTLAST_SCHEDULER_JSON` names a file for
/// the figures.
#[test]
#[allow(clippy::print_stdout, reason = "the number of sequences is for the terminal")]
fn generated_events_lose_no_request_and_no_wake_up() {
    let mut runner = TestRunner::new(ProptestConfig {
        cases: setting("OUTLAST_SCHEDULER_CASES", 1_000),
        rng_seed: RngSeed::Fixed(setting("OUTLAST_SCHEDULER_SEED", 1)),
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let (sequences, fired) = (Cell::new(0_u64), Cell::new(0_u64));
    let ran = runner.run(&events(), |events| {
        sequences.set(sequences.get() + 1);
        fired.set(fired.get() + events.len() as u64);
        prop_assert_eq!(broken(events), None);
        Ok(())
    });
    let (sequences, events, broken) = (sequences.get(), fired.get(), u8::from(ran.is_err()));
    println!("{sequences} sequences of {events} events, {broken} broken");
    if let Ok(file) = std::env::var("OUTLAST_SCHEDULER_JSON") {
        let figures = format!("{{\"sequences\": {sequences}, \"events\": {events}, \"broken\": {broken}}}\n");
        std::fs::write(&file, figures).unwrap_or_else(|error| panic!("{file}: {error}"));
    }
    ran.unwrap_or_else(|error| panic!("{error}"));
}

/// A poll for a fetch that does not park speaks for one that came meanwhile, and misses a commit.
#[test]
fn fetch_that_counts_as_tried_by_a_poll_that_missed_a_commit_is_polled_for() {
    let fetch = |parks| Event::FetchTurn { parks };
    let message = Event::Message { begins: false };
    let execute = Event::Execute { nth: 1, accepts: false };
    let events = vec![message, Event::Lane, fetch(false), Event::Lane, execute, fetch(true)];
    assert_eq!(broken(events), None);
}

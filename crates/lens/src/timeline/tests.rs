//! The cost of a timeline.

use super::{TimelineOptions, timeline};
use crate::steps::count;
use outlast_model::{AppErrorKind, ErrorDetails, Event, EventKind};

fn event(id: u64, source: Option<u64>, kind: EventKind) -> Event {
    Event::at(id * 10, id, "i", 1, source, kind)
}

fn activity(name: &str) -> EventKind {
    EventKind::ActivityScheduled { name: name.into(), input: "x".into(), session_id: None, tag: None }
}

fn failed() -> EventKind {
    let kind = AppErrorKind::ActivityFailed;
    EventKind::ActivityFailed {
        details: ErrorDetails::Application { kind, message: String::new(), retryable: false },
    }
}

/// A history with this number of events.
type Shape = fn(u64) -> Vec<Event>;

/// Histories that cost a naive fold the square of their length.
fn shapes() -> Vec<(&'static str, Shape)> {
    fn fan_out(events: u64) -> Vec<Event> {
        let half = events / 2;
        let scheduled = (1..=half).map(|id| event(id, None, activity("A")));
        let done = |id: u64| event(half + id, Some(id), EventKind::ActivityCompleted { result: "x".into() });
        scheduled.chain((1..=half).map(done)).collect()
    }
    fn waits_of_one_name(events: u64) -> Vec<Event> {
        let half = events / 2;
        let waits = (1..=half).map(|id| event(id, None, EventKind::ExternalSubscribed { name: "go".into() }));
        let raised =
            |id: u64| event(id, None, EventKind::ExternalEvent { name: "go".into(), data: "x".into() });
        waits.chain((half + 1..=events).map(raised)).collect()
    }
    fn cancelled_waits(events: u64) -> Vec<Event> {
        let third = events / 3;
        let waits =
            (1..=third).map(|id| event(id, None, EventKind::ExternalSubscribed { name: "go".into() }));
        let cancelled = |id: u64| {
            let kind = EventKind::ExternalSubscribedCancelled { reason: "x".into() };
            event(third + id, Some(id), kind)
        };
        let raised =
            |id: u64| event(id, None, EventKind::ExternalEvent { name: "go".into(), data: "x".into() });
        waits.chain((1..=third).map(cancelled)).chain((2 * third + 1..=events).map(raised)).collect()
    }
    fn queue(events: u64) -> Vec<Event> {
        let half = events / 2;
        let came =
            |id: u64| event(id, None, EventKind::QueueEventDelivered { name: "q".into(), data: "x".into() });
        let takes = |id: u64| event(id, None, EventKind::QueueSubscribed { name: "q".into() });
        (1..=half).map(came).chain((half + 1..=events).map(takes)).collect()
    }
    fn retries(events: u64) -> Vec<Event> {
        let one_try = |index: u64| {
            let id = index * 4 + 1;
            let at = |at_ms, event| Event { timestamp_ms: at_ms, ..event };
            [
                at(id, event(id, None, activity("A"))),
                at(id + 1, event(id + 1, Some(id), failed())),
                at(id + 1, event(id + 2, None, EventKind::TimerCreated { fire_at_ms: id + 4 })),
                at(id + 4, event(id + 3, Some(id + 2), EventKind::TimerFired { fire_at_ms: id + 4 })),
            ]
        };
        (0..events / 4).flat_map(one_try).collect()
    }
    fn parallel_retries(events: u64) -> Vec<Event> {
        let part = events / 5;
        let tries = (1..=part).map(|id| event(id, None, activity("A")));
        let one_turn = |event| Event { timestamp_ms: 7, ..event };
        let failures = (1..=part).map(|id| one_turn(event(part + id, Some(id), failed())));
        let timers = (1..=part)
            .map(|id| one_turn(event(2 * part + id, None, EventKind::TimerCreated { fire_at_ms: 1 })));
        let fired = (1..=part)
            .map(|id| event(3 * part + id, Some(2 * part + id), EventKind::TimerFired { fire_at_ms: 1 }));
        let again = (4 * part + 1..=5 * part).map(|id| event(id, None, activity("A")));
        tries.chain(failures).chain(timers).chain(fired).chain(again).collect()
    }
    vec![
        ("fan-out", fan_out as Shape),
        ("waits of one name", waits_of_one_name),
        ("cancelled waits", cancelled_waits),
        ("queue", queue),
        ("retries", retries),
        ("parallel retries", parallel_retries),
    ]
}

#[test]
fn steps_of_a_timeline_grow_with_the_number_of_events() {
    for (name, shape) in shapes() {
        let steps = |events: u64| {
            let history = shape(events);
            count(|| drop(timeline(&history, 1_000_000, &TimelineOptions::default())))
        };
        let (small, large) = (steps(10_000), steps(20_000));
        assert!(
            large <= 2 * small + small / 10,
            "{name}: {small} steps for 10,000, {large} for 20,000 events"
        );
        assert!(large <= 10 * 20_000, "{name}: {large} steps");
    }
}

#[test]
fn parallel_retries_are_paired_one_to_one() {
    let (_, shape) =
        shapes().into_iter().find(|(name, _)| *name == "parallel retries").unwrap_or_else(|| panic!());
    let found = timeline(&shape(50), 1_000_000, &TimelineOptions::default());
    let attempts: Vec<u32> = found.spans.iter().map(|span| span.attempts).collect();
    assert_eq!(attempts, [2; 10]);
}

#[test]
fn tries_in_a_row_are_one_span() {
    let (_, shape) = shapes().into_iter().find(|(name, _)| *name == "retries").unwrap_or_else(|| panic!());
    let found = timeline(&shape(4_000), 1_000_000, &TimelineOptions::default());
    let attempts: Vec<u32> = found.spans.iter().map(|span| span.attempts).collect();
    assert_eq!(attempts, [1_000, 1], "the activity, and the timer before the next try");
}

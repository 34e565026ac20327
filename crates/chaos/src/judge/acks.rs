//! What workers were told, against what is stored: nothing that was acknowledged is missing or different, and nothing
//! was acknowledged to two.

use crate::evidence::{Ack, digest_of};
use outlast::{Event, EventKind};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn problems(acks: &[&Ack], executions: &BTreeMap<u64, Vec<Event>>) -> Vec<String> {
    let mut problems = Vec::new();
    let mut owned = BTreeSet::new();
    let mut answered = BTreeSet::new();
    for ack in acks {
        match ack {
            Ack::Turn { execution, first, last, .. } => {
                if let Some(event) = (*first..=*last).find(|event| !owned.insert((*execution, *event))) {
                    problems.push(format!("execution {execution}: event {event} was acknowledged twice"));
                }
                if !is_stored(ack, executions) {
                    problems.push(format!(
                        "execution {execution}: events {first} to {last} are not stored as acknowledged"
                    ));
                }
            }
            Ack::Work { execution, activity, .. } => {
                if !answered.insert((*execution, *activity)) {
                    problems.push(format!("execution {execution}: activity {activity} was completed twice"));
                }
                if !is_stored(ack, executions) {
                    problems.push(format!(
                        "execution {execution}: the outcome of activity {activity} is not stored"
                    ));
                }
            }
        }
    }
    problems
}

/// Whether exactly this is stored: events of a turn carry the time at which they were made, so no other turn has them.
/// The outcome of an activity may be another worker's.
pub(super) fn is_stored(commit: &Ack, executions: &BTreeMap<u64, Vec<Event>>) -> bool {
    match commit {
        Ack::Turn { execution, first, last, digest, .. } => {
            let stored = events(executions, *execution);
            digest_of(stored.filter(|event| (*first..=*last).contains(&event.event_id))) == *digest
        }
        Ack::Work { execution, activity, .. } => {
            events(executions, *execution).any(|event| settles(event, *activity))
        }
    }
}

fn events(executions: &BTreeMap<u64, Vec<Event>>, execution: u64) -> impl Iterator<Item = &Event> {
    executions.get(&execution).into_iter().flatten()
}

/// Its outcome, or the note that nobody wanted it any more.
fn settles(event: &Event, activity: u64) -> bool {
    let settles = matches!(
        event.kind,
        EventKind::ActivityCompleted { .. }
            | EventKind::ActivityFailed { .. }
            | EventKind::ActivityCancelRequested { .. }
    );
    settles && event.source_event_id == Some(activity)
}

#[cfg(test)]
mod tests {
    use super::super::history::tests::events;
    use super::*;

    fn turn(events: &[Event]) -> Ack {
        Ack::of_turn(events).unwrap()
    }

    fn work(activity: u64) -> Ack {
        Ack::Work { instance: "i".to_string(), execution: 1, activity }
    }

    fn check(acks: &[&Ack], events: &[Event]) -> Vec<String> {
        problems(acks, &BTreeMap::from([(1, events.to_vec())]))
    }

    #[test]
    fn what_is_stored_as_acknowledged_is_fine() {
        let all = events("started scheduled scheduled completed<-2 dropped<-3 ended");
        let (first, second) = (turn(&all[..3]), turn(&all[3..]));
        // A turn that nobody was told about is fine too: its worker was killed.
        assert_eq!(check(&[&second, &work(2), &work(3)], &all), [""; 0]);
        assert_eq!(check(&[&first, &second], &all), [""; 0]);
    }

    #[test]
    fn what_is_missing_or_different_is_found() {
        let all = events("started scheduled completed<-2 ended");
        let told = turn(&all[2..]);
        let missing = ["execution 1: events 3 to 4 are not stored as acknowledged"];
        assert_eq!(check(&[&told], &all[..2]), missing);
        let mut other = all.clone();
        other[3].timestamp_ms += 1;
        assert_eq!(check(&[&told], &other), missing);
        assert_eq!(check(&[&work(2)], &all[..2]), ["execution 1: the outcome of activity 2 is not stored"]);
    }

    #[test]
    fn what_two_were_told_is_found() {
        let all = events("started scheduled completed<-2 ended");
        let (one, other) = (turn(&all[..2]), turn(&all[1..]));
        assert_eq!(check(&[&one, &other], &all), ["execution 1: event 2 was acknowledged twice"]);
        assert_eq!(check(&[&work(2), &work(2)], &all), ["execution 1: activity 2 was completed twice"]);
    }
}

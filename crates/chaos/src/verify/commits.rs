//! Compares acknowledged commits with the store: each is stored unchanged, and was acknowledged to one worker only.

use crate::commit_log::{Commit, digest_of};
use outlast::{Event, EventKind};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn problems(commits: &[&Commit], executions: &BTreeMap<u64, Vec<Event>>) -> Vec<String> {
    let mut problems = Vec::new();
    let mut owned = BTreeSet::new();
    let mut answered = BTreeSet::new();
    for commit in commits {
        match commit {
            Commit::Turn { execution, first, last, .. } => {
                if let Some(event) = (*first..=*last).find(|event| !owned.insert((*execution, *event))) {
                    problems.push(format!("execution {execution}: event {event} was acknowledged twice"));
                }
                if !is_stored(commit, executions) {
                    problems.push(format!(
                        "execution {execution}: events {first} to {last} are not stored as acknowledged"
                    ));
                }
            }
            Commit::Activity { execution, activity, .. } => {
                if !answered.insert((*execution, *activity)) {
                    problems.push(format!("execution {execution}: activity {activity} was completed twice"));
                }
                if !is_stored(commit, executions) {
                    problems.push(format!(
                        "execution {execution}: the outcome of activity {activity} is not stored"
                    ));
                }
            }
        }
    }
    problems
}

/// Whether this commit is stored. Events of a turn contain their time, so no other turn has the same digest. The
/// outcome of an activity may be from another worker.
pub(super) fn is_stored(commit: &Commit, executions: &BTreeMap<u64, Vec<Event>>) -> bool {
    match commit {
        Commit::Turn { execution, first, last, digest, .. } => {
            let stored = events(executions, *execution);
            digest_of(stored.filter(|event| (*first..=*last).contains(&event.event_id))) == *digest
        }
        Commit::Activity { execution, activity, .. } => {
            events(executions, *execution).any(|event| settles(event, *activity))
        }
    }
}

fn events(executions: &BTreeMap<u64, Vec<Event>>, execution: u64) -> impl Iterator<Item = &Event> {
    executions.get(&execution).into_iter().flatten()
}

/// Whether the event is the outcome or the cancellation of the activity.
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

    fn turn(events: &[Event]) -> Commit {
        Commit::of_turn(events).unwrap()
    }

    fn activity(activity: u64) -> Commit {
        Commit::Activity { instance: "i".to_string(), execution: 1, activity }
    }

    fn check(commits: &[&Commit], events: &[Event]) -> Vec<String> {
        problems(commits, &BTreeMap::from([(1, events.to_vec())]))
    }

    #[test]
    fn stored_commits_pass() {
        let all = events("started scheduled scheduled completed<-2 dropped<-3 ended");
        let (first, second) = (turn(&all[..3]), turn(&all[3..]));
        // A turn without an acknowledgement is allowed: its worker was killed.
        assert_eq!(check(&[&second, &activity(2), &activity(3)], &all), [""; 0]);
        assert_eq!(check(&[&first, &second], &all), [""; 0]);
    }

    #[test]
    fn missing_and_changed_commits_are_found() {
        let all = events("started scheduled completed<-2 ended");
        let acknowledged = turn(&all[2..]);
        let missing = ["execution 1: events 3 to 4 are not stored as acknowledged"];
        assert_eq!(check(&[&acknowledged], &all[..2]), missing);
        let mut other = all.clone();
        other[3].timestamp_ms += 1;
        assert_eq!(check(&[&acknowledged], &other), missing);
        assert_eq!(
            check(&[&activity(2)], &all[..2]),
            ["execution 1: the outcome of activity 2 is not stored"]
        );
    }

    #[test]
    fn commits_acknowledged_twice_are_found() {
        let all = events("started scheduled completed<-2 ended");
        let (one, other) = (turn(&all[..2]), turn(&all[1..]));
        assert_eq!(check(&[&one, &other], &all), ["execution 1: event 2 was acknowledged twice"]);
        assert_eq!(
            check(&[&activity(2), &activity(2)], &all),
            ["execution 1: activity 2 was completed twice"]
        );
    }
}
